"""`kappa` as a process of its own, as a user starts it, and what it leaves in its home folder."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb

from warehouse.home.home import Home

ROOT = Path(__file__).resolve().parents[2]
SECRET = "hf_secretWhichMustNotLeak0123456789"  # noqa: S105 - no account has it
# Against hanging for ever, not a measure: a busy machine takes many times as long as an idle one.
PATIENCE_S = 900.0


# The same program with one empty figure for all: where the pictures are no part of the question.
UNDRAWN = """
import contextlib, sys
from assets import __main__ as program
if "run" in sys.argv:
    from reports.figures import boundness, cache, crit, distributions, load, questions, routing, style
    style.theme = contextlib.nullcontext
    style.svg_bytes = lambda figure: b"<svg/>"
    style.png_bytes = lambda figure: b""
    cache.draw_capacity = cache.draw_tiers = lambda *given: None
    for figures in (boundness, crit, distributions, load, questions, routing):
        figures.draw = lambda *given: None
sys.exit(program.main())
"""


@dataclass(frozen=True)
class Kappa:
    """The command line with one home folder, one cache and one Hub, of this checkout or of a copy.

    Where `has_figures` is False, a run to the end leaves them empty; one that is `started` is the program as it is.
    """

    home: Path
    hf_home: Path
    endpoint: str
    root: Path = ROOT
    has_figures: bool = True

    @property
    def program(self) -> list[str]:
        """The arguments of Python that start the command line."""
        return ["-m", "assets"] if self.has_figures else ["-c", UNDRAWN]

    def environment(self, **more: str) -> dict[str, str]:
        """Return the variables of the process: nothing of ours that the caller's shell may have set."""
        foreign = ("HF_", "HUGGING", "KAPPA", "DAGSTER", "PYTHONWARNINGS")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        ours = {"HF_ENDPOINT": self.endpoint, "HF_HOME": str(self.hf_home), "HF_TOKEN": SECRET, "NO_COLOR": "1"}
        patient = dict.fromkeys(("HF_HUB_DOWNLOAD_TIMEOUT", "HF_HUB_ETAG_TIMEOUT"), f"{PATIENCE_S:.0f}")
        return {**kept, "KAPPA_HOME": str(self.home), **ours, **patient, **more}

    def __call__(self, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:  # noqa: ANN401
        """Run to the end; variables may be given by `env`, another program than the command line by `program`."""
        environment = self.environment(**more.pop("env", {}))
        program = ["-c", more.pop("program")] if "program" in more else self.program
        command = [sys.executable, *program, *arguments]
        return subprocess.run(
            command,
            cwd=self.root,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
            **more,
        )

    @contextlib.contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """Yield a running process in a session of its own, so that a signal reaches it alone; SIGKILL it at the end."""
        command = [sys.executable, "-m", "assets", *arguments]
        process = subprocess.Popen(
            command, cwd=self.root, env=self.environment(), start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def twin(self, home: Path) -> Kappa:
        """Return the same with a copy of the home folder."""
        shutil.copytree(self.home, home, symlinks=True)
        return replace(self, home=home)

    @property
    def generation(self) -> int:
        """The number of the current generation."""
        return int(self.note()["generation"])

    def note(self) -> dict[str, Any]:
        """Return what the current generation notes of itself."""
        return dict(json.loads((self.home / "current" / "generation.json").read_text("utf8")))

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query on the current database."""
        with duckdb.connect(str(self.home / "warehouse.duckdb"), read_only=True) as connection:
            return list(connection.sql(query).fetchall())

    def products(self) -> dict[str, str]:
        """Return the identity of the newest product of every step."""
        staging = Home(self.home).staging(is_sample=False)
        newest = {name: staging.newest(name) for name in staging.names("")}
        return {name: product.identity for name, product in newest.items() if product is not None}

    def state(self) -> dict[str, bytes]:
        """Return every file of the current generation by its path."""
        return files_below((self.home / "current").resolve())


@dataclass(frozen=True)
class Sample:
    """A home with the sample, and what the run printed."""

    kappa: Kappa
    stdout: str
    stderr: str


def files_below(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file below a folder by its path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def errors_of(process: subprocess.CompletedProcess[str] | Sample) -> list[str]:
    """Return the lines on standard error that are no progress."""
    return [line for line in process.stderr.splitlines() if not line.startswith("kappa: ")]


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str], step_s: float = 0.002) -> None:
    """Wait until a condition holds or the process has ended."""
    end = time.monotonic() + PATIENCE_S
    while not condition() and process.poll() is None:
        assert time.monotonic() < end, "waited in vain"
        time.sleep(step_s)

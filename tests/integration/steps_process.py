"""The steps in processes that end at a chosen write, by SIGKILL: `python steps_process.py HOME REPOSITORIES`.

A line of JSON on standard input (`revision`, and the writes that were `passed` before) forks a process that runs every
step and publishes; it kills itself at its first write that is not among those. The answer tells that write, if any.
Imported once, forked for each run: a run costs its own work alone. A token is a character.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import duckdb
from conftest import Lab, _characters, _fetch
from writes import Disk, watched_parquet

from pipelines.steps import counts, fetching
from pipelines.steps.inputs import code_version
from warehouse.hardware_rows.rows import REFERENCE, load_reference, user_folder
from warehouse.home.home import Home


def run(home: Home, repositories: Path, revision: str) -> None:
    """Do what `kappa run` does, without Dagster around it."""
    fetching.fetch_tokenizer = _fetch  # type: ignore[assignment]
    counts.count_checked = _characters
    home.prepare()
    with home.lock("run"):
        staging = home.staging(is_sample=False)
        staging.remove_drafts()
        lab = Lab(repositories, staging, home)
        lab.turns("finqa", revision=revision)
        lab.warehouse()


def child(home: Home, repositories: Path, order: dict[str, Any], answer: int) -> None:
    """Run once in this process, which a write that is not passed ends."""

    def die(site: str, path: str) -> None:
        del path
        os.write(answer, site.encode())
        os.kill(os.getpid(), signal.SIGKILL)

    disk = Disk(die)
    sys.addaudithook(disk.audit)
    watched_parquet(disk, setattr)
    disk.watch(home.path, order["passed"])
    run(home, repositories, order["revision"])


def main() -> None:
    """Answer orders until standard input ends."""
    home, repositories = Home(Path(sys.argv[1])), Path(sys.argv[2])
    # What each run would import and compute anew.
    code_version()
    for name in REFERENCE:
        load_reference(name, user=user_folder(home.path))
    assert duckdb.__version__
    for line in sys.stdin:
        reads, writes = os.pipe()
        process = os.fork()
        if not process:
            try:
                child(home, repositories, json.loads(line), writes)
            except BaseException as error:  # noqa: BLE001 - the parent tells it
                os.write(writes, f"failed: {type(error).__name__} {error}".encode())
                os._exit(1)
            os._exit(0)
        os.close(writes)
        _, status = os.waitpid(process, 0)
        met = os.read(reads, 1 << 16).decode()
        os.close(reads)
        sys.stdout.write(json.dumps({"code": os.waitstatus_to_exitcode(status), "met": met}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

"""A full disk, or SIGKILL, at each write of a run: the last state stays whole, the next run finishes the job.

The writes are found while the steps run (`writes.py`); DuckDB's own are met by a limit on the file's size.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from kappa_process import PATIENCE_S, ROOT, files_below
from writes import Disk, watched_parquet

from assets.commands.cli import readable
from pipelines.steps.tables import STAGED
from warehouse.declared.tables import TABLES
from warehouse.errors import KappaError

PREFILL_SUM = [field.name for field in TABLES["summary"].fields].index("prefill_tokens_sum")

# `conftest` and `writes` are no packages; -P keeps the other conftest, beside the script, out of the way.
PATH = os.pathsep.join(map(str, (ROOT, ROOT / "tests", ROOT / "tests" / "integration")))
STORED = [name for name, table in TABLES.items() if not table.is_view]
RECORDS = [
    [{"Context": "F" * 9, "Question": "qq"}],
    [{"Context": "F" * 9, "Question": "qqqq"}, {"Context": "G" * 5, "Question": "q"}],
    [],
]
# The steps whose product a changed file makes anew.
RENEWED = (
    "raw/finqa", "conversations/finqa", "token_counts/finqa/llama-3.1", "turns/finqa/llama-3.1/text/history",
    "tables/sources", "tables/tokenizers", "tables/rejects", "tables/percentiles", "tables/summary",
    "tables/boundness", "tables/design_questions", "warehouse", "report",
)  # fmt: skip
CHANGED = [[{"Context": "F" * 9, "Question": "qqq"}], *RECORDS[1:]]


def no_space(site: str, path: str) -> None:
    """Fail as a full disk does."""
    del site
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


_DISK = Disk(no_space)


@pytest.fixture(scope="module", autouse=True)
def _audited() -> None:
    """Install the one hook: Python cannot take it out again, so it only acts while something is watched."""
    sys.addaudithook(_DISK.audit)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """The disk, with pyarrow's writer on it."""
    watched_parquet(_DISK, monkeypatch.setattr)
    yield _DISK
    _DISK.watch(None)


def rows_of(home: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of every stored table of the current database, but for times and run ids."""
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        queries = {name: f"FROM {name}" for name in STORED if name != "generations"}
        queries["sources"] = "SELECT * EXCLUDE fetched_at FROM sources"
        return {name: connection.sql(query).fetchall() for name, query in queries.items()}


def bytes_of(home: Path) -> dict[str, bytes]:
    """Return the files of the current generation that are the same whenever they are made.

    Names are without the number: one that was complete when its run was killed before the swap is never given again.
    """
    timed = ("warehouse.duckdb", "generation.json", "lake/generations", "lake/sources")
    files = files_below((home / "current").resolve()).items()
    return {re.sub(r"-g\d+", "", path): body for path, body in files if not path.startswith(timed)}


def run(lab: Any, revision: str) -> int:  # noqa: ANN401 - conftest's Lab
    """Run every step over the repository as it is, and publish."""
    lab.home.prepare()
    lab.turns("finqa", revision=revision)
    return int(lab.warehouse())


def test_no_space_at_each_write(lab: Any, disk: Disk) -> None:  # noqa: ANN401 - conftest's Lab
    """Each write of a refresh fails once, the next run comes past it: in between the last state is whole.

    Each failure is told in one line that says what to do. In the end all is as if nothing had failed.
    """
    home = lab.home.path
    lab.put("finqa", *RECORDS)
    run(lab, "r1")
    states = [(rows_of(home), bytes_of(home))]
    lab.put("finqa", *CHANGED)
    failed: list[str] = []
    while True:
        disk.watch(home, failed)
        try:
            run(lab, "r2")
        except (OSError, KappaError) as error:
            told = readable(error)
        else:
            break
        finally:
            disk.watch(None)
        assert disk.met is not None
        failed.append(disk.met)
        assert "No space left on device" in told.why
        assert "free" in told.remedy
        assert "\n" not in str(told)
        # What fails behind the swap of `current` finds the new state there, whole.
        states.append((rows_of(home), bytes_of(home)))
    assert len(set(failed)) == len(failed)
    parts = ("raw/finqa", "turns/finqa", "tables/percentiles", "warehouse/", "report/", "HEAD", "meta.json", "/.new-")
    assert [part for part in parts if not any(part in site for site in failed)] == []
    after = rows_of(home), bytes_of(home)
    assert [state for state in states if state not in (states[0], after)] == []
    # The question of 2 characters has 3 now: T = 3 + 4 + 1
    assert [state[0]["summary"][0][PREFILL_SUM] for state in (states[0], states[len(failed) // 2], after)] == [7, 7, 8]
    lab.staging.remove_drafts()
    assert lab.staging.drafts() == lab.home.left_over() == []
    shutil.rmtree(home)
    lab.put("finqa", *RECORDS)
    run(lab, "r1")
    lab.put("finqa", *CHANGED)
    run(lab, "r2")
    assert (rows_of(home), bytes_of(home)) == after


# Holds the database open from the first line on, and answers each line with what it sees.
READER = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1], read_only=True)
for _ in sys.stdin:
    print(*connection.sql("SELECT count(*), sum(prefill_tokens) FROM turns").fetchall()[0], flush=True)
"""


@contextlib.contextmanager
def process(*command: str) -> Iterator[Callable[[str], str]]:
    """Yield a function that asks a process one line and returns its answer."""
    with subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": PATH},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:

        def ask(line: str) -> str:
            assert running.stdin is not None
            assert running.stdout is not None
            print(line, file=running.stdin, flush=True)
            return running.stdout.readline()

        yield ask
        running.kill()


def test_killed_at_each_write(lab: Any) -> None:  # noqa: ANN401 - conftest's Lab
    """SIGKILL at each write of every step of a refresh, one after another, beside a process that holds the file open.

    After each the last state is whole; in the end all is as if nothing had been killed, and the reader saw one state.
    """
    home = lab.home.path
    lab.put("finqa", *RECORDS)
    run(lab, "r1")
    states = [(rows_of(home), bytes_of(home))]
    lab.put("finqa", *CHANGED)
    killed: list[str] = []
    steps = str(Path(__file__).with_name("steps_process.py"))
    with (
        process("-c", READER, str(home / "warehouse.duckdb")) as reader,
        process("-P", steps, str(home), str(lab.root)) as child,
    ):
        while (answer := json.loads(child(json.dumps({"revision": "r2", "passed": killed}))))["code"]:
            assert answer["code"] == -signal.SIGKILL, answer
            killed.append(answer["met"])
            states.append((rows_of(home), bytes_of(home)))
            # T = 2 + 4 + 1 of the three turns of generation 1
            assert reader("") == "3 7\n"
    after = rows_of(home), bytes_of(home)
    assert [state for state in states if state not in (states[0], after)] == []
    # The question of 2 characters has 3 now: T = 3 + 4 + 1
    assert [state[0]["summary"][0][PREFILL_SUM] for state in (states[0], states[len(killed) // 2], after)] == [7, 7, 8]
    assert len(set(killed)) == len(killed)
    begun = {site.split(" ")[2].split("/.draft")[0] for site in killed if "/.draft" in site}
    # every step that makes something of its own began, and was killed, at least once
    assert begun == {f"/staging/hub/{name}" for name in RENEWED}
    assert lab.staging.drafts() == lab.home.left_over() == []
    shutil.rmtree(home)
    lab.put("finqa", *RECORDS)
    run(lab, "r1")
    lab.put("finqa", *CHANGED)
    run(lab, "r2")
    assert (rows_of(home), bytes_of(home)) == after


# Builds the warehouse again and again in a folder, each time with files that may not grow beyond another size.
LIMITED = """
import json, resource, sys
from pathlib import Path
from warehouse.database.build import build_database
from warehouse.errors import KappaError
from warehouse.home.staging import Staging
from warehouse.declared.tables import TABLES

staging, files = Staging(Path(sys.argv[1])), json.loads(sys.argv[2])
files = {name: [Path(path) for path in files.get(name, [])] for name, table in TABLES.items() if not table.is_view}

def build(identity):
    with staging.build("warehouse", identity) as draft:
        build_database(draft.folder / "w.duckdb", files)
    return staging.require("warehouse").file("w.duckdb").stat().st_size

size, told = build("good"), []
for limit in range(0, size, max(4096, size // 40)):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        build("bad")
    except (KappaError, OSError) as error:
        told.append(str(error))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert staging.require("warehouse").identity == "good", limit
    assert staging.drafts() == [], limit
build("again")
print(json.dumps({"limits": len(range(0, size, max(4096, size // 40))), "told": told}))
"""


def test_no_space_at_any_size_of_the_database(lab: Any, tmp_path: Path) -> None:  # noqa: ANN401 - conftest's Lab
    """A database that may not grow beyond any of 40 sizes leaves the one before, and is told in one line."""
    lab.put("finqa", *RECORDS)
    run(lab, "r1")
    lake = {name: lab.staging.require(f"tables/{name}").file(f"{name}.parquet") for name in STAGED}
    files = json.dumps({name: [str(path)] for name, path in lake.items()})
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "staging"), files]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert process.returncode == 0, process.stderr
    found = json.loads(process.stdout)
    assert found["limits"] >= 40
    assert len(found["told"]) == found["limits"]
    assert [line for line in found["told"] if "\n" in line or "free" not in line] == []

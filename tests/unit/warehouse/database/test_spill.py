"""Rows that do not fit in memory go to the system's temporary folder, and what a killed query leaves is removed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import pytest
from refusals import refused

from assets.commands import doctor_home
from warehouse.database import engine
from warehouse.database.engine import read_only
from warehouse.database.spill import left_spilled, remove_left_spilled, spilling
from warehouse.errors import ErrorCode
from warehouse.home.home import Home

KILLED = """
import os, sys
from pathlib import Path
from warehouse.database.engine import read_only

with read_only(Path(sys.argv[1])) as connection:
    (folder,) = connection.execute("SELECT current_setting('temp_directory')").fetchone()
    (Path(folder) / "rows.tmp").write_bytes(b"0" * 2_000_000)
    os.kill(os.getpid(), 9)
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder that is the system's temporary one."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Return a database file of one table."""
    path = tmp_path / "home" / "warehouse.duckdb"
    path.parent.mkdir()
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS FROM range(3)")
    return path


def test_where_a_query_spills(temporary: Path, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows go below the temporary folder, nothing is made beside the database, and nothing is left."""
    monkeypatch.setattr(engine, "MEMORY_LIMIT", "24MB")
    monkeypatch.setattr(engine, "THREADS", 1)
    with read_only(database) as connection:
        rows = connection.sql("SELECT hash(range) AS h, repeat('x', 100) AS x FROM range(300000) ORDER BY h")
        reader = rows.to_arrow_reader(1000)
        assert reader.read_next_batch().num_rows == 1000
        assert list(temporary.glob("kappa-spill-*/*.tmp"))
        del reader
    assert list(temporary.iterdir()) == []
    assert [path.name for path in database.parent.iterdir()] == ["warehouse.duckdb"]


def test_two_connections_of_a_process(temporary: Path, database: Path) -> None:
    """One while the other is open, and one after a reader that was never closed: all have the same settings."""
    with read_only(database) as first, read_only(database) as second:
        assert first.sql("FROM t").fetchall() == second.sql("FROM t").fetchall() == [(0,), (1,), (2,)]
        assert len(list(temporary.iterdir())) == 1
    assert list(temporary.iterdir()) == []
    left_open = read_only(database)
    left_open.__enter__()
    with read_only(database) as third:
        assert third.sql("SELECT count(*) FROM t").fetchall() == [(3,)]
    left_open.__exit__(None, None, None)
    assert list(temporary.iterdir()) == []


def test_what_a_killed_query_left(temporary: Path, database: Path) -> None:
    """Doctor counts the folder with its size, and it is removed; a living query keeps its own."""
    subprocess.run([sys.executable, "-c", KILLED, str(database)], check=False)
    (left,) = temporary.iterdir()
    with spilling() as ours:
        assert left_spilled() == [left]
        with refused(ErrorCode.LEFT_OVER, "1 stale folders and files (2 MB)"):
            doctor_home.left_over(Home(database.parent))
        remove_left_spilled()
        assert list(temporary.iterdir()) == [Path(ours)]
    assert list(temporary.iterdir()) == []


def test_no_temporary_folder(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no folder can be made a query works as long as it fits in memory."""

    def refuse(**_: object) -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with read_only(database) as connection:
        assert connection.sql("SELECT count(*) FROM t").fetchall() == [(3,)]

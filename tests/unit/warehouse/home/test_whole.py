"""A published generation that is not whole any more is told by `kappa doctor` and published anew by the next run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from assets.commands import doctor_home
from assets.graph.resources import refuse_sample_over_real
from warehouse.errors import KappaError
from warehouse.home.generation import NOTE, WAL
from warehouse.home.home import Home

RECORDS = [[{"Context": "F" * 9, "Question": "qq"}], [{"Context": "F" * 9, "Question": "q"}], []]
LOOKS = (doctor_home.warehouse, doctor_home.lake, doctor_home.report)
PART = Path("lake", "turns", "turns-g1-finqa-llama-3.1-text-history.parquet")
DELETE = "import duckdb, os, sys\nc = duckdb.connect(sys.argv[1])\n{}c.execute('DELETE FROM turns')\n{}"


@pytest.fixture(scope="session")
def published(once: Callable[[str, Callable[[Path], object]], Path], lab_in: Callable[..., Any]) -> Path:
    """Return the folder of a lab with one generation of two turns; copy it before you change it."""

    def fill(folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            lab = lab_in(folder, patch)
            lab.put("finqa", *RECORDS)
            lab.turns("finqa")
            assert lab.warehouse() == 1

    return once("published-lab", fill)


@pytest.fixture
def made(published: Path, lab_in: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401 - conftest's Lab
    """Return a lab of one's own with one generation of two turns."""
    # With the links between a generation and its products.
    subprocess.run(["cp", "-a", f"{published}/.", tmp_path], check=True)
    return lab_in(tmp_path, monkeypatch)


def wrong(home: Home) -> str:
    """Return what the doctor finds wrong with what is published, in one line."""
    told = []
    for look in LOOKS:
        try:
            look(home)
        except KappaError as error:
            told.append(str(error))
    return "; ".join(told)


def folder_of(home: Home) -> Path:
    """Return the folder of the current generation."""
    return home.current.resolve()


def no_database(home: Home) -> None:
    """Remove the database."""
    (folder_of(home) / "warehouse.duckdb").unlink()


def cut_database(home: Home) -> None:
    """Cut the database in place, and with it the product that it is linked to."""
    os.truncate(folder_of(home) / "warehouse.duckdb", 5000)


def empty_database(home: Home) -> None:
    """Empty the database in place."""
    os.truncate(folder_of(home) / "warehouse.duckdb", 0)


def no_table(home: Home) -> None:
    """Remove a table of the lake."""
    shutil.rmtree(folder_of(home) / "lake" / "summary")


def no_partition(home: Home) -> None:
    """Remove one partition of the lake."""
    (folder_of(home) / PART).unlink()


def other_bytes(home: Home) -> None:
    """Change one byte of the lake in place, so that the size stays."""
    path = folder_of(home) / PART
    body = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(body[:9] + bytes([body[9] ^ 1]) + body[10:])


def one_more(home: Home) -> None:
    """Copy a partition, whose rows a reader of the lake then finds twice."""
    shutil.copy(folder_of(home) / PART, folder_of(home) / PART.with_name("copy.parquet"))


def deleted(home: Home) -> None:
    """Delete rows with a program that opens the file for writing."""
    path = folder_of(home) / "warehouse.duckdb"
    path.chmod(0o644)
    with duckdb.connect(str(path)) as connection:
        connection.execute("DELETE FROM turns")


def deleted_and_died(home: Home) -> None:
    """Delete rows with a program that dies before it closes, so that a log stays which readers replay."""
    path = folder_of(home) / "warehouse.duckdb"
    path.chmod(0o644)
    settings = "c.execute(\"PRAGMA wal_autocheckpoint='1TB'\")\n"
    subprocess.run([sys.executable, "-c", DELETE.format(settings, "os._exit(9)"), str(path)], check=False)
    assert (folder_of(home) / WAL).stat().st_size


DAMAGES = [
    (no_database, "warehouse.duckdb is missing"),
    (cut_database, "warehouse.duckdb has 5000 bytes, not "),
    (empty_database, "warehouse.duckdb has 0 bytes, not "),
    (no_table, "lake/summary/summary-g1.parquet is missing"),
    (no_partition, f"{PART} is missing"),
    (other_bytes, f"{PART} has other content"),
    (one_more, f"{PART.with_name('copy.parquet')} is not kappa's"),
    (deleted, "warehouse.duckdb has "),
    (deleted_and_died, f"{WAL} holds changes of another program"),
]


@pytest.mark.parametrize(("spoil", "told"), DAMAGES)
def test_the_next_run_publishes_it_anew(
    made: Any,  # noqa: ANN401 - conftest's Lab
    spoil: Callable[[Home], None],
    told: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Doctor names the file, one line of the run does too, and then every row is there again, in a new generation."""
    assert wrong(made.home) == ""
    spoil(made.home)
    assert told in wrong(made.home)
    assert "run `kappa run --sample`" in wrong(made.home)
    assert made.warehouse() == 2
    (line,) = [record.message for record in caplog.records if "not whole" in record.message]
    assert told in line
    assert wrong(made.home) == ""
    # one question of each of two records
    assert "2 turns" in doctor_home.warehouse(made.home)
    with duckdb.connect(str(made.home.database()), read_only=True) as connection:
        # the rows of both states
        assert connection.sql("SELECT generation FROM generations ORDER BY 1").fetchall() == [(1,), (2,)]
    # whole now: nothing changes
    assert made.warehouse() == 2


def test_a_lost_history_comes_from_elsewhere(made: Any) -> None:  # noqa: ANN401 - conftest's Lab
    """Rows of earlier generations whose file is gone are taken from the staged product."""
    shutil.rmtree(folder_of(made.home) / "lake")
    assert made.warehouse() == 2
    with duckdb.connect(str(made.home.database()), read_only=True) as connection:
        assert connection.sql("SELECT generation FROM generations ORDER BY 1").fetchall() == [(1,), (2,)]


@pytest.mark.parametrize("body", ["", "{", "[]", "1", '{"generation": 1}', None])
def test_a_damaged_note_is_made_again(
    made: Any,  # noqa: ANN401 - conftest's Lab
    body: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The note comes from the staged product: the generation stays, and no new one is needed."""
    before = made.home.current_note()
    path = folder_of(made.home) / NOTE
    path.unlink()
    if body is not None:
        path.write_text(body, "utf8")
        with pytest.raises(KappaError, match=r"generation.json is damaged, .*, run `kappa run`"):
            made.home.database()
    made.home.prepare()
    assert "it was made again" in caplog.text
    assert made.warehouse() == 1
    assert made.home.current_note() == before
    assert wrong(made.home) == ""


def test_a_damaged_note_of_unknown_tables(made: Any) -> None:  # noqa: ANN401 - conftest's Lab
    """Without the staged product nothing tells what the generation holds: a new one takes its place."""
    (folder_of(made.home) / NOTE).write_text("{", "utf8")
    shutil.rmtree(made.staging.root / "warehouse")
    made.home.prepare()
    assert made.warehouse() == 2
    assert wrong(made.home) == ""


def test_a_damaged_note_lets_no_sample_in(made: Any) -> None:  # noqa: ANN401 - conftest's Lab
    """A generation of the real data sets stays one."""
    path = folder_of(made.home) / NOTE
    meta = made.staging.require("warehouse").folder / "meta.json"
    meta.write_text(json.dumps(json.loads(meta.read_text("utf8")) | {"is_sample": False}), "utf8")
    path.write_text("{", "utf8")
    made.home.prepare()
    with pytest.raises(KappaError, match="a sample would take their place"):
        refuse_sample_over_real(made.home)


def test_a_lost_page_is_put_back(made: Any) -> None:  # noqa: ANN401 - conftest's Lab
    """A report without its page is put back into the same generation."""
    (folder_of(made.home) / "report" / "report.html").unlink()
    assert "report/report.html is missing" in wrong(made.home)
    assert made.warehouse() == 1
    assert wrong(made.home) == ""


def test_a_damaged_product_is_built_again(made: Any) -> None:  # noqa: ANN401 - conftest's Lab
    """With generation and product both spoilt the run begins from the tables; a cut table is made again too."""
    shutil.rmtree(folder_of(made.home))
    os.truncate(made.staging.require("warehouse").file("warehouse.duckdb"), 5000)
    os.truncate(made.staging.require("tables/summary").file("summary.parquet"), 9)
    assert made.warehouse() == 1
    assert wrong(made.home) == ""


def test_files_are_read_only(made: Any) -> None:  # noqa: ANN401 - conftest's Lab
    """No published file can be opened for writing by an ordinary user."""
    files = [path for path in folder_of(made.home).rglob("*") if path.is_file() and path.name != NOTE]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o444}


@pytest.mark.parametrize("is_read_only", [True, False])
def test_open_elsewhere(made: Any, *, is_read_only: bool) -> None:  # noqa: ANN401 - conftest's Lab
    """A program that has it open for writing is to be closed; one that reads disturbs nobody."""
    path = folder_of(made.home) / "warehouse.duckdb"
    code = (
        "import duckdb, sys\nc = duckdb.connect(sys.argv[1], read_only=bool(int(sys.argv[2])))\nprint(1, flush=True)\n"
    )
    command = [sys.executable, "-c", code + "sys.stdin.read()", str(path), str(int(is_read_only))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        told = wrong(made.home)
        assert ("close the program that has it open for writing" in told) != is_read_only
        assert "damaged" not in told
        assert made.warehouse() == 1
        process.communicate("")
    assert made.warehouse() == 1
    assert wrong(made.home) == ""

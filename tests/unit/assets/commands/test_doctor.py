"""`kappa doctor` tells what a home holds and what to do about it, on odd homes too, and changes nothing."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assets.commands import doctor, doctor_home
from assets.commands.cli import main, readable
from assets.commands.doctor import HOME
from warehouse.home.generation import NOTE
from warehouse.home.home import Home
from warehouse.home.staging import Staging

RECORDS = [[{"Context": "F" * 9, "Question": "qq"}], [{"Context": "F" * 9, "Question": "q"}], []]


@pytest.fixture(scope="module")
def built(lab_in: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a home with one generation of two turns; copy it before you change it."""
    with pytest.MonkeyPatch.context() as patch:
        lab = lab_in(tmp_path_factory.mktemp("doctor"), patch)
        lab.put("finqa", *RECORDS)
        lab.turns("finqa")
        lab.warehouse()
    found: Home = lab.home
    # The lab's files come from a folder, as a sample's do, and rest where real ones do.
    note = (found.current / NOTE).resolve()
    text = note.read_text("utf8").replace('"is_sample": true', '"is_sample": false')
    note.unlink()
    note.write_text(text, "utf8")
    return found.path


@pytest.fixture
def home(built: Path, tmp_path: Path) -> Home:
    """Return a home of its own with one generation of two turns."""
    return Home(Path(shutil.copytree(built, tmp_path / "home", symlinks=True)))


def told(home: Home) -> dict[str, str]:
    """Return what the doctor says of each thing; an error begins with `no`. Nothing below the home changes."""
    before = sorted((str(path), os.lstat(path).st_mtime_ns) for path in home.path.rglob("*"))
    found = {}
    for what, look in HOME.items():
        try:
            found[what] = look(home)
        except Exception as error:  # noqa: BLE001 - as the doctor itself has it
            found[what] = f"no {readable(error)}"
    assert sorted((str(path), os.lstat(path).st_mtime_ns) for path in home.path.rglob("*")) == before
    return found


def wrong(home: Home) -> dict[str, str]:
    """Return only what is not fine."""
    return {what: how for what, how in told(home).items() if how.startswith("no ")}


def test_a_good_home(home: Home) -> None:
    """Generation, turns, lake, sizes and products are told, and nothing is wrong."""
    found = told(home)
    # one question of each of two records
    assert found["warehouse"] == "generation 1 (real data sets), 1 series, 2 turns"
    assert "Parquet files, " in found["lake"]
    assert found["generations kept"].startswith("1 (")
    # 3600 s
    assert found["generations kept"].endswith("MB); the last 3 stay, and what was replaced within 60 minutes")
    assert found["staging"].startswith("real data sets: ")
    assert found["left by killed runs"] == "nothing"
    assert wrong(home) == {}


@pytest.mark.parametrize("is_there", [True, False])
def test_an_empty_home(tmp_path: Path, *, is_there: bool) -> None:
    """A folder without anything, or none at all, is fine; what builds a warehouse is told."""
    if is_there:
        (tmp_path / "home").mkdir()
    found = told(Home(tmp_path / "home"))
    assert "kappa run --sample" in found["warehouse"]
    assert {how for what, how in found.items() if what in ("lake", "generations kept")} == {"none yet"}
    assert found["staging"] == "empty"
    assert (tmp_path / "home").exists() == is_there


def other_layout(home: Home) -> None:
    """Say that a newer kappa made it."""
    (home.path / "LAYOUT").write_text("2\n", "utf8")


def broken_database(home: Home) -> None:
    """Put noise in the place of the database."""
    path = (home.current / "warehouse.duckdb").resolve()
    path.unlink()
    path.write_bytes(b"noise" * 5000)


def half_a_database(home: Home) -> None:
    """Cut the database."""
    path = (home.current / "warehouse.duckdb").resolve()
    body = path.read_bytes()
    path.unlink()
    path.write_bytes(body[: len(body) // 2])


def no_lake(home: Home) -> None:
    """Take the lake away."""
    shutil.rmtree((home.current / "lake").resolve())


def no_generation(home: Home) -> None:
    """Take the current generation away."""
    shutil.rmtree(home.current.resolve())


def no_note(home: Home) -> None:
    """Take the note of an older generation away."""
    (home.generations / "0").mkdir()


def a_log(home: Home) -> None:
    """Leave a write-ahead log beside the database."""
    (home.current.resolve() / "warehouse.duckdb.wal").write_bytes(b"log")


def drafts(home: Home) -> None:
    """Leave what killed runs leave."""
    (home.staging(is_sample=False).root / "raw" / ".draft-1").mkdir()
    (home.generations / ".new-2-1").mkdir()


def open_run(home: Home) -> None:
    """Leave a run that counts as running in Dagster's history."""
    path = home.path / doctor_home.HISTORY
    path.parent.mkdir(parents=True)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE runs (run_id TEXT, status TEXT)")
        connection.execute("CREATE TABLE run_tags (run_id TEXT, key TEXT, value TEXT)")
        connection.execute("INSERT INTO runs VALUES ('a', 'STARTED'), ('b', 'STARTED'), ('c', 'SUCCESS')")
        connection.execute("INSERT INTO run_tags VALUES ('a', 'kappa/process', '1'), ('c', 'kappa/process', '1')")
    connection.close()


def test_own_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows are read as `kappa crit` reads them, and the same line is told; files that are not read are listed."""
    home, user = Home(tmp_path), tmp_path / "reference"
    assert (told(home)["own rows"], told(home)["beside own rows"]) == ("none", "nothing")
    user.mkdir()
    (user / "links.csv").write_text("x\n", "utf8")
    for name in ("accelerators.toml", "links.csv~", ".hidden"):
        (user / name).write_text("?", "utf8")
    found = wrong(home)
    assert found["beside own rows"].startswith(f"no {user}/accelerators.toml, {user}/links.csv~ are not read, ")
    assert main(["crit", "--home", str(tmp_path)]) == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert found["own rows"] == line.replace("error: ", "no ", 1)
    assert "links.csv is not usable, row 1" in line
    (user / "links.csv").write_text(
        "link,kind,peak_bytes_per_s,retrieved,confidence,source\nx,pcie,3e10,2024-05-01,high,us\n", "utf8"
    )
    assert told(home)["own rows"] == "links.csv"


def test_the_sign_of_rows_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither run nor sample works with them, so the exit code says so; a file that is not read is no fault."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr(doctor, "workloads", dict)
    (tmp_path / "reference").mkdir()
    (tmp_path / "reference" / "notes.txt").write_text("?", "utf8")
    assert main(["doctor", "--home", str(tmp_path)]) == 0
    assert "no  beside own rows" in capsys.readouterr().out
    (tmp_path / "reference" / "links.csv").write_text("x\n", "utf8")
    assert main(["doctor", "--home", str(tmp_path)]) == 1
    assert "no  own rows" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("spoil", "what", "words"),
    [
        (other_layout, "home folder", ("layout 2", "choose another folder")),
        (broken_database, "warehouse", ("is not whole", "warehouse.duckdb has 25000 bytes", "run `kappa run`")),
        (half_a_database, "warehouse", ("is not whole", "warehouse.duckdb has ", "run `kappa run`")),
        (no_lake, "lake", ("is not whole", "lake/sources/sources-g1.parquet is missing", "run `kappa run`")),
        (no_generation, "warehouse", ("leads nowhere", "run `kappa run` again")),
        (no_note, "generations kept", ("generations/0 is not whole", "move it away")),
        (a_log, "warehouse", ("is not whole", "warehouse.duckdb.wal holds changes", "run `kappa run`")),
        (drafts, "left by killed runs", ("2 stale folders", "0 unfinished runs", "the next `kappa run`")),
        (open_run, "left by killed runs", ("0 stale folders", "1 unfinished runs", "the next `kappa run`")),
    ],
)
def test_an_odd_home(home: Home, spoil: Callable[[Home], None], what: str, words: tuple[str, ...]) -> None:
    """What is wrong is told in one line with what to do."""
    spoil(home)
    line = wrong(home)[what]
    assert "\n" not in line
    assert [word for word in words if word not in line] == []


def test_a_folder_that_cannot_be_written(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only home is told; what it holds can still be read (root heeds no permissions, so the answer is given)."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    found = told(home)
    assert "mend permissions" in found["home folder"]
    assert "2 turns" in found["warehouse"]


def test_a_run_that_is_going_on(home: Home) -> None:
    """A draft that is being written is no left-over."""
    with Staging(home.staging(is_sample=False).root).build("raw/other", "1"):
        assert told(home)["left by killed runs"] == "a run is going on (1 steps write)"
    with home.lock("run"):
        assert told(home)["left by killed runs"] == "a run is going on (0 steps write)"
    assert told(home)["left by killed runs"] == "nothing"


def test_a_history_that_sqlite_cannot_open_for_reading(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a read-only home SQLite refuses a journalled history, which is then read as it lies there."""
    open_run(home)
    real = sqlite3.connect

    def refuse(path: str, *, uri: bool) -> sqlite3.Connection:
        if "mode=ro" in path:
            raise sqlite3.OperationalError("attempt to write a readonly database")
        return real(path, uri=uri)

    monkeypatch.setattr(sqlite3, "connect", refuse)
    assert "1 unfinished runs" in wrong(home)["left by killed runs"]
    (home.path / doctor_home.HISTORY).write_bytes(b"")
    assert "runs.db cannot be read, SQLite does not open it, mend permissions" in wrong(home)["left by killed runs"]

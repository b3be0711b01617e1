"""The home folder: one writer, generations swapped by one rename, and readers who never see half of one."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
import time
from pathlib import Path

import pytest

from warehouse.declared.tables import tables_identity
from warehouse.errors import KappaError
from warehouse.home import home as home_module
from warehouse.home import mending
from warehouse.home import publishing as module
from warehouse.home.generation import DATABASE, LAKE, NOTE, REPORT, replace_report
from warehouse.home.home import Home
from warehouse.home.products import Product
from warehouse.home.publishing import KEPT_S

# Against hanging for ever, not a measure.
PATIENCE_S = 900.0


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a prepared home."""
    home = Home(tmp_path / "home")
    home.prepare()
    return home


def warehouse(home: Home, generation: int, text: str = "") -> Product:
    """Stage a warehouse of small files for a generation."""
    staging, text = home.staging(is_sample=False), text or str(generation)
    with staging.build("warehouse", f"w{text}-{generation}") as draft:
        (draft.folder / DATABASE).write_text(text, "utf8")
        (draft.folder / LAKE / "turns").mkdir(parents=True)
        (draft.folder / LAKE / "turns" / "turns.parquet").write_text(text, "utf8")
        draft.meta.update(generation=generation, content=f"c{text}", is_sample=False, series=[])
    return staging.require("warehouse")


def report(home: Home, text: str, *files: str) -> Product:
    """Stage a report."""
    staging = home.staging(is_sample=False)
    with staging.build("report", f"r{text}") as draft:
        for name in ("report.html", *files):
            (draft.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (draft.folder / name).write_text(text, "utf8")
    return staging.require("report")


def publish(home: Home, *numbers: int) -> None:
    """Publish these generations one after another."""
    for number in numbers:
        assert home.publish(warehouse(home, number), report(home, str(number))) == number


def replaced_ago(home: Home, seconds: float, *numbers: int) -> None:
    """Let these generations have been replaced that long ago."""
    for number in numbers:
        when = time.time() - seconds
        os.utime(home.generations / str(number), (when, when))


class TestFolder:
    """Where a home may be."""

    def test_nothing_is_created_too_early(self, tmp_path: Path) -> None:
        """Looking at a home creates nothing; preparing it twice changes nothing."""
        home = Home(tmp_path / "a" / "b")
        assert (home.numbers(), home.current_note(), home.next_generation()) == ([], None, 1)
        assert not home.path.exists()
        home.prepare()
        home.prepare()
        assert [path.name for path in home.path.iterdir()] == ["LAYOUT"]

    def test_a_path_that_cannot_be_written(self, tmp_path: Path) -> None:
        """A file in the way, and a folder below a file, are told with what to do."""
        (tmp_path / "file").touch()
        for path in (tmp_path / "file", tmp_path / "file" / "below"):
            with pytest.raises(KappaError, match=r"home folder .* cannot be written, .*, choose another one"):
                Home(path).prepare()

    def test_no_space(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A full disk is told as such."""

        def full(_: Path, __: bytes) -> int:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "write_bytes", full)
        with pytest.raises(KappaError, match="No space left on device"):
            Home(tmp_path).prepare()

    @pytest.mark.parametrize("mark", ["0", "2", "x"])
    def test_another_layout(self, tmp_path: Path, mark: str) -> None:
        """A home of another layout is refused by reader and writer, and left as it is."""
        (tmp_path / "LAYOUT").write_text(mark, "utf8")
        for use in (Home(tmp_path).prepare, Home(tmp_path).database):
            with pytest.raises(KappaError, match=r"layout .*, this kappa uses layout 1, choose another folder"):
                use()
        assert [path.name for path in tmp_path.iterdir()] == ["LAYOUT"]

    def test_a_warehouse_without_a_mark(self, tmp_path: Path) -> None:
        """A database or generations without LAYOUT are of an unknown layout."""
        (tmp_path / DATABASE).touch()
        with pytest.raises(KappaError, match="layout unknown"):
            Home(tmp_path).prepare()

    def test_no_warehouse_yet(self, home: Home) -> None:
        """Reading before anything was built says what builds it."""
        with pytest.raises(KappaError, match=r"has no warehouse yet, nothing was built there, run `kappa run"):
            home.database()

    def test_a_removed_database(self, home: Home) -> None:
        """A database that was removed is not told as one that was never built."""
        publish(home, 1)
        home.database().unlink()
        with pytest.raises(KappaError, match=r"warehouse.duckdb is missing, somebody removed it, run `kappa run`"):
            home.database()

    def test_sample_and_real_do_not_mix(self, home: Home) -> None:
        """Their products lie apart."""
        assert home.staging(is_sample=True).root != home.staging(is_sample=False).root


class TestEvolution:
    """A home that another kappa built: rebuilt or refused, never misread."""

    @staticmethod
    def other_tables(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        """Publish generation 1 as a kappa with other tables does."""
        with monkeypatch.context() as older:
            older.setattr(mending, "tables_identity", lambda: "older")
            publish(home, 1)

    def test_readers_are_refused(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        """Other columns are not read as ours, and what builds them again is told."""
        self.other_tables(home, monkeypatch)
        with pytest.raises(KappaError, match=r"holds tables of another kappa, .*, run `kappa run`"):
            home.database()

    def test_a_note_without_tables(self, home: Home) -> None:
        """A generation from before tables were noted is an older one."""
        publish(home, 1)
        note = {key: value for key, value in (home.current_note() or {}).items() if key != "tables"}
        (home.current / NOTE).write_text(json.dumps(note), "utf8")
        with pytest.raises(KappaError, match="holds tables of another kappa"):
            home.database()

    def test_the_next_run_rebuilds(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        """The writer takes the home as it is, and publishes the declared tables as the next generation."""
        self.other_tables(home, monkeypatch)
        home.prepare()
        publish(home, 2)
        assert home.database().read_text("utf8") == "2"
        assert home.numbers() == [1, 2]


class TestLock:
    """One writer at a time."""

    def test_refused_while_held(self, home: Home) -> None:
        """A second writer is told at once which home is in use; afterwards it may."""
        with home.lock("run"), pytest.raises(KappaError, match="is in use, another kappa process holds its run lock"):
            home.lock("run").__enter__()
        with home.lock("run"), home.lock("publish"):
            pass

    def test_a_killed_holder_lets_go(self, home: Home) -> None:
        """The lock of a process that died is free, without any file to remove."""
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=_hold_and_die, args=(home.path,))
        process.start()
        process.join(60)
        # it ended by its own exit code, inside the lock
        assert process.exitcode == 7
        with home.lock("run"):
            pass


def _hold_and_die(path: Path) -> None:
    Home(path).lock("run").__enter__()
    os._exit(7)


class TestPublish:
    """From a staged warehouse to the current generation."""

    def test_the_layout_of_the_design(self, home: Home) -> None:
        """Files lie in generations/<n>, and the three names in the home lead through `current`."""
        publish(home, 1)
        assert home.current.readlink() == Path("generations/1")
        for name in (DATABASE, LAKE, REPORT):
            assert (home.path / name).readlink() == Path("current", name)
        assert (home.path / LAKE / "turns" / "turns.parquet").read_text("utf8") == "1"
        assert (home.path / REPORT / "report.html").read_text("utf8") == "1"
        assert home.database() == home.path / "generations/1" / DATABASE
        assert not list(home.current.rglob("meta.json"))

    def test_the_note(self, home: Home) -> None:
        """The generation says what it is made of."""
        publish(home, 1)
        note, sha256 = home.current_note(), hashlib.sha256(b"1").hexdigest()
        files = (DATABASE, "lake/turns/turns.parquet", "report/report.html")
        assert note == {
            "generation": 1, "warehouse": "w1-1", "report": "r1", "content": "c1", "is_sample": False, "series": [],
            "tables": tables_identity(), "own_rows": "", "files": {path: [1, sha256] for path in files},
        }  # fmt: skip

    def test_three_are_kept(self, home: Home) -> None:
        """Of five generations the last three remain where no reader can be in the others, and numbers go on."""
        publish(home, 1, 2, 3, 4)
        replaced_ago(home, KEPT_S + 60, 1, 2, 3)
        publish(home, 5)
        # 5 - 3 = 2 are gone
        assert (home.numbers(), home.next_generation()) == ([3, 4, 5], 6)
        assert home.database().read_text("utf8") == "5"

    def test_an_hour_is_kept(self, home: Home) -> None:
        """A generation outside the last three stays for an hour after it was replaced, however many follow it."""
        publish(home, 1, 2, 3, 4, 5, 6)
        assert home.numbers() == [1, 2, 3, 4, 5, 6]
        replaced_ago(home, KEPT_S + 60, 1, 4)
        replaced_ago(home, KEPT_S - 60, 2)
        publish(home, 7)
        # 1 was replaced 61 minutes ago, 2 59 minutes, 3 just now; 5 6 7 are the last three
        assert home.numbers() == [2, 3, 5, 6, 7]

    def test_the_hour_begins_when_it_is_replaced(self, home: Home) -> None:
        """A generation that was current for a day is kept for an hour from its end; publishing it again is no end."""
        publish(home, 1)
        replaced_ago(home, 24 * 3600, 1)
        publish(home, 1)
        assert time.time() - (home.generations / "1").stat().st_mtime > KEPT_S
        publish(home, 2, 3, 4)
        assert home.numbers() == [1, 2, 3, 4]

    def test_an_old_one_goes_in_one_moment(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whoever reads by a resolved path finds a whole generation or none: it is renamed before files go."""
        publish(home, 1, 2, 3)
        replaced_ago(home, KEPT_S + 60, 1)
        removed: list[str] = []
        remove = shutil.rmtree
        monkeypatch.setattr(module.shutil, "rmtree", lambda way, **_: (removed.append(way.name), remove(way, True)))
        publish(home, 4)
        assert home.numbers() == [2, 3, 4]
        assert any(name.startswith(".new-1-") for name in removed)
        assert "1" not in removed

    def test_numbers_are_numbers(self, home: Home) -> None:
        """Ten comes after nine, and other names are no generations."""
        publish(home, 8, 9, 10)
        (home.generations / "old").mkdir()
        # 8 9 10, not 10 8 9
        assert (home.numbers(), home.next_generation()) == ([8, 9, 10], 11)

    def test_hard_links(self, home: Home) -> None:
        """Publishing copies no bytes: the files are those of the product."""
        publish(home, 1)
        staged = home.staging(is_sample=False).require("warehouse").file(DATABASE)
        assert staged.samefile(home.database())
        # the generation outlives its product
        shutil.rmtree(home.path / "staging")
        assert home.database().read_text("utf8") == "1"

    def test_without_hard_links(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        """A file system without links gets copies; any other error is an error."""

        def refuse(code: int) -> None:
            def link(*_: object) -> None:
                raise OSError(code, os.strerror(code))

            monkeypatch.setattr(module.os, "link", link)

        refuse(1)
        publish(home, 1)
        assert home.database().read_text("utf8") == "1"
        refuse(28)
        with pytest.raises(OSError, match="No space left"):
            publish(home, 2)
        assert (home.numbers(), home.database().read_text("utf8")) == ([1], "1")
        assert not list(home.generations.glob(".*"))

    def test_a_reader_stays_in_its_generation(self, home: Home) -> None:
        """A resolved path stays readable for an hour, an open file for as long as it is open."""
        publish(home, 1)
        path = home.database()
        with path.open(encoding="utf8") as handle:
            publish(home, 2, 3, 4)
            assert path.is_file()
            replaced_ago(home, KEPT_S + 60, 1)
            publish(home, 5)
            assert handle.read() == "1"
        # 1 is the fifth last, replaced 61 minutes ago
        assert not path.exists()

    def test_killed_before_the_swap(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        """A complete folder that is not current is published by the next run; readers see the old one until then."""
        publish(home, 1)
        second, page = warehouse(home, 2), report(home, "2")
        with monkeypatch.context() as patch:
            patch.setattr(home_module, "swap", _interrupt)
            with pytest.raises(KeyboardInterrupt):
                home.publish(second, page)
        assert (home.numbers(), home.database().read_text("utf8")) == ([1, 2], "1")
        assert home.publish(second, page) == 2
        assert home.database().read_text("utf8") == "2"

    @pytest.mark.parametrize("step", ["_link_tree", "json.dumps", "Path.rename"])
    def test_killed_while_placing(self, home: Home, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
        """Whatever fails before the folder is complete, the last generation stays current and nothing is left."""
        publish(home, 1)
        second, page = warehouse(home, 2), report(home, "2")
        owner, _, name = step.rpartition(".")
        with monkeypatch.context() as patch:
            patch.setattr({"": module, "json": json, "Path": Path}[owner], name, _interrupt)
            with pytest.raises(KeyboardInterrupt):
                home.publish(second, page)
        assert (home.numbers(), home.database().read_text("utf8")) == ([1], "1")
        assert not list(home.generations.glob(".*"))
        assert home.publish(second, page) == 2

    def test_killed_before_the_first_links(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        """A first publication that is killed between `current` and the three names is finished by the next run."""
        first, page, point = warehouse(home, 1), report(home, "1"), module._point
        with monkeypatch.context() as patch:
            patch.setattr(module, "_point", lambda *way: point(*way) if way[0] == home.current else _interrupt())
            with pytest.raises(KeyboardInterrupt):
                home.publish(first, page)
        assert home.publish(first, page) == 1
        # 3 names
        assert [(home.path / name).exists() for name in (DATABASE, LAKE, REPORT)] == [True, True, True]

    def test_leftovers_of_a_killed_run(self, home: Home) -> None:
        """A folder that a killed run left half made is no generation, and the next publication removes it."""
        (home.generations / ".new-1-abc" / LAKE).mkdir(parents=True)
        assert home.next_generation() == 1
        publish(home, 1)
        assert [path.name for path in home.generations.iterdir()] == ["1"]

    def test_another_run_was_quicker(self, home: Home) -> None:
        """A number that another warehouse took is refused, and what is published stays."""
        publish(home, 1)
        late = warehouse(home, 1, "late")
        with pytest.raises(KappaError, match="generation 1 exists already, another run published meanwhile"):
            home.publish(late, report(home, "late"))
        assert home.database().read_text("utf8") == "1"

    def test_the_same_again(self, home: Home) -> None:
        """Publishing what is current makes no new generation."""
        publish(home, 1)
        inode = (home.generations / "1").stat().st_ino
        publish(home, 1)
        assert (home.numbers(), (home.generations / "1").stat().st_ino) == ([1], inode)

    def test_only_the_report_is_new(self, home: Home) -> None:
        """The report of the current generation is replaced file by file, old files go, the database is not touched."""
        first = warehouse(home, 1)
        home.publish(first, report(home, "1", "figures/old.png", "figures/kept.png"))
        database = home.database().stat().st_ino
        staged = home.staging(is_sample=False).require("report").file("report.html")
        content = staged.read_text("utf8")
        assert home.publish(first, report(home, "2", "figures/kept.png", "new/a.svg")) == 1
        folder = home.generations / "1" / REPORT
        names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.*"))
        # old.png is gone, a.svg came
        assert (names, content) == (["figures/kept.png", "new/a.svg", "report.html"], "1")
        assert (home.path / REPORT / "report.html").read_text("utf8") == "2"
        assert (home.current_note() or {})["report"] == "r2"
        assert home.database().stat().st_ino == database

    def test_replacing_a_report_keeps_the_product(self, home: Home, tmp_path: Path) -> None:
        """The files of the generation are links to the product's: they are replaced, never written into."""
        publish(home, 1)
        staged = home.staging(is_sample=False).require("report").file("report.html")
        (tmp_path / "report.html").write_text("new", "utf8")
        replace_report(tmp_path, home.generations / "1")
        assert (staged.read_text("utf8"), (home.path / REPORT / "report.html").read_text("utf8")) == ("1", "new")

    def test_current_always_resolves(self, home: Home) -> None:
        """A reader in another process finds a whole generation at every moment of many publications."""
        publish(home, 1)
        context = multiprocessing.get_context("spawn")
        ready, stop, seen = context.Event(), context.Event(), context.Queue()
        reader = context.Process(target=_look, args=(home.path, ready, stop, seen))
        reader.start()
        assert ready.wait(PATIENCE_S)
        publish(home, *range(2, 40))
        stop.set()
        looks, wrong = seen.get(timeout=PATIENCE_S)
        reader.join()
        assert looks > 0
        assert wrong == []

    def test_a_folder_in_the_place_of_a_link(self, home: Home) -> None:
        """A folder `report` that a person made is told in words before anything is swapped, and stays."""
        (home.path / REPORT).mkdir()
        with pytest.raises(KappaError, match="report is in the way, kappa keeps a link there, move it away"):
            publish(home, 1)
        assert not home.current.exists()
        assert (home.path / REPORT).is_dir()
        (home.path / REPORT).rmdir()
        publish(home, 1)


def _interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def _look(path: Path, ready, stop, seen) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    wrong: list[str] = []
    looks = 0
    while not stop.is_set():
        # `current` first: the paths behind it are of one generation, which is kept for an hour
        folder = (path / "current").resolve()
        try:
            number = json.loads((folder / NOTE).read_text("utf8"))["generation"]
            texts = {(folder / name).read_text("utf8") for name in (DATABASE, "report/report.html")}
            if texts != {str(number)} or folder.name != str(number):
                wrong.append(f"{folder.name}: {texts}")
        except OSError as error:
            wrong.append(repr(error))
        looks += 1
        ready.set()
    seen.put((looks, wrong))


NOT_UTF8 = os.fsdecode(b"a\xffb")


@pytest.mark.parametrize("name", ["a?b", "a%41b", "a\\b", "a\\", NOT_UTF8, "/".join(["a" * 200] * 20)])
def test_names_that_dagster_and_duckdb_cannot_keep(tmp_path: Path, name: str) -> None:
    """A home below such a name, or with a path too long, is refused in one line before anything is written."""
    with pytest.raises(KappaError, match="cannot be used"):
        Home(tmp_path / name / "home").prepare()
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_such_a_folder(tmp_path: Path) -> None:
    """A link whose own name is fine is refused too, by the name that it leads to."""
    (tmp_path / "a%41b").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a%41b")
    with pytest.raises(KappaError, match=r"a%41b cannot be used, .* with %, choose another one"):
        Home(tmp_path / "link").prepare()
    assert list((tmp_path / "a%41b").iterdir()) == []

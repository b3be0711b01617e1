"""Where --output leads: files are replaced whole, links kept, pipes given the bytes, kappa's own files refused."""

from __future__ import annotations

import argparse
import io
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refused

from assets.commands.output import output_path, written
from assets.commands.terminal import write_rows
from warehouse.errors import ErrorCode
from warehouse.home import atomic
from warehouse.home.atomic import whole

DATA = pa.table({"n": [1, 2]})


def names(folder: Path) -> list[str]:
    """Return what is in a folder."""
    return sorted(path.name for path in folder.iterdir())


def through(pipe: Path, write: Callable[[], None]) -> bytes:
    """Return what a reader of a FIFO gets while something is written."""
    os.mkfifo(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write()
    reader.join(10)
    if not found:
        os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))
    return b"".join(found)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_fifo_is_given_the_bytes(tmp_path: Path, form: str) -> None:
    """Who reads a FIFO gets the rows, Parquet too, and it is a FIFO afterwards."""
    pipe = tmp_path / "pipe"
    got = through(pipe, lambda: write_rows(DATA.to_batches(), DATA.schema, form, pipe))
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    # the rows 1 and 2
    assert got == b"n\n1\n2\n" if form == "csv" else pq.read_table(io.BytesIO(got)).equals(DATA)
    assert names(tmp_path) == ["pipe"]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_file_behind_links_is_replaced(tmp_path: Path, form: str) -> None:
    """The links stay; the file at their end, in another folder, has the rows; one that leads nowhere makes it."""
    (tmp_path / "far").mkdir()
    target = tmp_path / "far" / "rows"
    (tmp_path / "inner").symlink_to("far/rows")
    link = tmp_path / "link"
    link.symlink_to("inner")
    for _ in ("no target yet", "a target"):
        write_rows(DATA.to_batches(), DATA.schema, form, link)
        assert (link.readlink(), link.resolve()) == (Path("inner"), target)
        assert pq.read_table(target).equals(DATA) if form == "parquet" else target.read_bytes() == b"n\n1\n2\n"
        assert names(tmp_path / "far") == ["rows"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_a_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    """What was private stays private, also while it is written; a new file has the mode of any other."""
    target = tmp_path / "rows"
    target.write_text("old")
    target.chmod(mode)
    with whole(target) as stream:
        (draft,) = set(tmp_path.iterdir()) - {target}
        assert stat.S_IMODE(draft.stat().st_mode) & ~mode == 0
        stream.write(b"new")
    assert (target.read_bytes(), stat.S_IMODE(target.stat().st_mode)) == (b"new", mode)
    (tmp_path / "plain").write_text("")
    with whole(tmp_path / "fresh"):
        pass
    assert (tmp_path / "fresh").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_device_is_written_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is a character device (here by its mode alone) is opened as it is; nothing takes its place."""
    device = tmp_path / "device"
    device.write_bytes(b"")
    before = device.stat().st_ino
    monkeypatch.setattr(atomic, "_mode", lambda _path: stat.S_IFCHR | 0o666)
    with whole(device) as stream:
        stream.write(b"n\n")
        assert names(tmp_path) == ["device"]
    assert (device.stat().st_ino, device.read_bytes()) == (before, b"n\n")


def test_what_the_shell_has_open_is_added_to(tmp_path: Path) -> None:
    """`--output /proc/self/fd/N` (so /dev/stdout) with `>> log` loses nothing of the log and stays that file."""
    log = tmp_path / "log"
    log.write_text("before\n")
    with log.open("a") as handle:
        write_rows(DATA.to_batches(), DATA.schema, "csv", Path(f"/proc/self/fd/{handle.fileno()}"))
        handle.write("after\n")
    assert log.read_text() == "before\nn\n1\n2\nafter\n"


def test_a_file_that_is_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that may not be written is not replaced by one that may."""
    target = tmp_path / "rows"
    target.write_text("precious")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with refused(ErrorCode.NOT_WRITABLE, target, "Permission denied"), written(target):
        pass
    assert target.read_text() == "precious"


def test_links_that_lead_in_a_circle(tmp_path: Path) -> None:
    """They are told, and stay."""
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with refused(ErrorCode.NOT_WRITABLE, tmp_path / "a", "Too many levels"), written(tmp_path / "a"):
        pass
    assert names(tmp_path) == ["a", "b"]


@pytest.mark.parametrize("name", ["home", "home/warehouse.duckdb", "home/new/rows.csv", "x/../home/LAYOUT", "way/lake",
                                  "database", "home/out"])  # fmt: skip
def test_the_home_is_kappas_own(tmp_path: Path, name: str) -> None:
    """Nothing in the home folder is written over: by its name, by `..`, through links there or out of it."""
    home = tmp_path / "home"
    (home / "generations" / "1").mkdir(parents=True)
    (home / "generations" / "1" / "warehouse.duckdb").write_text("precious")
    (home / "warehouse.duckdb").symlink_to("generations/1/warehouse.duckdb")
    (home / "out").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "way").symlink_to("home")
    (tmp_path / "database").symlink_to("home/warehouse.duckdb")
    options = argparse.Namespace(home=str(home), output=str(tmp_path / name))
    with refused(ErrorCode.BAD_PATH, tmp_path / name, home):
        output_path(options)


def test_beside_the_home_is_anyones(tmp_path: Path) -> None:
    """A name that only begins like the home's is not in it; no --output is standard output."""
    options = argparse.Namespace(home=str(tmp_path / "home"), output=str(tmp_path / "home.csv"))
    assert output_path(options) == tmp_path / "home.csv"
    assert output_path(argparse.Namespace(home=None, output=None)) is None

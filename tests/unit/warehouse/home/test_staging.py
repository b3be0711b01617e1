"""Products at rest: found again by what they depend on, whole or not there, whatever was killed."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from warehouse.errors import KappaError
from warehouse.home import staging as module
from warehouse.home.products import identity_of
from warehouse.home.staging import HEAD, META, Staging


def build(staging: Staging, identity: str, text: str = "x", name: str = "step/a") -> None:
    """Build a product of one file."""
    with staging.build(name, identity) as draft:
        (draft.folder / "file").write_text(text, "utf8")
        draft.meta["text"] = text


def test_identity() -> None:
    """The order of the names does not matter, every value does, and it is 32 hex digits."""
    one = identity_of(a=1, b=["x", {"y": None}])
    assert one == identity_of(b=["x", {"y": None}], a=1)
    # 128 bits
    assert (len(one), int(one, 16) >= 0) == (32, True)
    others = {identity_of(a="1", b=["x", {"y": None}]), identity_of(a=1, b=["x", {"y": 0}]), identity_of(a=1), one}
    assert len(others) == 4


def test_build_and_find(tmp_path: Path) -> None:
    """A product has its file, its notes and its name; another identity is another product."""
    staging = Staging(tmp_path / "root")
    assert staging.find("step/a", "1") is None
    build(staging, "1", "one")
    product = staging.require("step/a")
    assert (product.name, product.identity, product.meta["text"]) == ("step/a", "1", "one")
    assert product.file("file").read_text("utf8") == "one"
    assert staging.find("step/a", "2") is None
    assert staging.names("step") == staging.names("") == ["step/a"]
    assert staging.names("other") == []


def test_missing(tmp_path: Path) -> None:
    """What was never built is an error that says what to do."""
    with pytest.raises(KappaError, match=r"step/a is missing, it was never built here, materialize it first"):
        Staging(tmp_path / "none").require("step/a")


def test_reuse(tmp_path: Path) -> None:
    """A product of the same inputs is found and not built again; a newer one takes its place and the old one goes."""
    staging = Staging(tmp_path)
    build(staging, "1")
    assert staging.reuse("step/a", "1") == staging.require("step/a")
    assert staging.reuse("step/a", "2") is None
    build(staging, "2", "two")
    # one product is kept
    assert (staging.require("step/a").identity, staging.find("step/a", "1")) == ("2", None)
    assert sorted(path.name for path in (tmp_path / "step/a").iterdir()) == ["2", HEAD]


def test_names_nest(tmp_path: Path) -> None:
    """A product below another name is not taken for an older one of it."""
    staging = Staging(tmp_path)
    build(staging, "1", name="turns/w/t")
    build(staging, "9", name="turns/w-3/t")
    assert staging.names("turns/w") == ["turns/w/t"]
    assert staging.names("turns") == ["turns/w-3/t", "turns/w/t"]


def test_a_failed_step_leaves_nothing(tmp_path: Path) -> None:
    """An error inside the block removes the draft, keeps the product before it, and comes out as it is."""
    staging = Staging(tmp_path)
    build(staging, "1", "one")

    def fail() -> None:
        with staging.build("step/a", "2") as draft:
            (draft.folder / "file").write_text("half", "utf8")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert staging.require("step/a").meta["text"] == "one"
    assert sorted(path.name for path in (tmp_path / "step/a").iterdir()) == ["1", HEAD]


def test_a_killed_step(tmp_path: Path) -> None:
    """A process that dies in the middle leaves a draft that nobody takes for a product, and that is removed."""
    staging = Staging(tmp_path)
    build(staging, "1", "one")
    code = (
        "import os, pathlib\nfrom warehouse.home.staging import Staging\n"
        f"with Staging(pathlib.Path({str(tmp_path)!r})).build('step/a', '2') as draft:\n"
        "    (draft.folder / 'file').write_text('half')\n    os._exit(9)\n"
    )
    root = Path(__file__).parents[4]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 9
    assert staging.find("step/a", "2") is None
    assert staging.require("step/a").identity == "1"
    # 1 draft
    assert len(list((tmp_path / "step/a").glob(".draft-*"))) == 1
    build(staging, "2", "two")
    staging.remove_drafts()
    assert staging.require("step/a").meta["text"] == "two"
    assert list((tmp_path / "step/a").glob(".*")) == []


def test_a_draft_of_a_living_process_stays(tmp_path: Path) -> None:
    """Whoever clears up, in this process or another one, leaves a draft that is being written."""
    staging = Staging(tmp_path)
    code = f"from pathlib import Path\nfrom warehouse.home.staging import Staging\nStaging(Path({str(tmp_path)!r}))"
    with staging.build("step/a", "1") as draft:
        (draft.folder / "file").write_text("half", "utf8")
        (draft.folder.parent / ".draft-left").mkdir()
        subprocess.run([sys.executable, "-c", f"{code}.remove_drafts()"], cwd=Path(__file__).parents[4], check=True)
        staging.remove_drafts()
        # one of two
        assert staging.drafts() == [draft.folder]
    assert staging.require("step/a").file("file").read_text("utf8") == "half"


def test_a_draft_that_is_cleared_too_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A draft that another process removes before it is held is begun again."""
    staging, mkdir = Staging(tmp_path), Path.mkdir

    def cleared(self: Path, mode: int = 0o777, **options: bool) -> None:
        mkdir(self, mode, **options)
        if self.name.startswith(".draft-"):
            monkeypatch.undo()
            staging.remove_drafts()

    monkeypatch.setattr(Path, "mkdir", cleared)
    build(staging, "1", "one")
    assert staging.require("step/a").meta["text"] == "one"


def test_half_a_product_is_none(tmp_path: Path) -> None:
    """A folder without its notes, or with half of them, is not a product, and is built anew."""
    staging = Staging(tmp_path)
    for notes in (None, "", '{"text": "o'):
        folder = tmp_path / "step/a/1"
        folder.mkdir(parents=True)
        if notes is not None:
            (folder / META).write_text(notes, "utf8")
        (tmp_path / "step/a" / HEAD).write_text("1", "utf8")
        assert staging.newest("step/a") is None
        if notes is None:
            build(staging, "1", "one")
            assert staging.require("step/a").meta["text"] == "one"
        for path in sorted((tmp_path / "step/a").rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()


def test_one_after_another_builds_the_same(tmp_path: Path) -> None:
    """A build whose product another process finished meanwhile keeps that one and ends well."""
    staging = Staging(tmp_path)
    with staging.build("step/a", "1") as draft:
        draft.meta["text"] = "late"
        build(Staging(tmp_path), "1", "early")
    assert staging.require("step/a").meta["text"] == "early"
    assert list((tmp_path / "step/a").glob(".*")) == []


def test_both_build_the_same_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes that finish one product at the same moment both end well."""
    staging, whole = Staging(tmp_path), module.shutil.rmtree

    def other_process_wins(path: Path, **options: bool) -> None:
        whole(path, **options)
        if path.name == "1":
            path.mkdir()
            (path / META).write_text("{}", "utf8")

    monkeypatch.setattr(module.shutil, "rmtree", other_process_wins)
    build(staging, "1")


def test_the_newest_stays_while_others_are_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where two processes build two states of a product, what HEAD names at the end is there."""
    staging, replace = Staging(tmp_path), Path.replace
    build(staging, "0")

    def other_is_quicker(self: Path, target: Path) -> Path:
        done = replace(self, target)
        if target.name == HEAD:
            monkeypatch.undo()
            build(Staging(tmp_path), "2")
        return done

    monkeypatch.setattr(Path, "replace", other_is_quicker)
    build(staging, "1")
    assert staging.require("step/a").identity == (tmp_path / "step/a" / HEAD).read_text("utf8")


def test_a_slow_process_does_not_point_at_what_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a newer state is finished just before an older one is pointed at, HEAD names one that is there."""
    staging, replace = Staging(tmp_path), Path.replace

    def other_is_quicker(self: Path, target: Path) -> Path:
        if target.name == HEAD:
            monkeypatch.undo()
            build(Staging(tmp_path), "2")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", other_is_quicker)
    build(staging, "1")
    # 1 of 2 states is there
    assert staging.newest("step/a") is not None


def test_readers_during_builds(tmp_path: Path) -> None:
    """A reader that looks again and again sees whole products with matching notes only."""
    staging, stop, wrong = Staging(tmp_path), threading.Event(), []
    build(staging, "0", "0")

    def look() -> None:
        while not stop.is_set():
            product = staging.newest("step/a")
            if product is not None and product.meta["text"] != product.identity:
                wrong.append(product)

    reader = threading.Thread(target=look)
    reader.start()
    for n in range(1, 40):
        build(staging, str(n), str(n))
    stop.set()
    reader.join()
    # 40 states
    assert (wrong, staging.require("step/a").identity) == ([], "39")


def test_a_full_disk_names_the_product(tmp_path: Path) -> None:
    """Writing into an open file fails without a name: the product's place is told; a name that is known stays."""
    for known in (None, "/a/file"):
        with pytest.raises(OSError, match="No space") as caught, Staging(tmp_path).build("step/a", "1"):
            raise OSError(28, "No space left on device", known)
        assert caught.value.filename == (known or str(tmp_path / "step" / "a"))

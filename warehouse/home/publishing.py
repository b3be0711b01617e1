"""How a generation takes the place of the one before: complete at first, then one rename, then what is outdated goes.

A reader holds a generation for as long as `KEPT_S` after it was replaced, whatever is published meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import time
import uuid
from pathlib import Path

from warehouse.home.generation import DATABASE, LAKE, REPORT, write_note
from warehouse.home.mending import note_of
from warehouse.home.products import CONTENTS, Product

KEPT_GENERATIONS = 3
KEPT_S = 3600
CURRENT, GENERATIONS = "current", "generations"
LINKS = (DATABASE, LAKE, REPORT)


def numbers_in(generations: Path) -> list[int]:
    """Return the numbers of the generations in that folder, oldest first."""
    names = [entry.name for entry in generations.iterdir()] if generations.is_dir() else []
    return sorted(int(name) for name in names if name.isdigit())


def place(generations: Path, number: int, warehouse: Product, report: Product) -> None:
    """Make a generation out of a built warehouse and its report; it is there as a whole or not at all."""
    target = generations / str(number)
    draft = generations / f".new-{number}-{uuid.uuid4().hex[:8]}"
    generations.mkdir(exist_ok=True)
    try:
        _link_tree(warehouse.folder, draft, skip="meta.json")
        _link_tree(report.folder, draft / REPORT, skip="meta.json")
        drawn = {f"{REPORT}/{path}": noted for path, noted in report.meta[CONTENTS].items()}
        files = warehouse.meta[CONTENTS] | drawn
        write_note(draft, {**note_of(warehouse), "report": report.identity, "files": files})
        _take_away(target)
        draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def swap(home: Path, number: int) -> None:
    """Make a generation the current one."""
    current, target = home / CURRENT, home / GENERATIONS / str(number)
    replaced = current.resolve()
    if replaced.is_dir() and replaced != target.resolve():
        # Its time says from now on when it was replaced: nobody puts anything into it any more.
        os.utime(replaced)
    _point(current, Path(GENERATIONS) / str(number))
    for name in LINKS:
        if not (home / name).is_symlink():
            _point(home / name, Path(CURRENT) / name)


def clean(home: Path) -> None:
    """Take away the generations that are outdated and what killed runs left."""
    for folder in _outdated(home / GENERATIONS):
        _take_away(folder)
    for left in left_over(home):
        if left.is_symlink() or left.is_file():
            left.unlink(missing_ok=True)
        else:
            shutil.rmtree(left, ignore_errors=True)


def left_over(home: Path) -> list[Path]:
    """Return what killed runs left while they published; what a run that goes on has is among it."""
    return sorted([*(home / GENERATIONS).glob(".new-*"), *home.glob(".link-*"), *home.glob(".probe-*")])


def _outdated(generations: Path) -> list[Path]:
    """Return the generations that are not among the last ones and were replaced longer ago than readers hold."""
    earlier = [generations / str(number) for number in numbers_in(generations)[:-KEPT_GENERATIONS]]
    return [folder for folder in earlier if time.time() - folder.stat().st_mtime > KEPT_S]


def _take_away(folder: Path) -> None:
    """Remove a generation in one moment for those who read it by path: half of one is never found."""
    waste = folder.with_name(f".new-{folder.name}-{uuid.uuid4().hex[:8]}")
    with contextlib.suppress(FileNotFoundError):
        folder.rename(waste)
    shutil.rmtree(waste, ignore_errors=True)


def _point(link: Path, target: Path) -> None:
    """Make `link` a symbolic link to `target` by one rename, whatever it was."""
    temporary = link.parent / f".link-{uuid.uuid4().hex[:8]}"
    temporary.symlink_to(target)
    try:
        temporary.replace(link)
    finally:
        temporary.unlink(missing_ok=True)


def _link_tree(source: Path, target: Path, skip: str) -> None:
    """Copy a tree by hard links, by bytes where the file system has none; nobody may write into the files again."""
    for path in sorted(source.rglob("*")):
        if path.is_file() and path.name != skip:
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(path, place)
            except OSError as error:
                if error.errno not in (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK):
                    raise
                shutil.copyfile(path, place)
            # A program that opens it for writing is refused: what it wrote would reach the product too.
            place.chmod(0o444)

"""The home folder: staging, generations, and how a new generation takes the place of the old one.

HOME/LAYOUT                  version of this layout
HOME/generations/<n>/        warehouse.duckdb, lake/, report/, generation.json
HOME/current                 symbolic link to a generation, swapped by rename
HOME/{warehouse.duckdb,lake,report}   links that lead through `current`
HOME/staging/{hub,sample}/   products of single steps
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from warehouse.declared.tables import GENERATIONS, tables_identity
from warehouse.errors import ErrorCode, KappaError, write_code
from warehouse.home.generation import (
    DATABASE,
    LAKE,
    NOTE,
    REPORT,
    SPILL,
    WAL,
    faults,
    is_open,
    read_note,
    replace_report,
    write_note,
)
from warehouse.home.layout import LAYOUT, check_layout, is_older, layout_of, set_aside
from warehouse.home.path_names import check_name
from warehouse.home.staging import CONTENTS, Product, Staging

KEPT_GENERATIONS = 3
KEPT_S = 3600


def home_path(given: str | None) -> Path:
    """Return the home folder: the one given, else KAPPA_HOME, else ./data."""
    return Path(given or os.environ.get("KAPPA_HOME") or "data")


class Home:
    """One home folder."""

    def __init__(self, path: Path) -> None:
        """Use `path`; nothing is created before it is needed."""
        self.path = path.absolute()
        self.generations = self.path / "generations"
        self.current = self.path / "current"

    def staging(self, *, is_sample: bool) -> Staging:
        """Return the products of the real data sets or of the sample; they never mix."""
        return Staging(self.path / "staging" / ("sample" if is_sample else "hub"))

    def prepare(self) -> None:
        """Create the folder and check that it can be written and has this layout.

        Raises:
            KappaError: it cannot be written, or it was made by another layout.
        """
        check_name(self.path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            probe = self.path / f".probe-{uuid.uuid4().hex[:8]}"
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            raise _unwritable(self.path, error) from error
        self.check_layout()
        self._mend_note()
        self._check_history()
        self._check_links()
        mark = self.path / "LAYOUT"
        if not mark.exists() or not mark.stat().st_size:
            mark.write_text(f"{LAYOUT}\n", "utf8")

    def check_layout(self) -> None:
        """Raise KappaError where the folder holds a warehouse of another layout."""
        check_layout(self.path)

    def set_older_aside(self) -> Path | None:
        """Move what an older layout left aside, see `warehouse.home.layout`; return where, None where nothing was."""
        if not is_older(layout_of(self.path)):
            return None
        with self.lock("run"):
            return set_aside(self.path)

    def _check_history(self) -> None:
        """Raise KappaError where the rows of earlier generations, which a new one takes over, have other columns."""
        if self._has_our_tables():
            return
        import pyarrow.parquet as pq  # noqa: PLC0415 - for this alone

        from warehouse.home.lake import files_of  # noqa: PLC0415 - the same

        paths = files_of(GENERATIONS, self.current / LAKE)
        if not all(pq.read_schema(path).equals(GENERATIONS.arrow_schema) for path in paths):
            raise KappaError(
                f"{self.path} holds a warehouse of another kappa",
                "the table generations, which a new state takes over, has other columns",
                "choose another folder with --home, or move this one away and run `kappa run` again",
                code=ErrorCode.OTHER_VERSION,
            )

    def _has_our_tables(self) -> bool:
        """Whether the current generation has the tables that are declared now; one without a note says nothing."""
        note = self.current_note()
        return note is None or note.get("tables") == tables_identity()

    def _check_links(self) -> None:
        """Raise KappaError where something stands in the place of a link that publishing swaps."""
        for link in (self.current, *(self.path / name for name in (DATABASE, LAKE, REPORT))):
            if link.exists() and not link.is_symlink():
                raise KappaError(
                    f"{link} is in the way",
                    "kappa keeps a link there",
                    "move it away and run again",
                    code=ErrorCode.IN_THE_WAY,
                )

    @contextmanager
    def lock(self, what: str) -> Iterator[None]:
        """Hold the home for one writer.

        Raises:
            KappaError: another process holds it.
        """
        with (self.path / f".{what}.lock").open("a+") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise KappaError(
                    f"{self.path} is in use",
                    f"another kappa process holds its {what} lock",
                    "wait for it to end",
                    code=ErrorCode.IN_USE,
                ) from error
            yield

    def is_locked(self, what: str) -> bool:
        """Return whether another process holds the home for that."""
        path = self.path / f".{what}.lock"
        if not path.is_file():
            return False
        with path.open("rb") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return True
        return False

    def numbers(self) -> list[int]:
        """Return the numbers of the generations that are there, oldest first."""
        names = [entry.name for entry in self.generations.iterdir()] if self.generations.is_dir() else []
        return sorted(int(name) for name in names if name.isdigit())

    def current_note(self) -> dict[str, Any] | None:
        """Return what the current generation notes of itself (number, identities, files), None where there is none.

        Raises:
            KappaError: the note is damaged.
        """
        return read_note(self.current)

    def faults(self, *parts: str) -> list[str]:
        """Return which files of the current generation are not as they were published; reads every byte of them."""
        note = self.current_note()
        return [] if note is None else faults(self.current.resolve(), note, *parts or (DATABASE, LAKE, REPORT))

    def _mend_note(self) -> None:
        """Make the note of the current generation again where it is missing or damaged."""
        if not self.current.is_dir():
            return
        with contextlib.suppress(KappaError):
            if self.current_note() is not None:
                return
        folder = self.current.resolve()
        number = int(folder.name)
        for is_sample in (False, True):
            product = self.staging(is_sample=is_sample).newest("warehouse")
            if product is not None and product.meta.get("generation") == number:
                note = {**_note_of(product), "report": "", "files": product.meta[CONTENTS]}
                break
        else:
            # Nothing tells what it holds: the next publication takes its place, and none but its own kind may.
            is_sample = not self.staging(is_sample=False).names("warehouse")
            note = dict.fromkeys(("warehouse", "report", "content"), "")
            note |= {"generation": number, "is_sample": is_sample, "series": []}
        write_note(folder, note)
        logging.getLogger("kappa").warning("%s was damaged or missing: it was made again", folder / NOTE)

    def database(self) -> Path:
        """Return the path of the current database, resolved, so that a reader stays in one generation.

        Raises:
            KappaError: nothing was published here, or with another layout or other tables than the declared ones.
        """
        self.check_layout()
        path = (self.current / DATABASE).resolve()
        if not path.is_file() and self.current_note() is not None:
            raise KappaError(
                f"{path} is missing",
                "somebody removed it",
                "run `kappa run`, with --sample for a sample, to build it again",
                code=ErrorCode.MISSING,
            )
        if not path.is_file():
            raise KappaError(
                f"{self.path} has no warehouse yet",
                "nothing was built there",
                "run `kappa run --sample`, or `kappa run`",
                code=ErrorCode.NOT_BUILT,
            )
        if not self._has_our_tables():
            raise KappaError(
                f"{self.path} holds tables of another kappa",
                "their columns or units are not those of this one",
                "run `kappa run`, with --sample for a sample, to build them again",
                code=ErrorCode.OTHER_VERSION,
            )
        if path.with_name(WAL).exists():
            raise KappaError(
                f"{path} holds changes that kappa did not make",
                f"another program opened it for writing and left {WAL}",
                "close that program and run `kappa run`, with --sample for a sample, to build it again",
                code=ErrorCode.CHANGED,
            )
        return path

    def publish(self, warehouse: Product, report: Product) -> int:
        """Make a built warehouse with its report the current generation; return its number.

        Readers see the old state or the new one: the generation is complete before `current` is swapped. A warehouse
        that is already current only gets its report replaced, file by file.
        """
        self._check_links()
        with self.lock("publish"):
            note = self.current_note()
            if note is not None and note["warehouse"] == warehouse.identity:
                self._swap(int(note["generation"]))
                if note["report"] != report.identity or self.faults(REPORT):
                    replace_report(report.folder, self.current.resolve(), report=report.identity)
                self._clean()
                return int(note["generation"])
            number = int(warehouse.meta["generation"])
            if number <= max(self.numbers(), default=0) and self._warehouse_of(number) != warehouse.identity:
                raise KappaError(
                    f"generation {number} exists already",
                    "another run published meanwhile",
                    "run `kappa run` again",
                    code=ErrorCode.PUBLISHED_MEANWHILE,
                )
            self._place(number, warehouse, report)
            self._swap(number)
            self._clean()
            return number

    def _warehouse_of(self, number: int) -> str | None:
        with contextlib.suppress(KappaError):
            return str((read_note(self.generations / str(number)) or {}).get("warehouse"))
        return None

    def _place(self, number: int, warehouse: Product, report: Product) -> None:
        target = self.generations / str(number)
        draft = self.generations / f".new-{number}-{uuid.uuid4().hex[:8]}"
        self.generations.mkdir(exist_ok=True)
        try:
            _link_tree(warehouse.folder, draft, skip="meta.json")
            _link_tree(report.folder, draft / REPORT, skip="meta.json")
            drawn = {f"{REPORT}/{path}": noted for path, noted in report.meta[CONTENTS].items()}
            files = warehouse.meta[CONTENTS] | drawn
            write_note(draft, {**_note_of(warehouse), "report": report.identity, "files": files})
            self._take_away(target)
            draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def _swap(self, number: int) -> None:
        replaced, target = self.current.resolve(), self.generations / str(number)
        if replaced.is_dir() and replaced != target.resolve():
            # Its time says from now on when it was replaced: nobody puts anything into it any more.
            os.utime(replaced)
        _point(self.current, Path("generations") / str(number))
        for name in (DATABASE, LAKE, REPORT):
            if not (self.path / name).is_symlink():
                _point(self.path / name, Path("current") / name)

    def _outdated(self) -> list[Path]:
        """Return the generations that are not among the last ones and were replaced longer ago than readers hold."""
        earlier = [self.generations / str(number) for number in self.numbers()[:-KEPT_GENERATIONS]]
        return [folder for folder in earlier if time.time() - folder.stat().st_mtime > KEPT_S]

    def _take_away(self, folder: Path) -> None:
        """Remove a generation in one moment for those who read it by path: half of one is never found."""
        waste = self.generations / f".new-{folder.name}-{uuid.uuid4().hex[:8]}"
        with contextlib.suppress(FileNotFoundError):
            folder.rename(waste)
        shutil.rmtree(waste, ignore_errors=True)

    def _clean(self) -> None:
        for folder in self._outdated():
            self._take_away(folder)
        for left in [*self.left_over(), *self.foreign()]:
            if left.is_symlink() or left.is_file():
                left.unlink(missing_ok=True)
            else:
                shutil.rmtree(left, ignore_errors=True)

    def left_over(self) -> list[Path]:
        """Return what killed runs left while they published; what a run that goes on has is among it."""
        return sorted([*self.generations.glob(".new-*"), *self.path.glob(".link-*"), *self.path.glob(".probe-*")])

    def foreign(self) -> list[Path]:
        """Return what other programs left beside published databases that nobody has open: logs and spilled rows."""
        logs = [
            path for path in self.generations.glob(f"*/{WAL}") if not is_open(path.with_suffix(""), for_writing=True)
        ]
        spilled = self.generations.glob(f"*/{SPILL}")
        return sorted([*logs, *(path for path in spilled if not is_open(path.with_suffix(""), for_writing=False))])

    def next_generation(self) -> int:
        """Return the number that the next generation gets."""
        return max(self.numbers(), default=0) + 1


def _note_of(warehouse: Product) -> dict[str, Any]:
    """Return what a generation notes of the warehouse that it holds."""
    names = ("generation", "content", "is_sample", "series")
    noted = {name: warehouse.meta[name] for name in names}
    return {**noted, "warehouse": warehouse.identity, "tables": tables_identity()}


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


def _unwritable(path: Path, error: OSError) -> KappaError:
    other = "choose another one with --home or KAPPA_HOME"
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return KappaError(
        f"home folder {path} cannot be written",
        error.strerror or str(error),
        f"free disk space, or {other}" if is_full else other,
        code=write_code(error),
    )

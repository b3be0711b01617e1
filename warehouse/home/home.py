"""The home folder: what lies where, who may write, and which generation is the current one.

HOME/LAYOUT                  version of this layout
HOME/generations/<n>/        warehouse.duckdb, lake/, report/, generation.json
HOME/current                 symbolic link to a generation, swapped by rename
HOME/{warehouse.duckdb,lake,report}   links that lead through `current`
HOME/staging/{hub,sample}/   products of single steps
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from warehouse.declared.tables import tables_identity
from warehouse.errors import ErrorCode, KappaError
from warehouse.home.generation import DATABASE, LAKE, REPORT, WAL, faults, read_note, replace_report
from warehouse.home.layout import check_layout
from warehouse.home.mending import mend_note
from warehouse.home.preparing import check_links, prepare
from warehouse.home.products import Product
from warehouse.home.publishing import CURRENT, GENERATIONS, clean, left_over, numbers_in, place, swap
from warehouse.home.staging import Staging


def home_path(given: str | None) -> Path:
    """Return the home folder: the one given, else KAPPA_HOME, else ./data."""
    return Path(given or os.environ.get("KAPPA_HOME") or "data")


class Home:
    """One home folder."""

    def __init__(self, path: Path) -> None:
        """Use `path`; nothing is created before it is needed."""
        self.path = path.absolute()
        self.generations = self.path / GENERATIONS
        self.current = self.path / CURRENT

    def staging(self, *, is_sample: bool) -> Staging:
        """Return the products of the real data sets or of the sample; they never mix."""
        return Staging(self.path / "staging" / ("sample" if is_sample else "hub"))

    def prepare(self) -> None:
        """Create the folder, check that it can be used, and mend the note of the current generation.

        Raises:
            KappaError: it cannot be written, was made by another layout, or has something in the place of a link.
        """
        prepare(self.path)
        mend_note(self.current.resolve(), self.staging(is_sample=False), self.staging(is_sample=True))

    def check_layout(self) -> None:
        """Raise KappaError where the folder holds a warehouse of another layout."""
        check_layout(self.path)

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
        return numbers_in(self.generations)

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
        note = self.current_note()
        # A generation without a note says nothing of its tables.
        if note is not None and note.get("tables") != tables_identity():
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
        check_links(self.path)
        with self.lock("publish"):
            note = self.current_note()
            if note is not None and note["warehouse"] == warehouse.identity:
                swap(self.path, int(note["generation"]))
                if note["report"] != report.identity or self.faults(REPORT):
                    replace_report(report.folder, self.current.resolve(), report=report.identity)
                clean(self.path)
                return int(note["generation"])
            number = int(warehouse.meta["generation"])
            if number <= max(self.numbers(), default=0) and self._warehouse_of(number) != warehouse.identity:
                raise KappaError(
                    f"generation {number} exists already",
                    "another run published meanwhile",
                    "run `kappa run` again",
                    code=ErrorCode.PUBLISHED_MEANWHILE,
                )
            place(self.generations, number, warehouse, report)
            swap(self.path, number)
            clean(self.path)
            return number

    def _warehouse_of(self, number: int) -> str | None:
        with contextlib.suppress(KappaError):
            return str((read_note(self.generations / str(number)) or {}).get("warehouse"))
        return None

    def left_over(self) -> list[Path]:
        """Return what killed runs left while they published; what a run that goes on has is among it."""
        return left_over(self.path)

    def next_generation(self) -> int:
        """Return the number that the next generation gets."""
        return max(self.numbers(), default=0) + 1

"""The home folder: staging, generations, and how a new generation takes the place of the old one.

HOME/LAYOUT                  version of this layout
HOME/generations/<n>/        warehouse.duckdb, lake/, report/, generation.json
HOME/current                 symbolic link to a generation, swapped by rename
HOME/{warehouse.duckdb,lake,report}   links that lead through `current`
HOME/staging/{hub,sample}/   products of single steps
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from warehouse.errors import KappaError
from warehouse.staging import Product, Staging
from warehouse.tables import GENERATIONS, tables_identity

LAYOUT = 1
KEPT_GENERATIONS = 3
NOTE = "generation.json"
DATABASE, LAKE, REPORT = "warehouse.duckdb", "lake", "report"


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
        if bad := sorted(set("?%") & set(str(self.path))):
            raise KappaError(
                f"home folder {self.path} cannot be used",
                f"Dagster's run history and DuckDB keep no files below a name with {' or '.join(bad)}",
                "choose another one with --home or KAPPA_HOME",
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            probe = self.path / f".probe-{uuid.uuid4().hex[:8]}"
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            raise _unwritable(self.path, error) from error
        self.check_layout()
        self._check_history()
        self._check_links()
        mark = self.path / "LAYOUT"
        if not mark.exists() or not mark.stat().st_size:
            mark.write_text(f"{LAYOUT}\n", "utf8")

    def check_layout(self) -> None:
        """Raise KappaError where the folder holds a warehouse of another layout."""
        mark = self.path / "LAYOUT"
        found = (mark.read_text("utf8", errors="replace").strip() or None) if mark.is_file() else None
        is_older = found is None and ((self.path / DATABASE).exists() or self.generations.exists())
        if is_older or found not in (None, str(LAYOUT)):
            raise KappaError(
                f"{self.path} holds a warehouse of layout {found or 'unknown'}",
                f"this kappa uses layout {LAYOUT}",
                "choose another folder with --home, or move this one away and run `kappa run` again",
            )

    def _check_history(self) -> None:
        """Raise KappaError where the rows of earlier generations, which a new one takes over, have other columns."""
        path = self.current / LAKE / GENERATIONS.name / f"{GENERATIONS.name}.parquet"
        if self._has_our_tables() or not path.is_file():
            return
        import pyarrow.parquet as pq  # noqa: PLC0415 - for this alone

        if not pq.read_schema(path).equals(GENERATIONS.arrow_schema):
            raise KappaError(
                f"{self.path} holds a warehouse of another kappa",
                "the table generations, which a new state takes over, has other columns",
                "choose another folder with --home, or move this one away and run `kappa run` again",
            )

    def _has_our_tables(self) -> bool:
        """Whether the current generation has the tables that are declared now; one without a note says nothing."""
        note = self.current_note()
        return note is None or note.get("tables") == tables_identity()

    def _check_links(self) -> None:
        """Raise KappaError where something stands in the place of a link that publishing swaps."""
        for link in (self.current, *(self.path / name for name in (DATABASE, LAKE, REPORT))):
            if link.exists() and not link.is_symlink():
                raise KappaError(f"{link} is in the way", "kappa keeps a link there", "move it away and run again")

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
                    f"{self.path} is in use", f"another kappa process holds its {what} lock", "wait for it to end"
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
        """Return what the current generation notes of itself (number, identities), None where there is none."""
        try:
            return dict(json.loads((self.current / NOTE).read_text("utf8")))
        except FileNotFoundError:
            return None
        except ValueError as error:
            why, remedy = f"{NOTE} is damaged ({error})", "move the home away and run `kappa run` again"
            raise KappaError(f"the current generation of {self.path} cannot be read", why, remedy) from error

    def database(self) -> Path:
        """Return the path of the current database, resolved, so that a reader stays in one generation.

        Raises:
            KappaError: nothing was published here, or with another layout or other tables than the declared ones.
        """
        self.check_layout()
        path = (self.current / DATABASE).resolve()
        if not path.is_file():
            raise KappaError(
                f"{self.path} has no warehouse yet",
                "nothing was built there",
                "run `kappa run --sample`, or `kappa run`",
            )
        if not self._has_our_tables():
            raise KappaError(
                f"{self.path} holds tables of another kappa",
                "their columns or units are not those of this one",
                "run `kappa run`, with --sample for a sample, to build them again",
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
                if note["report"] != report.identity:
                    self._renew_report(report, note)
                self._clean()
                return int(note["generation"])
            number = int(warehouse.meta["generation"])
            if number <= max(self.numbers(), default=0) and self._note_of(number) != warehouse.identity:
                raise KappaError(
                    f"generation {number} exists already", "another run published meanwhile", "run `kappa run` again"
                )
            self._place(number, warehouse, report)
            self._swap(number)
            self._clean()
            return number

    def _renew_report(self, report: Product, note: dict[str, Any]) -> None:
        folder = self.generations / str(note["generation"])
        self.replace_report(report.folder, folder)
        (folder / f".{NOTE}").write_text(json.dumps({**note, "report": report.identity}, indent=1), "utf8")
        (folder / f".{NOTE}").replace(folder / NOTE)

    def _note_of(self, number: int) -> str | None:
        try:
            return str(json.loads((self.generations / str(number) / NOTE).read_text("utf8"))["warehouse"])
        except FileNotFoundError:
            return None

    def _place(self, number: int, warehouse: Product, report: Product) -> None:
        target = self.generations / str(number)
        draft = self.generations / f".new-{number}-{uuid.uuid4().hex[:8]}"
        self.generations.mkdir(exist_ok=True)
        try:
            _link_tree(warehouse.folder, draft, skip="meta.json")
            _link_tree(report.folder, draft / REPORT, skip="meta.json")
            note = {
                "generation": number, "warehouse": warehouse.identity, "report": report.identity,
                "content": warehouse.meta["content"], "is_sample": warehouse.meta["is_sample"],
                "series": warehouse.meta["series"], "tables": tables_identity(),
            }  # fmt: skip
            (draft / NOTE).write_text(json.dumps(note, indent=1), "utf8")
            shutil.rmtree(target, ignore_errors=True)
            draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def _swap(self, number: int) -> None:
        _point(self.current, Path("generations") / str(number))
        for name in (DATABASE, LAKE, REPORT):
            if not (self.path / name).is_symlink():
                _point(self.path / name, Path("current") / name)

    def replace_report(self, source: Path, generation: Path) -> None:
        """Put the report in `source` in the place of a generation's, file by file; each file is whole at any moment."""
        target = generation / REPORT
        fresh = {path.relative_to(source) for path in source.rglob("*") if path.is_file()} - {Path("meta.json")}
        for path in sorted(fresh):
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            temporary = target / path.parent / f".new-{path.name}"
            shutil.copyfile(source / path, temporary)
            temporary.replace(target / path)
        for path in [path for path in target.rglob("*") if path.is_file()]:
            if path.relative_to(target) not in fresh:
                path.unlink()

    def _clean(self) -> None:
        for number in self.numbers()[:-KEPT_GENERATIONS]:
            shutil.rmtree(self.generations / str(number), ignore_errors=True)
        for left in self.left_over():
            if left.is_symlink() or left.is_file():
                left.unlink(missing_ok=True)
            else:
                shutil.rmtree(left, ignore_errors=True)

    def left_over(self) -> list[Path]:
        """Return what killed runs left while they published; what a run that goes on has is among it."""
        return sorted([*self.generations.glob(".new-*"), *self.path.glob(".link-*"), *self.path.glob(".probe-*")])

    def next_generation(self) -> int:
        """Return the number that the next generation gets."""
        return max(self.numbers(), default=0) + 1


def _point(link: Path, target: Path) -> None:
    """Make `link` a symbolic link to `target` by one rename, whatever it was."""
    temporary = link.parent / f".link-{uuid.uuid4().hex[:8]}"
    temporary.symlink_to(target)
    try:
        temporary.replace(link)
    finally:
        temporary.unlink(missing_ok=True)


def _link_tree(source: Path, target: Path, skip: str) -> None:
    """Copy a tree by hard links, by bytes where the file system has none; products are never written again."""
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


def _unwritable(path: Path, error: OSError) -> KappaError:
    other = "choose another one with --home or KAPPA_HOME"
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return KappaError(
        f"home folder {path} cannot be written",
        error.strerror or str(error),
        f"free disk space, or {other}" if is_full else other,
    )

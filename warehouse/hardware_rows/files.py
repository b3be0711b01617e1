"""Finds the CSV files of sourced rows and reads their rows; `cells` parses each cell."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from warehouse.declared.schema import Table
from warehouse.errors import ErrorCode, KappaError
from warehouse.hardware_rows.cells import failure, shown, typed_value
from warehouse.hardware_rows.reference_tables import USER_TABLES
from warehouse.home.layout import USER_FOLDER

FOLDER = Path(__file__).parents[1] / "reference"
# Far above the size of any file of rows, far below the size of memory.
MOST_BYTES = 4 * 2**20
MOST_CELL_CHARACTERS = 131_072
_FILES = {f"{table}.csv" for table in USER_TABLES}
_CALL_IT = f"call it one of {', '.join(USER_TABLES)} (.csv)"


class Placed(NamedTuple):
    """A row with its file and line; the header is line 1."""

    path: Path
    number: int
    values: dict[str, object]


def user_folder(home: Path) -> Path:
    """Return the folder of a user's own rows in a home folder."""
    return home / USER_FOLDER


def user_files(user: Path | None) -> list[Path]:
    """Return the CSV files of a user's own rows, sorted by name; `unread_files` returns the others.

    Raises:
        KappaError: the path is not a folder or cannot be read, or no table has a file's name: its rows would be lost.
    """
    paths = [path for path in _shown_files(user) if _is_csv(path)]
    for path in paths:
        if path.name not in _FILES:
            raise KappaError(f"{path} is not usable", "no table has that name", _CALL_IT, code=ErrorCode.MISNAMED_FILE)
    return paths


def unread_files(user: Path | None) -> list[KappaError]:
    """Return an error for each file among a user's own rows that is ignored: not hidden and not a CSV file.

    Raises:
        KappaError: the path is not a folder or cannot be read.
    """
    why, remedy = "own rows are CSV files", f"{_CALL_IT}, or keep it elsewhere"
    return [
        KappaError(f"{path} is not read", why, remedy, code=ErrorCode.MISNAMED_FILE)
        for path in _shown_files(user)
        if not _is_csv(path)
    ]


def _is_csv(path: Path) -> bool:
    return path.suffix.lower() == ".csv"


def _shown_files(user: Path | None) -> list[Path]:
    try:
        paths = sorted(user.iterdir()) if user and os.path.lexists(user) else []
    except OSError as error:
        raise KappaError(
            f"{user} cannot be read", _why(error), "it is the folder of your own rows", code=ErrorCode.NOT_READABLE
        ) from error
    return [path for path in paths if not path.name.startswith(".")]


def user_rows_identity(user: Path | None) -> str:
    """Return a hash of the user's own rows, for the identity of products made from them; empty if there are none.

    Raises:
        KappaError: no table has a file's name, or a file cannot be read.
    """
    digest, paths = hashlib.sha256(), user_files(user)
    for path in paths:
        digest.update(path.name.encode() + b"\0" + _bytes(path) + b"\0")
    return digest.hexdigest() if paths else ""


def waiting_rows(home: Path, note: Mapping[str, object] | None) -> str:
    """Return in a line that own rows changed since a generation was made; empty if they did not, or there is none.

    Args:
        home: The home folder.
        note: What its current generation notes of itself.

    Raises:
        KappaError: no table has a file's name, or a file cannot be read.
    """
    if note is None or note.get("own_rows", "") == user_rows_identity(user_folder(home)):
        return ""
    where = f"the tables of generation {note['generation']} have them after the next `kappa run`"
    return f"rows in {user_folder(home)} changed: {where}; `kappa crit` has them now"


def read_rows(path: Path, table: Table, *, may_omit: bool = False) -> list[Placed]:
    """Return the typed rows of a file; with `may_omit` the header may leave out nullable columns.

    Raises:
        KappaError: the file cannot be read, or a cell is invalid; the message names file, row and column.
    """
    return typed_rows(path, _bytes(path), table, may_omit=may_omit)


def typed_rows(path: Path, data: bytes, table: Table, *, may_omit: bool = False) -> list[Placed]:
    """Return the typed rows of a file's bytes; see `read_rows`."""
    header, *lines = _lines(path, data) or [[]]
    names = [name.strip() for name in header]
    _check_header(path, table, names, may_omit=may_omit)
    rows = []
    for number, line in enumerate(lines, 2):
        if not line:
            continue
        if len(line) != len(names):
            raise failure(path, number, names[-1], f"{len(line)} cells where the header has {len(names)}")
        cells = dict(zip(names, line, strict=True))
        typed = {field.name: typed_value(path, number, field, cells.get(field.name, "")) for field in table.fields}
        rows.append(Placed(path, number, typed))
    return rows


def _why(error: OSError) -> str:
    return error.strerror or str(error)


def _bytes(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise KappaError(
            f"{path} cannot be read", "it is no file", "put a CSV file there, or nothing", code=ErrorCode.NOT_READABLE
        )
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise KappaError(
            f"{path} cannot be read", _why(error), "restore it, or mend its permissions", code=ErrorCode.NOT_READABLE
        ) from error
    if len(data) > MOST_BYTES:
        raise KappaError(
            f"{path} is not usable",
            f"it is longer than {MOST_BYTES:,} bytes",
            "keep only rows in it",
            code=ErrorCode.BAD_FILE,
        )
    return data


def _lines(path: Path, data: bytes) -> list[list[str]]:
    try:
        reader = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        raise KappaError(
            f"{path} cannot be read", f"row {row}: it is not UTF-8", "save it as UTF-8", code=ErrorCode.NOT_TEXT
        ) from error
    # The limit is the process's: who read a log before has raised it.
    before = csv.field_size_limit(MOST_CELL_CHARACTERS)
    try:
        return list(reader)
    except csv.Error as error:
        raise KappaError(
            f"{path} cannot be read", f"row {reader.line_num}: {error}", "correct the file", code=ErrorCode.BAD_FILE
        ) from error
    finally:
        csv.field_size_limit(before)


def _check_header(path: Path, table: Table, header: list[str], *, may_omit: bool) -> None:
    needed = {field.name for field in table.fields if not (may_omit and field.nullable)}
    wrong = {
        "missing": sorted(needed - set(header)),
        "unknown": sorted(set(header) - set(table.names)),
        "twice": sorted({name for name in header if header.count(name) > 1}),
    }
    found = [f"{kind} {', '.join(map(shown, names))}" for kind, names in wrong.items() if names]
    if found:
        columns = ", ".join(sorted({name for names in wrong.values() for name in names})) if header else "all"
        why = "; ".join(found) if header else "the file is empty"
        listed = f"the columns have to be {', '.join(table.names)}, with commas between them"
        raise failure(path, 1, columns, f"{why}; {listed}")

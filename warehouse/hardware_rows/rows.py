"""Reads and checks sourced rows: those of kappa, and a user's own in the home folder."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from warehouse.declared.hardware_fields import CONFIDENCES
from warehouse.declared.schema import Table
from warehouse.declared.tables import MODELS
from warehouse.hardware_rows.cells import failure, shown
from warehouse.hardware_rows.checks import contradiction
from warehouse.hardware_rows.files import (
    FOLDER,
    Placed,
    read_rows,
    typed_rows,
    unread_files,
    user_files,
    user_folder,
    user_rows_identity,
)
from warehouse.hardware_rows.names import find_name, folded, nearest_names
from warehouse.hardware_rows.reference_tables import NAMES_FROM, REFERENCE
from warehouse.hardware_rows.shapes import Values
from warehouse.hardware_rows.tokenizer_names import own_models, own_tokenizer_folder, tokenizer_names
from warehouse.hardware_rows.worked_out import completed, figures

__all__ = [
    "FOLDER", "REFERENCE", "ReferenceKey", "check_file", "load_reference", "reference_key", "unread_files",
    "user_files", "user_folder", "user_rows_identity",
]  # fmt: skip

RowsOf = Callable[[str], list[dict[str, Any]]]
_PARTS = ("accelerator", "link")


def load_reference(name: str, folder: Path = FOLDER, user: Path | None = None) -> pa.Table:
    """Return one table of sourced rows in the order of its file, followed by the user's rows.

    Args:
        name: A key of `REFERENCE`. `models` comes with the columns that are worked out from its shape.
        folder: The folder of `name`.csv and of the tables whose names it uses.
        user: The folder of a user's own rows, HOME/reference; None or a missing folder adds nothing. Its files may
            leave out nullable columns. An existing name is refused: a row never overrides another.

    Raises:
        KeyError: there is no such table.
        KappaError: a row is invalid; the message names file, row (the header is row 1) and column.
    """
    return _loaded(name, reference_key(folder, user))


class ReferenceKey(NamedTuple):
    """What every table of sourced rows follows from: equal keys, equal tables."""

    folder: Path
    user: Path | None
    contents: bytes
    tokenizers: tuple[object, ...]


def reference_key(folder: Path = FOLDER, user: Path | None = None) -> ReferenceKey:
    """Return the key of these folders' rows as they are now, by which what is made of them alone may be kept.

    Args:
        folder: See `load_reference`.
        user: See `load_reference`.
    """
    own = _own(user)
    return ReferenceKey(folder, user, _contents(folder, user), (*tokenizer_names(own=own), *own_models(own).items()))


def _own(user: Path | None) -> Path | None:
    """Return the folder of the own tokenizers of the user whose own rows are in `user`."""
    return own_tokenizer_folder(user.parent) if user is not None else None


def _contents(folder: Path, user: Path | None) -> bytes:
    """Return a hash of every file that a table may depend on: equal files give equal tables."""
    digest = hashlib.sha256()
    for path in (*sorted(folder.glob("*.csv")), *user_files(user)):
        # One that cannot be read is reported by the reader.
        with suppress(OSError):
            digest.update(f"{path}\0".encode(errors="surrogateescape") + hashlib.sha256(path.read_bytes()).digest())
    return digest.digest()


# A run asks for the same tables hundreds of times, and checking a table takes 0.05 s.
@lru_cache(maxsize=64)
def _loaded(name: str, key: ReferenceKey) -> pa.Table:
    folder, user = key.folder, key.user
    table = REFERENCE[name]
    own = read_rows(folder / f"{name}.csv", table)
    theirs = [row for path in user_files(user) if path.stem == name for row in read_rows(path, table, may_omit=True)]
    _check(name, own, theirs, folder, user)
    rows = [*own, *theirs]
    if name != "models":
        return table.rows([row.values for row in rows])
    _name_own_tokenizers(rows, own_models(_own(user)))
    return MODELS.rows([row.values | figures(row.values) for row in rows])


def _name_own_tokenizers(rows: Iterable[Placed], named: dict[str, str]) -> None:
    """Give models the user's own tokenizer that names them, which is no proxy."""
    for row in rows:
        if (tokenizer := named.get(str(row.values["model"]))) is not None:
            row.values.update(tokenizer=tokenizer, is_tokenizer_proxy=False)


def check_file(name: str, path: Path, data: bytes, user: Path) -> None:
    """Check the bytes of a user's file before they are written, as `load_reference` will check them.

    Args:
        name: A key of `REFERENCE`.
        path: The file, for messages.
        data: The bytes to write.
        user: The folder of a user's own rows, whose other files are read too.

    Raises:
        KappaError: a row is invalid.
    """
    own = read_rows(FOLDER / f"{name}.csv", REFERENCE[name])
    _check(name, own, typed_rows(path, data, REFERENCE[name]), FOLDER, user)


def _check(name: str, own: list[Placed], theirs: list[Placed], folder: Path, user: Path | None) -> None:
    def rows_of(table: str) -> list[dict[str, Any]]:
        return list(load_reference(table, folder, user).to_pylist())

    rows = [*own, *theirs]
    if name == "models":
        for row in rows:
            row.values.update(completed(row.values))
    _check_key(REFERENCE[name], rows)
    for column in NAMES_FROM.get(name, ()):
        _resolve_names(name, column, rows, rows_of, tokenizer_names(own=_own(user)))
    machines = {kind: {row[kind]: row for row in rows_of(f"{kind}s")} for kind in _PARTS} if name == "measured" else {}
    for path, number, values in rows:
        found = contradiction(values | _named_peaks(values, machines))
        if found:
            raise failure(path, number, *found)
    _check_days(theirs)
    if name in _CHECKS:
        _CHECKS[name](rows, rows_of)


def _check_key(table: Table, rows: list[Placed]) -> None:
    seen: dict[tuple[object, ...], Placed] = {}
    for row in rows:
        values = (row.values[column] for column in table.key)
        key = tuple(folded(value) if isinstance(value, str) else value for value in values)
        if key in seen:
            is_same_file = seen[key].path == row.path
            where = "" if is_same_file else f" of {seen[key].path}: a row never overrides another, choose a new name"
            raise failure(row.path, row.number, ", ".join(table.key), f"the same as in row {seen[key].number}{where}")
        seen[key] = row


def _check_days(rows: list[Placed]) -> None:
    """Refuse a user's date in the future; one day is allowed for time zones."""
    tomorrow = (dt.datetime.now(dt.UTC) + dt.timedelta(days=1)).date().isoformat()
    for path, number, values in rows:
        day = values.get("retrieved")
        if isinstance(day, str) and day > tomorrow:
            raise failure(path, number, "retrieved", f"{shown(day)} is still to come")


def _resolve_names(name: str, column: str, rows: list[Placed], rows_of: RowsOf, tokenizers: list[str]) -> None:
    """Replace each given name by the listed spelling; a measured machine need not be in another table."""
    is_tokenizer = column == "tokenizer"
    names = tokenizers if is_tokenizer else [row[column] for row in rows_of(f"{column}s")]
    if name == "headlines" and column in _PARTS:
        names += [row[column] for row in rows_of("measured")]
    for path, number, values in rows:
        given = values[column]
        if not isinstance(given, str):
            continue
        found = find_name(given, names)
        if found is None and name != "measured":
            place = "kappa (take one, with is_tokenizer_proxy true)" if is_tokenizer else f"{column}s.csv"
            near = ", ".join(nearest_names(given, names))
            raise failure(path, number, column, f"{shown(given)} is not in {place}, nearest are {near}")
        values[column] = found or given


def _named_peaks(values: Values, machines: dict[str, dict[str, dict[str, Any]]]) -> Values:
    """Return the columns of the accelerator and link that a measured row names, keyed like `link.peak_bytes_per_s`."""
    named = {kind: known.get(str(values[kind]), {}) for kind, known in machines.items()}
    return {f"{kind}.{column}": value for kind, row in named.items() for column, value in row.items()}


def _check_platforms(rows: list[Placed], rows_of: RowsOf) -> None:
    """Cap a platform's confidence at that of its accelerator and link; a `paper` platform needs inputs of the paper."""
    for kind in _PARTS:
        paper = {row[kind] for row in rows_of(f"paper_{kind}s")}
        sure = {row[kind]: row["confidence"] for row in rows_of(f"{kind}s")}
        for path, number, values in rows:
            if values["basis"] != "paper":
                values["confidence"] = max(str(values["confidence"]), sure[values[kind]], key=CONFIDENCES.index)
            elif values[kind] not in paper:
                raise failure(path, number, kind, f"{values[kind]!r} is not among the paper's inputs")


def _check_headlines(rows: list[Placed], rows_of: RowsOf) -> None:
    """Refuse a headline that is not a known model or platform, or has confidence `secondary`."""
    measured = [row | {"basis": "measured", "confidence": "high"} for row in rows_of("measured")]
    sure: dict[tuple[object, ...], str] = {
        tuple(row.get(column) for column in REFERENCE["headlines"].names): row["confidence"]
        for row in (*rows_of("models"), *rows_of("platforms"), *measured)
    }
    for path, number, values in rows:
        named = tuple(values[column] for column in REFERENCE["headlines"].names)
        if (named[0] is None) == (named[1:] == (None,) * 3):
            raise failure(path, number, "model", "a row names one model or one platform")
        if sure.get(named, "secondary") == "secondary":
            raise failure(path, number, "model, accelerator", "is no platform, or is known only second-hand")


_CHECKS = {"platforms": _check_platforms, "headlines": _check_headlines}

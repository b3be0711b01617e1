"""Reads sourced rows, typed and checked: those of kappa and those that a user keeps in the home folder."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from warehouse.errors import KappaError
from warehouse.reference_cells import failure, typed_value
from warehouse.reference_tables import NAMES_FROM, REFERENCE, USER_FOLDER, USER_TABLES
from warehouse.schema import Table

FOLDER = Path(__file__).parent / "reference"


class Placed(NamedTuple):
    """A row with the file and the line that it stands in; the header is line 1."""

    path: Path
    number: int
    values: dict[str, object]


def load_reference(name: str, folder: Path = FOLDER, user: Path | None = None) -> pa.Table:
    """Return one table of sourced rows, in the order of its file, then the user's.

    Args:
        name: A key of `REFERENCE`. `models` comes without `flops_per_token`, which is computed and not typed in, and
            without the columns of `indexers`.
        folder: Where `name`.csv is, and the tables whose names it uses.
        user: The folder of a user's own rows, HOME/reference; None or a folder that is not there adds nothing. Files
            there may leave out columns that may be empty.

    Raises:
        KeyError: No such table.
        KappaError: A row cannot be used; the message names file, row (the header is row 1) and column.
    """
    table = REFERENCE[name]
    rows = _read(folder / f"{name}.csv", table)
    rows += [row for path in user_files(user) if path.stem == name for row in _read(path, table, may_omit=True)]
    _check_key(table, rows)
    for column, other in NAMES_FROM.get(name, {}).items():
        _check_names(rows, column, _known(name, column, other, folder, user))
    _check_figures(rows)
    if name == "platforms":
        _check_platforms(rows, folder)
    if name == "headlines":
        _check_headlines(rows, folder, user)
    return table.rows([row.values for row in rows])


def user_folder(home: Path) -> Path:
    """Return where a home folder keeps its user's rows."""
    return home / USER_FOLDER


def user_files(user: Path | None) -> list[Path]:
    """Return the CSV files of a user's own rows, by name.

    Raises:
        KappaError: one is named like no table, so that its rows would be lost.
    """
    paths = sorted(user.glob("*.csv")) if user and user.is_dir() else []
    for path in paths:
        if path.stem not in USER_TABLES:
            raise KappaError(
                f"{path} is not usable", "no table has that name", f"call it one of {', '.join(USER_TABLES)} (.csv)"
            )
    return paths


def user_rows_identity(user: Path | None) -> str:
    """Return a hash over the user's own rows, for the identity of what is made from them; empty where there are none.

    Raises:
        KappaError: a file is named like no table, or cannot be read.
    """
    digest, paths = hashlib.sha256(), user_files(user)
    for path in paths:
        digest.update(path.name.encode() + b"\0" + _bytes(path) + b"\0")
    return digest.hexdigest() if paths else ""


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise KappaError(f"{path} cannot be read", str(error), "mend its permissions") from error


def _read(path: Path, table: Table, *, may_omit: bool = False) -> list[Placed]:
    """Return the typed rows of a file; with `may_omit` a column that may be empty need not be in the header."""
    return [
        Placed(path, number, {f.name: typed_value(path, number, f, cells.get(f.name, "")) for f in table.fields})
        for number, cells in _cells(path, table, may_omit=may_omit)
    ]


def _cells(path: Path, table: Table, *, may_omit: bool) -> list[tuple[int, dict[str, str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = list(csv.reader(file, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise KappaError(f"{path} cannot be read", str(error), "restore or correct the file") from error
    header = lines[0] if lines else []
    _check_header(path, table, header, may_omit=may_omit)
    placed = [(number, line) for number, line in enumerate(lines[1:], 2) if line]
    for number, line in placed:
        if len(line) != len(header):
            raise failure(path, number, header[-1], f"{len(line)} cells where the header has {len(header)}")
    return [(number, dict(zip(header, line, strict=True))) for number, line in placed]


def _check_header(path: Path, table: Table, header: list[str], *, may_omit: bool) -> None:
    needed = {field.name for field in table.fields if not (may_omit and field.nullable)}
    wrong = sorted((needed - set(header)) | (set(header) - set(table.names)))
    if wrong or len(set(header)) < len(header):
        names = ", ".join(wrong or sorted(header))
        raise failure(path, 1, names, f"the columns have to be {', '.join(table.names)}")


def _check_key(table: Table, rows: list[Placed]) -> None:
    seen: dict[tuple[object, ...], Placed] = {}
    for row in rows:
        key = tuple(row.values[column] for column in table.key)
        if key in seen:
            where = "" if seen[key].path == row.path else f" of {seen[key].path}"
            raise failure(row.path, row.number, ", ".join(table.key), f"the same as in row {seen[key].number}{where}")
        seen[key] = row


def _known(name: str, column: str, other: str, folder: Path, user: Path | None) -> set[object]:
    """Return the names that a column may hold; a measured machine may be one that no other table knows."""
    names = set(load_reference(other, folder, user)[column].to_pylist())
    if name == "headlines" and column != "model":
        names |= set(load_reference("measured", folder, user)[column].to_pylist())
    return names


# Figures that are not below another one were mixed up: (smaller, larger, times the larger, what happened).
_BELOW = (
    ("dense_bf16_flop_per_s", "sparse_bf16_flop_per_s", 0.75, "above 3/4 of the sparse peak: dense is half of sparse"),
    ("dense_fp8_flop_per_s", "sparse_fp8_flop_per_s", 0.75, "above 3/4 of the sparse peak: dense is half of sparse"),
    ("measured_bf16_flop_per_s", "dense_bf16_flop_per_s", 1.0, "above the dense peak"),
    ("sustained_bytes_per_s", "peak_bytes_per_s", 1.0, "above the peak of one direction: the sum of both, or bits"),
    ("to_host_bytes_per_s", "peak_bytes_per_s", 1.0, "above the peak of one direction: the sum of both, or bits"),
    ("duplex_bytes_per_s", "peak_bytes_per_s", 2.0, "above the peak of both directions"),
    ("active_params", "total_params", 1.0, "above the total"),
)


def _check_figures(rows: list[Placed]) -> None:
    for path, number, values in rows:
        for smaller, larger, factor, why in _BELOW:
            small, large = values.get(smaller), values.get(larger)
            if isinstance(small, int | float) and isinstance(large, int | float) and small > factor * large:
                raise failure(path, number, smaller, f"{small:g} is {why}")


def _check_platforms(rows: list[Placed], folder: Path) -> None:
    paper = {name: set(load_reference(f"paper_{name}s", folder)[name].to_pylist()) for name in ("accelerator", "link")}
    for path, number, values in rows:
        for column, names in paper.items():
            if values["basis"] == "paper" and values[column] not in names:
                raise failure(path, number, column, f"{values[column]!r} is not among the paper's inputs")


def _check_names(rows: list[Placed], column: str, names: set[object]) -> None:
    for path, number, values in rows:
        if values[column] is not None and values[column] not in names:
            raise failure(path, number, column, f"{values[column]!r} is not in {column}s.csv")


def _check_headlines(rows: list[Placed], folder: Path, user: Path | None) -> None:
    models = {row["model"]: row["confidence"] for row in load_reference("models", folder, user).to_pylist()}
    platforms = {
        (row["accelerator"], row["link"], row["basis"]): row["confidence"]
        for row in load_reference("platforms", folder, user).to_pylist()
    }
    measured = load_reference("measured", folder, user).to_pylist()
    platforms |= {(row["accelerator"], row["link"], "measured"): "high" for row in measured}
    for path, number, values in rows:
        platform = (values["accelerator"], values["link"], values["basis"])
        if (values["model"] is None) == (platform == (None, None, None)):
            raise failure(path, number, "model", "a row names one model or one platform")
        confidence = platforms.get(platform) if values["model"] is None else models[values["model"]]
        if confidence in (None, "secondary"):
            raise failure(path, number, "model, accelerator", "is no platform, or is known only second-hand")

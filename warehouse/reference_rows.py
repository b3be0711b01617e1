"""Reads the sourced tables of `reference/`, typed and checked. What follows from them is computed elsewhere."""

from __future__ import annotations

import csv
import datetime as dt
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from warehouse import fields as f
from warehouse import hardware_fields as h
from warehouse.errors import KappaError
from warehouse.schema import Field, Table
from warehouse.tables import ACCELERATORS, LINKS, MODELS, PLATFORMS, PUBLISHED

FOLDER = Path(__file__).parent / "reference"

_TYPED_MODELS = tuple(field for field in MODELS.fields if field is not h.FLOPS_PER_TOKEN)
HEADLINES = Table(
    "headlines",
    "one model, or one platform, that figures and coarse blocks are made for",
    ("model", "accelerator", "link", "basis"),
    (h.MODEL.or_null(), h.ACCELERATOR.or_null(), h.LINK.or_null(), h.BASIS.or_null()),
)
PAPER_MODELS = Table(
    "paper_models",
    "one model as the paper puts it into its formulae",
    ("model",),
    (
        h.MODEL,
        replace(h.ACTIVE_PARAMS, nullable=False),
        replace(h.KV_BYTES_PER_TOKEN, nullable=False),
        h.PRINTED_KAPPA_M,
        f.SOURCE,
    ),
)
PAPER_ACCELERATORS = Table(
    "paper_accelerators",
    "one accelerator as the paper puts it into its formulae",
    ("accelerator",),
    (h.ACCELERATOR, h.EFFECTIVE_FLOP_PER_S, f.SOURCE),
)
PAPER_LINKS = Table(
    "paper_links",
    "one link as the paper puts it into its formulae",
    ("link",),
    (h.LINK, h.BYTES_PER_S, f.SOURCE),
)
REFERENCE: dict[str, Table] = {
    "models": Table("models", MODELS.grain, MODELS.key, _TYPED_MODELS),
    "accelerators": ACCELERATORS,
    "links": LINKS,
    "platforms": PLATFORMS,
    "headlines": HEADLINES,
    "paper_models": PAPER_MODELS,
    "paper_accelerators": PAPER_ACCELERATORS,
    "paper_links": PAPER_LINKS,
    "published": PUBLISHED,
}
_NAMES_FROM = {
    "platforms": {"accelerator": "accelerators", "link": "links"},
    "headlines": {"model": "models", "accelerator": "accelerators", "link": "links"},
    "paper_models": {"model": "models"},
    "paper_accelerators": {"accelerator": "accelerators"},
    "paper_links": {"link": "links"},
}


def load_reference(name: str, folder: Path = FOLDER) -> pa.Table:
    """Return one table of sourced rows, in the order of its file.

    Args:
        name: A key of `REFERENCE`. `models` comes without `flops_per_token`, which is computed and not typed in.
        folder: Where `name`.csv is, and the tables whose names it uses.

    Raises:
        KeyError: No such table.
        KappaError: A row cannot be used; the message names file, row (the header is row 1) and column.
    """
    table, path = REFERENCE[name], folder / f"{name}.csv"
    rows = [
        {field.name: _value(path, number, field, cells[field.name]) for field in table.fields}
        for number, cells in _cells(path, table)
    ]
    _check_key(path, table, rows)
    for column, other in _NAMES_FROM.get(name, {}).items():
        _check_names(path, rows, column, load_reference(other, folder))
    if name == "headlines":
        _check_headlines(path, rows, folder)
    return table.rows(rows)


def _fail(path: Path, row: int, column: str, why: str) -> KappaError:
    return KappaError(f"{path} is not usable", f"row {row}, column {column}: {why}", "correct the file")


def _cells(path: Path, table: Table) -> list[tuple[int, dict[str, str]]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = list(csv.reader(file, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise KappaError(f"{path} cannot be read", str(error), "restore or correct the file") from error
    header = lines[0] if lines else []
    if sorted(header) != sorted(table.names):
        wrong = sorted(set(header) ^ set(table.names)) or sorted(header)
        raise _fail(path, 1, ", ".join(wrong), f"the columns have to be {', '.join(table.names)}")
    for number, line in enumerate(lines[1:], 2):
        if len(line) != len(header):
            raise _fail(path, number, header[-1], f"{len(line)} cells where the header has {len(header)}")
    return [(number, dict(zip(header, line, strict=True))) for number, line in enumerate(lines[1:], 2)]


def _flag(cell: str) -> bool:
    return {"true": True, "false": False}[cell]


def _number(cell: str) -> float:
    value = float(cell)
    if not math.isfinite(value):
        raise ValueError(cell)
    return value


_PARSERS: dict[pa.DataType, tuple[Callable[[str], object], str]] = {
    pa.string(): (str, "text"),
    pa.bool_(): (_flag, "true or false"),
    pa.int32(): (int, "a whole number"),
    pa.int64(): (int, "a whole number"),
    pa.float64(): (_number, "a number"),
}


def _value(path: Path, row: int, field: Field, cell: str) -> object:
    text = cell.strip()
    if not text:
        if field.nullable:
            return None
        raise _fail(path, row, field.name, "is empty")
    parse, kind = _PARSERS[field.type]
    try:
        value = parse(text)
    except (ValueError, KeyError):
        raise _fail(path, row, field.name, f"{text!r} is not {kind}") from None
    why = _broken_bound(field, value)
    if why:
        raise _fail(path, row, field.name, f"{text!r} {why}")
    return value


def _broken_bound(field: Field, value: object) -> str | None:
    if field.values and value not in field.values:
        return f"is not one of {', '.join(field.values)}"
    if field is h.RETRIEVED and not _is_day(str(value)):
        return "is not a day (YYYY-MM-DD)"
    if field.minimum is not None and isinstance(value, int | float) and value < field.minimum:
        return f"is below {field.minimum:g}"
    if field.maximum is not None and isinstance(value, int | float) and value > field.maximum:
        return f"is above {field.maximum:g}"
    if field.unit.endswith("/s") and value == 0:
        return "is no rate"
    return None


def _is_day(text: str) -> bool:
    try:
        return dt.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _check_key(path: Path, table: Table, rows: list[dict[str, object]]) -> None:
    seen: dict[tuple[object, ...], int] = {}
    for number, row in enumerate(rows, 2):
        key = tuple(row[column] for column in table.key)
        if key in seen:
            raise _fail(path, number, ", ".join(table.key), f"the same as in row {seen[key]}")
        seen[key] = number


def _check_names(path: Path, rows: list[dict[str, object]], column: str, known: pa.Table) -> None:
    names = set(known[column].to_pylist())
    for number, row in enumerate(rows, 2):
        if row[column] is not None and row[column] not in names:
            raise _fail(path, number, column, f"{row[column]!r} is not in {column}s.csv")


def _check_headlines(path: Path, rows: list[dict[str, object]], folder: Path) -> None:
    models = {row["model"]: row["confidence"] for row in load_reference("models", folder).to_pylist()}
    platforms = {
        (row["accelerator"], row["link"], row["basis"]): row["confidence"]
        for row in load_reference("platforms", folder).to_pylist()
    }
    for number, row in enumerate(rows, 2):
        platform = (row["accelerator"], row["link"], row["basis"])
        if (row["model"] is None) == (platform == (None, None, None)):
            raise _fail(path, number, "model", "a row names one model or one platform")
        confidence = platforms.get(platform) if row["model"] is None else models[row["model"]]
        if confidence in (None, "secondary"):
            raise _fail(path, number, "model, accelerator", "is no platform, or is known only second-hand")

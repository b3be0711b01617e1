"""One cell of a sourced row: text to a typed value, and what is wrong with it told with file, row and column."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from warehouse import hardware_fields as h
from warehouse.errors import KappaError
from warehouse.schema import Field


def failure(path: Path, row: int, column: str, why: str) -> KappaError:
    """Return the error for one place of a file; the header is row 1."""
    return KappaError(f"{path} is not usable", f"row {row}, column {column}: {why}", "correct the file")


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


def typed_value(path: Path, row: int, field: Field, cell: str) -> object:
    """Return a cell as its field declares it, None for an empty one that may be.

    Raises:
        KappaError: it is empty, of another type, or out of bounds.
    """
    text = cell.strip()
    if not text:
        if field.nullable:
            return None
        raise failure(path, row, field.name, "is empty")
    parse, kind = _PARSERS[field.type]
    try:
        value = parse(text)
    except (ValueError, KeyError):
        raise failure(path, row, field.name, f"{text!r} is not {kind}") from None
    why = _broken_bound(field, value)
    if why:
        raise failure(path, row, field.name, f"{text!r} {why}")
    return value


def _broken_bound(field: Field, value: object) -> str | None:
    number = value if isinstance(value, int | float) else None
    low = -math.inf if field.minimum is None else field.minimum
    high = math.inf if field.maximum is None else field.maximum
    rules = (
        (field.values and value not in field.values, f"is not one of {', '.join(field.values)}"),
        (field is h.RETRIEVED and not _is_day(str(value)), "is not a day (YYYY-MM-DD)"),
        (field is h.IS_EXAMPLE and value, "marks an example, which is no measurement"),
        (number is not None and number < low, f"is below {low:g}"),
        (number is not None and number > high, f"is above {high:g}"),
        (field.unit.endswith("/s") and value == 0, "is no rate"),
    )
    return next((why for is_broken, why in rules if is_broken), None)


def _is_day(text: str) -> bool:
    try:
        return dt.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False

"""One cell of a sourced row: text to a typed value, and what is wrong with it told with file, row and column."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path

import pyarrow as pa

from warehouse.declared import hardware_fields as h
from warehouse.declared.schema import Field
from warehouse.errors import KappaError
from warehouse.hardware_rows.units import EXAMPLES, mistaken_for, parse_quantity

_SHOWN = 40
_FIRST_YEAR = 2000


def failure(path: Path, row: int, column: str, why: str) -> KappaError:
    """Return the error for one place of a file; the header is row 1."""
    return KappaError(f"{path} is not usable", f"row {row}, column {column}: {why}", "correct the file")


def _flag(cell: str) -> bool:
    return {"true": True, "false": False}[cell.lower()]


def _number(cell: str) -> float:
    value = float(cell)
    if not math.isfinite(value):
        raise ValueError(cell)
    return value


def _whole(value: float, cell: str) -> int:
    if not value.is_integer():
        raise ValueError(cell)
    # Above 2^53 a float drops digits that may be written out.
    return int(cell) if cell.lstrip("+-").isdigit() else int(value)


_KINDS = {
    pa.string(): "text",
    pa.bool_(): "true or false",
    pa.int32(): "a whole number",
    pa.int64(): "a whole number",
    pa.float64(): "a number",
}


def typed_value(path: Path, row: int, field: Field, cell: str) -> object:
    """Return a cell as its field declares it, None for an empty one that may be.

    A figure is a bare number in the declared unit, 989.5e12 or 70.5e9 alike, or carries a unit of the same quantity:
    `989.5 TFLOP/s`, `64 GB/s`, `400 Gb/s`, `80 GiB`.

    Raises:
        KappaError: it is empty, of another type, or out of bounds; the message says what it may be mistaken for.
    """
    text = cell.strip()
    if not text:
        if field.nullable:
            return None
        raise failure(path, row, field.name, "is empty")
    try:
        value = _parsed(field, text)
    except (ValueError, KeyError, OverflowError):
        written = f" in {field.unit}, nor one like {EXAMPLES[field.unit]}" if field.unit in EXAMPLES else ""
        raise failure(path, row, field.name, f"{shown(text)} is not {_KINDS[field.type]}{written}") from None
    why = _broken_bound(field, value)
    if why:
        raise failure(path, row, field.name, f"{shown(text)} {why}")
    return value


def shown(text: str) -> str:
    """Return a cell as a message quotes it: a long one is cut.

    >>> shown("x" * 100)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'"
    """
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def is_bare(cell: str) -> bool:
    """Return whether a cell is a number without a unit."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _parsed(field: Field, text: str) -> object:
    if pa.types.is_string(field.type):
        return text
    if pa.types.is_boolean(field.type):
        return _flag(text)
    has_unit = field.unit in EXAMPLES and not is_bare(text)
    value = parse_quantity(text, field.unit) if has_unit else _number(text)
    return value if pa.types.is_floating(field.type) else _whole(value, text)


def _broken_bound(field: Field, value: object) -> str | None:
    rules = (
        (field.values and value not in field.values, f"is not one of {', '.join(field.values)}"),
        (field is h.RETRIEVED and not _is_day(str(value)), "is not a day (YYYY-MM-DD) since 2000"),
        (field is h.IS_EXAMPLE and value, "marks an example, which is no measurement"),
    )
    if isinstance(value, bool) or not isinstance(value, int | float):
        return next((why for is_broken, why in rules if is_broken), None)
    return _outside(field, value)


def _outside(field: Field, value: float) -> str | None:
    low = -math.inf if field.minimum is None else field.minimum
    high = math.inf if field.maximum is None else field.maximum
    if low <= value <= high:
        return None
    side = f"is below {low:g}" if value < low else f"is above {high:g}"
    unit = "" if field.unit in ("", "1") else f" {field.unit}"
    why = f" ({field.why_bounds})" if field.why_bounds else ""
    mistaken = mistaken_for(value, field.unit, low, high)
    return f"{side}{unit}{why}" + (f": {mistaken}" if mistaken else "")


def _is_day(text: str) -> bool:
    try:
        day = dt.date.fromisoformat(text)
    except ValueError:
        return False
    return day.isoformat() == text and day.year >= _FIRST_YEAR

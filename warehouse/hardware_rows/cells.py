"""Parses one cell of a sourced row into a typed value; an error names file, row and column."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path

import pyarrow as pa

from warehouse.declared import hardware_fields as h
from warehouse.declared.schema import Field
from warehouse.errors import ErrorCode, KappaError
from warehouse.hardware_rows.names import unseen_character
from warehouse.hardware_rows.units import EXAMPLES, parse_quantity

_SHOWN = 40
_FIRST_YEAR = 2000
_KINDS = {
    pa.string(): "text",
    pa.bool_(): "true or false",
    pa.int32(): "a whole number",
    pa.int64(): "a whole number",
    pa.float64(): "a number",
}


def failure(path: Path, row: int, column: str, why: str) -> KappaError:
    """Return the error for one place of a file; the header is row 1."""
    return KappaError(
        f"{path} is not usable", f"row {row}, column {column}: {why}", "correct the file", code=ErrorCode.BAD_ROW
    )


def shown(text: str) -> str:
    """Return a cell quoted for a message; a long one is cut.

    >>> shown("x" * 100)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'"
    """
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def typed_value(path: Path, row: int, field: Field, cell: str) -> object:
    """Return a cell's value in the type of its field; None for an empty cell of a nullable field.

    A figure is a bare number in the declared unit (989.5e12, 70.5e9) or has a unit of the same quantity:
    `989.5 TFLOP/s`, `64 GB/s`, `400 Gb/s`, `80 GiB`.

    Raises:
        KappaError: it is empty, holds an invisible character, has another type, or is out of bounds.
    """
    text = cell.strip()
    if not text:
        if field.nullable:
            return None
        raise failure(path, row, field.name, "is empty")
    if pa.types.is_string(field.type) and (unseen := unseen_character(text)):
        raise failure(path, row, field.name, f"{shown(text)} holds {unseen}")
    try:
        value = _parsed(field, text)
    except (ValueError, KeyError, OverflowError):
        written = f" in {field.unit}, nor one like {EXAMPLES[field.unit]}" if field.unit in EXAMPLES else ""
        raise failure(path, row, field.name, f"{shown(text)} is not {_KINDS[field.type]}{written}") from None
    why = _broken_rule(field, value)
    if why:
        raise failure(path, row, field.name, f"{shown(text)} {why}")
    return value


def _parsed(field: Field, text: str) -> object:
    if pa.types.is_string(field.type):
        return text
    if pa.types.is_boolean(field.type):
        return {"true": True, "false": False}[text.lower()]
    try:
        value = float(text)
    except ValueError:
        if field.unit not in EXAMPLES:
            raise
        value = parse_quantity(text, field.unit)
    if not math.isfinite(value):
        raise ValueError(text)
    if pa.types.is_floating(field.type):
        return value
    if not value.is_integer():
        raise ValueError(text)
    # A float loses digits of a whole number above 2^53.
    return int(text) if text.lstrip("+-").isdigit() else int(value)


def _broken_rule(field: Field, value: object) -> str:
    if field.values and value not in field.values:
        return f"is not one of {', '.join(field.values)}"
    if field is h.RETRIEVED and not _is_day(str(value)):
        return "is not a day (YYYY-MM-DD) since 2000"
    if field is h.IS_EXAMPLE and value:
        return "marks an example, which is no measurement"
    return _outside(field, value) if isinstance(value, int | float) else ""


def _outside(field: Field, value: float) -> str:
    low = -math.inf if field.minimum is None else field.minimum
    high = math.inf if field.maximum is None else field.maximum
    if low <= value <= high:
        return ""
    side = f"is below {low:g}" if value < low else f"is above {high:g}"
    unit = "" if field.unit in ("", "1") else f" {field.unit}"
    why = f" ({field.why_bounds})" if field.why_bounds else ""
    written = f"; with its unit it is written like {EXAMPLES[field.unit]}" if field.unit in EXAMPLES else ""
    return f"{side}{unit}{why}{written}"


def _is_day(text: str) -> bool:
    try:
        day = dt.date.fromisoformat(text)
    except ValueError:
        return False
    return day.isoformat() == text and day.year >= _FIRST_YEAR

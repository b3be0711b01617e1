"""What records of logs hold: a value at a dotted path, a whole number of tokens, a list. No format."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pipelines.io.json_text import json_of
from pipelines.workloads.formats.fields import ABSENT, value_at

# Beyond every context; sums of a billion requests stay within int64.
MOST_TOKENS = 10**9
_WHOLE = re.compile(r"[+-]?\d+(?:\.0*)?")


class BadNumberError(ValueError):
    """A value that is no whole number of tokens, at least 0; its text says how."""


def at(value: object, path: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return what a record holds at a dotted path, or None."""
    found = value_at(value, path)
    return None if found is ABSENT else found


def first_at(value: object, paths: Iterable[str]) -> Any:  # noqa: ANN401 - any JSON value
    """Return the first of the paths that holds something, or None."""
    return next((found for path in paths if not is_empty(found := at(value, path))), None)


def is_empty(value: object) -> bool:
    """Return whether a value is null, an empty cell of CSV, or the NaN that frames write for null."""
    return value is None or value == "" or value != value  # noqa: PLR0124 - NaN alone differs from itself


def tokens_of(value: object, name: str) -> int | None:
    """Return a number of tokens; None where it is null or empty.

    Raises:
        BadNumberError: it is negative, not whole, no number at all, or beyond any context.

    >>> tokens_of(7, "in"), tokens_of("7", "in"), tokens_of(7.0, "in"), tokens_of(None, "in")
    (7, 7, 7, None)
    """
    if is_empty(value):
        return None
    if type(value) is not int:
        value = _whole(value, name)
    assert isinstance(value, int)
    if not 0 <= value <= MOST_TOKENS:
        raise BadNumberError(f"{name} is {'negative' if value < 0 else f'above {MOST_TOKENS:,}'}")
    return value


def _whole(value: object, name: str) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and len(value) < 20 and _WHOLE.fullmatch(value.strip()):  # noqa: PLR2004 - beyond MOST_TOKENS
        return int(value.strip().partition(".")[0])
    raise BadNumberError(f"{name} is no whole number")


def list_of(value: object) -> list[Any] | None:
    """Return a list, also one that a cell of CSV holds as JSON; None where it is none."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json_of(value)
        except ValueError:
            return None
    return value if isinstance(value, list) else None

"""What records of logs hold: a value at a dotted path, a whole number of tokens, a name. No format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

# Beyond every context; sums of a billion requests stay within int64.
MOST_TOKENS = 10**9
_WHOLE = re.compile(r"[+-]?\d+(?:\.0*)?")


class BadNumberError(ValueError):
    """A value that is no whole number of tokens, at least 0; its text says how."""


def at(value: object, path: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return what a record holds at a dotted path, or None; a key that has the dots in its name is found too.

    >>> at({"usage": {"prompt_tokens": 5}}, "usage.prompt_tokens"), at({"a.b": 1}, "a.b"), at([], "a")
    (5, 1, None)
    """
    if not isinstance(value, dict):
        return None
    if path in value:
        return value[path]
    head, dot, rest = path.partition(".")
    return at(value.get(head), rest) if dot else None


def first_at(value: object, paths: Iterable[str]) -> Any:  # noqa: ANN401 - any JSON value
    """Return the first of the paths that holds something, or None."""
    return next((found for path in paths if not is_empty(found := at(value, path))), None)


def is_empty(value: object) -> bool:
    """Return whether a value is null, or an empty cell of CSV."""
    return value is None or value == ""


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


def name_of(value: object) -> str | None:
    """Return the name that a log gives something: text, or a number as text; None where there is none."""
    if isinstance(value, bool) or is_empty(value):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, str | int | float) else None


def list_of(value: object) -> list[Any] | None:
    """Return a list, also one that a cell of CSV holds as JSON; None where it is none."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    return value if isinstance(value, list) else None


def paths_of(fields: Mapping[str, str], roles: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the paths of each role: the one that `fields` names, else the usual ones."""
    return {role: (fields[role],) if role in fields else usual for role, usual in roles.items()}

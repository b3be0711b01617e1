"""Values at dotted paths of a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.workloads.formats.format import Fields, Role


class _Absent:
    """The value of a path that a record does not have; null is None."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()


def value_at(value: Any, path: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value at a dotted path, `ABSENT` where there is none; numbers are places in a list.

    A name that holds dots itself is tried first, as columns of CSV have them.

    >>> value_at({"a": {"b": [5, 6]}, "c.d": 7}, "a.b.1"), value_at({"c.d": 7}, "c.d"), value_at({"a": 1}, "a.b")
    (6, 7, ABSENT)
    """
    if isinstance(value, Mapping) and path in value:
        return value[path]
    name, dot, rest = path.partition(".")
    if isinstance(value, Mapping) and name in value:
        inner = value[name]
    elif isinstance(value, Sequence) and not isinstance(value, str) and name.isdecimal() and int(name) < len(value):
        inner = value[int(name)]
    else:
        return ABSENT
    return value_at(inner, rest) if dot else inner


def paths_of(role: Role, given: Fields) -> tuple[str, ...]:
    """Return the paths to try for a role: the given one and no other, else the format's names."""
    return (given[role.name],) if role.name in given else role.names


def first_of(value: Any, paths: tuple[str, ...]) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value of the first path that is there and not null; None where one is null, else `ABSENT`."""
    found: Any = ABSENT
    for path in paths:
        one = value_at(value, path)
        if one is not ABSENT and one is not None:
            return one
        found = one if found is ABSENT else found
    return found


def name_of(value: Any) -> str | None:  # noqa: ANN401 - any JSON value
    """Return a session's given name: text that is not blank, or a whole number; None for anything else.

    >>> name_of("a"), name_of(7), name_of(7.0), name_of(" "), name_of(None), name_of(True)
    ('a', '7', '7', None, None, None)
    """
    if isinstance(value, str):
        return value if value.strip() else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(int(value)) if is_number and value == int(value) else None

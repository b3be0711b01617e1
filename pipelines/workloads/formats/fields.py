"""Values at dotted paths of a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.sessions.rejects import without_surrogates
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
    # Most values are dicts, of which the check of an abstract class takes as long as all the rest.
    is_object = type(value) is dict or isinstance(value, Mapping)
    if is_object and path in value:
        return value[path]
    name, dot, rest = path.partition(".")
    if is_object and name in value:
        inner = value[name]
    elif isinstance(value, Sequence) and not isinstance(value, str) and _is_place(name, value):
        inner = value[int(name)]
    else:
        return ABSENT
    return value_at(inner, rest) if dot else inner


def _is_place(name: str, values: Sequence[Any]) -> bool:
    # A name with more digits than a length may be one that Python refuses to read.
    return name.isdecimal() and len(name) <= len(str(len(values))) and int(name) < len(values)


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
    r"""Return a session's given name: text that is not blank, or a whole number; None for anything else.

    A lone surrogate in it is U+FFFD, as in every text that is kept. Infinity, as which a number beyond 10^400 is
    read, and NaN are no names.

    >>> name_of("a"), name_of(7), name_of(7.0), name_of(" "), name_of(None), name_of(True)
    ('a', '7', '7', None, None, None)
    >>> name_of(float("inf")), name_of(float("nan")), name_of("a\ud800") == "a\ufffd"
    (None, None, True)
    """
    if isinstance(value, str):
        return without_surrogates(value) if value.strip() else None
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None

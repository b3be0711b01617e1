"""Arguments of the public functions: one of another type than declared is a `UsageError` that says what is wanted."""

from __future__ import annotations

import dataclasses
import os
import types
import typing
from collections.abc import Mapping, Sequence
from numbers import Integral, Real

from warehouse.errors import ErrorCode, UsageError
from warehouse.home.home import Home, home_path


def opened(home: object) -> Home:
    """Return a home folder by its path; None for KAPPA_HOME, else `./data`.

    Raises:
        UsageError: it is no path.
    """
    return Home(home_path(None if home is None else path_text("home", home)))


def path_text(name: str, value: object) -> str:
    """Return a path as text.

    Raises:
        UsageError: it is neither text nor a path, or is empty.
    """
    found = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(found, str) or not found:
        raise _unusable(name, value, "a path: text that is not empty, or a pathlib.Path")
    return found


def optional_text(name: str, value: object) -> str | None:
    """Return text, or None.

    Raises:
        UsageError: it is neither, or is empty.
    """
    if value is None or (isinstance(value, str) and value):
        return value
    raise _unusable(name, value, "text that is not empty, or None")


def texts_by_name(name: str, value: object) -> dict[str, str]:
    """Return a mapping of text to text, empty for None.

    Raises:
        UsageError: it is none.
    """
    if value is None:
        return {}
    if isinstance(value, Mapping) and all(isinstance(text, str) for pair in value.items() for text in pair):
        return dict(value)
    raise _unusable(name, value, 'a mapping of text to text, such as {"session": "metadata.id"}')


def text(name: str, value: object) -> str:
    """Return text.

    Raises:
        UsageError: it is none.
    """
    if isinstance(value, str):
        return value
    raise _unusable(name, value, "text")


def whole_number(name: str, value: object) -> int:
    """Return a whole number.

    Raises:
        UsageError: it is none.
    """
    if _fits(value, int):
        return int(typing.cast("int", value))
    raise _unusable(name, value, "a whole number")


def require_question(question: object, kind: type) -> None:
    """Check a question, and each of its fields against the type that it is declared with.

    Raises:
        UsageError: it is no such question, or a field is of another type.
    """
    if not isinstance(question, kind):
        raise _unusable("the question", question, f"a {kind.__name__}")
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        value, hint = getattr(question, field.name), hints[field.name]
        if not _fits(value, hint):
            raise _unusable(field.name, value, _in_words(hint))


def _fits(value: object, hint: object) -> bool:
    """Return whether a value is of a declared type; a number of NumPy is a number."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is typing.Literal:
        return value in inner
    if origin is not None:
        is_several = isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)
        return is_several and all(_fits(one, inner[0]) for one in typing.cast("Sequence[object]", value))
    if hint in (int, float):
        return isinstance(value, Integral if hint is int else Real) and not isinstance(value, bool)
    return isinstance(value, typing.cast("type", hint))


def _in_words(hint: object) -> str:
    """Return a declared type in words.

    >>> _in_words(str | Sequence[str] | None), _in_words(float)
    ('text, a sequence of text or None', 'a number')
    """
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        words = [_in_words(one) for one in inner]
        return f"{', '.join(words[:-1])} or {words[-1]}"
    if origin is typing.Literal:
        return " or ".join(map(str, inner))
    if origin is not None:
        return f"a sequence of {_in_words(inner[0])}"
    words_of: dict[object, str] = {str: "text", int: "a whole number", float: "a number", bool: "True or False"}
    return words_of.get(hint, "None" if hint is type(None) else getattr(hint, "__name__", str(hint)))


def _unusable(name: str, value: object, wanted: str) -> UsageError:
    """Return the error; a value is named by its type, as it may hold anything."""
    kind = "empty" if isinstance(value, str) and not value else f"of the type {type(value).__name__}"
    return UsageError(f"{name} cannot be meant", f"it is {kind}", f"give {wanted}", code=ErrorCode.USAGE)

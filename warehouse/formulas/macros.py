"""The SQL of each formula, declared next to its Python: a macro with the same name and arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
_SQL: dict[str, str] = {}


def formula(sql: str) -> Callable[[F], F]:
    """Declare a formula's SQL over the same arguments; it must equal the Python to the last bit.

    The SQL uses no other macro, so it also works in an attached database.
    """

    def declare(function: F) -> F:
        _SQL[function.__name__] = sql
        return function

    return declare


def macro(function: Callable[..., Any]) -> str:
    """Return the CREATE MACRO statement of a formula.

    Raises:
        KeyError: the function has no declared SQL.
    """
    name = function.__name__
    return f"CREATE MACRO {name}({', '.join(inspect.signature(function).parameters)}) AS {_SQL[name]};"

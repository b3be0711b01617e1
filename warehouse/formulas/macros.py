"""The SQL of each formula, declared where its Python is: one macro of the same name, with the same arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
_SQL: dict[str, str] = {}


def formula(sql: str) -> Callable[[F], F]:
    """Declare a formula with its SQL over the same arguments, equal to the last bit.

    The SQL uses no other macro, so that it also works in an attached database.
    """

    def declare(function: F) -> F:
        _SQL[function.__name__] = sql
        return function

    return declare


def macro(function: Callable[..., Any]) -> str:
    """Return CREATE MACRO of a formula.

    Raises:
        KeyError: the function is declared without SQL.
    """
    name = function.__name__
    return f"CREATE MACRO {name}({', '.join(inspect.signature(function).parameters)}) AS {_SQL[name]};"

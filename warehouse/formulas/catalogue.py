"""All formulae by name: the public functions of the formula modules, in their order."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from warehouse.formulas import (
    attention,
    cache_size,
    entries,
    kappa,
    kv_bytes,
    serving,
    serving_load,
    timing,
    weights,
)

MODULES = (kappa, attention, kv_bytes, entries, weights, timing, serving, serving_load, cache_size)


def formulas() -> dict[str, Callable[..., Any]]:
    """Return every formula by its name, which is also the name of its SQL macro."""
    return {
        name: function
        for module in MODULES
        for name, function in vars(module).items()
        if inspect.isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_")
    }


def first_words(function: Callable[..., Any]) -> str:
    """Return the first paragraph of a formula's docstring, on one line."""
    return " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())


def source_of(function: Callable[..., Any]) -> str:
    """Return a formula's source as its docstring gives it, on one line; empty if it gives none."""
    text = inspect.getdoc(function) or ""
    paragraph = next((part for part in text.split("\n\n") if "Source: " in part), "")
    return " ".join(paragraph.partition("Source: ")[2].split())

"""One module a format of a user's own records: how it is recognised and how its records become sessions.

A new module with a `FORMAT` adds a format. No file is opened and no token counted here.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from pipelines.workloads.formats.format import Format
from warehouse.errors import ErrorCode, KappaError
from warehouse.hardware_rows.names import listed_names


@cache
def formats() -> dict[str, Format]:
    """Return every format by name, the most special first: the first that recognises records has them."""
    modules = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    found: list[Format] = [module.FORMAT for module in modules if hasattr(module, "FORMAT")]
    return {one.name: one for one in sorted(found, key=lambda one: (one.order, one.name))}


def format_named(name: str) -> Format:
    """Return one format.

    Raises:
        KappaError: the name is unknown; the known ones are named.
    """
    known = formats()
    if name not in known:
        what, why = f"unknown format {name!r}", listed_names(name, known)
        raise KappaError(what, why, "choose one of them", code=ErrorCode.UNKNOWN_NAME)
    return known[name]


def reader_of(name: str) -> str:
    """Return the place of the code that reads a format, as `warehouse.versions.reached_code.code_of` takes it."""
    return f"{__name__}.{name}:FORMAT.read"

"""Reads TOML that a user wrote: a table of its keys, or a ValueError that says what is wrong."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def toml_of(path: Path) -> dict[str, Any]:
    """Return the keys and values of a TOML file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no TOML, is not UTF-8, or has too many arrays and tables inside each other.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        # Without the cause: its traceback has a thousand frames.
        raise ValueError("it has too many arrays or tables inside each other") from None

"""The version of a home folder's layout: one of another version is refused, so that none is ever misread."""

from __future__ import annotations

import os
from pathlib import Path

from warehouse.errors import ErrorCode, KappaError
from warehouse.home.generation import DATABASE

LAYOUT = 1
# A user's own rows lie there: they are no part of the layout.
USER_FOLDER = "reference"
MARK = "LAYOUT"


def check_layout(home: Path) -> None:
    """Raise KappaError where the folder holds a warehouse of another layout; one without a warehouse has ours."""
    mark = home / MARK
    found = mark.read_text("utf8", errors="replace").strip() if mark.is_file() else ""
    has_warehouse = os.path.lexists(home / DATABASE) or (home / "generations").exists()
    if (found or has_warehouse) and found != str(LAYOUT):
        remedy = "choose another folder with --home, or use the kappa that made it"
        what = f"{home} holds a warehouse of layout {found or 'unknown'}"
        raise KappaError(what, f"this kappa uses layout {LAYOUT}", remedy, code=ErrorCode.OTHER_VERSION)


def write_mark(home: Path) -> None:
    """Note the layout in a home that has no note of it."""
    mark = home / MARK
    if not mark.exists() or not mark.stat().st_size:
        mark.write_text(f"{LAYOUT}\n", "utf8")

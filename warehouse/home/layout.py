"""The version of a home folder's layout: an older one is set aside, a newer one refused, none is ever misread."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from warehouse.errors import ErrorCode, KappaError
from warehouse.home.generation import DATABASE

LAYOUT = 1
# A user's own rows lie there: they are no part of the layout.
USER_FOLDER = "reference"
MARK = "LAYOUT"
_UNKNOWN, _GENERATIONS, _ASIDE = "unknown", "generations", "older-layout-"


def layout_of(home: Path) -> str:
    """Return the layout of what is there; a folder without a warehouse has ours."""
    mark = home / MARK
    found = mark.read_text("utf8", errors="replace").strip() if mark.is_file() else ""
    has_warehouse = os.path.lexists(home / DATABASE) or (home / _GENERATIONS).exists()
    return found or (_UNKNOWN if has_warehouse else str(LAYOUT))


def is_older(layout: str) -> bool:
    """Return whether an older kappa made it."""
    return layout == _UNKNOWN or (layout.isdecimal() and int(layout) < LAYOUT)


def check_layout(home: Path) -> None:
    """Raise KappaError where the folder holds a warehouse of another layout."""
    found = layout_of(home)
    if found != str(LAYOUT):
        newer = "choose another folder with --home, or use the newer kappa that made it"
        remedy = "run `kappa run`, which sets it aside and builds anew" if is_older(found) else newer
        raise KappaError(
            f"{home} holds a warehouse of layout {found}",
            f"this kappa uses layout {LAYOUT}",
            remedy,
            code=ErrorCode.OTHER_VERSION,
        )


def set_aside(home: Path) -> Path:
    """Move what an older layout left into a folder `older-layout-N`, so that it is never misread and never lost.

    A user's own rows stay where they are: they are no part of the layout.
    """
    layout = layout_of(home)
    places = (home / f"{_ASIDE}{layout}{more}" for more in ("", *(f"-{n}" for n in range(2, 1000))))
    aside = next(place for place in places if not place.exists())
    entries = [path for path in home.iterdir() if not path.name.startswith((_ASIDE, ".")) and path.name != USER_FOLDER]
    aside.mkdir()
    # What tells the layout goes last: where a run is killed here, the next one goes on with it.
    for path in sorted(entries, key=lambda path: path.name in (MARK, _GENERATIONS, DATABASE)):
        path.rename(aside / path.name)
    logging.getLogger("kappa").warning("%s held layout %s: it was moved to %s", home, layout, aside)
    return aside

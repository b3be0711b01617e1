"""Where a query puts rows that do not fit in memory: a folder of its own in the system's temporary one."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from warehouse.holds import hold, is_held, remove_unheld

_PREFIX = "kappa-spill-"


@contextlib.contextmanager
def spilling() -> Iterator[str]:
    """Yield the path of an empty folder that this process holds; an empty text, so no spilling, where none is made."""
    try:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    except OSError:
        yield ""
        return
    with hold(folder):
        try:
            yield str(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def left_spilled() -> list[Path]:
    """Return the folders of queries whose process was killed."""
    folders = sorted(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"))
    found = []
    for folder in folders:
        with contextlib.suppress(OSError):
            found += [] if is_held(folder) else [folder]
    return found


def remove_left_spilled() -> None:
    """Remove them."""
    for folder in left_spilled():
        with contextlib.suppress(OSError):
            remove_unheld(folder)

"""The spill folder of this process, for rows that do not fit in memory; it is in the system's temporary folder."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from warehouse.home.locks import hold, is_held, remove_unheld

_PREFIX = "kappa-spill-"


class _Folder:
    """The spill folder of this process.

    DuckDB refuses a second connection of a process to a file if its settings differ from those of the first. So the
    path stays the same for the life of the process; the folder exists while a connection is open.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._path = ""
        self._held = contextlib.ExitStack()

    def enter(self) -> str:
        with self._lock:
            if self._users == 0:
                self._make()
            self._users += 1
            return self._path

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._held.close()

    def _make(self) -> None:
        try:
            if self._path and Path(self._path).parent == Path(tempfile.gettempdir()):
                Path(self._path).mkdir(mode=0o700)
            else:
                self._path = tempfile.mkdtemp(prefix=_PREFIX)
        except OSError:
            self._path = ""
        else:
            self._held.enter_context(hold(Path(self._path)))
            self._held.callback(shutil.rmtree, self._path, ignore_errors=True)


_FOLDER = _Folder()


@contextlib.contextmanager
def spilling() -> Iterator[str]:
    """Yield the path of a folder that this process holds; an empty string (no spilling) if none can be made."""
    path = _FOLDER.enter()
    try:
        yield path
    finally:
        _FOLDER.leave()


def left_spilled() -> list[Path]:
    """Return the spill folders left by killed processes."""
    folders = sorted(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"))
    found = []
    for folder in folders:
        with contextlib.suppress(OSError):
            found += [] if is_held(folder) else [folder]
    return found


def remove_left_spilled() -> None:
    """Remove the spill folders left by killed processes."""
    for folder in left_spilled():
        with contextlib.suppress(OSError):
            remove_unheld(folder)

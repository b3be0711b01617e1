"""Who works in a folder: a lock on the folder itself, which the system lets go when the process dies.

A process number would not do: another process may get it, and a container has numbers of its own.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path


@contextmanager
def hold(folder: Path) -> Iterator[bool]:
    """Hold a folder while the block runs.

    Yields:
        Whether it is ours: it is there, and nobody else holds it. Where the file system has no locks it is.
    """
    with ExitStack() as stack:
        try:
            is_ours = stack.enter_context(_locked(folder)) is not False and folder.exists()
        except FileNotFoundError:
            is_ours = False
        yield is_ours


def is_held(folder: Path) -> bool:
    """Return whether a process holds the folder; where the file system has no locks it is taken to be held."""
    try:
        with _locked(folder) as is_ours:
            return is_ours is not True
    except FileNotFoundError:
        return False


def remove_unheld(folder: Path) -> None:
    """Remove a folder that no living process holds."""
    with suppress(FileNotFoundError), _locked(folder) as is_ours:
        if is_ours:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[bool | None]:
    """Yield whether the folder could be locked; None where the file system has no locks."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield _lock(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool | None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True

"""Ctrl-C: one line and exit code 130, whatever it interrupts. Imported before anything else, so it imports little."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

LINE = "interrupted: the last good state is as it was"
CODE = 130
# Time to remove what is half made. What is left after it, as after SIGKILL, the next run removes.
GRACE_S = 10

_STDERR = 2


class _State:
    """What this process knows of its interruption: whether it came and was told, and where a person reads."""

    has_come = False
    is_told = False
    stderr = _STDERR


def take_over() -> None:
    """Take SIGINT from now on; where the process was started to ignore it, as in the background, it stays ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def has_come() -> bool:
    """Return whether Ctrl-C came: an error after it may be its consequence in a library."""
    return _State.has_come


def tell() -> None:
    """Tell of it in one line, once; from then on SIGINT is ignored."""
    if _State.has_come:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if _State.is_told:
        return
    _State.is_told = True
    if _State.has_come:
        os.write(_State.stderr, f"{LINE}\n".encode())
    else:
        sys.stderr.write(f"{LINE}\n")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Unwind; what libraries, threads and the interpreter's end print from now on is no word for a person.

    A second Ctrl-C, or the end of the grace, leaves at once: an exception in a finalizer reaches nobody.
    """
    _State.has_come = True
    signal.signal(signal.SIGINT, leave)
    signal.signal(signal.SIGALRM, leave)
    signal.alarm(GRACE_S)
    _mute()
    raise KeyboardInterrupt


def _mute() -> None:
    try:
        kept = os.dup(_STDERR)
    except OSError:
        # Standard error is closed: nobody reads it.
        return
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - pathlib costs time to import
        os.dup2(nowhere.fileno(), _STDERR)
    _State.stderr = kept


def leave(*_: object) -> NoReturn:
    """Tell of it and end the process here: its ordinary end would wait for threads, and may kill itself by SIGINT."""
    tell()
    os._exit(CODE)

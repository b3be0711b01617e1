"""Ctrl-C: one line and exit code 130, whatever it interrupts. Imported before anything else, so it imports little."""

from __future__ import annotations

import os
import signal
import sys
from _thread import allocate_lock
from collections.abc import Callable
from select import select
from types import FrameType
from typing import NoReturn

LINE = "interrupted: the last good state is as it was"
CODE = 130
# Time to remove what is half made. What is left after it, as after SIGKILL, the next run removes.
GRACE_S = 10.0

_STDERR = 2
_TELLING = allocate_lock()
_STOPS: list[Callable[[], object]] = []


class _State:
    """What this process knows of its interruption, and where a person reads."""

    is_ours = False
    has_come = False
    is_told = False
    stderr = _STDERR


def take_over() -> None:
    """Take SIGINT from now on; where the process was started to ignore it, as in the background, it stays ignored."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    signal.signal(signal.SIGINT, _interrupt)
    _State.is_ours = True
    from threading import Thread  # noqa: PLC0415 - Ctrl-C may come while it is imported

    ours, pythons = os.pipe()
    os.set_blocking(pythons, False)
    signal.set_wakeup_fd(pythons, warn_on_full_buffer=False)
    Thread(target=_watch, args=(ours,), daemon=True).start()


def has_come() -> bool:
    """Return whether Ctrl-C came: an error after it may be its consequence in a library."""
    return _State.has_come


def stop_too(stop: Callable[[], object]) -> None:
    """Have `stop` called at Ctrl-C, from another thread: for a library that computes without asking for signals."""
    if _State.is_ours:
        _STOPS.append(stop)


def tell() -> None:
    """Tell of it in one line, once."""
    with _TELLING:
        if _State.is_told:
            return
        _State.is_told = True
        if not _State.is_ours:
            print(LINE, file=sys.stderr)  # noqa: T201 - as the command line does where it is a library
            return
        try:
            os.write(_State.stderr, f"{LINE}\n".encode())
        except OSError:
            # Nobody reads it.
            return


def leave() -> NoReturn:
    """Tell of it and end the process here: its ordinary end would wait for threads, and may kill itself by SIGINT."""
    tell()
    os._exit(CODE)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Unwind, once; what libraries and threads print from now on is no word for a person."""
    if not _State.has_come:
        _State.has_come = True
        _mute()
        raise KeyboardInterrupt


def _mute() -> None:
    try:
        kept = os.dup(_STDERR)
    except OSError:
        # Standard error is closed: nobody reads it.
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _STDERR)
    os.close(nowhere)
    _State.stderr = kept


def _watch(signals: int) -> None:
    """Leave at a second Ctrl-C and at the end of the grace: an exception in a finalizer reaches nobody."""
    while os.read(signals, 1)[0] != signal.SIGINT:
        pass
    for stop in _STOPS:
        try:
            stop()
        except Exception:  # noqa: BLE001, S112 - what cannot be stopped is left
            continue
    select([signals], [], [], GRACE_S)
    leave()

"""Ctrl-C handling: one line and exit code 130, whatever it interrupts. Imported first, so it imports little."""

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
# Time to remove unfinished files. The next run removes what is left after it, as after SIGKILL.
GRACE_S = 10.0

_STDERR = 2
_TELLING = allocate_lock()
_STOPS: list[Callable[[], object]] = []


class _State:
    """State of the interruption: whether Ctrl-C came and was reported, and the user's standard error."""

    is_ours = False
    has_come = False
    is_told = False
    grace_s = GRACE_S
    stderr = _STDERR


def take_over() -> None:
    """Handle SIGINT from now on; a process started with SIGINT ignored, as in the background, keeps ignoring it."""
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
    """Return whether Ctrl-C came; a later error may be its consequence in a library."""
    return _State.has_come


def stop_too(stop: Callable[[], object]) -> None:
    """Register `stop` to be called at Ctrl-C from another thread, for a library that does not check for signals."""
    if _State.is_ours:
        _STOPS.append(stop)


def hurry(grace_s: float) -> None:
    """End the process so soon after Ctrl-C: for a command that leaves no unfinished files."""
    _State.grace_s = grace_s


def tell() -> None:
    """Print the line on the interruption, once."""
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
            # Standard error is closed.
            return


def leave() -> NoReturn:
    """Print the line and end the process here: a normal exit waits for threads, and may die of SIGINT."""
    tell()
    os._exit(CODE)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt once; discard what libraries and threads print from now on."""
    if not _State.has_come:
        _State.has_come = True
        _mute()
        raise KeyboardInterrupt


def _mute() -> None:
    try:
        kept = os.dup(_STDERR)
    except OSError:
        # Standard error is closed.
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _STDERR)
    os.close(nowhere)
    _State.stderr = kept


def _watch(signals: int) -> None:
    """End the process at a second Ctrl-C or after the grace period: an exception in a finalizer is lost."""
    while os.read(signals, 1)[0] != signal.SIGINT:
        pass
    for stop in _STOPS:
        try:
            stop()
        except Exception:  # noqa: BLE001, S112 - a library that cannot be stopped keeps running
            continue
    select([signals], [], [], _State.grace_s)
    leave()

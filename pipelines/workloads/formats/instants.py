"""Times as logs write them, as instants that can be compared, and the order of service that follows from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from pipelines.sessions.service import Service

SECOND, MILLISECOND = 10**9, 10**6
# Seconds of the year 5138; milliseconds of 1973.
MOST_SECONDS = 1e11
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# What int64 holds, in nanoseconds: 292 years on both sides of 1970.
_MOST = 2**63 - 1


def instant_of(value: object, unit_ns: int = SECOND) -> int | None:
    """Return a time as nanoseconds since 1970, or since where the log counts from; None where it cannot be read.

    A time without a zone is UTC. A number above 1e11 is milliseconds, else it is in `unit_ns`.

    >>> instant_of(1.5), instant_of(1_700_000_000_000) == instant_of("2023-11-14T22:13:20Z")
    (1500000000, True)
    >>> instant_of("2023-11-14 23:13:20+01:00") == instant_of("2023-11-14 22:13:20"), instant_of("yesterday")
    (True, None)
    """
    if isinstance(value, str):
        value = _of_text(value.strip())
    if isinstance(value, datetime):
        since = (value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH
        return _bounded(since // _MICROSECOND * 1000)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    unit = MILLISECOND if value > MOST_SECONDS else unit_ns
    # A float beyond all times overflows in whole numbers, and one times its unit may be infinite.
    if isinstance(value, float):
        return _bounded(round(value * unit)) if abs(value) < _MOST else None
    return _bounded(value * unit)


def _of_text(text: str) -> object:
    """Return the number or the time that a text holds; None where it is neither."""
    for read in (int, float, datetime.fromisoformat):
        try:
            return read(text)
        except ValueError:
            continue
    return None


def _bounded(instant: int) -> int | None:
    return instant if abs(instant) <= _MOST else None


def order_of_service(instants: Sequence[int | None], *, given: int) -> Service:
    """Return the order by time, that of the file among equals; one time that cannot be read makes it the file's.

    Args:
        instants: Time of each request in the order of the file, in nanoseconds.
        given: Number of requests that give a time at all.
    """
    place = np.arange(len(instants), dtype=np.int64)
    unread = sum(instant is None for instant in instants)
    if unread or not len(place):
        note = f"{unread:,} of {len(instants):,} times cannot be read: requests are in the order of the file"
        return Service(place, None, note if given else "")
    times = np.array(instants, np.int64)
    order = np.argsort(times, kind="stable")
    return Service(order, times[order] / SECOND)

"""Arrival times out of a log of requests: a CSV with a column of instants."""

from __future__ import annotations

import csv
import datetime as dt
from pathlib import Path

import numpy as np

from pipelines.serving.engine.requests import Floats
from warehouse.errors import ErrorCode, KappaError

COLUMNS = ("timestamp", "time", "arrival_s", "arrived_at", "created_at")
# Seconds since 1970 reach this in the year 5138, milliseconds in 1973.
_MILLISECONDS_FROM = 1e11


def read_log(path: Path) -> Floats:
    """Return the arrivals of a log in seconds, in order; an instant without a zone is UTC.

    Numbers are seconds, above 1e11 milliseconds. Other columns are not read.

    Args:
        path: A CSV with a header that names one of `COLUMNS` in any case, such as Azure's TIMESTAMP.

    Raises:
        KappaError: it cannot be read, has no such column, or holds a value that is no instant.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            column = next((name for name in rows.fieldnames or [] if name.strip().lower() in COLUMNS), None)
            if column is None:
                raise _bad(path, f"its header has none of {', '.join(COLUMNS)}")
            times = [_seconds(path, number, row[column]) for number, row in enumerate(rows, 2)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise KappaError(
            f"{path} cannot be read", str(error), "name a CSV file with a header", code=ErrorCode.NOT_READABLE
        ) from error
    if not times:
        raise _bad(path, "it holds no request")
    return np.sort(np.array(times))


def _seconds(path: Path, number: int, text: str | None) -> float:
    given = (text or "").strip()
    try:
        value = float(given)
    except ValueError:
        try:
            instant = dt.datetime.fromisoformat(_microseconds(given))
        except ValueError:
            raise _bad(path, f"row {number} has {given[:40]!r}, which is no instant") from None
        return (instant if instant.tzinfo else instant.replace(tzinfo=dt.UTC)).timestamp()
    if not np.isfinite(value):
        raise _bad(path, f"row {number} has {given[:40]!r}, which is no instant")
    return value / 1000 if value > _MILLISECONDS_FROM else value


def _microseconds(text: str) -> str:
    """Return an ISO instant with at most six digits of a second: Azure's log has seven, and Python reads six.

    >>> _microseconds("2023-11-16 18:15:46.6805900")
    '2023-11-16 18:15:46.680590'
    """
    head, point, rest = text.partition(".")
    digits = len(rest) - len(rest.lstrip("0123456789"))
    return f"{head}{point}{rest[:digits][:6]}{rest[digits:]}"


def _bad(path: Path, why: str) -> KappaError:
    return KappaError(f"{path} is no log of requests", why, "see docs/serving.md", code=ErrorCode.BAD_FILE)

"""Times of logs: instants that can be compared, and the order that follows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pipelines.workloads.formats.instants import MILLISECOND, SECOND, instant_of, order_of_service

NOON = 1_767_268_800  # 2026-01-01 12:00 UTC


@pytest.mark.parametrize(
    "value",
    [
        NOON, float(NOON), str(NOON), NOON * 1000, "2026-01-01T12:00:00Z", "2026-01-01 12:00:00",
        "2026-01-01T13:00+01:00", " 2026-01-01 12:00:00.0000000 ", datetime(2026, 1, 1, 12, tzinfo=UTC),
        datetime(2026, 1, 1, 12),  # noqa: DTZ001
    ],
)  # fmt: skip
def test_one_instant(value: object) -> None:
    """Seconds, milliseconds, text with and without a zone (naive is UTC) are the same instant."""
    assert instant_of(value) == NOON * SECOND


@pytest.mark.parametrize(
    "value", [None, "", "soon", True, float("nan"), float("inf"), "nan", [1], 10**40, 10**400, "1e400"]
)
def test_no_instant(value: object) -> None:
    """What is no time is None, never 0."""
    assert instant_of(value) is None


def test_units() -> None:
    """A trace may count in milliseconds; above 1e11 a number always does."""
    assert instant_of(1500, MILLISECOND) == 1.5 * SECOND
    assert instant_of(NOON * 1000, MILLISECOND) == instant_of(NOON * 1000) == NOON * SECOND


def test_order() -> None:
    """Equal times stay in the order of the file; arrivals are in order of service."""
    service = order_of_service([3 * SECOND, SECOND, 3 * SECOND], given=3)
    assert service.order.tolist() == [1, 0, 2]
    assert service.arrival_s is not None
    assert service.arrival_s.tolist() == [1, 3, 3]
    assert not service.note


def test_unread() -> None:
    """One unread time makes the order that of the file, and says so; where no one gives a time nothing is said."""
    service = order_of_service([3, None, 1], given=3)
    assert (service.order.tolist(), service.arrival_s, bool(service.note)) == ([0, 1, 2], None, True)
    assert not order_of_service([None, None], given=0).note
    assert order_of_service([], given=0).order.tolist() == []

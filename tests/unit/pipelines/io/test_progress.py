"""Progress: a line every few seconds, and none for what is quick."""

from __future__ import annotations

import logging

import pytest

from pipelines.io import progress
from pipelines.io.progress import EVERY_S, Progress


class Clock:
    """A clock that is set by hand."""

    now = 100.0

    def monotonic(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the clock that progress goes by."""
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def test_lines_come_every_few_seconds(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """A quick step says nothing; a long one a line each interval, however often it is called."""
    told = Progress("w: read", 200_000_000)
    with caplog.at_level(logging.INFO, "kappa"):
        for _ in range(10):
            told(5_000_000)
        assert caplog.messages == []
        clock.now += EVERY_S
        told(40_000_000)
        told(10_000_000)
        # 10 x 5 + 40 = 90 MB of 200 are 45 %
        assert caplog.messages == ["w: read 45 % (90 of 200 MB)".replace("read", "read:", 1)]
        clock.now += EVERY_S / 2
        told(1)
        clock.now += EVERY_S / 2
        told.reach(150_000_000)
    # 150 of 200 are 75 %
    assert caplog.messages[1:] == ["w: read: 75 % (150 of 200 MB)"]


@pytest.mark.parametrize(
    ("total", "done", "line"),
    [
        # 812 of 1,805 are 44.99 %, rounded down
        (1_805_000_000, 812_000_000, "x: 44 % (812 of 1,805 MB)"),
        # without a total there is no share
        (0, 5_000_000, "x: 5 MB"),
        # a share is never above all
        (10, 20, "x: 100 % (0 of 0 MB)"),
        (10, 0, "x: 0 % (0 of 0 MB)"),
    ],
)
def test_line(total: int, done: int, line: str) -> None:
    """Megabytes are 10^6 bytes, and a share is rounded down."""
    told = Progress("x", total)
    told(done)
    assert told.line() == line

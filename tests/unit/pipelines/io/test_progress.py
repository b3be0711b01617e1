"""Progress: a line every few seconds, and none for what is quick."""

from __future__ import annotations

import logging

import pytest

from pipelines.io import progress
from pipelines.io.progress import DRAWN_EVERY_S, EVERY_S, Progress, drawn_by


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
        assert caplog.messages == ["w: read: 45 % (90 MB of 200 MB)"]
        clock.now += EVERY_S / 2
        told(1)
        clock.now += EVERY_S / 2
        told.reach(150_000_000)
    # 150 of 200 are 75 %
    assert caplog.messages[1:] == ["w: read: 75 % (150 MB of 200 MB)"]


@pytest.mark.parametrize(
    ("total", "done", "line"),
    [
        # 812 of 1,805 are 44.99 %
        (1_805_000_000, 812_000_000, "x: 45 % (812 MB of 1.805 GB)"),
        # without a total there is no share
        (0, 5_000_000, "x: 5 MB"),
        # what is not all is not 100 %
        (1_000_000, 999_999, "x: > 99 % (1 MB of 1 MB)"),
        # a share is never above all
        (10, 20, "x: 100 % (20 B of 10 B)"),
        (10, 0, "x: 0 % (0 B of 10 B)"),
    ],
)
def test_line(total: int, done: int, line: str) -> None:
    """MB are 10^6 bytes; share and bytes are written as everywhere."""
    told = Progress("x", total)
    told(done)
    assert told.line() == line


def test_who_draws_gets_steps_instead_of_lines(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """A drawing is called ten times a second and at the end; no line is logged meanwhile."""
    seen: list[str] = []
    with caplog.at_level(logging.INFO, "kappa"), drawn_by(lambda step: seen.append(step.line())):
        told = Progress("w", 100)
        told(10)
        clock.now += DRAWN_EVERY_S
        told(10)
        told(10)
        told(70)
    # 10 is too soon, 20 drawn, 30 too soon, 100 the end
    assert seen == ["w: 20 % (20 B of 100 B)", "w: 100 % (100 B of 100 B)"]
    assert caplog.messages == []

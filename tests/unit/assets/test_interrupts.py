"""Ctrl-C: how long a command may take to clean up."""

from __future__ import annotations

import os
import signal

import pytest

from assets import interrupts
from assets.commands import querying


@pytest.mark.parametrize(("hurry", "expected"), [(None, interrupts.GRACE_S), (querying.STOP_S, querying.STOP_S)])
def test_a_command_may_leave_sooner(monkeypatch: pytest.MonkeyPatch, hurry: float | None, expected: float) -> None:
    """A query that writes no file has nothing to remove: it is given less time than a run."""
    waited: list[float] = []
    monkeypatch.setattr(interrupts._State, "grace_s", interrupts.GRACE_S)
    monkeypatch.setattr(interrupts, "select", lambda *given: waited.append(given[-1]))
    monkeypatch.setattr(interrupts, "leave", lambda: None)
    if hurry is not None:
        interrupts.hurry(hurry)
    ours, pythons = os.pipe()
    os.write(pythons, bytes([signal.SIGINT]))
    interrupts._watch(ours)
    os.close(ours)
    os.close(pythons)
    # 10 s for a run, 1 s for a query
    assert waited == [expected]
    assert querying.STOP_S < interrupts.GRACE_S

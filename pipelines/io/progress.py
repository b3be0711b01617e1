"""Progress of long steps: one log line every few seconds, none for short steps; or drawn by the caller."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator

from warehouse.declared.formats import percent, quantity

LOG = logging.getLogger("kappa")
EVERY_S, DRAWN_EVERY_S = 3.0, 0.1
_draw: list[Callable[[Progress], None]] = []


@contextlib.contextmanager
def drawn_by(draw: Callable[[Progress], None]) -> Iterator[None]:
    """Call `draw` with every step of progress instead of logging."""
    _draw.append(draw)
    try:
        yield
    finally:
        _draw.remove(draw)


class Progress:
    """Reports the progress of a step: `sharegpt: read: 45 % (812 MB of 1.805 GB)`."""

    def __init__(self, what: str, total_bytes: int) -> None:
        """Start at zero of `total_bytes` (0 where the total is unknown)."""
        self.what = what
        self.total_bytes = total_bytes
        self.done_bytes = 0
        self._next = time.monotonic() + (DRAWN_EVERY_S if _draw else EVERY_S)

    def __call__(self, done_bytes: int) -> None:
        """Add `done_bytes`."""
        self.reach(self.done_bytes + done_bytes)

    def reach(self, done_bytes: int) -> None:
        """Set the bytes done; draw them, or log them when the last line is a few seconds old."""
        self.done_bytes = done_bytes
        now = time.monotonic()
        if _draw and (now >= self._next or done_bytes >= self.total_bytes):
            self._next = now + DRAWN_EVERY_S
            for draw in _draw:
                draw(self)
        elif now >= self._next:
            self._next = now + EVERY_S
            LOG.info("%s", self.line())

    def share(self) -> float | None:
        """Return the share done, at most 1; None where the total is unknown."""
        return min(1.0, self.done_bytes / self.total_bytes) if self.total_bytes else None

    def line(self) -> str:
        """Return the line to show."""
        done, share = quantity(self.done_bytes, "B"), self.share()
        if share is None:
            return f"{self.what}: {done}"
        return f"{self.what}: {percent(share, 0)} ({done} of {quantity(self.total_bytes, 'B')})"

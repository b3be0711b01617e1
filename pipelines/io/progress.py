"""Progress of long steps: one log line every few seconds, none for what is quick."""

from __future__ import annotations

import logging
import time

LOG = logging.getLogger("kappa")
EVERY_S = 3.0


class Progress:
    """Tells how far a step is: `sharegpt: read 45 % (812 of 1,805 MB)`."""

    def __init__(self, what: str, total_bytes: int) -> None:
        """Begin at zero of `total_bytes` (0 where the total is not known)."""
        self.what = what
        self.total_bytes = total_bytes
        self.done_bytes = 0
        self._next = time.monotonic() + EVERY_S

    def __call__(self, done_bytes: int) -> None:
        """Add `done_bytes`."""
        self.reach(self.done_bytes + done_bytes)

    def reach(self, done_bytes: int) -> None:
        """Set how much is done and tell it when the last line is a few seconds old."""
        self.done_bytes = done_bytes
        now = time.monotonic()
        if now >= self._next:
            self._next = now + EVERY_S
            LOG.info("%s", self.line())

    def line(self) -> str:
        """Return the line to show."""
        done = f"{self.done_bytes / 1e6:,.0f}"
        if not self.total_bytes:
            return f"{self.what}: {done} MB"
        share = min(100, 100 * self.done_bytes // self.total_bytes)
        return f"{self.what}: {share} % ({done} of {self.total_bytes / 1e6:,.0f} MB)"

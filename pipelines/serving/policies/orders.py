"""The order of the waiting requests in one policy's eyes: each keeps at most a window of them, and names one."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Protocol, TypeAlias

# What decides between the named ones of two parts of the window, lowest first, and the row named.
Choice: TypeAlias = tuple[float, int]


class Order(Protocol):
    """Waiting requests, kept so that the next one is found without looking at all."""

    def add(self, row: int) -> None:
        """Take in a request that enters the window."""

    def remove(self, row: int) -> None:
        """Forget a request that leaves the window."""

    def best(self, free: float, room: float) -> Choice | None:
        """Return the request to name, whether or not it fits; None without one.

        Args:
            free: Tokens of the pool that nobody holds.
            room: Tokens left in the iteration, less those owed to the admitted.
        """


class ByKey:
    """The lowest key, then the older: `fifo` with equal keys, `fair` with its tags."""

    def __init__(self, keys: Sequence[float] | None = None) -> None:
        """Keep the keys, by row; None for equal ones."""
        self._keys = keys
        self._rows: list[Choice] = []

    def add(self, row: int) -> None:
        """Take in a request that enters the window."""
        insort(self._rows, self._choice(row))

    def remove(self, row: int) -> None:
        """Forget a request that leaves the window."""
        del self._rows[bisect_left(self._rows, self._choice(row))]

    def best(self, free: float, room: float) -> Choice | None:  # noqa: ARG002 - it names whether or not it fits
        """Return the request with the lowest key."""
        return self._rows[0] if self._rows else None

    def _choice(self, row: int) -> Choice:
        return (0.0 if self._keys is None else self._keys[row]), row


class Nearest:
    """`fill`: of those that fit, M / T nearest to free pool / room; then the older.

    Requests are sorted by M / T, so the search begins at the target and goes outward until one fits. Sizes are sorted
    too: where not even the smallest fits, nothing is searched.
    """

    def __init__(self, held: Sequence[int], ratios: Sequence[float]) -> None:
        """Keep M and M / T, by row."""
        self._held, self._ratios = held, ratios
        self._rows: list[tuple[float, int]] = []
        self._sizes: list[int] = []
        self.looked_at = 0
        """Requests looked at in all searches, for tests and benchmarks."""

    def add(self, row: int) -> None:
        """Take in a request that enters the window."""
        insort(self._rows, (self._ratios[row], row))
        insort(self._sizes, self._held[row])

    def remove(self, row: int) -> None:
        """Forget a request that leaves the window."""
        del self._rows[bisect_left(self._rows, (self._ratios[row], row))]
        del self._sizes[bisect_left(self._sizes, self._held[row])]

    def best(self, free: float, room: float) -> Choice | None:
        """Return the request that fits and is nearest to the target."""
        if not self._sizes or self._sizes[0] > free:
            return None
        target = free / max(1.0, room)
        middle = bisect_left(self._rows, (target, -1))
        above = self._first(middle, 1, target, free, None)
        return self._first(middle - 1, -1, target, free, above)

    def _first(self, place: int, step: int, target: float, free: float, found: Choice | None) -> Choice | None:
        """Return the better of `found` and the best on one side of the target."""
        rows, held = self._rows, self._held
        while 0 <= place < len(rows):
            ratio, row = rows[place]
            distance = abs(ratio - target)
            if found is not None and distance > found[0]:
                break
            self.looked_at += 1
            if held[row] <= free and (found is None or (distance, row) < found):
                found = distance, row
            place += step
        return found

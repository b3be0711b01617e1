"""The requests that wait: a window of the oldest in a policy's order, and the rest as a count."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from pipelines.serving.policies.orders import ByKey, Choice, Nearest, Order
from pipelines.serving.policies.spec import WINDOW, PolicySpec


class Waiting:
    """The queue before admission. Rows come in order of arrival, so those beyond the window are a range of rows.

    Attributes:
        count: Requests that wait.
    """

    def __init__(
        self,
        spec: PolicySpec,
        held: Sequence[int],
        new_tokens: Sequence[int],
        ratios: Sequence[float],
        groups: Sequence[int],
    ) -> None:
        """Make an empty queue.

        Args:
            spec: The policy.
            held: M in tokens, by row.
            new_tokens: T in tokens, by row.
            ratios: kappa_ratio, by row.
            groups: Class of `fair`, by row.
        """
        self._spec, self._held, self._groups = spec, held, groups
        self._is_above = None if spec.limit is None else [ratio > spec.limit_kappa for ratio in ratios]
        self._tags = [0.0] * len(held) if spec.name == "fair" else []
        self._finish: dict[int, float] = {}
        self._last_tag = 0.0
        density = [m / t for m, t in zip(held, new_tokens, strict=True)] if spec.name == "fill" else []
        sides = 1 if self._is_above is None else 2
        self.orders: list[Order] = [self._order(density) for _ in range(sides)]
        self._above_held = 0
        self._later: deque[int] = deque()
        self._window: deque[int] = deque()
        self._in_window = 0
        self._is_in = bytearray(len(held))
        self.count = 0

    def _order(self, density: Sequence[float]) -> Order:
        if self._spec.name == "fill":
            return Nearest(self._held, density)
        return ByKey(self._tags or None)

    def arrive(self, row: int) -> None:
        """Take in a request that has come; `fair` gives it its tag."""
        if self._tags:
            group = self._groups[row]
            tag = max(self._last_tag, self._finish.get(group, 0.0))
            weights = self._spec.weights
            self._tags[row] = tag
            self._finish[group] = tag + self._held[row] / (weights[group] if group < len(weights) else 1.0)
        self.count += 1
        self._later.append(row)
        self._enter()

    def _enter(self) -> None:
        while self._in_window < WINDOW and self._later:
            row = self._later.popleft()
            self._window.append(row)
            self._is_in[row] = 1
            self._in_window += 1
            self.orders[self._side(row)].add(row)

    def _side(self, row: int) -> int:
        return 1 if self._is_above is not None and self._is_above[row] else 0

    def name(self, free: float, room: float, now_s: float, arrivals_s: Sequence[float]) -> int | None:
        """Return the request that is admitted next, or None: none waits, none may, or the named one does not fit.

        Args:
            free: Tokens of the pool that nobody holds.
            room: Tokens left in the iteration, less those owed to the admitted.
            now_s: The time.
            arrivals_s: By row.
        """
        if not self.count:
            return None
        age = self._spec.age_s
        if age is not None:
            oldest = self._oldest()
            if now_s - arrivals_s[oldest] >= age:
                # A limit is a kind of memory: passing the oldest because of it would break the promise of ageing.
                return oldest if self._held[oldest] <= free and self._may(self._side(oldest)) else None
        row = self._named(free, room)
        return row if row is not None and self._held[row] <= free else None

    def _named(self, free: float, room: float) -> int | None:
        if self._is_above is None:
            choice = self.orders[0].best(free, room)
            return None if choice is None else choice[1]
        found = [self.orders[side].best(free, room) for side in (0, 1) if self._may(side)]
        choices: list[Choice] = [choice for choice in found if choice is not None]
        return min(choices)[1] if choices else None

    def _may(self, side: int) -> bool:
        return side == 0 or self._above_held < (math.inf if self._spec.limit is None else self._spec.limit)

    def _oldest(self) -> int:
        while not self._is_in[self._window[0]]:
            self._window.popleft()
        return self._window[0]

    def admit(self, row: int) -> None:
        """Take a named request out of the queue."""
        side = self._side(row)
        self.orders[side].remove(row)
        self._above_held += side
        self._is_in[row] = 0
        self._in_window -= 1
        self.count -= 1
        if self._tags:
            self._last_tag = self._tags[row]
        while self._window and not self._is_in[self._window[0]]:
            self._window.popleft()
        self._enter()

    def give_back(self, row: int) -> None:
        """Note that an admitted request gives its memory back."""
        self._above_held -= self._side(row)

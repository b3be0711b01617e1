"""Hit tokens by capacity, exact at every whole number of blocks: a line that bends at a list of capacities."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pipelines.capacity.distances import Hits
from pipelines.capacity.requests import Floats, Ints, Requests


@dataclass(frozen=True)
class Curve:
    """Hit tokens of a cache that evicts the least recently used, by capacity.

    Between two capacities of the list the line is straight; below the first it is 0 and above the last it is flat.

    Attributes:
        capacity_blocks: Ascending, from 0; shape (points,).
        within_tokens: Hit tokens last touched by the same session; shape (points,).
        across_tokens: Hit tokens last touched by another session; shape (points,).
        requests: Requests that were counted.
        context_tokens: Sum of their n.
        block_tokens: B.
    """

    capacity_blocks: Ints
    within_tokens: Ints
    across_tokens: Ints
    requests: int
    context_tokens: int
    block_tokens: int

    @property
    def hit_tokens(self) -> Ints:
        """Hit tokens at each capacity of the list; shape (points,)."""
        return self.within_tokens + self.across_tokens

    @property
    def endless_tokens(self) -> int:
        """Hit tokens of a cache without an end."""
        return int(self.hit_tokens[-1])

    def hit_ratio(self, capacity_blocks: Floats | Ints | float) -> Floats:
        """Return hit tokens / tokens of all prompts at these capacities; the shape of `capacity_blocks`."""
        return self.tokens_at(capacity_blocks) / max(self.context_tokens, 1)

    def tokens_at(self, capacity_blocks: Floats | Ints | float) -> Ints:
        """Return the hit tokens at these capacities, which are rounded down to whole blocks; exact integers."""
        capacity = np.minimum(np.floor(np.asarray(capacity_blocks, np.float64)), self.capacity_blocks[-1])
        capacity = np.maximum(capacity, 0).astype(np.int64)
        at = np.searchsorted(self.capacity_blocks, capacity, side="right") - 1
        after = np.minimum(at + 1, len(self.capacity_blocks) - 1)
        gap = np.maximum(self.capacity_blocks[after] - self.capacity_blocks[at], 1)
        hits = self.hit_tokens
        found: Ints = hits[at] + (hits[after] - hits[at]) * (capacity - self.capacity_blocks[at]) // gap
        return found

    def capacity_for(self, hit_ratio: float) -> int | None:
        """Return the least capacity in blocks whose hit ratio is at least this; None where no cache has it."""
        hits = self.hit_tokens
        wanted = int(np.ceil(hit_ratio * self.context_tokens - 1e-6))
        after = int(np.searchsorted(hits, wanted, side="left"))
        if after == len(hits):
            return None
        if after == 0:
            return 0
        low, high = int(hits[after - 1]), int(hits[after])
        gap = int(self.capacity_blocks[after] - self.capacity_blocks[after - 1])
        return int(self.capacity_blocks[after - 1]) - (low - wanted) * gap // (high - low)

    def knee(self, step_blocks: float, least_gain: float) -> int:
        """Return the least capacity from which on the next `step_blocks` never bring `least_gain` of all tokens.

        The gain is F(C + step) - F(C). It is a line between the bends of both, so that its last crossing of the least
        gain lies between two neighbours of them.
        """
        step = int(step_blocks)
        bends = np.unique(np.concatenate((self.capacity_blocks, np.maximum(self.capacity_blocks - step, 0))))
        gain = self.tokens_at(bends + step) - self.tokens_at(bends)
        wanted = least_gain * self.context_tokens
        above = np.flatnonzero(gain >= wanted)
        if not len(above):
            return 0
        last = int(above[-1])
        fall = (gain[last] - wanted) / (gain[last] - gain[last + 1])
        return int(bends[last] + np.floor(fall * (bends[last + 1] - bends[last]))) + 1

    def thinned(self, most_points: int, tolerance: float) -> Curve:
        """Return the curve with fewer bends where it has more than `most_points`, off by at most `tolerance`.

        Each line is split at the bend that is farthest from it, until none is farther than the tolerance.

        Args:
            most_points: A curve with no more is returned as it is.
            tolerance: In hit ratio, for each of the two kinds of hits.
        """
        if len(self.capacity_blocks) <= most_points:
            return self
        kept = np.array([0, len(self.capacity_blocks) - 1])
        while len(more := self._farthest(kept, tolerance * self.context_tokens)):
            kept = np.union1d(kept, more)
        names = ("capacity_blocks", "within_tokens", "across_tokens")
        return replace(self, **{name: getattr(self, name)[kept] for name in names})

    def _farthest(self, kept: Ints, most_tokens: float) -> Ints:
        """Return for each line between kept bends the bend that is farthest from it, where it is too far."""
        capacity = self.capacity_blocks
        off = np.zeros(len(capacity))
        for tokens in (self.within_tokens, self.across_tokens):
            off = np.maximum(off, np.abs(np.interp(capacity, capacity[kept], tokens[kept]) - tokens))
        line = np.searchsorted(kept, np.arange(len(capacity)), side="right")
        order = np.lexsort((off, line))
        far = order[np.flatnonzero(np.diff(line[order], append=line[-1] + 1))]
        return far[off[far] > most_tokens]


def curve_of(requests: Requests, hits: Hits, warm_up: int = 0) -> Curve:
    """Return the curve of the requests after the first `warm_up`, which fill the cache and are not counted.

    Each hit block brings B tokens, except that a request has at most n - 1.
    """
    counted = hits.request >= warm_up
    events = [_bends(requests, hits, counted & (hits.is_within == is_within)) for is_within in (True, False)]
    capacity = np.unique(np.concatenate([np.zeros(1, np.int64), *(places for places, _ in events)]))
    lines = [_line(capacity, places, changes) for places, changes in events]
    bent = np.zeros(len(capacity), bool)
    bent[[0, -1]] = True
    for line in lines:
        slope = np.diff(line) / np.diff(capacity) if len(capacity) > 1 else np.zeros(0)
        bent[1:-1] |= slope[1:] != slope[:-1]
    context = int(requests.context_tokens[warm_up:].sum())
    count = max(len(requests) - warm_up, 0)
    return Curve(capacity[bent], lines[0][bent], lines[1][bent], count, context, requests.block_tokens)


def _bends(requests: Requests, hits: Hits, chosen: np.ndarray) -> tuple[Ints, Ints]:
    """Return capacities and changes of slope: a ramp of blocks, blocks of one distance, and the last block's rest."""
    size = requests.block_tokens
    request, start, length = hits.request[chosen], hits.start[chosen], hits.length[chosen]
    distance, step = hits.distance[chosen], hits.step[chosen]
    end = np.where(step == 1, distance + length, distance + 1)
    slope = np.where(step == 1, size, size * length)
    over = np.maximum(size * (start + length) - requests.most_cached_tokens[request], 0)
    last = end - 1
    places = np.concatenate((distance, end, last, last + 1))
    return places, np.concatenate((slope, -slope, -over, over))


def _line(capacity: Ints, places: Ints, changes: Ints) -> Ints:
    """Return the value at each capacity of the line that is 0 at first and whose slope changes at these places."""
    slope = np.bincount(np.searchsorted(capacity, places), changes, len(capacity))
    rises = np.cumsum(slope)[:-1] * np.diff(capacity)
    return np.concatenate((np.zeros(1), np.cumsum(rises))).astype(np.int64)

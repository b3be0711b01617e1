"""Exact reuse distances of all hits in one pass; from them the hits at any capacity follow.

The distance of a block is the number of distinct blocks touched since its own last touch; it is a hit in a cache of C
blocks that evicts the least recently used where the distance is below C (Mattson et al., 1970). A request hits up to
its first miss, so that a block counts with the largest distance of it and of those before it in its request.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np

from pipelines.capacity.inversions import weight_above_before
from pipelines.capacity.requests import Bools, Ints, Requests
from pipelines.capacity.runs import Runs, runs_of

Eviction = Literal["block", "request"]


@dataclass(frozen=True)
class Hits:
    """The hits of an endless cache, in pieces whose distance grows by `step` from block to block.

    Pieces are sorted by request and position and without gaps from position 0; all arrays have the shape (pieces,).

    Attributes:
        request: The request that hits.
        start: Position of the first block in it.
        length: Blocks, at least 1.
        distance: Distance of the first block, in blocks.
        step: 0 or 1.
        last_request: The request that touched the blocks last before.
        is_within: Whether that request is of the same session.
    """

    request: Ints
    start: Ints
    length: Ints
    distance: Ints
    step: Ints
    last_request: Ints
    is_within: Bools

    def blocks_at(self, capacity_blocks: int, requests: int) -> Ints:
        """Return the leading blocks of each request that a cache of this capacity holds; shape (requests,)."""
        room = capacity_blocks - self.distance
        whole = np.where(room > 0, self.length, 0)
        held = np.where(self.step == 1, np.clip(room, 0, self.length), whole)
        return np.bincount(self.request, held, requests).astype(np.int64)


def first(requests: Requests, hits: Hits, count: int) -> tuple[Requests, Hits]:
    """Return the first `count` requests in order of service with their hits."""
    names = ("context_tokens", "lookup_blocks", "left_blocks", "session")
    arrays = {name: getattr(requests, name)[:count] for name in names}
    ids = None if requests.ids is None else requests.ids[: requests.offsets[count]]
    arrival = None if requests.arrival_s is None else requests.arrival_s[:count]
    kept = hits.request < count
    pieces = {field.name: getattr(hits, field.name)[kept] for field in fields(Hits)}
    return replace(requests, **arrays, ids=ids, arrival_s=arrival), Hits(**pieces)


def hits_of(requests: Requests, eviction: Eviction = "block") -> Hits:
    """Return the hits of the requests.

    Args:
        requests: In order of service.
        eviction: What leaves a full cache: the least recently used block, or all blocks whose last touch was by the
            least recently used request (a request larger than the cache then leaves nothing).

    Raises:
        ValueError: an identity is twice in a request.
    """
    runs = runs_of(requests)
    if eviction == "block":
        return _pieces(requests, runs, distances(requests, runs), step=1)
    return _pieces(requests, runs, _distances_of_requests(requests, runs), step=0)


def distances(requests: Requests, runs: Runs) -> Ints:
    """Return the distance of the first block of each run; it grows by one from block to block; shape (runs,).

    A touch takes the next of the slots 0, 1, 2, ...; a block's slot is that of its last touch. The distance is the
    number of slots above the block's own that are still held: all of them, less those whose block was touched again
    since. Blocks that leave slots together were runs, and two runs of slots never overlap.
    """
    before = requests.offsets
    slot = before[runs.last_request + 1] - 1 - runs.last_start
    # Of one request the lower slots come first, so that none of its own counts as left before.
    order = np.lexsort((slot, runs.request))
    above = np.empty_like(slot)
    above[order] = weight_above_before(_ranks(slot)[order], runs.length[order])
    return before[runs.request] - 1 - slot - above


def _distances_of_requests(requests: Requests, runs: Runs) -> Ints:
    """Return the distance of the last block that each run's last request still holds; shape (runs,)."""
    before = requests.offsets
    slot = before[runs.last_request + 1] - 1 - runs.last_start
    lowest = before[runs.last_request]
    return before[runs.request] - 1 - lowest - _left_above(runs, slot, lowest)


def _ranks(values: Ints) -> Ints:
    ranks = np.empty_like(values)
    ranks[np.argsort(values)] = np.arange(len(values))
    return ranks


def _left_above(runs: Runs, slot: Ints, floor: Ints) -> Ints:
    """Return for each run the slots from its `floor` on that runs of earlier requests left; shape (runs,).

    The questions and the runs that move are one sequence, in order of requests, each request's questions before what
    it moves.
    """
    count = len(slot)
    is_move = np.repeat(np.array([0, 1]), count)
    order = np.lexsort((is_move, np.tile(runs.request, 2)))
    # A question is below a slot that equals its floor.
    by_key = np.lexsort((is_move, np.concatenate((floor, slot))))
    weight = np.concatenate((np.zeros(count, np.int64), runs.length))
    rank = np.empty_like(by_key)
    rank[by_key] = np.arange(2 * count)
    above = np.empty(2 * count, np.int64)
    above[order] = weight_above_before(rank[order], weight[order])
    return above[:count]


def _pieces(requests: Requests, runs: Runs, distance: Ints, step: int) -> Hits:
    is_leading = runs.start == _sum_before(runs.length, runs.request)
    most = np.minimum(requests.lookup_blocks, -(-requests.context_tokens // requests.block_tokens))
    length = np.where(is_leading, np.clip(most[runs.request] - runs.start, 0, runs.length), 0)
    farthest = distance + step * (length - 1)
    ceiling = _largest_before(np.where(length > 0, farthest, -1), runs.request)
    # Blocks that are nearer than one before them are hits only where that one is.
    flat = np.clip(ceiling - distance + 1, 0, length) if step else np.zeros_like(length)
    distance = distance if step else np.maximum(distance, ceiling)
    is_within = requests.session[runs.request] == requests.session[runs.last_request]
    parts = (
        (runs.start, flat, ceiling, np.zeros_like(length)),
        (runs.start + flat, length - flat, distance + flat, np.full_like(length, step)),
    )
    start, lengths, distances_, steps = (np.stack(columns, axis=1).ravel() for columns in zip(*parts, strict=True))
    kept = lengths > 0
    request, last, within = (np.repeat(column, 2)[kept] for column in (runs.request, runs.last_request, is_within))
    return Hits(request, start[kept], lengths[kept], distances_[kept], steps[kept], last, within)


def _sum_before(values: Ints, request: Ints) -> Ints:
    """Return the sum of the values before each one in its request."""
    before = np.cumsum(values) - values
    first = np.searchsorted(request, request, side="left")
    sums: Ints = before - before[first]
    return sums


def _largest_before(values: Ints, request: Ints) -> Ints:
    """Return the largest value before each one in its request, -1 for the first; values are -1 or more."""
    above = values.max(initial=0) + 2
    largest = np.maximum.accumulate(values + 1 + request * above)
    shifted = np.concatenate((np.zeros(1, np.int64), largest[:-1]))
    found: Ints = np.maximum(shifted - request * above, 0) - 1
    return found

"""Other policies at one capacity: the clairvoyant optimum, and first in, first out."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from pipelines.capacity.distances import Hits
from pipelines.capacity.requests import Ints, Requests


@dataclass(frozen=True)
class Optimum:
    """What a cache brings whose policy knows all later requests.

    Attributes:
        blocks: Leading blocks that each request finds; shape (R,).
        most_tokens: Hit tokens that no policy exceeds.
        is_exact: Whether a policy finds `blocks` and none more in sum; else their sum is an upper bound.
    """

    blocks: Ints
    most_tokens: int
    is_exact: bool


def optimum(requests: Requests, hits: Hits, capacity_blocks: int, warm_up: int = 0) -> Optimum:
    """Return the clairvoyant optimum: of the blocks that are used again, those with the nearest next use are kept.

    A block that is found takes a place from its last touch to the request that finds it. Of more intervals than
    places, dropping the one that ends last keeps the most (Belady 1966, with the choice to keep nothing). Of intervals
    that end together the deepest block is dropped first. Where identities are chained, a block is touched whenever a
    deeper one is, so that what is kept is always a prefix and the sum is exact; elsewhere it is an upper bound.
    The optimum is one of blocks: in tokens it may miss the rest of a prompt's last block, `most_tokens` is B a block.

    Args:
        requests: In order of service.
        hits: Their hits, with eviction by block.
        capacity_blocks: C.
        warm_up: First requests that are not counted in `most_tokens`.
    """
    blocks = np.zeros(len(requests), np.int64)
    kept: list[tuple[int, int, list[int]]] = []
    held = 0
    ends: dict[int, list[list[int]]] = {}
    order = np.lexsort((hits.request, hits.last_request))
    columns = (hits.last_request, hits.request, hits.start, hits.length)
    intervals = list(zip(*(column[order].tolist() for column in columns), strict=True))
    place = 0
    for now in range(len(requests)):
        found = sum(length for (length,) in ends.pop(now, []))
        blocks[now] = found
        held -= found
        while place < len(intervals) and intervals[place][0] == now:
            _, until, start, length = intervals[place]
            interval = [length]
            ends.setdefault(until, []).append(interval)
            heapq.heappush(kept, (-until, -start, interval))
            held += length
            place += 1
        while held > capacity_blocks:
            dropped = min(kept[0][2][0], held - capacity_blocks)
            kept[0][2][0] -= dropped
            held -= dropped
            if not kept[0][2][0]:
                heapq.heappop(kept)
    most = np.minimum(requests.block_tokens * blocks[warm_up:], requests.most_cached_tokens[warm_up:])
    bound = min(int(requests.block_tokens * blocks[warm_up:].sum()), int(_endless(requests, hits)[warm_up:].sum()))
    return Optimum(blocks, max(bound, int(most.sum())), is_chained(requests))


def fifo(requests: Requests, capacity_blocks: int) -> Ints:
    """Return the leading blocks that each request finds where the block that entered first leaves first; shape (R,).

    A request is looked up against the state before it; then the blocks that it did not find anywhere enter, the last
    first. A block is held where fewer than C blocks entered after it: the state is one counter.
    For comparison, no bound: a larger cache may find less.

    Raises:
        ValueError: the blocks have no identities.
    """
    if requests.ids is None:
        raise ValueError("first in, first out needs identities")
    ids, offsets = requests.ids, requests.offsets.tolist()
    entered = np.full(int(ids.max(initial=-1)) + 1, -1, np.int64)
    blocks, count = np.zeros(len(requests), np.int64), 0
    for number, looked in enumerate(requests.lookup_blocks.tolist()):
        left = ids[offsets[number] : offsets[number + 1]]
        at = entered[left]
        is_held = (at >= 0) & (at >= count - capacity_blocks)
        found = is_held[:looked]
        blocks[number] = looked if found.all() else int(np.argmin(found))
        new = left[~is_held][::-1]
        entered[new] = np.arange(count, count + len(new))
        count += len(new)
    return blocks


def is_chained(requests: Requests) -> bool:
    """Return whether each identity always follows the same one, or always opens a request.

    Then an identity stands for the whole prefix up to it, as in engines that hash a block with what is before it.
    """
    if requests.ids is None:
        return True
    ids = requests.ids
    before = np.concatenate((np.full(1, -1, np.int64), ids[:-1]))[: len(ids)]
    opens = requests.offsets[:-1][requests.left_blocks > 0]
    before[opens] = -1
    parent = np.empty(int(ids.max(initial=-1)) + 1, np.int64)
    parent[ids] = before
    return bool((parent[ids] == before).all())


def _endless(requests: Requests, hits: Hits) -> Ints:
    return requests.cached_tokens(np.bincount(hits.request, hits.length, len(requests)).astype(np.int64))

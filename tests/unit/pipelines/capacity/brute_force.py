"""Slow, plain simulations of caches of one capacity: what the vectorised code has to equal."""

from __future__ import annotations

from collections import OrderedDict
from itertools import pairwise

import numpy as np

from pipelines.capacity.requests import Requests, requests_of_ids

Prompts = list[tuple[list[int], int]]


def requests_of(prompts: Prompts, block_tokens: int = 4, sessions: list[int] | None = None) -> Requests:
    """Return requests that leave these identities and look up this many of them; n ends in the last block."""
    left = np.array([len(ids) for ids, _ in prompts], np.int64)
    return requests_of_ids(
        block_tokens=block_tokens,
        offsets=np.concatenate((np.zeros(1, np.int64), np.cumsum(left))),
        ids=np.array([one for ids, _ in prompts for one in ids], np.int64),
        lookup_counts=np.array([looked for _, looked in prompts], np.int64),
        context_tokens=np.array([max(block_tokens * looked - 1, 1) for _, looked in prompts], np.int64),
        session=np.array(sessions if sessions is not None else range(len(prompts)), np.int64),
        arrival_s=np.arange(len(prompts), dtype=np.float64) * 10,
    )


def lru(prompts: Prompts, capacity: int) -> list[int]:
    """Return the leading blocks that each request finds in a cache that evicts the least recently used block."""
    held: OrderedDict[int, None] = OrderedDict()
    found = []
    for ids, looked in prompts:
        found.append(_leading(ids[:looked], held))
        for one in reversed(ids):
            held[one] = None
            held.move_to_end(one)
            if len(held) > capacity:
                held.popitem(last=False)
    return found


def lru_of_requests(prompts: Prompts, capacity: int) -> list[int]:
    """Return the same where all blocks that a request touched last leave together."""
    last: dict[int, int] = {}
    found = []
    for number, (ids, looked) in enumerate(prompts):
        found.append(_leading(ids[:looked], last))
        last |= dict.fromkeys(ids, number)
        while len(last) > capacity:
            oldest = min(last.values())
            last = {one: when for one, when in last.items() if when != oldest}
    return found


def fifo(prompts: Prompts, capacity: int) -> list[int]:
    """Return the leading blocks that each request finds where what entered first leaves first."""
    held: list[int] = []
    found = []
    for ids, looked in prompts:
        found.append(_leading(ids[:looked], held))
        held += [one for one in reversed(ids) if one not in held]
        held = held[max(len(held) - capacity, 0) :]
    return found


def best(prompts: Prompts, capacity: int) -> int:
    """Return the most blocks that any choice of what to keep after each request finds, by trying all of them."""
    states: dict[frozenset[int], int] = {frozenset(): 0}
    for ids, looked in prompts:
        after: dict[frozenset[int], int] = {}
        for held, hits in states.items():
            total = hits + _leading(ids[:looked], held)
            for kept in _subsets(held | set(ids), capacity):
                after[kept] = max(after.get(kept, 0), total)
        states = after
    return max(states.values())


def interleaved(lengths: list[int], at_a_time: int) -> list[tuple[int, int]]:
    """Return (session, turn) in order of service, round by round."""
    waiting = list(range(len(lengths)))
    slots: list[list[int]] = [[waiting.pop(0), 0] for _ in range(min(at_a_time, len(lengths)))]
    order = []
    while slots:
        order += [(session, turn) for session, turn in slots]
        slots = [[session, turn + 1] for session, turn in slots]
        for slot in slots:
            if slot[1] == lengths[slot[0]]:
                slot[:] = [waiting.pop(0), 0] if waiting else [-1, -1]
        slots = [slot for slot in slots if slot[0] >= 0]
    return order


def chained(tree: list[list[int]], reuse: list[int]) -> Prompts:
    """Return prompts whose identities stand for whole prefixes, each looking up a leading share of its blocks."""
    names: dict[tuple[int, ...], int] = {}
    prompts = []
    for path, share in zip(tree, reuse, strict=True):
        ids = [names.setdefault(tuple(path[: end + 1]), len(names)) for end in range(len(path))]
        prompts.append((ids, min(share, len(ids))))
    return prompts


def is_rising(values: list[int]) -> bool:
    """Return whether no value is below the one before it."""
    return all(low <= high for low, high in pairwise(values))


def _leading(ids: list[int], held: object) -> int:
    return next((place for place, one in enumerate(ids) if one not in held), len(ids))  # type: ignore[operator]


def _subsets(blocks: set[int], most: int) -> list[frozenset[int]]:
    found = [frozenset[int]()]
    for one in sorted(blocks):
        found += [kept | {one} for kept in found if len(kept) < most]
    return found

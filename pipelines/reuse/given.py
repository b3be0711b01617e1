"""Identities of blocks that a trace gives, as dense codes; chained where the trace hashes each block by itself."""

from __future__ import annotations

import numpy as np

from pipelines.reuse.leading import leading_true
from pipelines.reuse.requests import Ints


def dense_codes(ids: Ints, scope: Ints | None = None) -> tuple[Ints, Ints]:
    """Return identities as codes 0, 1, ... in the order in which they first appear, and the first place of each code.

    Args:
        ids: Identities as given, shape (references,).
        scope: What tells equal numbers of different sessions apart, shape (references,); None where they are one.

    >>> dense_codes(np.array([7, 9, 7, 4]))[0].tolist(), dense_codes(np.array([7, 7]), np.array([0, 1]))[0].tolist()
    ([0, 1, 0, 2], [0, 1])
    """
    values, first, code = np.unique(ids, return_index=True, return_inverse=True)
    if scope is not None:
        # Below 2^63: codes and scopes number what is in memory.
        _, first, code = np.unique(scope * len(values) + code, return_index=True, return_inverse=True)
    by_place = np.argsort(first)
    rank = np.empty_like(by_place)
    rank[by_place] = np.arange(len(by_place))
    return rank[code], first[by_place]


def chained_codes(ids: Ints, offsets: Ints) -> Ints:
    """Return codes that are equal where an identity and all before it in its request are; shape (references,).

    [1 2] and [9 2]: the second 2 is another one, as it must be where blocks are hashed one by one. Position by
    position, so that a pair (code so far, identity) is exact, not a hash.

    Args:
        ids: Identities, request after request, shape (references,).
        offsets: Begin of each request and the end, shape (requests + 1,).
    """
    counts = np.diff(offsets)
    order = np.argsort(-counts, kind="stable")
    starts, lengths = offsets[:-1][order], counts[order]
    alone, _ = dense_codes(ids)
    kinds = int(alone.max(initial=-1)) + 1
    codes, before, known = np.empty_like(alone), np.zeros(len(order), np.int64), 0
    for position in range(int(lengths[0]) if len(lengths) else 0):
        longer = int(np.searchsorted(-lengths, -position))
        at = starts[:longer] + position
        found, code = np.unique(before[:longer] * kinds + alone[at], return_inverse=True)
        codes[at] = before[:longer] = known + code
        known += len(found)
    return dense_codes(codes)[0]


def leading_left(codes: Ints, first: Ints, offsets: Ints) -> Ints:
    """Return how many leading blocks of each request an earlier one has left, in any position; shape (requests,).

    [1 2 3] then [1 9 3]: the second finds 1.

    Args:
        codes: Dense codes in order of service, shape (references,).
        first: First place of each code in `codes`.
        offsets: Begin of each request and the end, shape (requests + 1,).
    """
    begin = np.repeat(offsets[:-1], np.diff(offsets))
    return leading_true(first[codes] < begin, offsets[1:])

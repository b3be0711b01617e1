"""Weighted inversions of a permutation: the one costly step of reuse distances, without a loop over requests."""

from __future__ import annotations

import numpy as np

from pipelines.capacity.requests import Ints


def weight_above_before(rank: Ints, weight: Ints) -> Ints:
    """Return for each i the sum of `weight[j]` over j < i with `rank[j] > rank[i]`; shape (N,).

    From the highest bit of a rank to the lowest, items with equal higher bits form a group, in their first order. Of a
    group, the items with the bit are above those without it; the latter get the weight of the former before them, and
    the group is split. That takes log2 N passes over the arrays.

    Args:
        rank: A permutation of 0 .. N - 1.
        weight: Whole numbers whose sum is below 2^63.

    >>> weight_above_before(np.array([2, 0, 1]), np.array([5, 1, 1])).tolist()
    [0, 5, 5]
    """
    count = len(rank)
    item, above = np.arange(count), np.zeros(count, np.int64)
    place = np.arange(count)
    for bit in reversed(range(max(count - 1, 0).bit_length())):
        start = (rank >> (bit + 1)) << (bit + 1)
        has_bit = (rank >> bit) & 1
        heavier, upper = _before(weight * has_bit), _before(has_bit)
        below = has_bit == 0
        above[item[below]] += (heavier[:-1] - heavier[start])[below]
        upper_in_group = upper[:-1] - upper[start]
        to = np.where(below, place - upper_in_group, start + (1 << bit) + upper_in_group)
        rank, weight, item = _moved(rank, to), _moved(weight, to), _moved(item, to)
    return above


def _before(values: Ints) -> Ints:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(values, dtype=np.int64)))


def _moved(values: Ints, to: Ints) -> Ints:
    moved = np.empty_like(values)
    moved[to] = values
    return moved

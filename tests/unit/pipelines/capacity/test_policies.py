"""The optimum against all choices, FIFO against a list, chunks, interleaving, reuse times, knees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.capacity.curve import Curve, curve_of
from pipelines.capacity.distances import hits_of
from pipelines.capacity.interleaving import interleaved
from pipelines.capacity.policies import fifo, is_chained, optimum
from pipelines.capacity.requests import in_chunks, in_order, requests_of_turns
from pipelines.capacity.reuse_times import Prefix, reuse_times, session_lifetimes, top_prefixes
from tests.unit.pipelines.capacity import brute_force as slow
from tests.unit.pipelines.capacity.test_distances import ENDLESS, PROMPTS

TREES = st.lists(
    st.tuples(st.lists(st.integers(0, 1), min_size=1, max_size=3), st.integers(0, 3)), min_size=1, max_size=5
)


@given(TREES, st.integers(0, 4))
def test_the_optimum_is_the_best_of_all_choices(rows: list[tuple[list[int], int]], capacity: int) -> None:
    """With chained identities no choice of kept blocks finds more, and one finds as many."""
    prompts = slow.chained(*map(list, zip(*rows, strict=True)))
    requests = slow.requests_of(prompts)
    found = optimum(requests, hits_of(requests), capacity)
    assert found.is_exact
    assert int(found.blocks.sum()) == slow.best(prompts, capacity)


@given(PROMPTS, st.integers(0, 10))
def test_the_optimum_is_never_below_lru(prompts: slow.Prompts, capacity: int) -> None:
    """Whatever the identities are, it bounds the hits of LRU and FIFO, in blocks and in tokens."""
    requests = slow.requests_of(prompts)
    hits = hits_of(requests)
    bound = optimum(requests, hits, capacity)
    for blocks in (hits.blocks_at(capacity, len(requests)), fifo(requests, capacity)):
        assert blocks.sum() <= bound.blocks.sum()
        assert requests.cached_tokens(blocks).sum() <= bound.most_tokens


@given(PROMPTS, st.integers(0, 10))
def test_fifo_is_that_of_a_list(prompts: slow.Prompts, capacity: int) -> None:
    """One counter says what a list of blocks in order of entry says."""
    assert fifo(slow.requests_of(prompts), capacity).tolist() == slow.fifo(prompts, capacity)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=9), st.integers(1, 12))
def test_sessions_take_turns(lengths: list[int], at_a_time: int) -> None:
    """The order of service is that of slots that are filled, served and emptied round by round."""
    session = np.repeat(np.arange(len(lengths)), lengths)
    turn = np.concatenate([np.arange(length) for length in lengths])
    order = interleaved(session, at_a_time)
    served = list(zip(session[order].tolist(), turn[order].tolist(), strict=True))
    assert served == slow.interleaved(lengths, at_a_time)


def test_the_worked_interleaving() -> None:
    """A1 B3 C1 D3 E1 F2, two at a time."""
    session = np.repeat(np.arange(6), [1, 3, 1, 3, 1, 2])
    assert "".join("ABCDEF"[one] for one in session[interleaved(session, 2)]) == "ABCBDBDEDFF"


def test_chunks_are_whole_or_not_there() -> None:
    """Chunks of two blocks: [1 2 3] leaves the chunk that ends in 2; the same again finds one chunk, 8 of 11 tokens."""
    requests = in_chunks(slow.requests_of([([1, 2, 3], 3), ([1, 2, 3], 3)]), 2)
    assert (requests.block_tokens, requests.ids.tolist() if requests.ids is not None else None) == (8, [2, 2])
    assert curve_of(requests, hits_of(requests)).endless_tokens == 8
    turns = requests_of_turns(*(np.array([one]) for one in (100, 30, 5, 0)), block_tokens=16)
    assert (in_chunks(turns, 2).left_blocks.tolist(), in_chunks(turns, 2).lookup_blocks.tolist()) == ([4], [3])


def test_chains_are_recognised() -> None:
    """An identity that follows two different ones stands for no prefix."""
    assert is_chained(slow.requests_of([([1, 2], 2), ([1, 3], 2), ([], 0), ([1, 2, 4], 3)]))
    assert not is_chained(slow.requests_of([([1, 2], 2), ([3, 2], 2)]))
    assert not is_chained(slow.requests_of([([1, 2], 2), ([2], 1)]))


def test_an_order_is_only_for_sessions() -> None:
    """A log's own order is not changed."""
    with pytest.raises(ValueError, match="order of their own"):
        in_order(slow.requests_of([([1], 1)]), np.array([0]))


def test_blocks_wait_for_their_next_use() -> None:
    """Requests every 10 s: block 1 waits 10 s, then blocks 1, 2 wait 10 and 20 s."""
    # [1 2] at 0, [1] at 10 (1 waited 10), [1 2] at 20 (1 waited 10, 2 waited 20): waits 10, 10, 20.
    requests = slow.requests_of([([1, 2], 2), ([1], 1), ([1, 2], 2)], sessions=[0, 1, 0])
    hits = hits_of(requests)
    assert reuse_times(requests, hits, np.ones(len(hits.request), bool)) == (10.0, 20.0, 20.0)
    assert reuse_times(requests, hits, hits.is_within) == (20.0, 20.0, 20.0)
    assert session_lifetimes(requests) == (0.0, 20.0, 20.0)
    assert reuse_times(requests, hits, np.zeros(len(hits.request), bool)) is None


def test_prefixes_that_bring_most() -> None:
    """What a request found counts for the prefix at which it stopped."""
    # Request 2 finds [1], 4 tokens capped at n - 1 = 6; 3 finds [1 2], capped at 6; 4 finds [1] again.
    requests = slow.requests_of([([1, 2], 2), ([1, 3], 2), ([1, 2], 2), ([1, 4], 2)])
    best = top_prefixes(requests, hits_of(requests))
    assert best == [Prefix(1, 1, 4, 2, 8), Prefix(2, 2, 8, 1, 6)]


@given(PROMPTS, st.floats(0, 1))
def test_the_size_for_a_hit_ratio_is_the_least(prompts: slow.Prompts, share: float) -> None:
    """At that capacity the ratio is reached, one block below it is not; None where no cache reaches it."""
    requests = slow.requests_of(prompts)
    curve = curve_of(requests, hits_of(requests))
    wanted = share * float(curve.hit_ratio(ENDLESS))
    size = curve.capacity_for(wanted)
    assert size is not None
    assert curve.hit_ratio(size) >= wanted - 1e-6
    assert size == 0 or curve.hit_ratio(size - 1) < wanted
    assert curve.capacity_for(float(curve.hit_ratio(ENDLESS)) + 0.5) is None


@given(PROMPTS, st.integers(1, 5), st.floats(0.01, 0.5))
def test_beyond_the_knee_a_step_never_brings_the_least_gain(prompts: slow.Prompts, step: int, gain: float) -> None:
    """From the knee on no step brings the gain, and it is the least such size."""
    requests = slow.requests_of(prompts)
    curve = curve_of(requests, hits_of(requests))
    sizes = np.arange(40)
    enough = (curve.tokens_at(sizes + step) - curve.tokens_at(sizes)) >= gain * curve.context_tokens
    assert curve.knee(step, gain) == (int(np.flatnonzero(enough)[-1]) + 1 if enough.any() else 0)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40))
def test_a_thinned_curve_is_near(rows: list[tuple[int, int, int]]) -> None:
    """No more than the tolerance off at any capacity, ends unchanged."""
    gaps, within, across = np.cumsum(np.concatenate((np.zeros((1, 3), np.int64), np.array(rows))), axis=0).T
    curve = Curve(gaps, within, across, 1, int(within[-1] + across[-1]) + 1, 16)
    thin = curve.thinned(3, 0.01)
    for name in ("within_tokens", "across_tokens"):
        near = np.interp(gaps, thin.capacity_blocks, getattr(thin, name))
        assert np.abs(near - getattr(curve, name)).max() <= 0.01 * curve.context_tokens
    assert (thin.endless_tokens, curve.thinned(100, 0.01)) == (curve.endless_tokens, curve)

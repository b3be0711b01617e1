"""Reuse distances against plain simulations, and the laws of a cache."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.capacity.curve import curve_of
from pipelines.capacity.distances import hits_of
from pipelines.capacity.inversions import weight_above_before
from pipelines.capacity.requests import requests_of_turns
from pipelines.capacity.tiers import tier_tokens
from tests.unit.pipelines.capacity import brute_force as slow

ENDLESS = 10**6
IDS = st.lists(st.integers(0, 9), max_size=6, unique=True)
PROMPTS = st.lists(IDS.flatmap(lambda ids: st.tuples(st.just(ids), st.integers(0, len(ids)))), min_size=1, max_size=14)
TURNS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(1, 9), st.integers(0, 9)), max_size=24)


@given(PROMPTS, st.integers(0, 12))
def test_hits_are_those_of_a_brute_force_lru(prompts: slow.Prompts, capacity: int) -> None:
    """Every request finds what a list that is reordered block by block finds, whatever the identities are."""
    requests = slow.requests_of(prompts)
    assert hits_of(requests).blocks_at(capacity, len(prompts)).tolist() == slow.lru(prompts, capacity)


@given(PROMPTS, st.integers(0, 12))
def test_requests_that_leave_as_a_whole(prompts: slow.Prompts, capacity: int) -> None:
    """Eviction by request finds what a simulation that drops whole requests finds."""
    found = hits_of(slow.requests_of(prompts), "request").blocks_at(capacity, len(prompts))
    assert found.tolist() == slow.lru_of_requests(prompts, capacity)


@given(PROMPTS, st.integers(0, 14))
def test_the_curve_is_the_sum_of_the_hits_at_every_capacity(prompts: slow.Prompts, warm_up: int) -> None:
    """The curve, split by session, equals min(B h, n - 1) summed, before and after a warm-up, at every capacity."""
    sessions = [number % 3 for number in range(len(prompts))]
    requests = slow.requests_of(prompts, sessions=sessions)
    hits = hits_of(requests)
    curve = curve_of(requests, hits, warm_up)
    for capacity in range(14):
        tokens = requests.cached_tokens(hits.blocks_at(capacity, len(prompts)))[warm_up:].sum()
        assert curve.tokens_at(capacity) == tokens
    assert curve.context_tokens == requests.context_tokens[warm_up:].sum()


@given(PROMPTS)
def test_a_larger_cache_never_hits_less(prompts: slow.Prompts) -> None:
    """Inclusion: what a cache of C blocks holds, one of C + 1 holds."""
    hits = hits_of(slow.requests_of(prompts))
    found = np.stack([hits.blocks_at(capacity, len(prompts)) for capacity in range(14)])
    assert (np.diff(found, axis=0) >= 0).all()


@given(PROMPTS, st.integers(0, 8), st.integers(0, 8), st.integers(0, 8))
def test_every_token_has_one_origin(prompts: slow.Prompts, gpu: int, dram: int, disk: int) -> None:
    """K_gpu + K_link + T_eff = n, and T_eff is at least 1; no cache computes all."""
    requests = slow.requests_of(prompts)
    hits = hits_of(requests)
    tokens = tier_tokens(requests, hits, (gpu, dram, disk))
    assert (tokens.gpu_tokens + tokens.k_link + tokens.computed_tokens == requests.context_tokens).all()
    assert (tokens.computed_tokens >= 1).all()
    assert (tier_tokens(requests, hits, (0, 0)).computed_tokens == requests.context_tokens).all()
    together = requests.cached_tokens(hits.blocks_at(gpu + dram + disk, len(requests)))
    assert (tokens.gpu_tokens + tokens.k_link == together).all()


@given(TURNS, st.integers(0, 12))
def test_sessions_without_identities_are_those_with_them(rows: list[tuple[int, int, int, int]], capacity: int) -> None:
    """A block that is (session, position) finds what the identity session x 100 + position finds, sizes falling too."""
    session, cached, prefill, output = (np.array(column, np.int64) for column in np.array(rows).reshape(-1, 4).T)
    requests = requests_of_turns(cached, prefill, output, session, block_tokens=4)
    pairs = zip(session, requests.left_blocks, requests.lookup_blocks, strict=True)
    prompts = [([int(one) * 100 + place for place in range(left)], int(looked)) for one, left, looked in pairs]
    found = hits_of(requests).blocks_at(capacity, len(requests))
    assert found.tolist() == slow.lru(prompts, capacity)


def test_a_worked_example() -> None:
    """Three prompts of blocks of 4 tokens; distances count the distinct blocks touched since."""
    # [1 2 3] leaves 3 2 1 touched in that order; [4 5] leaves 5 4; then [1 2 6]: after 1 came 4 and 5, so d(1) = 2,
    # d(2) = 3 (1 is younger too); 6 is new. n = 11: 2 blocks hit = 8 tokens, at capacities 3 and 4.
    requests = slow.requests_of([([1, 2, 3], 3), ([4, 5], 2), ([1, 2, 6], 3)])
    curve = curve_of(requests, hits_of(requests))
    assert curve.tokens_at(np.arange(6)).tolist() == [0, 0, 0, 4, 8, 8]
    assert curve.hit_ratio(ENDLESS) == 8 / (11 + 7 + 11)


def test_a_whole_prompt_found_leaves_one_token() -> None:
    """[1 2] twice, 7 tokens in blocks of 4: the second finds min(8, 7 - 1) = 6."""
    requests = slow.requests_of([([1, 2], 2), ([1, 2], 2)])
    curve = curve_of(requests, hits_of(requests))
    assert curve.tokens_at([0, 1, 2]).tolist() == [0, 4, 6]


def test_an_identity_twice_in_a_request_is_refused() -> None:
    """Readers reject such requests; a distance would not be defined."""
    with pytest.raises(ValueError, match="twice"):
        hits_of(slow.requests_of([([1, 2, 1], 3)]))


def test_no_request_gives_an_empty_curve() -> None:
    """Nothing served: hit ratio 0 at any size."""
    requests = requests_of_turns(*(np.zeros(0, np.int64) for _ in range(4)), block_tokens=16)
    curve = curve_of(requests, hits_of(requests))
    assert (curve.requests, curve.endless_tokens, float(curve.hit_ratio(5))) == (0, 0, 0.0)


@given(st.permutations(range(12)), st.lists(st.integers(0, 9), min_size=12, max_size=12))
def test_weighted_inversions_are_those_of_two_loops(rank: list[int], weight: list[int]) -> None:
    """The sum over earlier items of higher rank, for lengths that are no power of two."""
    for count in (0, 1, 7, 12):
        places = np.argsort(np.argsort(rank[:count]))
        found = weight_above_before(places, np.array(weight[:count], np.int64))
        expected = [sum(weight[j] for j in range(i) if rank[j] > rank[i]) for i in range(count)]
        assert found.tolist() == expected

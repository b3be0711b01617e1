"""The engine: the design's worked cases, and a second engine on random cases."""

from __future__ import annotations

import numpy as np
import pytest
import slow_serving
from hypothesis import given
from hypothesis import strategies as st
from serving_cases import as_case, requests, run

from pipelines.serving.engine.requests import Limits
from pipelines.serving.engine.run import simulate
from pipelines.serving.engine.work import seconds_a_request
from pipelines.serving.line.ttft import line
from pipelines.serving.policies.spec import PolicySpec

# K 6, T 1, 3 s to load; K 5, T 2, 2 s; at 1 s T 3 without a cache.
THREE = [(0, 6, 1, 0, 3), (0, 5, 2, 0, 2), (1, 0, 3)]


def test_a_turn_above_the_budget_goes_in_chunks() -> None:
    """Case 3: 10 + 1 tokens at a budget of 4 are 4, 4, 2 + 1."""
    found = run([(0, 0, 10), (0, 0, 1)], token_budget=4)
    # 4 + 4 + 3 = 11 s
    assert found.ttft_s.tolist() == [11, 11]
    assert found.iteration_s[:, 3].tolist() == [4, 4, 3]


def test_decoding_ones_take_a_token_an_iteration() -> None:
    """Case 4: the first token is the first of O; both leave when the last is made."""
    found = run([(0, 0, 3, 3), (0, 0, 4, 2)], token_budget=4, decode="shared")
    # 3 + 1 tokens end at 4; 1 decoded + 3 at 8; 1 + 1 decoded at 10
    assert found.ttft_s.tolist() == [4, 8]
    assert found.left_s.tolist() == [10, 10]
    assert found.iteration_s[:, 3].tolist() == [4, 4, 2]


@pytest.mark.parametrize(
    ("pool", "loading", "policy", "ttft"),
    [
        # M is 7, 7, 3. fifo: the second waits until the first leaves at 4. Its load ends at 6, the third computes
        # until 7, and then it does: 9; blocking, both are in one iteration of 2 + 2 + 3 = 7 s from 4 on.
        (10, "async", "fifo", [4, 9, 6]),
        (10, "blocking", "fifo", [4, 11, 10]),
        # 10 / 8 = 1.25: of 7 / 1 and 7 / 2 the second is nearer.
        (10, "async", "fill", [10, 6, 3]),
        # Loads end at 3 and 5; the third computes from 1 to 4 and delays the first: 4 to 5; the second: 5 to 7.
        (100, "async", "fifo", [5, 7, 3]),
        # 3 + 2 s of loads and 3 tokens end at 8; the third: 8 to 11.
        (100, "blocking", "fifo", [8, 8, 10]),
    ],
)
def test_memory_and_link(pool: int, loading: str, policy: str, ttft: list[float]) -> None:
    """Cases 5 and 6: memory holds back, loads go beside the computing or before it."""
    assert run(THREE, policy, pool_tokens=pool, loading=loading).ttft_s.tolist() == ttft


def test_a_closed_loop_sends_the_next_when_one_leaves() -> None:
    """Case 7: loads end at 2, 4, 6, 8, 10, each computes 1 s; the fourth comes at 3, the fifth at 5."""
    found = run([(0, 9, 1, 0, 2)] * 5, closed=3)
    assert found.ttft_s.tolist() == [3, 5, 7, 9 - 3, 11 - 5]
    assert found.arrival_s.tolist() == [0, 0, 0, 3, 5]


def test_hold_keeps_the_memory() -> None:
    """Case 8: the first token at 2, (5 - 1) x 0.5 s more of 7 tokens, then the second: 4 + 2."""
    found = run([(0, 0, 2, 5), (0, 0, 2, 1)], pool_tokens=8, decode="hold", hold_s=0.5)
    assert found.ttft_s.tolist() == [2, 6]
    assert found.left_s.tolist() == [4, 6]


def test_a_turn_above_the_pool_is_a_reject() -> None:
    """M = 5 + 3 + 3 is above 10: it has no times, and in a closed loop the next comes at once."""
    rows = [(0, 0, 2), (0, 5, 3, 3), (0, 0, 1)]
    for closed in (None, 1):
        found = run(rows, pool_tokens=10, closed=closed)
        assert found.is_rejected.tolist() == [False, True, False]
        assert np.isnan(found.ttft_s).tolist() == [False, True, False]
    assert found.arrival_s.tolist() == [0, 2, 2]


def test_the_parts_of_a_wait_add_up() -> None:
    """Case 5: the second waits 4 s for memory, loads 2 s, waits 1 s for the accelerator and computes 2 s."""
    found = run(THREE, pool_tokens=10)
    # memory 0 to 4, load 4 to 6, the third computes until 7, compute 7 to 9; the third waits for memory from 1 to 4
    assert found.memory_s.tolist() == [0, 4, 3]
    assert (found.load_end_s - found.load_start_s).tolist() == [3, 2, 0]
    assert (found.compute_start_s - found.load_end_s).tolist() == [0, 1, 0]
    assert (found.first_token_s - found.compute_start_s).tolist() == [1, 2, 3]
    # from 0, when the second does not fit, until the third joins it at 4
    assert found.memory_wait_s == 4


COMPUTE = st.lists(st.tuples(st.floats(0, 5), st.floats(0, 3), st.floats(0.125, 3)), min_size=1, max_size=30)


@given(COMPUTE, st.sampled_from(["async", "blocking"]))
def test_one_at_a_time_is_one_station(rows: list[tuple[float, float, float]], loading: str) -> None:
    """With max_seqs 1 a request holds link and accelerator for x + c, as the line does with x = 0 and c = x + c."""
    gaps, load, compute = (np.array(column) for column in zip(*rows, strict=True))
    arrival = np.cumsum(gaps)
    asked = requests([(a, 1, 1, 0, x) for a, x in zip(arrival, load, strict=True)])
    limits = Limits(max_seqs=1, loading=loading)
    found = simulate(asked, seconds_a_request(compute, asked.new_tokens), limits, PolicySpec())
    np.testing.assert_allclose(found.ttft_s, line(arrival, load * 0, load + compute).ttft_s, atol=1e-9)


ROW = st.tuples(
    st.sampled_from([0, 0, 0.5, 1, 2, 5]),
    st.integers(0, 12),
    st.integers(1, 12),
    st.integers(0, 5),
    st.sampled_from([0, 0.5, 1, 3]),
    st.integers(0, 3),
)


@st.composite
def cases(draw: st.DrawFn) -> slow_serving.Case:
    """Draw small cases with binary fractions, so that both engines are exact and ties are frequent."""
    now, rows = 0.0, []
    for gap, *rest in draw(st.lists(ROW, min_size=1, max_size=80)):
        now += gap
        rows.append((now, *rest))
    return slow_serving.Case(
        rows,
        pool=draw(st.sampled_from([16, 24, 40, 10**6])),
        budget=draw(st.sampled_from([1, 2, 3, 8, 50])),
        max_seqs=draw(st.sampled_from([1, 2, 5, 1024])),
        loading=draw(st.sampled_from(["async", "blocking"])),
        decode=draw(st.sampled_from(["none", "shared", "hold"])),
        hold=draw(st.sampled_from([0, 0.5, 1])),
        closed=draw(st.sampled_from([None, None, 1, 3])),
        policy=draw(st.sampled_from(["fifo", "fill", "fair"])),
        age=draw(st.sampled_from([None, None, 0, 2, 6])),
        limit=draw(st.sampled_from([None, None, (1, 0.5), (2, 1), (3, 5)])),
        weights=draw(st.sampled_from([(), (1, 2), (3, 1, 0.5, 1)])),
        cost=draw(st.sampled_from(slow_serving.COSTS)),
    )


@given(cases())
def test_a_second_engine_agrees(case: slow_serving.Case) -> None:
    """Every instant, every reject and the tokens of every iteration are those of a slow engine."""
    slow, fast = slow_serving.run(case), as_case(case)
    for name, times in (("arrival", fast.arrival_s), ("admitted", fast.admitted_s), ("first", fast.first_token_s)):
        expected = np.array([getattr(one, name) for one in slow], dtype=np.float64)
        np.testing.assert_array_equal(times, expected, err_msg=name)
    np.testing.assert_array_equal(fast.left_s, np.array([one.left for one in slow], dtype=np.float64))
    assert fast.is_rejected.tolist() == [one.state == "reject" for one in slow]
    assert fast.iteration_s[:, 3].tolist() == case.trace


@given(cases())
def test_memory_is_never_above_the_pool_and_all_that_fit_leave(case: slow_serving.Case) -> None:
    """At each admission what is held is within the pool; every accepted request leaves."""
    found = as_case(case)
    held = np.array([k + t + o for _, k, t, o, *_ in case.rows])
    assert np.isfinite(found.left_s[~found.is_rejected]).all()
    for at in found.admitted_s[~found.is_rejected]:
        assert held[(found.admitted_s <= at) & (found.left_s > at)].sum() <= case.pool
    assert (found.iteration_s[:, 3] <= case.budget).all()

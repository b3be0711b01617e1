"""Policies: the example of figure 8, ageing, fairness, admission, and how they are written."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving_cases import run

from pipelines.serving.engine.work import seconds_an_iteration
from pipelines.serving.policies.orders import Nearest
from pipelines.serving.policies.spec import PolicySpec, parse_policy
from warehouse.errors import ErrorCode, UsageError

FIGURE_8 = [(0, 5, 1), (0, 4, 2), (0, 3, 3), (0, 1, 2), (0, 1, 2)]
# Two turns of 7 tokens, then a steady stream of turns of 3 that always fit.
STREAM = [(0, 6, 1), (0, 5, 2), *((i, 0, 3) for i in range(1, 6))]


@pytest.mark.parametrize(
    ("policy", "tokens", "mean"),
    [
        # AB, CD, E: first tokens at 1 1 2 2 3
        ("fifo", [3, 5, 2], 9 / 5),
        # 12 / 5 names C (6 / 3), 6 / 2 names B (6 / 2); then D (3 / 2), E, and A in what is left: 2 1 1 2 2
        ("fill", [5, 5], 8 / 5),
    ],
)
def test_figure_8(policy: str, tokens: list[float], mean: float) -> None:
    """Pool 12, budget 5, a second an iteration: fill needs two iterations where fifo needs three."""
    found = run(FIGURE_8, policy, work=seconds_an_iteration(5), pool_tokens=12, token_budget=5)
    assert found.iteration_s[:, 3].tolist() == tokens
    assert found.ttft_s.mean() == pytest.approx(mean)


@pytest.mark.parametrize(("policy", "admitted_s"), [("fill", 17), ("fill+age:6", 8)])
def test_ageing_ends_starvation(policy: str, admitted_s: float) -> None:
    """The first turn is passed by the stream until 17; with 6 s of ageing it is next when memory is free at 8."""
    found = run(STREAM, policy, pool_tokens=10, token_budget=3)
    assert found.admitted_s[0] == admitted_s


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(1, 9)), min_size=2, max_size=60),
    st.sampled_from(["fill", "fair", "fill+limit:1:1"]),
    st.sampled_from([0, 2, 10]),
)
def test_nobody_passes_one_that_came_much_earlier(rows: list[tuple[int, int, int]], policy: str, age: int) -> None:
    """Under age:S a request is never admitted before one that came over S earlier."""
    arrival = np.cumsum([gap for gap, _, _ in rows]).astype(float)
    asked = [(a, k, t, 0, 0, k > t) for a, (_, k, t) in zip(arrival, rows, strict=True)]
    found = run(asked, f"{policy}+age:{age}", pool_tokens=20, token_budget=4)
    for early, late in np.argwhere(arrival[None, :] - arrival[:, None] > age):
        assert found.admitted_s[early] <= found.admitted_s[late]


def test_fair_gives_each_class_its_share() -> None:
    """Class 0 sends three of M 4 at once, class 1 one: its tag 0 is before the tags 4 and 8 of the others."""
    rows = [(0, 0, 4), (0, 0, 4), (0, 0, 4), (0, 0, 4, 0, 0, 1)]
    found = run(rows, "fair", pool_tokens=4, token_budget=4)
    # tags 0 4 8 and 0: rows 0 3 1 2
    assert np.argsort(found.admitted_s).tolist() == [0, 3, 1, 2]
    heavy = run(rows, "fair+weights:4:1", pool_tokens=4, token_budget=4)
    # tags 0 1 2 and 0
    assert np.argsort(heavy.admitted_s).tolist() == [0, 3, 1, 2]


def test_limit_lets_others_pass() -> None:
    """At most one with K / T above 2 holds memory: the second waits for the first to leave, the third does not."""
    rows = [(0, 6, 2), (0, 6, 2), (0, 1, 2)]
    found = run(rows, "fifo+limit:1:2", decode="hold", hold_s=1.0)
    assert found.admitted_s.tolist() == [0, 4, 0]


def test_fill_sees_the_64_oldest() -> None:
    """The 65th would fit best; it is not seen while 64 older ones wait."""
    rows = [(0, 9, 1)] * 64 + [(0, 0, 8)]
    found = run(rows, "fill", pool_tokens=10, token_budget=8)
    assert found.admitted_s[64] > 0
    assert run(rows[1:], "fill", pool_tokens=10, token_budget=8).admitted_s[63] == 0


def test_fill_does_not_look_at_all() -> None:
    """Of 64 that fit it looks at the nearest of each side; where the smallest does not fit, at none."""
    held = list(range(1, 65))
    order = Nearest(held, [float(m) for m in held])
    for row in range(64):
        order.add(row)
    # target 64 / 2 = 32: row 31 has M / T = 32
    assert order.best(64, 2) == (0.0, 31)
    assert order.looked_at <= 3
    order.remove(0)
    assert order.best(1, 1) is None
    assert order.looked_at <= 3


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("fifo", PolicySpec("fifo")),
        ("FILL+age:6", PolicySpec("fill", age_s=6)),
        ("fair:session+limit:2:30", PolicySpec("fair", by="session", limit=2, limit_kappa=30)),
        ("fair+weights:1:3", PolicySpec("fair", weights=(1, 3))),
    ],
)
def test_policies_as_written(text: str, spec: PolicySpec) -> None:
    """A policy and its additions in one word."""
    assert parse_policy(text) == spec


@pytest.mark.parametrize(
    "text",
    [
        "",
        "lifo",
        "fifo:session",
        "fair:model",
        "fill+age",
        "fill+age:-1",
        "fill+age:x",
        "fill+age:nan",
        "fifo+limit:0:3",
        "fifo+limit:1.5:3",
        "fifo+limit:2",
        "fill+weights:1",
        "fair+weights:0",
        "fair+weights:",
    ],
)
def test_policies_that_are_none(text: str) -> None:
    """Each is one line."""
    with pytest.raises(UsageError) as refused:
        parse_policy(text)
    assert refused.value.code == ErrorCode.USAGE

"""Routing: the worked example, its laws, and the threshold of two machines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.serving.fleet.classes import classes_of
from pipelines.serving.fleet.prices import pairs
from pipelines.serving.fleet.routing import Fleet, cheapest, threshold
from warehouse.errors import ErrorCode, KappaError, UsageError

# llama-3.1-70b at bf16: 2 x 70,553,706,496 FLOP and 327,680 bytes a token.
COMPUTE_TOKEN_S = 2 * 70_553_706_496 / 544.225e12
LOAD_TOKEN_S = (327_680 / 15e9, 327_680 / 375e9)
CACHED, NEW = np.array([0, 10_000, 50_000]), np.array([2000, 500, 100])


def fleet(loading: str = "blocking", hours: tuple[float, float] = (np.inf, np.inf)) -> Fleet:
    """Return 1,000 turns of each of three kinds on p, 15 GB/s and 2 USD, and q, 375 GB/s and 6 USD."""
    load = CACHED[:, None] * np.array(LOAD_TOKEN_S)
    compute = np.repeat(NEW[:, None] * COMPUTE_TOKEN_S, 2, axis=1)
    return Fleet(("p", "q"), np.array([2.0, 6.0]), np.array(hours), np.full(3, 1000.0), load, compute, loading, 1.0)


def test_the_worked_example() -> None:
    """The third kind goes to q: kappa 500 is above 26.97, 20 and 0 are not."""
    found = cheapest(fleet())
    assert found.share.tolist() == [[1, 0], [1, 0], [0, 1]]
    # (2000 + 500) x 0.25928 ms + 10,000 x 21.845 us = 0.86666 s on p, 100 x 0.25928 ms + 50,000 x 0.8738 us = 0.069619
    # s on q, a thousand times each: 2 x 866.66 / 3600 + 6 x 69.619 / 3600
    assert found.usd == pytest.approx(0.597507, rel=1e-5)
    assert (found.best_single, found.usd_best_single) == ("p", pytest.approx(1.102695, rel=1e-5))
    alone_q = cheapest(replace(fleet(), hours=np.array([0.0, np.inf])))
    assert alone_q.usd == pytest.approx(1.210934, rel=1e-5)
    assert cheapest(fleet("async")).usd == pytest.approx(0.403989, rel=1e-5)
    rule = threshold(("p", "q"), (2, 6), LOAD_TOKEN_S, (COMPUTE_TOKEN_S, COMPUTE_TOKEN_S))
    assert rule is not None
    assert (rule.above, rule.below) == ("q", "p")
    assert rule.kappa == pytest.approx(26.97, abs=0.01)


def test_too_few_hours_split_one_class() -> None:
    """With q for 0.01 h, 36 s carry 36 / 69.619 = 0.517 of the third kind; an hour more saves 26.12 USD."""
    found = cheapest(fleet(hours=(np.inf, 0.01)))
    assert found.share[2].tolist() == [pytest.approx(1 - 0.517, abs=1e-3), pytest.approx(0.517, abs=1e-3)]
    assert found.usd == pytest.approx(0.841462, rel=1e-5)
    assert found.shadow_usd_per_hour.tolist() == [0, pytest.approx(26.12, abs=0.01)]
    # With its shadow price q costs the same as p for the class that is split: kappa* = 500.
    rule = threshold(("p", "q"), (2, 6 + found.shadow_usd_per_hour[1]), LOAD_TOKEN_S, (COMPUTE_TOKEN_S,) * 2)
    assert rule is not None
    assert rule.kappa == pytest.approx(500, rel=1e-6)


def test_hours_that_carry_nothing() -> None:
    """One line, with its code."""
    with pytest.raises(KappaError) as refused:
        cheapest(fleet(hours=(0.01, 0.01)))
    assert refused.value.code == ErrorCode.NOTHING_FITS


TURNS = st.lists(st.tuples(st.integers(0, 100_000), st.integers(1, 5000)), min_size=1, max_size=12)


@given(TURNS, st.tuples(st.floats(0.5, 20), st.floats(0.5, 20)), st.tuples(st.floats(5, 500), st.floats(5, 500)))
def test_laws_of_routing(rows: list[tuple[int, int]], usd: tuple[float, float], gb_per_s: tuple[float, float]) -> None:
    """Every class is served; nothing is cheaper than the optimum; async never costs more; kappa* separates."""
    cached, new = (np.array(column) for column in zip(*rows, strict=True))
    rate = 327_680 / 1e9 / np.array(gb_per_s)
    two = Fleet(
        ("p", "q"), np.array(usd), np.full(2, np.inf), np.ones(len(rows)),
        cached[:, None] * rate, np.repeat(new[:, None] * COMPUTE_TOKEN_S, 2, axis=1), "blocking",
    )  # fmt: skip
    found = cheapest(two)
    np.testing.assert_allclose(found.share.sum(axis=1), 1)
    for other in (found.usd_best_single, found.usd_round_robin):
        assert other is not None
        assert found.usd <= other * (1 + 1e-6)
    assert cheapest(replace(two, loading="async")).usd <= found.usd * (1 + 1e-6)
    rule = threshold(("p", "q"), usd, rate, (COMPUTE_TOKEN_S,) * 2)
    if rule is not None:
        goes = np.where(cached / new > rule.kappa, ("p", "q").index(rule.above), ("p", "q").index(rule.below))
        seconds = (two.load_s + two.compute_s)[np.arange(len(rows)), goes]
        by_rule = (seconds * np.array(usd)[goes]).sum() / 3600 / two.use
        assert by_rule == pytest.approx(found.usd, rel=1e-6)


def test_classes_hold_every_turn() -> None:
    """Bins begin at 0 1 256 1k 4k 16k 64k and 1 16 64 256 1k 4k; means are over the turns of a class."""
    found = classes_of(np.array([0, 0, 256, 70_000]), np.array([15, 16, 4096, 1]))
    assert found.cached_from.tolist() == [0, 0, 256, 65_536]
    assert found.new_from.tolist() == [1, 16, 4096, 1]
    assert found.turns.sum() == 4
    # 1 and 3 fall into one class: mean 2
    same = classes_of(np.array([300, 400]), np.array([20, 30]))
    assert same.means(np.array([1.0, 3.0])).tolist() == [2]


@pytest.mark.parametrize(
    "text",
    ["h100-sxm", "h100-sxm=0", "h100-sxm=-1", "h100-sxm=nan", "h100-sxm=inf", "h100-sxm=1e308", "h100-sxm=1e-308"],
)
def test_prices_that_are_none(text: str) -> None:
    """A price is a number of dollars that a machine may cost; a fleet of infinite cost has no best routing."""
    assert pairs(["h100-sxm=2.5"], "--price", ["h100-sxm"]) == {"h100-sxm": 2.5}
    with pytest.raises(UsageError) as refused:
        pairs([text], "--price", ["h100-sxm"])
    assert refused.value.code == ErrorCode.USAGE

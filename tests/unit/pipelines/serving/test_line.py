"""The closed-form line against hand-worked cases, a loop, and the textbook's queues."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pipelines.serving.line.johnson import johnson_order
from pipelines.serving.line.ttft import line

Floats = npt.NDArray[np.float64]
ARRIVAL = np.array([0.0, 1, 2, 3, 10])
LOAD = np.array([2.0, 2, 1, 4, 1])
COMPUTE = np.array([3.0, 1, 2, 1, 5])
TIMES = st.lists(st.tuples(*[st.floats(0, 100)] * 3), min_size=1, max_size=40)


def test_worked_by_hand() -> None:
    """Case 1: L = 2 4 5 9 11, D = 5 6 8 10 16."""
    found = line(ARRIVAL, LOAD, COMPUTE)
    assert found.load_end_s.tolist() == [2, 4, 5, 9, 11]
    assert found.first_token_s.tolist() == [5, 6, 8, 10, 16]
    assert found.ttft_s.tolist() == [5, 5, 6, 7, 6]


def test_layer_wise_by_hand() -> None:
    """Case 2, 4 layers: the first is max(2 + 3/4, 2/4 + 3) = 3.5; no request ends later than without layers."""
    assert line(ARRIVAL, LOAD, COMPUTE, 4).ttft_s.tolist() == [3.5, 3.5, 4.5, 6.25, 5.25]


def test_alone_it_is_the_longer_and_a_layer_of_the_shorter() -> None:
    """At rate 0, x + c, and layer-wise max + min / n."""
    far = np.arange(5) * 1000.0
    np.testing.assert_allclose(line(far, LOAD, COMPUTE).ttft_s, LOAD + COMPUTE)
    alone = np.maximum(LOAD, COMPUTE) + np.minimum(LOAD, COMPUTE) / 4
    np.testing.assert_allclose(line(far, LOAD, COMPUTE, 4).ttft_s, alone)


@given(TIMES, st.integers(1, 80))
def test_the_recursion_agrees(rows: list[tuple[float, float, float]], layers: int) -> None:
    """The vectorised line is the recursion of the definition, one request after the other."""
    gaps, load, compute = (np.array(column) for column in zip(*rows, strict=True))
    arrival = np.cumsum(gaps)
    link = done = 0.0
    expected = []
    for a, x, c in zip(arrival, load, compute, strict=True):
        start = max(a, link)
        link = start + x
        done = max(link + c / layers, max(start + x / layers, done) + c)
        expected.append(done - a)
    np.testing.assert_allclose(line(arrival, load, compute, layers).ttft_s, expected, atol=1e-6)


def _interval(draw_ttft: list[float]) -> tuple[float, float]:
    """Return the 99 % t-interval of the mean over seeds."""
    mean = float(np.mean(draw_ttft))
    half = float(stats.t.ppf(0.995, len(draw_ttft) - 1) * np.std(draw_ttft, ddof=1) / len(draw_ttft) ** 0.5)
    return mean - half, mean + half


def _mean(seed: int, kind: str) -> float:
    """Return the mean TTFT of 100,000 requests at 0.7 a second, the first tenth not counted."""
    draw, size = np.random.default_rng(seed), 100_000
    arrival = draw.exponential(1 / 0.7, size).cumsum()
    load, compute = {
        "mm1": lambda: (draw.exponential(1, size), draw.exponential(0.8, size)),
        "md1": lambda: (np.full(size, 1.0), np.full(size, 0.8)),
        "pk": lambda: (np.zeros(size), np.where(draw.random(size) < 1 / 3, 2.0, 0.5)),
    }[kind]()
    return float(line(arrival, load, compute).ttft_s[size // 10 :].mean())


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        # M/M/1 of 1 and 1.25 a second in series (Burke): 1 / (1 - 0.7) + 1 / (1.25 - 0.7) = 5.152
        ("mm1", 1 / 0.3 + 1 / 0.55),
        # constant: x + c + rho m / (2 (1 - rho)) with m = 1, rho = 0.7: 1.8 + 0.7 / 0.6 = 2.967
        ("md1", 1 + 0.8 + 0.7 / (2 * 0.3)),
        # Pollaczek-Khinchine: lambda E[c^2] / (2 (1 - rho)) = 0.7 x 1.5 / 0.6 = 1.75, and c = 1
        ("pk", 0.7 * (0.25 * 2 / 3 + 4 / 3) / (2 * 0.3) + 1),
    ],
)
def test_the_textbook_s_queues(kind: str, expected: float) -> None:
    """The mean TTFT of 20 seeds has the closed form in its 99 % interval."""
    low, high = _interval([_mean(seed, kind) for seed in range(20)])
    assert low <= expected <= high


def _end(load: Floats, compute: Floats, order: tuple[int, ...] | npt.NDArray[np.intp]) -> float:
    places = np.array(order)
    return float(line(np.zeros(len(places)), load[places], compute[places]).first_token_s[-1])


def test_johnson_by_hand() -> None:
    """(4,5) (4,1) (30,4) (6,30) (2,3): the order 5 1 4 3 2 ends at 47, first come first served at 77."""
    load, compute = np.array([4.0, 4, 30, 6, 2]), np.array([5.0, 1, 4, 30, 3])
    order = johnson_order(load, compute)
    assert order.tolist() == [4, 0, 3, 2, 1]
    assert _end(load, compute, order) == 47
    assert _end(load, compute, np.arange(5)) == 77
    # It is not the order of the lowest mean TTFT: 30.2, where the best of all 120 has 24.6.
    means = {
        tuple(p): float(line(np.zeros(5), load[list(p)], compute[list(p)]).ttft_s.mean())
        for p in itertools.permutations(range(5))
    }
    assert means[tuple(order.tolist())] == pytest.approx(30.2)
    assert min(means.values()) == pytest.approx(24.6)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=5))
def test_johnson_is_the_best_order(rows: list[tuple[int, int]]) -> None:
    """No order of the backlog ends earlier."""
    load, compute = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    best = min(_end(load, compute, order) for order in itertools.permutations(range(len(rows))))
    assert _end(load, compute, johnson_order(load, compute)) == best


@pytest.mark.parametrize("seed", range(2))
def test_johnson_is_the_best_order_of_seven(seed: int) -> None:
    """5,040 orders of seven jobs."""
    draw = np.random.default_rng(seed)
    load, compute = draw.integers(0, 20, (2, 7)).astype(np.float64)
    best = min(_end(load, compute, order) for order in itertools.permutations(range(7)))
    assert _end(load, compute, johnson_order(load, compute)) == best


def test_one_station_ends_together_in_any_order() -> None:
    """Without loads the end of all is the sum of c."""
    compute = np.array([3.0, 1, 2])
    ends = {_end(compute * 0, compute, order) for order in itertools.permutations(range(3))}
    assert ends == {6.0}

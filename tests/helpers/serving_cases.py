"""Cases for the engine in the notation of the design: (a, K, T, O, x, class) without trailing zeros."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import slow_serving

from pipelines.serving.engine.requests import Floats, Limits, Outcome, Requests, Work
from pipelines.serving.engine.run import simulate
from pipelines.serving.engine.work import seconds_a_token, seconds_an_iteration
from pipelines.serving.policies.spec import PolicySpec, parse_policy


def requests(rows: Sequence[tuple[float, ...]], *, is_closed: bool = False) -> Requests:
    """Return requests from rows without trailing zeros."""
    filled = [(*row, *(0,) * (6 - len(row))) for row in rows]
    arrival, cached, new, output, load, group = (np.array(column) for column in zip(*filled, strict=True))
    arrives = None if is_closed else arrival.astype(np.float64)
    whole = [column.astype(np.int64) for column in (cached, new, output)]
    return Requests(arrives, *whole, load.astype(np.float64), group.astype(np.int64))


def run(
    rows: Sequence[tuple[float, ...]], policy: str = "fifo", *, work: Work | None = None, **limits: object
) -> Outcome:
    """Return the outcome of rows: pool 100, budget 8 and a second a token unless given."""
    asked = requests(rows, is_closed=limits.get("closed") is not None)
    given = {"pool_tokens": 100, "token_budget": 8} | limits
    return simulate(asked, work or seconds_a_token(asked.new_tokens), Limits(**given), parse_policy(policy))


def as_case(case: slow_serving.Case) -> Outcome:
    """Return what the fast engine makes of a case of the slow one."""
    asked = requests(case.rows, is_closed=case.closed is not None)
    limits = Limits(case.pool, case.budget, case.max_seqs, case.loading, case.decode, case.hold, case.closed)
    most, kappa = case.limit or (None, np.inf)
    policy = PolicySpec(case.policy, weights=case.weights, age_s=case.age, limit=most, limit_kappa=kappa)
    return simulate(asked, _work(case, asked), limits, policy)


def _work(case: slow_serving.Case, asked: Requests) -> Work:
    if case.cost == "token":
        return seconds_a_token(asked.new_tokens)
    if case.cost == "iteration":
        return seconds_an_iteration(len(case.rows))

    def flop(context: Any, n: Any) -> Any:  # noqa: ANN401 - numbers and arrays alike
        return n + (n * context + n * (n + 1) / 2) / 16

    def piece(row: int, done: int, n: int) -> float:
        return float(flop(float(asked.cached_tokens[row]) + done, n))

    def decode(contexts: Sequence[int], iterations: int) -> tuple[Floats, Floats]:
        context = np.array(contexts) + np.arange(iterations)[:, None]
        return flop(context, 1).sum(axis=1), context.sum(axis=1) / 4

    return Work(flop(asked.cached_tokens, asked.new_tokens), piece, decode, lambda n: 2 + n / 2)

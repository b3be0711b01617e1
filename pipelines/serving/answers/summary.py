"""The figures of one run: TTFT and its parts, shares of link, compute and pool, what limits, fairness, energy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from pipelines.serving.engine.requests import Floats, Limits, Outcome, Requests
from warehouse.formulas.serving_load import run_energy_j

Limiting: TypeAlias = Literal["link", "compute", "memory", "none"]
# A station that is busy for this share of the time limits; so does memory that is waited for in half of it.
BUSY_SHARE, WAITED_SHARE = 0.95, 0.5


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """What happened in one run; TTFT and its parts are of the turns after the first tenth, in seconds.

    Attributes:
        turns: Turns that were served.
        rejected_turns: Turns above the pool.
        ttft_mean_s: Mean TTFT, the sum of its five parts.
        memory_s: Mean wait for memory before admission.
        link_queue_s: Mean wait of a load for the link.
        load_s: Mean x.
        accelerator_queue_s: Mean wait for the accelerator: to be admitted while memory was free, or loaded.
        computing_s: Mean time from the first to the last iteration that computes it.
        link_busy_share: Share of the span in which the link loads.
        compute_busy_share: Share in which an iteration computes.
        flop_share: Share of the FLOP that the span could hold.
        pool_share: Mean share of the pool that is held; None for a pool without end.
        limit: What limits.
        iterations: Their number.
        tokens_per_iteration: Mean new tokens of an iteration.
        budget_share: The same over the token budget.
        longest_wait_s: Longest TTFT.
        bound_ttft_p90_s: p90 of turns with x > c; None without one.
        other_ttft_p90_s: p90 of the other turns; None without one.
        jain_index: Of (x + c) / TTFT.
        span_s: From the first arrival until all have left.
        compute_busy_s: Seconds in which iterations compute.
    """

    turns: int
    rejected_turns: int
    ttft_mean_s: float
    ttft_p50_s: float
    ttft_p90_s: float
    ttft_p99_s: float
    memory_s: float
    link_queue_s: float
    load_s: float
    accelerator_queue_s: float
    computing_s: float
    link_busy_share: float
    compute_busy_share: float
    flop_share: float
    pool_share: float | None
    limit: Limiting
    iterations: int
    tokens_per_iteration: float
    budget_share: float
    longest_wait_s: float
    bound_ttft_p90_s: float | None
    other_ttft_p90_s: float | None
    jain_index: float
    span_s: float
    compute_busy_s: float

    def energy_j(self, idle_w: float, busy_w: float) -> float:
        """Return the energy of the run of one GPU in joules."""
        return run_energy_j(idle_w, busy_w, self.span_s, self.compute_busy_s)


def summary(requests: Requests, compute_s: Floats, limits: Limits, outcome: Outcome) -> RunAnswer:
    """Return the figures of a run in which at least one turn was served.

    Args:
        requests: What was asked.
        compute_s: c of each alone, shape (requests,).
        limits: How the accelerator was run.
        outcome: What happened.
    """
    is_served = ~outcome.is_rejected
    is_counted = is_served & (np.arange(len(is_served)) >= len(is_served) // 10)
    is_counted = is_counted if is_counted.any() else is_served
    ttft = outcome.ttft_s[is_counted]
    alone = (requests.load_s + compute_s)[is_counted]
    is_bound = (requests.load_s > compute_s)[is_counted]
    p50, p90, p99 = (float(q) for q in np.quantile(ttft, (0.5, 0.9, 0.99)))
    tokens = outcome.iteration_s[:, 3]
    return RunAnswer(
        turns=int(is_served.sum()),
        rejected_turns=int(outcome.is_rejected.sum()),
        ttft_mean_s=float(ttft.mean()),
        ttft_p50_s=p50,
        ttft_p90_s=p90,
        ttft_p99_s=p99,
        **_parts(outcome, is_counted),
        **_shares(requests, limits, outcome, is_served),
        iterations=len(tokens),
        tokens_per_iteration=float(tokens.mean()),
        budget_share=float(tokens.mean()) / limits.token_budget,
        longest_wait_s=float(ttft.max()),
        bound_ttft_p90_s=float(np.quantile(ttft[is_bound], 0.9)) if is_bound.any() else None,
        other_ttft_p90_s=float(np.quantile(ttft[~is_bound], 0.9)) if not is_bound.all() else None,
        jain_index=jain_index(np.divide(alone, ttft, out=np.ones_like(ttft), where=ttft > 0)),
    )


def jain_index(shares: Floats) -> float:
    """Return Jain's index of fairness, (sum y)^2 / (n sum y^2): 1 where all are treated alike, 1 / n at worst.

    Source: R. Jain, D. Chiu, W. Hawe, DEC Research Report TR-301, 1984.

    >>> round(jain_index(np.array([1, 1, 0.5, 0.25])), 4)
    0.8176
    """
    # Equal shares can round to more than 1.
    return min(float(shares.sum() ** 2 / (len(shares) * (shares**2).sum())), 1.0)


def _parts(outcome: Outcome, is_counted: npt.NDArray[np.bool_]) -> dict[str, Any]:
    parts = {
        "memory_s": outcome.memory_s,
        "link_queue_s": outcome.load_start_s - outcome.admitted_s,
        "load_s": outcome.load_end_s - outcome.load_start_s,
        "accelerator_queue_s": outcome.compute_start_s
        - outcome.load_end_s
        + (outcome.admitted_s - outcome.arrival_s - outcome.memory_s),
        "computing_s": outcome.first_token_s - outcome.compute_start_s,
    }
    # Differences of instants can be below 0 by their last digit.
    return {name: max(float(seconds[is_counted].mean()), 0.0) for name, seconds in parts.items()}


def _shares(requests: Requests, limits: Limits, outcome: Outcome, is_served: npt.NDArray[np.bool_]) -> dict[str, Any]:
    span = float(outcome.left_s[is_served].max() - outcome.arrival_s[is_served].min())
    # Where nothing takes time, nothing is busy.
    whole = span or 1.0
    computing = float(outcome.iteration_s[:, 2].sum())
    link, busy = float(requests.load_s[is_served].sum()) / whole, computing / whole
    held = requests.held_tokens[is_served] * (outcome.left_s - outcome.admitted_s)[is_served]
    pool = None if limits.pool_tokens is None else float(held.sum()) / (limits.pool_tokens * whole)
    return {
        "link_busy_share": min(link, 1.0),
        "compute_busy_share": min(busy, 1.0),
        "flop_share": min(outcome.flop_s / whole, 1.0),
        "pool_share": None if pool is None else min(pool, 1.0),
        "limit": limiting(link, busy, outcome.memory_wait_s / whole),
        "span_s": span,
        "compute_busy_s": computing,
    }


def limiting(link_share: float, compute_share: float, memory_share: float) -> Limiting:
    """Return what limits: the busier of link and compute from 95 % on, else memory waited for half of the time.

    >>> limiting(0.96, 0.99, 1.0), limiting(0.5, 0.9, 0.6), limiting(0.5, 0.9, 0.4)
    ('compute', 'memory', 'none')
    """
    if max(link_share, compute_share) >= BUSY_SHARE:
        return "link" if link_share >= compute_share else "compute"
    return "memory" if memory_share >= WAITED_SHARE else "none"

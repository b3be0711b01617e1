"""The largest rate within a limit of TTFT, and intervals over seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np


def goodput_per_s(p90_s: Callable[[float], float], limit_s: float, start_per_s: float) -> float | None:
    """Return the largest rate at which p90 TTFT is within a limit, to 1 %; None where it is above it at any rate.

    By bisection of the rate's logarithm, each rate with the same draws. None means that even at a thousandth of the
    start the limit is passed; infinite that it is not passed at a million times the start.

    Args:
        p90_s: p90 of TTFT in seconds at a rate.
        limit_s: The limit.
        start_per_s: A rate to begin with, such as that of a busy machine.
    """
    low, high = start_per_s, start_per_s
    while p90_s(low) > limit_s:
        high, low = low, low / 4
        if low < start_per_s / 1000:
            return None
    while high <= low:
        if p90_s(high * 4) > limit_s:
            high *= 4
        else:
            low = high = high * 4
            if low > start_per_s * 1e6:
                return math.inf
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if p90_s(middle) <= limit_s else (low, middle)
    return low


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over seeds with its t-interval; both ends are None with one seed."""

    mean: float
    low: float | None
    high: float | None


def interval(values: Sequence[float], confidence: float = 0.99) -> Interval:
    """Return the mean of runs with different seeds, and its two-sided t-interval.

    Source: Student's t with n - 1 degrees of freedom.

    Args:
        values: One a seed.
        confidence: Of the interval.

    >>> interval([1.0, 2.0, 3.0], 0.9).low is not None
    True
    """
    mean = float(np.mean(values))
    if len(values) < 2:  # noqa: PLR2004 - one run says nothing of the spread
        return Interval(mean, None, None)
    from scipy import stats  # noqa: PLC0415 - slow to import

    half = float(stats.t.ppf((1 + confidence) / 2, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values)))
    return Interval(mean, mean - half, mean + half)

"""When requests come: at random with a rate, or as a log has it, stretched to a rate."""

from __future__ import annotations

import numpy as np

from pipelines.serving.engine.requests import Floats
from warehouse.errors import ErrorCode, KappaError, UsageError

# A request in 30 years, and more than any fleet serves: in between instants are exact to a microsecond.
LEAST_PER_S, MOST_PER_S = 1e-9, 1e9


def poisson(requests: int, rate_per_s: float, seed: int = 0) -> Floats:
    """Return arrivals in seconds, shape (requests,): gaps are exponential with mean 1 / rate.

    The same seed draws the same gaps at any rate, stretched.

    Args:
        requests: Their number.
        rate_per_s: Mean arrivals a second, from `LEAST_PER_S` to `MOST_PER_S`.
        seed: Of NumPy's default generator.

    Raises:
        UsageError: the rate is none.
    """
    check_rate(rate_per_s)
    return np.random.default_rng(seed).exponential(1 / rate_per_s, requests).cumsum()


def stretched(log_s: Floats, rate_per_s: float | None) -> Floats:
    """Return a log's arrivals from 0 on, stretched to the mean rate (n - 1) / span; None leaves them as they are.

    Args:
        log_s: Instants in seconds, shape (requests,), not falling.
        rate_per_s: Mean arrivals a second, above 0.

    Raises:
        UsageError: the rate is no positive number.
        KappaError: all arrive at once, so that they have no rate.

    >>> stretched(np.array([10.0, 11, 14]), 2.0).tolist()
    [0.0, 0.25, 1.0]
    """
    since: Floats = log_s - log_s[0]
    if rate_per_s is None:
        return since
    check_rate(rate_per_s)
    if since[-1] <= 0:
        raise KappaError(
            "the log has no rate",
            "all its requests arrive at once",
            "use --arrivals poisson",
            code=ErrorCode.NOTHING_FITS,
        )
    scaled: Floats = since * ((len(log_s) - 1) / rate_per_s / since[-1])
    return scaled


def check_rate(rate_per_s: float) -> None:
    """Raise UsageError where a rate is no number from `LEAST_PER_S` to `MOST_PER_S`."""
    if not LEAST_PER_S <= rate_per_s <= MOST_PER_S:
        raise UsageError(
            f"a rate of {rate_per_s:g} requests a second is not possible",
            f"requests come at {LEAST_PER_S:g} to {MOST_PER_S:g} a second",
            "give a rate between them",
            code=ErrorCode.USAGE,
        )

"""Work whose seconds are given: a second a token, an iteration, or any time a request."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipelines.serving.engine.requests import Floats, Ints, Work


def seconds_a_token(new_tokens: Ints, seconds: float = 1.0) -> Work:
    """Return work in which each token, new or generated, takes the same time.

    Args:
        new_tokens: T, shape (requests,).
        seconds: Of one token.
    """

    def decode(contexts: Sequence[int], iterations: int) -> tuple[Floats, Floats]:
        return np.full(iterations, len(contexts) * seconds), np.zeros(iterations)

    return Work(new_tokens.astype(np.float64) * seconds, lambda _row, _done, n: n * seconds, decode, lambda _n: 0.0)


def _no_time(_contexts: Sequence[int], iterations: int) -> tuple[Floats, Floats]:
    return np.zeros(iterations), np.zeros(iterations)


def seconds_an_iteration(requests: int, seconds: float = 1.0) -> Work:
    """Return work in which each iteration takes the same time, whatever it computes.

    Args:
        requests: Their number.
        seconds: Of one iteration.
    """
    return Work(np.zeros(requests), lambda *_: 0.0, _no_time, lambda _n: seconds)


def seconds_a_request(compute_s: Floats, new_tokens: Ints) -> Work:
    """Return work in which each request has its own time, in proportion to the part of T that is computed.

    Args:
        compute_s: c in seconds, shape (requests,).
        new_tokens: T, shape (requests,).
    """
    return Work(
        compute_s,
        lambda row, _done, n: float(compute_s[row]) * n / int(new_tokens[row]),
        _no_time,
        lambda _n: 0.0,
    )

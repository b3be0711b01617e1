"""TTFT of requests that pass the link and the accelerator one at a time, in the order of the arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LineTimes:
    """The instants of each request in the line, each of shape (requests,), in seconds.

    Attributes:
        load_start_s: When its load begins.
        load_end_s: When all of K is loaded.
        first_token_s: When all of T is computed.
        ttft_s: First token - arrival.
    """

    load_start_s: Floats
    load_end_s: Floats
    first_token_s: Floats
    ttft_s: Floats


def line(arrival_s: Floats, load_s: Floats, compute_s: Floats, layers: int = 1) -> LineTimes:
    """Return the times of requests that queue for the link and then for the accelerator, first come first served.

    s_i = max(a_i, L_(i-1)), L_i = s_i + x_i, and D_i = max(L_i, D_(i-1)) + c_i. With n layers, each loaded while the
    previous one computes, D_i = max(L_i + c_i / n, max(s_i + x_i / n, D_(i-1)) + c_i), which is the former for n = 1.
    Both recursions are a running sum and a running maximum.
    Source: Lindley's recursion for two stations in series; layer-wise loading as in CachedAttention, USENIX ATC 2024.

    Args:
        arrival_s: a in seconds, shape (requests,), not falling.
        load_s: x in seconds, shape (requests,), at least 0.
        compute_s: c in seconds, shape (requests,), at least 0.
        layers: n, at least 1.

    >>> line(np.array([0.0, 1.0]), np.array([2.0, 2.0]), np.array([3.0, 1.0])).ttft_s.tolist()
    [5.0, 5.0]
    """
    loaded = _after(arrival_s, load_s)
    start = loaded - load_s
    piece = 1.0 / layers
    ready = np.maximum(loaded - compute_s * (1.0 - piece), start + load_s * piece)
    first = _after(ready, compute_s)
    return LineTimes(start, loaded, first, first - arrival_s)


def _after(ready_s: Floats, service_s: Floats) -> Floats:
    """Return when each service ends at one station: E_i = max(ready_i, E_(i-1)) + service_i."""
    total = np.cumsum(service_s)
    ends: Floats = total + np.maximum.accumulate(ready_s - (total - service_s))
    return ends

"""Time to read the weights, a floor under a small prefill. Each function is also an SQL macro of the same name.

A source "derivation" is our own, given in one line.
"""

from __future__ import annotations

from warehouse.formulas.macros import formula
from warehouse.formulas.numbers import Value, greatest

# Cost model `full` assumes bf16 weights, as the FLOP rates do.
WEIGHT_BYTES = 2


@formula(
    "active_params::DOUBLE - experts_per_token * ((total_params::DOUBLE - active_params) / greatest(experts - "
    "experts_per_token, 1)) + experts * ((total_params::DOUBLE - active_params) / greatest(experts - "
    "experts_per_token, 1)) * (1 - pow(1 - experts_per_token::DOUBLE / experts, prefill_tokens))"
)
def touched_params(
    total_params: float, active_params: float, experts: float, experts_per_token: float, prefill_tokens: Value
) -> Value:
    """Return the expected number of parameters that T tokens read together, if each is routed to k of E experts.

    With e = (N - N_a) / (E - k) parameters per expert and N_a - k e shared ones it is
    N_a - k e + E e (1 - (1 - k / E)^T): N_a for one token, all N for many. A dense model has E = k = 1 and N = N_a.
    Routing is assumed uniform and independent, which overstates the floor if some experts are favoured.
    Source: derivation: no token of T is routed to a given expert with probability (1 - k / E)^T.

    >>> touched_params(100.0, 60.0, 4, 2, 1.0), touched_params(100.0, 60.0, 4, 2, 2.0), touched_params(7, 7, 1, 1, 5.0)
    (60.0, 80.0, 7.0)
    """
    unused: Value = (1 - experts_per_token / experts) ** prefill_tokens
    each: float = (total_params - active_params) / greatest(experts - experts_per_token, 1)
    return active_params - experts_per_token * each + experts * each * (1 - unused)


@formula("params::DOUBLE * weight_bytes / hbm_bytes_per_s")
def weights_s(params: Value, weight_bytes: float, hbm_bytes_per_s: float) -> Value:
    """Return the time, in seconds, to read the parameters once from the accelerator's memory: N x bytes / BW_hbm.

    Source: derivation: bytes over bytes per second.

    >>> weights_s(1e12, 2, 4e12)
    0.5
    """
    return params * weight_bytes / hbm_bytes_per_s


@formula("greatest(compute_s::DOUBLE, weights_s)")
def floored_compute_s(compute_s: Value, weights_s: Value) -> Value:
    """Return t_GPU in seconds: the longer of computing and reading the weights, which overlap.

    Source: the roofline model (Williams, Waterman, Patterson, CACM 2009): the slower of two overlapping streams.

    >>> floored_compute_s(0.1, 0.3)
    0.3
    """
    longer: Value = greatest(compute_s, weights_s)
    return longer

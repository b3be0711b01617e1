"""Weights: parameters of the experts, bytes in a served format, room left for the KV pool. Each is an SQL macro too.

A source "derivation" is our own, given in one line.
"""

from __future__ import annotations

from warehouse.formulas.macros import formula
from warehouse.formulas.numbers import Value, greatest


@formula("(total_params::DOUBLE - active_params) / greatest(experts::DOUBLE - experts_per_token, 1)")
def expert_params(total_params: float, active_params: float, experts: float, experts_per_token: float) -> float:
    """Return e, the parameters of one routed expert over all layers: (N - N_active) / (E - k).

    Source: derivation: a token passes k of the E experts, so N - N_active holds the other E - k.

    >>> expert_params(100, 60, 4, 2)
    20.0
    """
    each: float = (float(total_params) - active_params) / greatest(float(experts) - experts_per_token, 1)
    return each


@formula("experts::DOUBLE * expert_params * (1 - pow(1 - experts_per_token::DOUBLE / experts, tokens))")
def touched_expert_params(expert_params: float, experts: float, experts_per_token: float, tokens: Value) -> Value:
    """Return the expected parameters of the experts that n tokens read together: E e (1 - (1 - k / E)^n).

    Routing is taken as uniform and independent, so it is an upper bound where some experts are favoured.
    Source: derivation: no token of n is routed to a given expert with probability (1 - k / E)^n.

    >>> touched_expert_params(20.0, 4, 2, 1.0), touched_expert_params(20.0, 4, 2, 2.0)
    (40.0, 60.0)
    """
    unused: Value = (1 - float(experts_per_token) / experts) ** tokens
    return float(experts) * expert_params * (1 - unused)


@formula(
    "quantised_params::DOUBLE * quantised_weight_bytes + wide_params::DOUBLE * 2 + "
    "(total_params::DOUBLE - quantised_params - wide_params) * weight_bytes"
)
def stored_weight_bytes(
    total_params: float, quantised_params: float, wide_params: float, quantised_weight_bytes: float, weight_bytes: float
) -> float:
    """Return W, the bytes of all weights: the quantised part, the embedding and head in bf16, and the rest.

    Source: derivation: parameters times the bytes of each; embedding and head keep 2 bytes in fp8, MXFP4 and NVFP4.

    >>> stored_weight_bytes(100, 60, 10, 0.5, 1)
    80.0
    """
    rest = float(total_params) - quantised_params - wide_params
    return float(quantised_params) * quantised_weight_bytes + float(wide_params) * 2 + rest * weight_bytes


@formula("used_share::DOUBLE * hbm_bytes - reserved_bytes - weight_bytes_of_all::DOUBLE / gpus")
def pool_bytes(
    hbm_bytes: float, weight_bytes_of_all: float, gpus: float, used_share: float, reserved_bytes: float
) -> float:
    """Return the bytes of a GPU that are left for the KV pool: share x HBM - reserved - W / n; below 0 nothing fits.

    Source: derivation: vLLM's gpu_memory_utilization less activations, graphs and the GPU's part of the weights.

    >>> pool_bytes(100, 120, 2, 0.9, 5)
    25.0
    """
    return float(used_share) * hbm_bytes - reserved_bytes - float(weight_bytes_of_all) / gpus

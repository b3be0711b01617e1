"""Load, compute and TTFT as engines reach them, one pure function per formula. Each is also an SQL macro.

n is the number of new tokens of an iteration: those of one request, or N T of N equal ones. Which fractions of a peak
are sustained is in `fitted_numbers` of `warehouse/reference`. A source "derivation" is our own, given in one line.
"""

from __future__ import annotations

from warehouse.formulas.macros import formula
from warehouse.formulas.numbers import Value, greatest, least


@formula("block::DOUBLE * kv_bytes_per_token / pieces")
def copied_bytes(block: float, kv_bytes_per_token: float, pieces: float) -> float:
    """Return S, the bytes of one copy: a block of tokens over its pieces: 1 packed, 2 x layers a layer at a time.

    Source: derivation: vLLM from 0.12 on packs all layers of a block; before it K and V of each layer were apart.

    >>> copied_bytes(16, 131072, 64)
    32768.0
    """
    return float(block) * kv_bytes_per_token / pieces


@formula("copied_bytes::DOUBLE / (copy_latency_s + copied_bytes::DOUBLE / bytes_per_s)")
def sized_bytes_per_s(copied_bytes: float, copy_latency_s: float, bytes_per_s: float) -> float:
    """Return X(S), the rate in bytes/s of copies of S bytes each: S / (t_1 + S / X).

    Source: derivation: a fixed time a copy and a rate fit copies of 32 KiB to 4 MiB on MI300X within 8 %.

    >>> round(sized_bytes_per_s(32768, 14e-6, 54.4e9) / 1e9, 3)
    2.244
    """
    return float(copied_bytes) / (copy_latency_s + float(copied_bytes) / bytes_per_s)


@formula("least(bytes_per_s::DOUBLE, node_bytes_per_s::DOUBLE / loaders)")
def link_share_bytes_per_s(bytes_per_s: float, node_bytes_per_s: float, loaders: float) -> float:
    """Return the rate in bytes/s of each of n GPUs that load at once from one host: min(X, X_node / n).

    Source: derivation: each has its own link, and all share the memory or the switches of the node.

    >>> link_share_bytes_per_s(54e9, 15e9, 8) / 1e9
    1.875
    """
    share: float = least(float(bytes_per_s), float(node_bytes_per_s) / loaders)
    return share


@formula("greatest(flops::DOUBLE / flop_per_s, read_bytes::DOUBLE / hbm_bytes_per_s)")
def roofline_s(flops: Value, flop_per_s: float, read_bytes: Value, hbm_bytes_per_s: float) -> Value:
    """Return the seconds of a part of prefill: the longer of computing it and reading its weights or its cache.

    Source: the roofline model (Williams, Waterman, Patterson, CACM 2009): the slower of two overlapping streams.

    >>> roofline_s(1e12, 1e14, 2e12, 1e13)
    0.2
    """
    longer: Value = greatest(flops / flop_per_s, read_bytes / hbm_bytes_per_s)
    return longer


@formula("2 * layers::DOUBLE * 4 * tokens * hidden_size * (gpus::DOUBLE - 1) / gpus / bytes_per_s")
def reduce_s(layers: float, tokens: Value, hidden_size: float, gpus: float, bytes_per_s: float) -> Value:
    """Return the seconds in which g GPUs add their parts: 2 layers x 4 n d_model (g - 1) / g over their rate.

    Source: derivation: two all-reduces a layer of n x d_model elements in bf16, each sent and received (ring).

    >>> reduce_s(2, 10.0, 8, 4, 480)
    2.0
    """
    return 2 * float(layers) * 4 * tokens * hidden_size * (float(gpus) - 1) / gpus / bytes_per_s


@formula("layers::DOUBLE * (layer_s::DOUBLE + node_layer_s)")
def launch_floor_s(layers: float, layer_s: float, node_layer_s: float) -> float:
    """Return the least seconds of one pass through the model: layers x (t_L + t_x); t_x is 0 within one node.

    Source: derivation: launching the kernels of a layer takes the host t_L, and t_x more where nodes have to meet.

    >>> launch_floor_s(48, 0.001, 0.0)
    0.048
    """
    return float(layers) * (float(layer_s) + node_layer_s)


@formula("greatest(compute_s::DOUBLE, floor_s) + tokens::DOUBLE * token_s")
def prefill_s(compute_s: Value, floor_s: float, tokens: Value, token_s: float) -> Value:
    """Return the seconds from the loaded cache to the first token: max(t_GPU, floor) + tokens x t_tok.

    The tokens are N (K + T): an engine's own work on a prompt (its blocks, its hashes) grows with all of it.
    Source: derivation: kernels and launches overlap, the engine's bookkeeping does not.

    >>> prefill_s(0.01, 0.04, 1000.0, 2e-6)
    0.042
    """
    longer: Value = greatest(compute_s, floor_s)
    return longer + tokens * float(token_s)


@formula("batch::DOUBLE * transfer_s / compute_s")
def batch_overhead(batch: float, transfer_s: Value, compute_s: Value) -> Value:
    """Return POH of an iteration of N equal requests, dimensionless: N t_load / t_GPU.

    Source: arXiv 2601.19910, analytical model: POH, with the loads of N requests over the same link.

    >>> batch_overhead(8, 0.5, 2.0)
    2.0
    """
    return float(batch) * transfer_s / compute_s

"""TTFT, bandwidth, break-even and energy of turns, one pure function per formula. Each is also an SQL macro.

A source "derivation" is our own, given in one line.
"""

from __future__ import annotations

import math

from warehouse.formulas.macros import formula
from warehouse.formulas.numbers import greatest, least


@formula("greatest(transfer_s::DOUBLE, compute_s) + least(transfer_s::DOUBLE, compute_s) / layers")
def layerwise_ttft_s(transfer_s: float, compute_s: float, layers: float) -> float:
    """Return the time to first token in seconds if each layer is loaded while the previous one computes.

    max(t_x, t_c) + min(t_x, t_c) / L: the longer time overlaps all but one layer of the shorter.
    Source: pipelined loading, CachedAttention, USENIX ATC 2024.

    >>> layerwise_ttft_s(8.0, 4.0, 4)
    9.0
    """
    first: float = least(transfer_s, compute_s) / layers
    longest: float = greatest(transfer_s, compute_s)
    return longest + first


@formula("new_tokens::DOUBLE * kv_bytes_per_token / to_host_bytes_per_s")
def write_back_s(new_tokens: float, kv_bytes_per_token: float, to_host_bytes_per_s: float) -> float:
    """Return the time to store the keys and values of new tokens in host memory, in seconds: n x B_kv / BW_to_host.

    New tokens are both prefilled and generated. The transfer runs in the opposite direction, so it delays a load only
    if both directions together exceed the duplex bandwidth of the link.
    Source: derivation: bytes over bytes per second.

    >>> write_back_s(100, 1e6, 1e9)
    0.1
    """
    return new_tokens * kv_bytes_per_token / to_host_bytes_per_s


@formula("least(to_host_bytes_per_s, greatest(duplex_bytes_per_s - to_device_bytes_per_s, duplex_bytes_per_s / 2))")
def write_back_bytes_per_s(
    to_host_bytes_per_s: float, to_device_bytes_per_s: float, duplex_bytes_per_s: float
) -> float:
    """Return the rate to host memory, in bytes/s, while loads cross the link the other way at their full rate.

    Both directions together give the duplex rate at most: what loads leave of it is for the way back, and no less than
    half, as neither direction comes first.
    Source: derivation: a sum that is shared; the sum is measured.

    >>> write_back_bytes_per_s(53.5e9, 57e9, 97.9e9) / 1e9, write_back_bytes_per_s(342e9, 360e9, 342e9) / 1e9
    (48.95, 171.0)
    """
    left: float = greatest(duplex_bytes_per_s - to_device_bytes_per_s, duplex_bytes_per_s / 2)
    rate: float = least(to_host_bytes_per_s, left)
    return rate


@formula(
    "1 / ((1 - tier_share::DOUBLE) / link_bytes_per_s + tier_share::DOUBLE / least(tier_bytes_per_s, link_bytes_per_s))"
)
def tiered_bytes_per_s(link_bytes_per_s: float, tier_bytes_per_s: float, tier_share: float) -> float:
    """Return the rate, in bytes/s, of a load of which `tier_share` (0 to 1) is in a slower tier (NVMe, remote).

    Bytes from the tier also cross the link, so they load at min(tier, link). The rate is the harmonic mean
    1 / ((1 - s) / BW_link + s / min(BW_tier, BW_link)).
    Source: derivation: the times of the two parts add up.

    >>> round(tiered_bytes_per_s(50e9, 10e9, 0.5) / 1e9, 3)
    16.667
    """
    slower: float = least(tier_bytes_per_s, link_bytes_per_s)
    return 1 / ((1 - tier_share) / link_bytes_per_s + tier_share / slower)


@formula("kv_bytes::DOUBLE / compute_s")
def needed_bytes_per_s(kv_bytes: float, compute_s: float) -> float:
    """Return the bandwidth at which loading takes as long as computing, in bytes/s: bytes / t_GPU.

    Source: derivation: t_PCIe = t_GPU, solved for BW.

    >>> needed_bytes_per_s(1e9, 0.1)
    10000000000.0
    """
    return kv_bytes / compute_s


@formula("CASE WHEN kv_bytes_per_request > 0 THEN bytes_per_s::DOUBLE / kv_bytes_per_request ELSE 'inf'::DOUBLE END")
def requests_per_s(bytes_per_s: float, kv_bytes_per_request: float) -> float:
    """Return the requests per second that a link carries: BW / bytes per request; infinite if nothing is loaded.

    Source: derivation: bytes per second over bytes.

    >>> requests_per_s(50e9, 2e9), requests_per_s(50e9, 0)
    (25.0, inf)
    """
    return bytes_per_s / kv_bytes_per_request if kv_bytes_per_request > 0 else math.inf


@formula("floor(pool_tokens::DOUBLE / context_tokens)")
def pool_requests(pool_tokens: float, context_tokens: float) -> float:
    """Return how many requests of `context_tokens` tokens a KV pool holds at once: floor(pool / context).

    Source: derivation: a request keeps the KV of its K + T and of what it generates until it ends.

    >>> pool_requests(18144, 8200), pool_requests(18144, 20000)
    (2.0, 0.0)
    """
    return float(math.floor(pool_tokens / context_tokens))


@formula("2 * layer_params::DOUBLE + flops_per_pair::DOUBLE * (cached_tokens + 1) / 2")
def recompute_flops_per_token(cached_tokens: float, layer_params: float, flops_per_pair: float) -> float:
    """Return FLOP per cached token to recompute K tokens instead of loading them: 2 N_layers + alpha (K + 1) / 2.

    Source: derivation: (F(K + T given 0) - F(T given K)) / K of full attention, the same for every T.

    >>> recompute_flops_per_token(9, 100, 4)
    220.0
    """
    return 2 * layer_params + flops_per_pair * (cached_tokens + 1) / 2


@formula("kv_bytes_per_token::DOUBLE * flop_per_s / recompute_flops_per_token")
def break_even_bytes_per_s(kv_bytes_per_token: float, recompute_flops_per_token: float, flop_per_s: float) -> float:
    """Return the bandwidth, in bytes/s, above which loading beats recomputing: B_kv C_eff / FLOP per cached token.

    Source: derivation: K B_kv / BW = K FLOP / C_eff, solved for BW.

    >>> break_even_bytes_per_s(1e5, 1e11, 5e14) / 1e6
    500.0
    """
    return kv_bytes_per_token * flop_per_s / recompute_flops_per_token


@formula(
    "greatest( 2 * (kv_bytes_per_token::DOUBLE * flop_per_s / bytes_per_s - 2 * layer_params::DOUBLE) / "
    "flops_per_pair - 1, 0 )"
)
def crossover_cached_tokens(
    kv_bytes_per_token: float, bytes_per_s: float, flop_per_s: float, layer_params: float, flops_per_pair: float
) -> float:
    """Return the K, in tokens, above which loading is faster than recomputing; 0 if loading is always faster.

    Source: derivation: 2 N_layers + alpha (K + 1) / 2 = B_kv C_eff / BW of full attention, solved for K.

    >>> crossover_cached_tokens(100, 10, 1000, 2000, 8)
    1499.0
    """
    flops = kv_bytes_per_token * flop_per_s / bytes_per_s
    tokens: float = greatest(2 * (flops - 2 * layer_params) / flops_per_pair - 1, 0)
    return tokens


@formula("(idle_w::DOUBLE * transfer_s + busy_w::DOUBLE * compute_s) * tensor_parallel")
def energy_j(idle_w: float, busy_w: float, transfer_s: float, compute_s: float, tensor_parallel: float) -> float:
    """Return the energy of a turn in joules, of all GPUs: idle power while loading, busy power while computing.

    The two powers are inputs, each of one GPU; each of the `tensor_parallel` GPUs draws them for the whole time.
    Source: derivation: power times time. That a loading GPU draws its idle power is read off the power traces of
    arXiv 2601.19910: 22 to 28 % of the TDP while memory bound.

    >>> energy_j(100, 700, 0.9, 0.1, 1), energy_j(100, 700, 0.9, 0.1, 8)
    (160.0, 1280.0)
    """
    return (idle_w * transfer_s + busy_w * compute_s) * tensor_parallel


@formula("(idle_w::DOUBLE * transfer_share + busy_w::DOUBLE * (1 - transfer_share)) * tensor_parallel")
def average_power_w(idle_w: float, busy_w: float, transfer_share: float, tensor_parallel: float) -> float:
    """Return the mean power of a turn in watts, of all GPUs: (idle x transfer share + busy x the rest) x GPUs.

    Source: derivation: the energy of a turn over its TTFT.

    >>> average_power_w(100, 700, 0.75, 1), average_power_w(100, 700, 0.75, 8)
    (250.0, 2000.0)
    """
    return (idle_w * transfer_share + busy_w * (1 - transfer_share)) * tensor_parallel

"""The formulae of kappa_ratio, kappa_crit and TTFT, one pure function each.

Each docstring gives units and source; "analytical model" is that section of arXiv 2601.19910.
Each is also an SQL macro of the same name; `attention`, `kv_bytes`, `weights`, `timing` and `serving` hold the others.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from warehouse.formulas.macros import formula
from warehouse.formulas.numbers import Value

Tokens = TypeVar("Tokens", int, npt.NDArray[np.int64])

ELEMENT_BYTES = {"bf16": 2, "fp8": 1}


@formula(
    "CASE WHEN prefill_tokens > 0 THEN cached_tokens / prefill_tokens ELSE error('prefill_tokens is not "
    "positive, a turn computes at least one token') END"
)
def kappa_ratio(cached_tokens: float, prefill_tokens: float) -> float:
    """Return K / T, dimensionless: cached tokens over new tokens of one turn.

    Source: arXiv 2601.19910, analytical model.

    Raises:
        ValueError: `prefill_tokens` is not positive; a server always computes at least one token.

    >>> kappa_ratio(10, 2)
    5.0
    """
    if prefill_tokens <= 0:
        raise ValueError(f"prefill_tokens is {prefill_tokens}, a turn computes at least one token")
    return cached_tokens / prefill_tokens


@formula(
    "{ 'cached_tokens': cached_tokens::BIGINT // block * block, 'prefill_tokens': cached_tokens::BIGINT + "
    "prefill_tokens - cached_tokens::BIGINT // block * block }"
)
def block_tokens(cached_tokens: Tokens, prefill_tokens: Tokens, block: int) -> tuple[Tokens, Tokens]:
    """Return (K_b, T_b) in tokens where only whole blocks are reused: K_b = b floor(K / b), T_b = K + T - K_b.

    Source: chunk granularity of LMCache (256) and block size of vLLM (16). Arrays of one shape give two of that shape.

    >>> block_tokens(100, 30, 16)
    (96, 34)
    """
    reused = cached_tokens // block * block
    return reused, cached_tokens + prefill_tokens - reused


@formula("layers::DOUBLE * kv_heads * (head_dim + v_head_dim) * element_bytes")
def gqa_kv_bytes_per_token(
    layers: float, kv_heads: float, head_dim: float, v_head_dim: float, element_bytes: float
) -> float:
    """Return bytes/token of a grouped-query cache: layers x kv_heads x (head_dim + v_head_dim) x element_bytes.

    Source: derivation: each layer stores one key and one value for each key-value head.

    >>> gqa_kv_bytes_per_token(80, 8, 128, 128, 2)
    327680
    """
    return layers * kv_heads * (head_dim + v_head_dim) * element_bytes


@formula("layers::DOUBLE * (kv_lora_rank + qk_rope_head_dim) * element_bytes")
def mla_kv_bytes_per_token(layers: float, kv_lora_rank: float, qk_rope_head_dim: float, element_bytes: float) -> float:
    """Return bytes/token of a multi-head latent cache: layers x (kv_lora_rank + qk_rope_head_dim) x element_bytes.

    Source: DeepSeek-V2, arXiv 2405.04434, section 2.1.

    >>> mla_kv_bytes_per_token(61, 512, 64, 2)
    70272
    """
    return layers * (kv_lora_rank + qk_rope_head_dim) * element_bytes


@formula("2 * active_params::DOUBLE")
def flops_per_token(active_params: float) -> float:
    """Return F_pfl in FLOP/token: 2 x active parameters (a multiplication and an addition each), without attention.

    Source: arXiv 2601.19910, analytical model: F_pfl = 2 N_active.
    """
    return 2 * active_params


@formula("flops_per_token::DOUBLE / kv_bytes_per_token")
def kappa_m(flops_per_token: float, kv_bytes_per_token: float) -> float:
    """Return F_pfl / B_kv in FLOP/byte: FLOP to compute a new token per byte to load for a cached one.

    Source: arXiv 2601.19910, analytical model.
    """
    return flops_per_token / kv_bytes_per_token


@formula("bytes_per_s::DOUBLE / flop_per_s")
def kappa_hw(bytes_per_s: float, flop_per_s: float) -> float:
    """Return BW / C_eff in byte/FLOP: bytes that the link transfers while the accelerator does one FLOP.

    Source: arXiv 2601.19910, analytical model.
    """
    return bytes_per_s / flop_per_s


@formula("kappa_m_flop_per_byte::DOUBLE * kappa_hw_byte_per_flop")
def kappa_crit(kappa_m_flop_per_byte: float, kappa_hw_byte_per_flop: float) -> float:
    """Return kappa_M x kappa_HW, dimensionless: the kappa_ratio at which loading K takes as long as computing T.

    Source: arXiv 2601.19910, analytical model.
    """
    return kappa_m_flop_per_byte * kappa_hw_byte_per_flop


@formula("(1 / tensor_parallel::DOUBLE) / greatest(1 / tensor_parallel::DOUBLE, 1 / kv_heads::DOUBLE)")
def tensor_parallel_factor(tensor_parallel: int, kv_heads: int) -> float:
    """Return the factor of kappa_crit, dimensionless, if `tensor_parallel` GPUs share each layer and its KV.

    Each GPU computes 1 / tp of the FLOP and loads max(1 / tp, 1 / kv_heads) of the bytes over its own link. A key-value
    head is not split but repeated; a latent cache (MLA) is repeated on every GPU, as with one head.
    Source: derivation: (1 / tp) / max(1 / tp, 1 / kv_heads) is the ratio of the two shares.

    >>> tensor_parallel_factor(8, 8), tensor_parallel_factor(8, 4), tensor_parallel_factor(8, 1)
    (1.0, 0.5, 0.125)
    """
    return (1 / tensor_parallel) / max(1 / tensor_parallel, 1 / kv_heads)


@formula("kappa_ratio::DOUBLE / kappa_crit")
def pcie_overhead(kappa_ratio: float, kappa_crit: float) -> float:
    """Return t_PCIe / t_GPU = kappa_ratio / kappa_crit, dimensionless; above 1 the turn is memory bound (`2n`).

    Source: arXiv 2601.19910, analytical model: POH.
    """
    return kappa_ratio / kappa_crit


@formula("pcie_overhead::DOUBLE / (1 + pcie_overhead)")
def transfer_share(pcie_overhead: float) -> float:
    """Return the transfer share of TTFT, 0 to 1: POH / (1 + POH).

    Source: derivation: t_PCIe / (t_PCIe + t_GPU), both divided by t_GPU.
    """
    return pcie_overhead / (1 + pcie_overhead)


@formula("cached_tokens::DOUBLE * kv_bytes_per_token / bytes_per_s")
def transfer_s(cached_tokens: Value, kv_bytes_per_token: float, bytes_per_s: float) -> Value:
    """Return t_PCIe in seconds: K x B_kv / BW.

    Source: arXiv 2601.19910, analytical model, first term of TTFT.
    """
    return cached_tokens * kv_bytes_per_token / bytes_per_s


@formula("prefill_tokens::DOUBLE * flops_per_token / flop_per_s")
def compute_s(prefill_tokens: Value, flops_per_token: float, flop_per_s: float) -> Value:
    """Return t_GPU in seconds under cost model `2n`: T x F_pfl / C_eff.

    Source: arXiv 2601.19910, analytical model, second term of TTFT.
    """
    return prefill_tokens * flops_per_token / flop_per_s


@formula("transfer_s::DOUBLE + compute_s")
def ttft_s(transfer_s: float, compute_s: float) -> float:
    """Return the time to first token in seconds, with compute after transfer: t_PCIe + t_GPU.

    Source: arXiv 2601.19910, analytical model.
    """
    return transfer_s + compute_s


@formula("pool_tokens::DOUBLE / (1 + kappa_ratio)")
def scheduled_tokens(pool_tokens: float, kappa_ratio: float) -> float:
    """Return T_sched, new tokens per iteration if the KV pool is the limit: pool_tokens / (1 + kappa_ratio).

    It equals T x pool_bytes / (B_kv x (K + T)) with pool_tokens = pool_bytes / B_kv.
    Source: arXiv 2601.19910, analytical model of the scheduler.
    """
    return pool_tokens / (1 + kappa_ratio)

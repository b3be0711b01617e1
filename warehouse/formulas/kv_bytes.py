"""Bytes of cached keys and values, one pure function per formula. Each is also an SQL macro of the same name.

A source "derivation" is our own, given in one line.
"""

from __future__ import annotations

from warehouse.formulas.macros import formula
from warehouse.formulas.numbers import Value, greatest, least

# Groups of 32 elements share a 16-bit scale and a 16-bit zero point. Source: the code of KIVI (arXiv 2402.02750), read
# 2026-11-29: github.com/jy-yuan/KIVI example.py@52f76152 (group_size 32, float16), quant/new_pack.py@150def81 (a scale
# and a minimum a group, 2, 4 or 8 bits; keys grouped along tokens, values along channels). The newest tokens, which it
# keeps in 16 bits (residual_length 32), are not counted: they are negligible against thousands of cached ones.
GROUP_ELEMENTS, GROUP_BYTES = 32, 4


@formula("bits::DOUBLE / 8 + group_bytes::DOUBLE / group_elements")
def quantised_element_bytes(bits: float, group_elements: float, group_bytes: float) -> float:
    """Return bytes of one quantised element with its share of scale and zero point: bits / 8 + bytes / elements.

    Source: group-wise quantisation, KIVI, arXiv 2402.02750, as in its code (see `GROUP_ELEMENTS`).

    >>> quantised_element_bytes(4, 32, 4)
    0.625
    """
    return bits / 8 + group_bytes / group_elements


# Bytes of one element by number format; fp8 has one scale per tensor, negligible per token.
KV_ELEMENT_BYTES = {
    "bf16": 2.0,
    "fp8": 1.0,
    "int8": quantised_element_bytes(8, GROUP_ELEMENTS, GROUP_BYTES),
    "int4": quantised_element_bytes(4, GROUP_ELEMENTS, GROUP_BYTES),
    # 16 elements of 4 bits share one scale of 8 bits.
    "nvfp4": quantised_element_bytes(4, 16, 1),
}


@formula("bf16_bytes::DOUBLE * element_bytes / 2")
def quantised_kv_bytes(bf16_bytes: Value, element_bytes: float) -> Value:
    """Return the bytes of a cache at another element size, from its bf16 size: bytes x element / 2.

    Source: derivation: a bf16 element has 2 bytes.

    >>> quantised_kv_bytes(327680.0, 0.625)
    102400.0
    """
    return bf16_bytes * element_bytes / 2


@formula("cached_tokens::DOUBLE * kv_bytes_per_token")
def cached_kv_bytes(cached_tokens: Value, kv_bytes_per_token: float) -> Value:
    """Return bytes to load if every cached token costs the same: K x B_kv.

    Source: arXiv 2601.19910, analytical model.
    """
    return cached_tokens * kv_bytes_per_token


@formula(
    "cached_tokens::DOUBLE * kv_bytes_per_token + least(cached_tokens, window_tokens)::DOUBLE * window_bytes_per_token"
)
def windowed_kv_bytes(
    cached_tokens: Value, kv_bytes_per_token: float, window_bytes_per_token: float, window_tokens: float
) -> Value:
    """Return bytes to load if some layers see a rolling window of W tokens: K x B_full + min(K, W) x B_window.

    Source: layers of both kinds in the config; a windowed layer never reads tokens outside its window.

    >>> windowed_kv_bytes(1000, 10, 3, 128)
    10384
    """
    held: Value = cached_tokens * kv_bytes_per_token + least(cached_tokens, window_tokens) * window_bytes_per_token
    return held


@formula("cached_tokens::DOUBLE * kv_bytes_per_token + cached_tokens::DOUBLE % chunk_tokens * chunk_bytes_per_token")
def chunked_kv_bytes(
    cached_tokens: Value, kv_bytes_per_token: float, chunk_bytes_per_token: float, chunk_tokens: float
) -> Value:
    """Return bytes to load if some layers see their own chunk of C tokens: K x B_full + (K mod C) x B_chunk.

    Source: chunked local layers of Llama 4: new tokens see the chunk that K ends in, and nothing before it.

    >>> chunked_kv_bytes(1000, 10, 3, 128)
    10312
    """
    return cached_tokens * kv_bytes_per_token + cached_tokens % chunk_tokens * chunk_bytes_per_token


@formula("cached_tokens::DOUBLE * kv_bytes_per_token + least(cached_tokens, 1)::DOUBLE * state_bytes")
def stateful_kv_bytes(cached_tokens: Value, kv_bytes_per_token: float, state_bytes: float) -> Value:
    """Return bytes to load if some layers keep a state of fixed size: K x B_full + state; 0 if K = 0.

    Source: linear attention; the state at the point of reuse has to be stored with the cache.

    >>> stateful_kv_bytes(1000, 10, 500), stateful_kv_bytes(0, 10, 500)
    (10500, 0)
    """
    held: Value = cached_tokens * kv_bytes_per_token + least(cached_tokens, 1) * state_bytes
    return held


@formula("greatest(1 / tensor_parallel::DOUBLE, 1 / kv_heads::DOUBLE)")
def kv_share_of_gpu(tensor_parallel: float, kv_heads: float) -> float:
    """Return the share of a token's bytes that each of `tensor_parallel` GPUs loads: max(1 / tp, 1 / kv_heads).

    A key-value head is repeated if GPUs outnumber heads; a latent (MLA) is on every GPU, as with one head. The state of
    linear attention has its own heads, which are more, and is split by those.
    Source: derivation: a GPU holds kv_heads / tp of the kv_heads heads, but never less than one.

    >>> kv_share_of_gpu(8, 8), kv_share_of_gpu(8, 4), kv_share_of_gpu(8, 1)
    (0.125, 0.25, 1.0)
    """
    share: float = greatest(1 / tensor_parallel, 1 / kv_heads)
    return share

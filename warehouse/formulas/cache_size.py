"""Sizes of a cache in blocks, tokens and bytes. Each function is also an SQL macro of the same name.

A source "derivation" is our own, given in one line.
"""

from __future__ import annotations

from warehouse.formulas.kv_bytes import KV_ELEMENT_BYTES
from warehouse.formulas.macros import formula
from warehouse.formulas.numbers import Value

_SIZES = " ".join(f"WHEN '{name}' THEN {size}::DOUBLE" for name, size in KV_ELEMENT_BYTES.items())


@formula(f"marginal_kv_bytes::DOUBLE * CASE kv_dtype {_SIZES} ELSE error('there is no kv_dtype ' || kv_dtype) END / 2")
def kv_token_bytes(marginal_kv_bytes: float, kv_dtype: str) -> float:
    """Return the bytes that one more cached token takes in a format, from those in bf16: bytes x element / 2.

    Windows and fixed states of a session are not counted.
    Source: derivation: a bf16 element has 2 bytes.

    >>> kv_token_bytes(327680, "fp8")
    163840.0
    """
    return marginal_kv_bytes * KV_ELEMENT_BYTES[kv_dtype] / 2


@formula("floor(bytes::DOUBLE / (block_tokens::DOUBLE * token_bytes))")
def blocks_in(bytes: Value, block_tokens: float, token_bytes: float) -> Value:  # noqa: A002 - the unit is the name
    """Return how many whole blocks fit into so many bytes: floor(bytes / (block x bytes of a token)).

    Source: derivation: a block is block x bytes of a token, and only whole blocks are kept.

    >>> blocks_in(1e9, 16, 131072.0)
    476.0
    """
    blocks: Value = bytes / (block_tokens * token_bytes) // 1
    return blocks

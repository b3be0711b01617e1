"""Bytes of what a model keeps in its cache, from the widths in its config. Each function is also an SQL macro.

A source "derivation" is our own, given in one line.
"""

from __future__ import annotations

import math

from warehouse.formulas.macros import formula


@formula("layers::DOUBLE * (kv_lora_rank + 4 * ceil(kv_lora_rank::DOUBLE / 128) + 2 * qk_rope_head_dim)")
def sparse_mla_fp8_kv_bytes_per_token(layers: float, kv_lora_rank: float, qk_rope_head_dim: float) -> float:
    """Return bytes/token of a sparse MLA cache in fp8: layers x (rank + 4 bytes for each 128 of it + 2 x rope).

    The latent is fp8 with a scale of 4 bytes for each 128 elements; the rotary part stays bf16.
    Source: vLLM and SGLang, cache format fp8_ds_mla of FlashMLA: 656 bytes for 512 + 64.

    >>> sparse_mla_fp8_kv_bytes_per_token(78, 512, 64)
    51168
    """
    return layers * (kv_lora_rank + 4 * math.ceil(kv_lora_rank / 128) + 2 * qk_rope_head_dim)


@formula("layers::DOUBLE * (index_head_dim + 4 * ceil(index_head_dim::DOUBLE / 128))")
def fp8_indexer_bytes_per_token(layers: float, index_head_dim: float) -> float:
    """Return bytes/token of an indexer's keys in fp8: layers that have one x (width + 4 bytes for each 128 of it).

    Source: DeepSeek-V3.2, vLLM's cache of its indexer: 132 bytes a layer for keys 128 wide.

    >>> fp8_indexer_bytes_per_token(61, 128)
    8052
    """
    return layers * (index_head_dim + 4 * math.ceil(index_head_dim / 128))


@formula(
    "index_layers::DOUBLE * (entry_bytes::DOUBLE + index_entry_bytes) / 4 + "
    "(full_layers::DOUBLE - index_layers) * entry_bytes / 128"
)
def compressed_kv_bytes_per_token(
    full_layers: float, index_layers: float, entry_bytes: float, index_entry_bytes: float
) -> float:
    """Return bytes/token of a compressed cache: one entry for 4 tokens with an indexer's key, or one for 128 without.

    Source: DeepSeek-V4, compress_ratios of its config: 4 in the layers that have an indexer, 128 in the others.

    >>> compressed_kv_bytes_per_token(41, 21, 1024, 256)
    6880.0
    """
    with_index = float(index_layers) * (float(entry_bytes) + index_entry_bytes) / 4
    return with_index + (float(full_layers) - index_layers) * entry_bytes / 128


@formula("head_dim::DOUBLE + qk_rope_head_dim + 8")
def compressed_fp8_entry_bytes(head_dim: float, qk_rope_head_dim: float) -> float:
    """Return bytes of one entry of a compressed cache in fp8: width + rope (which stays bf16) + 8 of scales.

    Source: FlashMLA's README on DeepSeek-V4: 448 of fp8, 64 of bf16 and 8 bytes, 584 in all.

    >>> compressed_fp8_entry_bytes(512, 64)
    584
    """
    return head_dim + qk_rope_head_dim + 8


@formula(
    "layers::DOUBLE * (value_heads::DOUBLE * key_head_dim * value_head_dim * 4 + "
    "(2 * key_heads::DOUBLE * key_head_dim + value_heads::DOUBLE * value_head_dim) * (conv_kernel - 1) * 2)"
)
def recurrent_state_bytes(  # noqa: PLR0913, PLR0917 - the shape of a linear layer
    layers: float,
    key_heads: float,
    key_head_dim: float,
    value_heads: float,
    value_head_dim: float,
    conv_kernel: float,
) -> float:
    """Return bytes of the states of linear layers: a matrix in fp32 for each value head, and a convolution's in bf16.

    layers x (H_v d_k d_v 4 + (2 H_k d_k + H_v d_v) (kernel - 1) 2). Mamba2 has groups as key heads and its state size
    as their width.
    Source: transformers 5.24.0 models/qwen3_next and vLLM's mamba_utils, mamba_ssm_dtype float32 of the configs.

    >>> recurrent_state_bytes(45, 16, 128, 64, 128, 4)
    192061440
    """
    state = value_heads * key_head_dim * value_head_dim * 4
    convolution = (2 * key_heads * key_head_dim + value_heads * value_head_dim) * (conv_kernel - 1) * 2
    return layers * (state + convolution)


@formula("ceil(state_bytes::DOUBLE / (layer_bytes_per_token::DOUBLE * alignment)) * alignment")
def hybrid_block_tokens(state_bytes: float, layer_bytes_per_token: float, alignment: float) -> float:
    """Return the tokens of a block where one page holds the state of a linear layer: state / bytes a token, rounded up.

    Both are of one layer on one GPU. Only whole blocks are reused, so K of a model with linear layers is a multiple.
    Source: vLLM, model_executor/models/config.py, HybridAttentionMambaModelConfig: 16 tokens with FlashAttention.

    >>> hybrid_block_tokens(2146304 / 4, 1024, 16)
    528
    """
    return math.ceil(state_bytes / (layer_bytes_per_token * alignment)) * alignment

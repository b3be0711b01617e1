"""Counts the parameters of a model from the keys of its config.json: those of all, and those that one token passes."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.hardware.configs.config import Config
from pipelines.hardware.configs.families import LINEAR, Family


@dataclass(frozen=True, slots=True)
class Parameters:
    """Counts of parameters.

    Attributes:
        total: All, embedding once where it is also the head.
        active: Those that one token passes through.
        layers: The active ones of the decoder layers.
        head: The output head.
    """

    total: int
    active: int
    layers: int
    head: int


def count_parameters(config: Config, family: Family, kinds: list[str], is_sparse: list[bool]) -> Parameters:
    """Return the parameters of a model.

    Args:
        config: Its keys.
        family: What its family has.
        kinds: The kind of each layer's attention.
        is_sparse: For each layer whether it is a mixture of experts.
    """
    width = config.hidden_size
    matrix = config.vocab_size * width
    is_tied = family.is_tied if config.tie_word_embeddings is None else config.tie_word_embeddings
    attention = [linear_attention(config) if kind == LINEAR else full_attention(config, family) for kind in kinds]
    feed = [_sparse(config, family) if sparse else (_dense(config),) * 2 for sparse in is_sparse]
    of_layers = sum(attention) + len(kinds) * family.norms * width + index_layers(config) * _indexer(config)
    every, drawn = (of_layers + sum(part[n] for part in feed) for n in range(2))
    outside = matrix * (1 if is_tied else 2) + width
    return Parameters(every + outside, drawn + outside, drawn, matrix)


def full_attention(config: Config, family: Family) -> int:
    """Return the parameters of a layer's attention: grouped queries, or a latent without its indexer."""
    if config.kv_lora_rank is not None:
        return _latent_attention(config)
    width, heads, kv_heads, head = (
        config.hidden_size,
        config.num_attention_heads,
        kv_heads_of(config),
        head_dim_of(config, family),
    )
    queries = heads * head * (2 if family.has_gated_query else 1)
    has_bias = bool(config.attention_bias) if family.qkv_bias is None else family.qkv_bias
    biases = (queries + 2 * kv_heads * head + width * family.has_output_bias) * has_bias
    norms = {"head": 2 * head, "layer": (heads + kv_heads) * head}.get(family.qk_norm, 0)
    if config.model_type == "glm4_moe" and config.use_qk_norm:
        norms = 2 * head
    return width * (queries + 2 * kv_heads * head + heads * head) + biases + norms + heads * family.has_sinks


def kv_heads_of(config: Config) -> int:
    """Return the heads of keys and values: each query has its own where the key is missing."""
    return config.num_key_value_heads or config.num_attention_heads


def head_dim_of(config: Config, family: Family) -> int:
    """Return the width of a head."""
    return config.head_dim or family.head_dim or config.hidden_size // config.num_attention_heads


def _latent_attention(config: Config) -> int:
    width, heads, rank = config.hidden_size, config.num_attention_heads, config.kv_lora_rank or 0
    rope, nope, value = config.qk_rope_head_dim or 0, config.qk_nope_head_dim or 0, config.v_head_dim or 0
    low = config.q_lora_rank
    queries = heads * (nope + rope) * (low or width) + (width * low + low if low else 0)
    return queries + width * (rank + rope) + rank + rank * heads * (nope + value) + heads * value * width


def index_layers(config: Config) -> int:
    """Return how many layers have an indexer of their own; the others use the tokens that an earlier one picked."""
    return 0 if config.index_n_heads is None else config.indexers().count("full")


def _indexer(config: Config) -> int:
    heads, head = config.index_n_heads or 0, config.index_head_dim or 0
    # A LayerNorm has a weight and a bias.
    return (config.q_lora_rank or 0) * heads * head + config.hidden_size * (head + heads) + 2 * head


def linear_attention(config: Config) -> int:
    """Return the parameters of a gated delta net: Qwen3-Next and Qwen3.5."""
    keys, values, heads = *linear_widths(config), config.linear_num_value_heads or 0
    projections = config.hidden_size * (2 * keys + 2 * values + 2 * heads) + values * config.hidden_size
    convolution = (2 * keys + values) * (config.linear_conv_kernel_dim or 0)
    return projections + convolution + 2 * heads + (config.linear_value_head_dim or 0)


def linear_widths(config: Config) -> tuple[int, int]:
    """Return the width of all keys and of all values of a layer of linear attention."""
    keys = (config.linear_num_key_heads or 0) * (config.linear_key_head_dim or 0)
    return keys, (config.linear_num_value_heads or 0) * (config.linear_value_head_dim or 0)


def _dense(config: Config) -> int:
    inner = config.intermediate_size or 0
    if config.model_type == "llama4_text":
        inner = config.intermediate_size_mlp or inner
    return 3 * config.hidden_size * inner + (2 * inner + config.hidden_size) * config.mlp_bias


def _sparse(config: Config, family: Family) -> tuple[int, int]:
    """Return the parameters of a mixture of experts, and those that one token passes through."""
    width, count, drawn = config.hidden_size, config.experts or 0, config.experts_per_token or 0
    inner = config.moe_intermediate_size or config.intermediate_size or 0
    one = 3 * width * inner + (2 * inner + width) * family.has_expert_biases
    shared = 3 * width * shared_width(config, inner)
    always = width * count + count * family.router_biases + shared + width * (family.has_shared_gate and shared > 0)
    return always + count * one, always + drawn * one


def shared_width(config: Config, inner: int) -> int:
    """Return the inner width of the experts that every token passes through."""
    if config.model_type == "llama4_text":
        return inner
    return config.shared_expert_intermediate_size or (config.n_shared_experts or 0) * inner

"""What a family of models has that its config.json does not say: biases, norms, defaults of keys, kinds of layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pipelines.hardware.configs.config import Config

FULL, SLIDING, CHUNKED, LINEAR = "full", "sliding", "chunked", "linear"
_KINDS = {
    "full_attention": FULL,
    # Full, and an indexer picks from it.
    "deepseek_sparse_attention": FULL,
    "sliding_attention": SLIDING,
    "chunked_attention": CHUNKED,
    "linear_attention": LINEAR,
}


@dataclass(frozen=True, slots=True)
class Family:
    """Source of all: the modelling code of transformers 5.24, which builds these models from the same keys.

    Attributes:
        qkv_bias: Whether query, key and value have a bias; None where `attention_bias` says so.
        has_output_bias: Whether the output of attention has one too, where the others have.
        qk_norm: `head`: a norm of each head's width for queries and for keys; `layer`: of all heads together.
        norms: Norms of a layer, each as wide as the hidden size.
        is_tied: Head and embedding are one matrix where `tie_word_embeddings` is missing.
        head_dim: Width of a head where the key is missing; None for hidden size / heads.
        has_gated_query: The query's matrix also makes a gate for the output of attention.
        has_sinks: Attention has one more parameter a head.
        router_biases: Biases of the router, one an expert.
        has_expert_biases: The matrices of the experts have biases.
        has_shared_gate: The shared expert has a gate.
        default_window: The window where the key is missing.
        first_full: Layer kinds by position where `layer_types` is missing.
    """

    qkv_bias: bool | None = None
    has_output_bias: bool = True
    qk_norm: str = ""
    norms: int = 2
    is_tied: bool = False
    head_dim: int | None = None
    has_gated_query: bool = False
    has_sinks: bool = False
    router_biases: int = 0
    has_expert_biases: bool = False
    has_shared_gate: bool = False
    default_window: int | None = None
    kind_at: Callable[[Config, int], str] = lambda _config, _layer: FULL


def _every_other(_: Config, layer: int) -> str:
    return SLIDING if layer % 2 == 0 else FULL


def _gemma3(config: Config, layer: int) -> str:
    return FULL if (layer + 1) % (config.sliding_window_pattern or 6) == 0 else SLIDING


def _llama4(config: Config, layer: int) -> str:
    # `no_rope_layers` has 0 for a layer without rotary positions, which attends to everything.
    listed = config.no_rope_layers or []
    has_rope = bool(listed[layer]) if layer < len(listed) else (layer + 1) % 4 != 0
    return CHUNKED if has_rope else FULL


def _windowed(config: Config, _: int) -> str:
    return SLIDING if config.sliding_window else FULL


def _qwen(config: Config, layer: int) -> str:
    is_sliding = config.use_sliding_window and layer >= (config.max_window_layers or 0)
    return SLIDING if is_sliding and config.sliding_window else FULL


def _hybrid(config: Config, layer: int) -> str:
    return FULL if (layer + 1) % (config.full_attention_interval or 4) == 0 else LINEAR


_QWEN2 = Family(qkv_bias=True, has_output_bias=False, kind_at=_qwen)
_QWEN3 = Family(qk_norm="head", kind_at=_qwen)
_HYBRID = Family(qk_norm="head", has_gated_query=True, has_shared_gate=True, head_dim=256, kind_at=_hybrid)
_MLA = Family(router_biases=1)
FAMILIES = {
    "llama": Family(),
    "granite": Family(is_tied=True),
    "mistral": Family(default_window=4096, kind_at=_windowed),
    "ministral3": Family(),
    "mixtral": Family(kind_at=_windowed),
    "phi3": Family(kind_at=_windowed),
    "qwen2": _QWEN2,
    "qwen2_moe": Family(qkv_bias=True, has_output_bias=False, has_shared_gate=True, kind_at=_qwen),
    "qwen3": _QWEN3,
    "qwen3_moe": _QWEN3,
    "qwen3_vl_text": _QWEN3,
    "qwen3_vl_moe_text": _QWEN3,
    "qwen3_next": _HYBRID,
    "qwen3_5_text": _HYBRID,
    "qwen3_5_moe_text": _HYBRID,
    "deepseek_v2": Family(),
    "deepseek_v3": _MLA,
    "deepseek_v32": _MLA,
    "kimi_k2": _MLA,
    "glm_moe_dsa": _MLA,
    "glm4_moe": Family(has_output_bias=False, router_biases=1),
    "gpt_oss": Family(
        has_sinks=True, router_biases=1, has_expert_biases=True, default_window=128, kind_at=_every_other, head_dim=64
    ),
    "gemma": Family(is_tied=True, head_dim=256),
    "gemma2": Family(norms=4, is_tied=True, head_dim=256, default_window=4096, kind_at=_every_other),
    "gemma3_text": Family(
        qk_norm="head", norms=4, is_tied=True, head_dim=256, default_window=4096, kind_at=_gemma3
    ),
    "llama4_text": Family(kind_at=_llama4),
    "minimax_m2": Family(qk_norm="layer", router_biases=1),
}  # fmt: skip


def layer_kinds(config: Config, family: Family) -> list[str] | None:
    """Return the kind of each layer's attention; None where `layer_types` has a kind that is not known."""
    if config.layer_types is None:
        return [family.kind_at(config, layer) for layer in range(config.num_hidden_layers)]
    kinds = [_KINDS.get(name, "") for name in config.layer_types[: config.num_hidden_layers]]
    is_whole = all(kinds) and len(kinds) == config.num_hidden_layers
    return kinds if is_whole else None


def has_experts(config: Config) -> list[bool]:
    """Return for each layer whether its feed-forward part is a mixture of experts."""
    layers = range(config.num_hidden_layers)
    if config.experts is None:
        return [False for _ in layers]
    if config.mlp_layer_types is not None:
        return [config.mlp_layer_types[layer] == "sparse" for layer in layers]
    frequency = config.moe_layer_freq
    step = config.interleave_moe_layer_step if config.model_type == "llama4_text" else config.decoder_sparse_step
    return [
        layer >= config.first_k_dense_replace
        and layer not in config.mlp_only_layers
        and (layer + 1) % step == 0
        and (bool(frequency[layer]) if isinstance(frequency, list) else layer % frequency == 0)
        for layer in layers
    ]

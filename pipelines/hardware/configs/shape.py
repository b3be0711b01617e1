"""A row of `models` from a config.json: its columns from the keys, its figures as those of any other row."""

from __future__ import annotations

import json
from typing import Any

from pipelines.hardware.configs.config import Config, not_understood
from pipelines.hardware.configs.families import (
    CHUNKED,
    FAMILIES,
    FULL,
    LINEAR,
    SLIDING,
    Family,
    has_experts,
    layer_kinds,
)
from pipelines.hardware.configs.parameters import (
    Parameters,
    count_parameters,
    head_dim_of,
    indexers_of,
    kv_heads_of,
    linear_widths,
)
from pipelines.hardware.entities import Model
from warehouse.declared.hardware_fields import WEIGHT_DTYPES
from warehouse.hardware_rows.shapes import broken_shape
from warehouse.hardware_rows.worked_out import completed, figures

# The confidence of a row that was computed from a config.json for one question.
CONFIG = "config"
# kappa's tokenizers by the size of the vocabulary; another one is counted by the first in its place.
_VOCABULARIES = {128256: "llama-3.1", 151936: "qwen3", 152064: "qwen3"}
_PROXY = "llama-3.1"


def model_of(config: Config, name: str, repo_id: str, source: str) -> Model:
    """Return the row of a model.

    Args:
        config: Its keys.
        name: What the answers call it.
        repo_id: Its repository, or the path of the file.
        source: Where the config was read.

    Raises:
        KappaError: the family is not known, or the keys give no shape that fits `models`.
    """
    family = FAMILIES.get(config.model_type)
    if family is None:
        raise not_understood(name, f"model_type {config.model_type!r} is none of {', '.join(FAMILIES)}")
    kinds = layer_kinds(config, family)
    why = _why_not(config, family, kinds)
    if kinds is None or why:
        raise not_understood(name, why)
    values = _values(config, family, kinds, count_parameters(config, family, kinds, has_experts(config)))
    broken = broken_shape(values)
    if broken:
        raise not_understood(name, f"{broken[0]} of its shape: {broken[1]}")
    note = f"counted from the keys of its config.json, model_type {config.model_type}"
    about: dict[str, Any] = {
        "model": name,
        "repo_id": repo_id,
        "note": note,
        "retrieved": "",
        "confidence": CONFIG,
        "source": source,
    }
    return Model(**about, **values, **figures(values))


def _why_not(config: Config, family: Family, kinds: list[str] | None) -> str:
    """Return why the keys give no shape, empty where they do."""
    if kinds is None:
        return "layer_types has not one known kind for each layer"
    needs = {
        "sliding_window": SLIDING in kinds and not (config.sliding_window or family.default_window),
        "attention_chunk_size": CHUNKED in kinds and not config.attention_chunk_size,
        "intermediate_size": config.intermediate_size is None and not all(has_experts(config)),
        "num_experts_per_tok": config.experts is not None and config.experts_per_token is None,
        "max_position_embeddings": config.max_position_embeddings is None,
        "linear_num_value_heads": LINEAR in kinds and not all(linear_widths(config)),
        "linear_conv_kernel_dim": LINEAR in kinds and config.linear_conv_kernel_dim is None,
        "qk_nope_head_dim": config.kv_lora_rank is not None and config.qk_nope_head_dim is None,
        "qk_rope_head_dim": config.kv_lora_rank is not None and config.qk_rope_head_dim is None,
        "v_head_dim": config.kv_lora_rank is not None and config.v_head_dim is None,
        "index_topk": config.index_n_heads is not None and config.index_topk is None,
    }
    lacking = [key for key, is_needed in needs.items() if is_needed]
    if lacking:
        return f"key {lacking[0]} is missing"
    if config.attn_type_list is not None and set(config.attn_type_list) != {1}:
        return "attn_type_list has layers of another attention"
    if config.indexer_types is not None and len(config.indexer_types) != len(kinds or ()):
        return "indexer_types has not one kind for each layer"
    if len({*kinds} & {SLIDING, CHUNKED, LINEAR}) > 1:
        return "its layers are of three kinds"
    return ""


def _values(config: Config, family: Family, kinds: list[str], parameters: Parameters) -> dict[str, Any]:
    is_latent = config.kv_lora_rank is not None
    rope = config.qk_rope_head_dim or 0
    width = (config.qk_nope_head_dim or 0) + rope if is_latent else head_dim_of(config, family)
    sliding = kinds.count(SLIDING) + kinds.count(CHUNKED)
    window = config.attention_chunk_size if CHUNKED in kinds else config.sliding_window or family.default_window
    vocabulary = _VOCABULARIES.get(config.vocab_size)
    index_layers = indexers_of(config, len(kinds))
    shape = {
        "attention": _attention(kinds, is_latent=is_latent, has_indexer=bool(index_layers)),
        "total_params": parameters.total,
        "active_params": parameters.active,
        "layers": len(kinds),
        "heads": config.num_attention_heads,
        "kv_heads": 1 if is_latent else kv_heads_of(config),
        "head_dim": width,
        "max_context_tokens": config.max_position_embeddings,
        "tokenizer": vocabulary or _PROXY,
        "is_tokenizer_proxy": vocabulary is None,
        "is_moe": config.experts is not None,
        "experts": config.experts,
        "experts_per_token": config.experts_per_token if config.experts else None,
        "layer_params": parameters.layers,
        "head_params": parameters.head,
        "full_attention_layers": kinds.count(FULL),
        "sliding_layers": sliding,
        "linear_layers": kinds.count(LINEAR),
        "kv_shared_layers": None,
        "sliding_window_tokens": window if sliding else None,
        "sliding_kv_heads": None,
        "sliding_head_dim": None,
        "v_head_dim": config.v_head_dim or width if is_latent else width,
        "kv_lora_rank": config.kv_lora_rank,
        "qk_rope_head_dim": config.qk_rope_head_dim if is_latent else None,
        **_linear(config, has_layers=LINEAR in kinds),
        "index_layers": index_layers or None,
        "index_heads": config.index_n_heads if index_layers else None,
        "index_head_dim": config.index_head_dim if index_layers else None,
        "index_picked_tokens": config.index_topk if index_layers else None,
        "hidden_size": config.hidden_size,
        "weight_dtype": _weight_dtype(config),
    }
    return completed(shape)


def _weight_dtype(config: Config) -> str | None:
    """Return the format of a quantised checkpoint, None for bf16 and for a format that has no row."""
    stored = config.quantization_config
    if stored is None:
        return None
    named = f"{stored.quant_method} {stored.quant_algo}".lower()
    # compressed-tensors names no format but the bits and the type of each group.
    groups = json.dumps(stored.config_groups)
    is_int4 = '"num_bits": 4' in groups and '"type": "int"' in groups
    return next((dtype for dtype in WEIGHT_DTYPES if dtype in named), "int4" if is_int4 else None)


def _linear(config: Config, *, has_layers: bool) -> dict[str, int | None]:
    """Return the shape of the state of linear layers, empty where there are none."""
    return {
        "linear_key_heads": config.linear_num_key_heads if has_layers else None,
        "linear_key_head_dim": config.linear_key_head_dim if has_layers else None,
        "linear_value_heads": config.linear_num_value_heads if has_layers else None,
        "linear_value_head_dim": config.linear_value_head_dim if has_layers else None,
        "linear_conv_kernel": config.linear_conv_kernel_dim if has_layers else None,
    }


def _attention(kinds: list[str], *, is_latent: bool, has_indexer: bool) -> str:
    end = {CHUNKED: "+chunked", SLIDING: "+swa", LINEAR: "+linear"}
    varying = next((end[kind] for kind in kinds if kind in end), "+indexer" if has_indexer else "")
    return ("mla" if is_latent else "gqa") + varying

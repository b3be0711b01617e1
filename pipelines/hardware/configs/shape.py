"""A row of `models` from a config.json: layers, bytes and FLOP by the formulae of the tables."""

from __future__ import annotations

from dataclasses import fields
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
    index_layers,
    kv_heads_of,
    linear_widths,
)
from pipelines.hardware.entities import Model
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
    values = completed(_values(config, family, kinds, count_parameters(config, family, kinds, has_experts(config))))
    broken = broken_shape(values)
    if broken:
        raise not_understood(name, f"{broken[0]} of its shape: {broken[1]}")
    note = f"counted from the keys of its config.json, model_type {config.model_type}"
    about = {"model": name, "repo_id": repo_id, "retrieved": "", "confidence": CONFIG, "source": source, "note": note}
    row: dict[str, Any] = {**about, **values, **figures(values)}
    return Model(**{field.name: row[field.name] for field in fields(Model)})


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
    if config.index_n_heads is not None and len(config.indexers()) != len(kinds):
        return "indexer_types (or index_topk_pattern) has not one kind for each layer"
    if len({*kinds} & {SLIDING, CHUNKED, LINEAR}) > 1:
        return "its layers are of three kinds"
    return ""


def _values(config: Config, family: Family, kinds: list[str], parameters: Parameters) -> dict[str, Any]:
    """Return the columns of the shape; `worked_out` has those that follow from them."""
    is_latent, is_indexed = config.kv_lora_rank is not None, config.index_n_heads is not None
    rope = config.qk_rope_head_dim or 0
    width = (config.qk_nope_head_dim or 0) + rope if is_latent else head_dim_of(config, family)
    window = config.attention_chunk_size if CHUNKED in kinds else config.sliding_window or family.default_window
    is_windowed, is_linear = SLIDING in kinds or CHUNKED in kinds, LINEAR in kinds
    vocabulary = _VOCABULARIES.get(config.vocab_size)
    return {
        "attention": _attention(kinds, is_latent=is_latent, has_indexer=is_indexed),
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
        "sliding_layers": kinds.count(SLIDING) + kinds.count(CHUNKED),
        "linear_layers": kinds.count(LINEAR),
        "kv_shared_layers": None,
        "sliding_window_tokens": window if is_windowed else None,
        "sliding_kv_heads": None,
        "sliding_head_dim": None,
        "v_head_dim": config.v_head_dim if is_latent else width,
        "kv_lora_rank": config.kv_lora_rank,
        "qk_rope_head_dim": config.qk_rope_head_dim if is_latent else None,
        "linear_key_heads": config.linear_num_key_heads if is_linear else None,
        "linear_key_head_dim": config.linear_key_head_dim if is_linear else None,
        "linear_value_heads": config.linear_num_value_heads if is_linear else None,
        "linear_value_head_dim": config.linear_value_head_dim if is_linear else None,
        "linear_conv_kernel": config.linear_conv_kernel_dim if is_linear else None,
        "index_layers": index_layers(config) if is_indexed else None,
        "index_heads": config.index_n_heads,
        "index_head_dim": config.index_head_dim if is_indexed else None,
        "index_picked_tokens": config.index_topk if is_indexed else None,
        "hidden_size": config.hidden_size,
        "weight_dtype": config.weight_dtype(),
    }


def _attention(kinds: list[str], *, is_latent: bool, has_indexer: bool) -> str:
    end = {CHUNKED: "+chunked", SLIDING: "+swa", LINEAR: "+linear"}
    varying = next((end[kind] for kind in kinds if kind in end), "+indexer" if has_indexer else "")
    return ("mla" if is_latent else "gqa") + varying

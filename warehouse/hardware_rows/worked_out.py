"""The figures of a model that follow from its shape: bytes a token, states and FLOP of attention. Reads no file."""

from __future__ import annotations

from typing import Any

from warehouse.formulas import attention, entries, kappa

Values = dict[str, Any]
_BF16 = 2
# Columns that a user's row may leave out: `completed` fills them.
ASSUMED = frozenset({"full_attention_layers", "sliding_layers", "linear_layers", "v_head_dim"})


def completed(v: Values) -> Values:
    """Return a row with the columns of its shape that were left out: every layer full, values as wide as keys."""
    sliding, linear = v["sliding_layers"] or 0, v["linear_layers"] or 0
    others = v["layers"] - sliding - linear - (v["kv_shared_layers"] or 0)
    full = v["full_attention_layers"]
    return v | {
        "sliding_layers": sliding,
        "linear_layers": linear,
        "full_attention_layers": others if full is None else full,
        "v_head_dim": v["v_head_dim"] or v["head_dim"],
    }


def figures(v: Values) -> Values:
    """Return the columns of `models` that are worked out from the others, for a row that fits its shape.

    Bytes are those of bf16, the indexer's as it is stored. None where the kind of attention has no formula.
    """
    growing = _growing_bytes(v)
    return {
        "flops_per_token": None if v["active_params"] is None else kappa.flops_per_token(v["active_params"]),
        "kv_bytes_per_token": None if "+" in v["attention"] else growing,
        "marginal_kv_bytes_per_token": growing,
        "marginal_fp8_kv_bytes_per_token": _growing_fp8_bytes(v),
        "fixed_state_bytes": _fixed_bytes(v),
        "indexer_bytes_per_token": _indexer_bytes(v),
        **_attention_flops(v),
    }


def _growing_bytes(v: Values) -> float:
    full, kind = v["full_attention_layers"], v["attention"]
    if kind.startswith("mla"):
        return float(kappa.mla_kv_bytes_per_token(full, v["kv_lora_rank"], v["qk_rope_head_dim"], _BF16))
    if kind == "compressed+swa":
        keys = _BF16 * v["index_head_dim"]
        return entries.compressed_kv_bytes_per_token(full, v["index_layers"], _BF16 * v["head_dim"], keys)
    return float(kappa.gqa_kv_bytes_per_token(full, v["kv_heads"], v["head_dim"], v["v_head_dim"], _BF16))


def _growing_fp8_bytes(v: Values) -> float | None:
    full, kind = v["full_attention_layers"], v["attention"]
    if kind == "mla+indexer":
        return float(entries.sparse_mla_fp8_kv_bytes_per_token(full, v["kv_lora_rank"], v["qk_rope_head_dim"]))
    if kind == "compressed+swa":
        entry = entries.compressed_fp8_entry_bytes(v["head_dim"], v["qk_rope_head_dim"])
        keys = entries.fp8_indexer_bytes_per_token(1, v["index_head_dim"])
        return entries.compressed_kv_bytes_per_token(full, v["index_layers"], entry, keys)
    return None


def _fixed_bytes(v: Values) -> int:
    """Return full windows, or the states of linear layers; every layer of a compressed cache has a window."""
    if v["linear_layers"]:
        columns = (
            "linear_key_heads", "linear_key_head_dim", "linear_value_heads", "linear_value_head_dim",
            "linear_conv_kernel",
        )  # fmt: skip
        return int(entries.recurrent_state_bytes(v["linear_layers"], *(v[column] for column in columns)))
    window = v["sliding_window_tokens"] or 0
    if v["attention"] == "compressed+swa":
        layers = v["full_attention_layers"] + v["sliding_layers"]
        return int(layers * v["kv_heads"] * v["head_dim"] * _BF16 * window)
    keys, values = _sliding_widths(v)
    heads = v["sliding_kv_heads"] or v["kv_heads"]
    return int(kappa.gqa_kv_bytes_per_token(v["sliding_layers"], heads, keys, values, _BF16) * window)


def _sliding_widths(v: Values) -> tuple[int, int]:
    """Return the widths of a key and of a value in a sliding layer."""
    width = v["sliding_head_dim"]
    return (width, width) if width else (v["head_dim"], v["v_head_dim"])


def _indexer_bytes(v: Values) -> int:
    if v["attention"] == "mla+indexer":
        return int(entries.fp8_indexer_bytes_per_token(v["index_layers"], v["index_head_dim"]))
    return _BF16 * v["index_layers"] * v["index_head_dim"] if v["attention"] == "gqa+indexer" else 0


def _attention_flops(v: Values) -> Values:
    """Return FLOP a pair; layers that attend with another layer's cache count like those of their kind."""
    full, sliding, heads = v["full_attention_layers"], v["sliding_layers"], v["heads"]
    attending = 1 + (v["kv_shared_layers"] or 0) / max(full + sliding, 1)
    pair = int(attention.attention_flops_per_pair(full * attending, heads, v["head_dim"], v["v_head_dim"]))
    in_window = int(attention.attention_flops_per_pair(sliding * attending, heads, *_sliding_widths(v)))
    is_known, is_latent = v["attention"] != "compressed+swa", v["attention"].startswith("mla")
    rank, rope = v["kv_lora_rank"] or 0, v["qk_rope_head_dim"] or 0
    absorbed = attention.absorbed_flops_per_pair(full, heads, rank, rope)
    expanding = attention.upprojection_flops_per_token(full, heads, rank, v["head_dim"] - rope, v["v_head_dim"])
    return {
        "attention_flops_per_token_pair": pair if is_known else None,
        "sliding_attention_flops_per_token_pair": in_window if is_known else None,
        "absorbed_attention_flops_per_token_pair": int(absorbed) if is_latent else None,
        "mla_upprojection_flops_per_cached_token": int(expanding) if is_latent else None,
    }

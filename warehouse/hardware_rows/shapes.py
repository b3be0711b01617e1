"""Checks the columns of one model against each other: kinds of layers, heads and widths."""

from __future__ import annotations

from typing import Any

Values = dict[str, object]
Broken = tuple[str, str] | None
_FULL, _SLIDING, _LINEAR, _SHARED = "full_attention_layers", "sliding_layers", "linear_layers", "kv_shared_layers"
_STATE = (
    "linear_key_heads", "linear_key_head_dim", "linear_value_heads", "linear_value_head_dim", "linear_conv_kernel",
)  # fmt: skip


def broken_shape(values: Values) -> Broken:
    """Return the column of a model that contradicts its shape, and why; None if all fit."""
    for column, is_needed in _needs(values).items():
        if is_needed is not None and is_needed != bool(values[column]):
            owner = (
                f"is_moe {str(values['is_moe']).lower()}" if "expert" in column else f"attention {values['attention']}"
            )
            return column, f"{'has to be given' if is_needed else 'has to be 0 or empty'} with {owner}"
    return _broken_heads(str(values["attention"]), {c: v if isinstance(v, int) else 0 for c, v in values.items()})


def _needs(values: Values) -> dict[str, bool | None]:
    """Return for each column whether it must be above 0 (True), must be 0 or empty (False), or may be either (None)."""
    start, _, end = str(values["attention"]).partition("+")
    is_windowed, is_latent, is_moe = end in ("swa", "chunked"), start == "mla", bool(values["is_moe"])
    is_compressed, is_linear = start == "compressed", end == "linear"
    is_indexed = end == "indexer" or is_compressed
    # Their number divides the parameters; bytes of the cache do without.
    needs_experts = None if is_moe and values["total_params"] is None else is_moe
    own_window = None if is_windowed and start == "gqa" else False
    return {
        "experts": needs_experts,
        "experts_per_token": needs_experts,
        _FULL: None if is_windowed or is_linear else True,
        "sliding_window_tokens": is_windowed,
        _SLIDING: None if is_windowed and start != "gqa" else is_windowed,
        "sliding_kv_heads": own_window,
        "sliding_head_dim": own_window,
        _LINEAR: is_linear,
        **dict.fromkeys(_STATE, is_linear),
        "index_layers": is_indexed,
        "index_head_dim": is_indexed,
        "index_heads": None if is_indexed else False,
        "index_picked_tokens": None if is_indexed else False,
        "kv_lora_rank": is_latent,
        "qk_rope_head_dim": is_latent or is_compressed,
    }


def _broken_heads(kind: str, n: dict[str, Any]) -> Broken:
    kinds = (_FULL, _SLIDING, _LINEAR, _SHARED)
    if (listed := sum(n[column] for column in kinds)) > n["layers"]:
        return "layers", f"{n['layers']} is below full + sliding + linear + sharing layers, {listed}"
    if n["index_layers"] > n[_FULL]:
        return "index_layers", f"{n['index_layers']} is above {_FULL}, {n[_FULL]}"
    if kind.startswith("mla") and n["kv_heads"] != 1:
        why = "heads of MLA share one latent, whatever num_key_value_heads of the config says"
        return "kv_heads", f"{n['kv_heads']} is not 1: {why}"
    if kind.startswith("mla") and n["qk_rope_head_dim"] >= n["head_dim"]:
        why = f"{n['qk_rope_head_dim']} is not below head_dim {n['head_dim']}, of which it is a part"
        return "qk_rope_head_dim", why
    for column in ("kv_heads", "sliding_kv_heads"):
        if n[column] and n["heads"] % n[column]:
            return column, f"{n[column]} does not divide the {n['heads']} query heads"
    return None

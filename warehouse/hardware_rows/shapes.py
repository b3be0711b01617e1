"""Checks the columns of one model against each other: kinds of layers, and the figures that follow from the shape."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from warehouse.declared.hardware_fields import INDEXED_BYTES
from warehouse.formulas import attention, kappa

Values = dict[str, object]
Broken = tuple[str, str] | None
# An fp8 key of an indexer has a scale of four bytes for each 128 elements.
_SCALED_ELEMENTS, _SCALE_BYTES = 128, 4
_FULL, _SLIDING, _LINEAR = "full_attention_layers", "sliding_layers", "linear_layers"
_STATE, _ABSORBED = "fixed_state_bytes", "absorbed_attention_flops_per_token_pair"
_EXPANDED = "mla_upprojection_flops_per_cached_token"


def indexer_bytes(layers: float, index_head_dim: float) -> float:
    """Return bytes/token of an indexer's keys: layers x (width in fp8 + 4 bytes of scale for each 128 elements).

    Source: DeepSeek-V3.2, vLLM's cache of its indexer: 132 bytes per layer for keys 128 wide.

    >>> indexer_bytes(61, 128)
    8052
    """
    return layers * (index_head_dim + _SCALE_BYTES * math.ceil(index_head_dim / _SCALED_ELEMENTS))


def broken_shape(values: Values) -> Broken:
    """Return the column of a model that contradicts its shape, and why; None if all fit."""
    for column, is_needed in _needs(values).items():
        if is_needed is not None and is_needed != bool(values[column]):
            owner = (
                f"is_moe {str(values['is_moe']).lower()}" if "expert" in column else f"attention {values['attention']}"
            )
            return column, f"{'has to be given' if is_needed else 'has to be 0 or empty'} with {owner}"
    numbers = {column: value if isinstance(value, int | float) else 0 for column, value in values.items()}
    return _broken_heads(str(values["attention"]), numbers) or _broken_figure(values, numbers)


def _needs(values: Values) -> dict[str, bool | None]:
    """Return for each column whether it must be above 0 (True), must be 0 or empty (False), or may be either (None)."""
    start, _, end = str(values["attention"]).partition("+")
    is_windowed, is_latent, is_moe = end in ("swa", "chunked"), start == "mla", bool(values["is_moe"])
    has_latent = None if values["attention"] in INDEXED_BYTES else is_latent
    return {
        "experts": is_moe,
        "experts_per_token": is_moe,
        _FULL: None if is_windowed or end == "linear" else True,
        "sliding_window_tokens": is_windowed,
        _SLIDING: None if is_windowed and start != "gqa" else is_windowed,
        _LINEAR: end == "linear",
        _STATE: True if end == "linear" else None,
        "indexer_bytes_per_token": end == "indexer",
        "kv_lora_rank": has_latent,
        "qk_rope_head_dim": has_latent,
        _ABSORBED: None if is_latent else False,
        _EXPANDED: None if is_latent else False,
        "kv_bytes_per_token": not end,
    }


def _broken_heads(kind: str, n: dict[str, Any]) -> Broken:
    if n[_FULL] + n[_SLIDING] + n[_LINEAR] > n["layers"]:
        return "layers", f"{n['layers']} is below full + sliding + linear layers, {n[_FULL] + n[_SLIDING] + n[_LINEAR]}"
    if kind.startswith("mla") and n["kv_heads"] != 1:
        why = "heads of MLA share one latent, whatever num_key_value_heads of the config says"
        return "kv_heads", f"{n['kv_heads']} is not 1: {why}"
    if kind.startswith("mla") and n["qk_rope_head_dim"] >= n["head_dim"]:
        return (
            "qk_rope_head_dim",
            f"{n['qk_rope_head_dim']} is not below head_dim {n['head_dim']}, of which it is a part",
        )
    if n["heads"] % n["kv_heads"]:
        return "kv_heads", f"{n['kv_heads']} does not divide the {n['heads']} query heads"
    return None


def _broken_figure(values: Values, n: dict[str, Any]) -> Broken:
    """Return a figure that is not its layers times that of one layer, and why; layers that share a cache may attend.

    The attention FLOP figures must be all given or all empty.
    """
    figures = list(_figures(str(values["attention"]), n))
    given = next((column for column, *_ in figures if "flops" in column and values[column] is not None), "")
    shared = n["layers"] - n[_FULL] - n[_SLIDING] - n[_LINEAR]
    for column, kinds, a_layer, words in figures:
        least = sum(n[kind] for kind in kinds) * a_layer
        most = least + shared * a_layer * ("flops" in column)
        formula = f"({' + '.join(kinds)}) x {words}, {least:.0f}"
        if values[column] is None:
            if least and given and "flops" in column:
                return column, f"is empty beside {given}: it is {formula}"
        elif not least <= n[column] <= most or (a_layer and n[column] % a_layer):
            return column, f"{n[column]:.0f} is not {formula}"
    return None


def _figures(kind: str, n: dict[str, Any]) -> Iterator[tuple[str, tuple[str, ...], float, str]]:
    """Yield each derived figure: column, kinds of layers, figure of one layer at bf16, and its formula in words."""
    heads, width, value_width, window = n["heads"], n["head_dim"], n["v_head_dim"], n["sliding_window_tokens"]
    rank, rope = n["kv_lora_rank"], n["qk_rope_head_dim"]
    if kind in INDEXED_BYTES:
        entry = 2 * n["kv_heads"] * width
        yield _STATE, (_FULL, _SLIDING), entry * window, "2 x kv_heads x head_dim x sliding_window_tokens"
        return
    a_token, words = kappa.gqa_kv_bytes_per_token(1, n["kv_heads"], width, value_width, 2), "(head_dim + v_head_dim)"
    growing = a_token, f"2 x kv_heads x {words}"
    if kind.startswith("mla"):
        growing = kappa.mla_kv_bytes_per_token(1, rank, rope, 2), "2 x (kv_lora_rank + qk_rope_head_dim)"
    yield "kv_bytes_per_token", (_FULL,), *growing
    yield "marginal_kv_bytes_per_token", (_FULL,), *growing
    if not n[_LINEAR]:
        yield _STATE, (_SLIDING,), a_token * window, f"2 x kv_heads x {words} x sliding_window_tokens"
    pair = attention.attention_flops_per_pair(1, heads, width, value_width), f"2 x heads x {words}"
    yield "attention_flops_per_token_pair", (_FULL,), *pair
    yield "sliding_attention_flops_per_token_pair", (_SLIDING,), *pair
    if kind.startswith("mla"):
        absorbed = attention.absorbed_flops_per_pair(1, heads, rank, rope)
        yield _ABSORBED, (_FULL,), absorbed, "2 x heads x (2 kv_lora_rank + qk_rope_head_dim)"
        expanded = attention.upprojection_flops_per_token(1, heads, rank, width - rope, value_width)
        words = "(head_dim - qk_rope_head_dim + v_head_dim)"
        yield _EXPANDED, (_FULL,), expanded, f"2 x heads x kv_lora_rank x {words}"

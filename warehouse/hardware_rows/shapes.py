"""What the columns of one model say about each other: kinds of layers, and the figures that follow from a shape.

The formulae are in `warehouse.formulas`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from warehouse.declared.bounds import WORK_A_BYTE
from warehouse.declared.hardware_fields import INDEXED_BYTES
from warehouse.formulas.attention import (
    absorbed_flops_per_pair,
    attention_flops_per_pair,
    upprojection_flops_per_token,
)
from warehouse.formulas.kappa import (
    ELEMENT_BYTES,
    flops_per_token,
    gqa_kv_bytes_per_token,
    kappa_m,
    mla_kv_bytes_per_token,
)
from warehouse.hardware_rows.units import mix_up

Values = dict[str, object]
Broken = tuple[str, str] | None
_BF16 = ELEMENT_BYTES["bf16"]
# One fp8 key of an indexer has a scale of four bytes for each 128 elements.
_SCALED_ELEMENTS, _SCALE_BYTES = 128, 4
_LATENT = ("kv_lora_rank", "qk_rope_head_dim")
_LATENT_FLOPS = ("absorbed_attention_flops_per_token_pair", "mla_upprojection_flops_per_cached_token")


def figure(values: Values, column: str) -> float | None:
    """Return a figure of a row; None where it is empty or the table has no such column."""
    value = values.get(column)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def check_shape(values: Values) -> Broken:
    """Find the column of a model that contradicts the others, and say why; None where all fit, or it is no model."""
    if "full_attention_layers" not in values:
        return None
    for found in (_layers(values), _experts(values), _heads(values), _kinds(values), _latent(values)):
        if found:
            return found
    return _bytes_of_shape(values) or _state(values) or _attention(values) or _work_a_byte(values)


def indexer_bytes(layers: float, index_head_dim: float) -> float:
    """Return bytes/token of an indexer's keys: layers x (width in fp8 + 4 bytes of scale for each 128 elements).

    Source: DeepSeek-V3.2, vLLM's cache of its indexer: 132 bytes a layer for keys 128 wide.

    >>> indexer_bytes(61, 128)
    8052
    """
    return layers * (index_head_dim + _SCALE_BYTES * math.ceil(index_head_dim / _SCALED_ELEMENTS))


def _of(values: Values, column: str) -> float:
    return figure(values, column) or 0.0


def _kind(values: Values) -> tuple[str, str]:
    start, _, end = str(values["attention"]).partition("+")
    return start, end


def _layers(values: Values) -> Broken:
    """Layers that share the cache of another one are in none of the three kinds."""
    kinds = sum(_of(values, name) for name in ("full_attention_layers", "sliding_layers", "linear_layers"))
    if kinds > _of(values, "layers"):
        return "layers", f"{values['layers']} is below full + sliding + linear layers, {kinds:g}"
    return None


def _experts(values: Values) -> Broken:
    for column in ("experts", "experts_per_token"):
        if values["is_moe"] != (values[column] is not None):
            return column, "a mixture of experts, and no other model, has a number of experts"
    return None


def _heads(values: Values) -> Broken:
    given, heads = _of(values, "kv_heads"), _of(values, "heads")
    if _kind(values)[0] == "mla" and given != 1:
        return "kv_heads", (
            f"{given:g} is not 1: heads of MLA share one latent, which every GPU of a tensor-parallel group holds "
            "whole, whatever num_key_value_heads of the config says"
        )
    return ("kv_heads", f"{given:g} does not divide the {heads:g} query heads") if heads % given else None


def _kinds(values: Values) -> Broken:
    """Find layers, a window or a state that the kind of attention has not, or lacks."""
    start, end = _kind(values)
    is_windowed, is_linear = end in ("swa", "chunked"), end == "linear"
    window, sliding, linear = (
        values["sliding_window_tokens"], _of(values, "sliding_layers"), _of(values, "linear_layers")
    )  # fmt: skip
    rules = (
        (window is None and sliding, "sliding_window_tokens", f"is empty beside {sliding:g} sliding layers"),
        (window is not None and not is_windowed, "sliding_window_tokens", "only +swa and +chunked have a window"),
        (window is None and is_windowed, "sliding_window_tokens", "is empty: +swa and +chunked have a window"),
        (sliding and not is_windowed, "sliding_layers", "only +swa and +chunked have sliding layers"),
        (is_windowed and start == "gqa" and not sliding, "sliding_layers", "is 0 beside a window"),
        (linear and not is_linear, "linear_layers", "only +linear has linear layers"),
        (is_linear and not linear, "linear_layers", "is 0: +linear has linear layers"),
        (
            not _of(values, "full_attention_layers") and not (is_windowed or is_linear),
            "full_attention_layers",
            "is 0: no other layer has a cache",
        ),
        (values["indexer_bytes_per_token"] and end != "indexer", "indexer_bytes_per_token", "only +indexer has one"),
        (not values["indexer_bytes_per_token"] and end == "indexer", "indexer_bytes_per_token", "is 0: it has one"),
    )
    kind = values["attention"]
    return next(((column, f"{why} (attention {kind})") for is_broken, column, why in rules if is_broken), None)


def _latent(values: Values) -> Broken:
    kind = str(values["attention"])
    is_latent, is_compressed = kind.startswith("mla"), kind in INDEXED_BYTES
    for column in (*_LATENT, *_LATENT_FLOPS):
        if values[column] is not None and not is_latent and not (is_compressed and column in _LATENT):
            return column, f"only MLA has one (attention {kind})"
    missing = next((column for column in _LATENT if is_latent and values[column] is None), None)
    if missing:
        return missing, f"is empty: MLA has one (attention {kind})"
    rope, width = _of(values, "qk_rope_head_dim"), _of(values, "head_dim")
    if is_latent and rope >= width:
        return "qk_rope_head_dim", f"{rope:g} is not below head_dim {width:g}, of which it is a part"
    return None


def _bytes_of_shape(values: Values) -> Broken:
    kind = str(values["attention"])
    is_constant, given = "+" not in kind, values["kv_bytes_per_token"]
    if is_constant == (given is None):
        why = "is empty: they are constant" if is_constant else "are not constant, leave it empty"
        return "kv_bytes_per_token", f"{why} (attention {kind})"
    if kind in INDEXED_BYTES:
        return None
    is_latent, layers = kind.startswith("mla"), _of(values, "full_attention_layers")
    if is_latent:
        rank, rope = (_of(values, name) for name in _LATENT)
        expected = mla_kv_bytes_per_token(layers, rank, rope, _BF16)
    else:
        expected = _kv_bytes(values, layers, _of(values, "v_head_dim"))
    of = "layers x latent" if is_latent else "layers x kv_heads x (head_dim + v_head_dim)"
    for column in ("kv_bytes_per_token", "marginal_kv_bytes_per_token"):
        value = figure(values, column)
        if value is not None and value != expected:
            mixed = mix_up(value, expected, "bytes/token") if expected else ""
            return column, f"{value:g} is not 2 bytes x full {of}, {expected:g}" + (f": {mixed}" if mixed else "")
    return None


def _kv_bytes(values: Values, layers: float, value_width: float) -> float:
    return gqa_kv_bytes_per_token(layers, _of(values, "kv_heads"), _of(values, "head_dim"), value_width, _BF16)


def _state(values: Values) -> Broken:
    """Find full windows that do not follow from the shape, and a recurrent state that is missing or has no layers."""
    given, window = _of(values, "fixed_state_bytes"), _of(values, "sliding_window_tokens")
    if _of(values, "linear_layers"):
        return None if given else ("fixed_state_bytes", f"is 0 beside {values['linear_layers']} linear layers")
    if str(values["attention"]) in INDEXED_BYTES:
        layers = _of(values, "full_attention_layers") + _of(values, "sliding_layers")
        expected = _kv_bytes(values, layers, 0.0) * window
        of = "all layers x kv_heads x head_dim"
    else:
        expected = _kv_bytes(values, _of(values, "sliding_layers"), _of(values, "v_head_dim")) * window
        of = "sliding layers x kv_heads x (head_dim + v_head_dim)"
    if given == expected:
        return None
    return "fixed_state_bytes", f"{given:.0f} is not 2 bytes x {of} x sliding_window_tokens, {expected:.0f}"


def _attention(values: Values) -> Broken:
    """Find FLOP a pair that do not follow from layers and widths; layers that share a cache may be counted or not."""
    given = [column for column, *_ in _flops(values) if values[column] is not None]
    kinds = sum(_of(values, name) for name in ("full_attention_layers", "sliding_layers", "linear_layers"))
    shared = _of(values, "layers") - kinds
    for column, layers, a_layer, formula in _flops(values):
        value, least, most = figure(values, column), layers * a_layer, (layers + shared) * a_layer
        if value is None and given and least:
            return column, f"is empty beside {given[0]}: it is {formula}, {least:.0f}"
        if value is not None and (not least <= value <= most or value % a_layer):
            return column, f"{value:.0f} is not {formula}, {least:.0f}"
    return None


def _flops(values: Values) -> Iterator[tuple[str, float, float, str]]:
    """Yield each column of attention's work, the layers it counts, FLOP of one layer, and the formula in words."""
    if str(values["attention"]) in INDEXED_BYTES:
        return
    full, heads = _of(values, "full_attention_layers"), _of(values, "heads")
    width, value_width = _of(values, "head_dim"), _of(values, "v_head_dim")
    rank, rope = _of(values, "kv_lora_rank"), _of(values, "qk_rope_head_dim")
    pair, words = attention_flops_per_pair(1, heads, width, value_width), "layers x heads x (head_dim + v_head_dim)"
    yield "attention_flops_per_token_pair", full, pair, f"2 x full {words}"
    yield "sliding_attention_flops_per_token_pair", _of(values, "sliding_layers"), pair, f"2 x sliding {words}"
    if not rank:
        return
    absorbed = absorbed_flops_per_pair(1, heads, rank, rope)
    expanded = upprojection_flops_per_token(1, heads, rank, width - rope, value_width)
    yield _LATENT_FLOPS[0], full, absorbed, "2 x full layers x heads x (2 kv_lora_rank + qk_rope_head_dim)"
    yield (
        _LATENT_FLOPS[1], full, expanded,
        "2 x full layers x heads x kv_lora_rank x (head_dim - qk_rope_head_dim + v_head_dim)",
    )  # fmt: skip


def _work_a_byte(values: Values) -> Broken:
    """Find parameters or bytes a token of which the other one makes a kappa_M that no model has."""
    active, held = figure(values, "active_params"), figure(values, "marginal_kv_bytes_per_token")
    work = kappa_m(flops_per_token(active), held) if active and held else None
    if work is None or WORK_A_BYTE.low <= work <= WORK_A_BYTE.high:
        return None
    ratio = f"{work:g} FLOP a byte of cache"
    return "active_params", f"{active:g} parameters and {held:g} bytes a token are {ratio} ({WORK_A_BYTE.why})"

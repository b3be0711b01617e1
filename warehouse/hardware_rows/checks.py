"""Consistency of one row: no figure is above another that bounds it, and a model's figures fit its shape.

Only impossible rows are refused; a row that its name or another row makes unlikely is accepted.
"""

from __future__ import annotations

from typing import NamedTuple

from warehouse.hardware_rows.shapes import Broken, Values, broken_shape


class Bound(NamedTuple):
    """A figure is at most `factor` times another one; not checked if either is empty."""

    column: str
    other: str
    factor: float = 1.0


# A measurement may exceed a data sheet a little if a chip boosts above its stated clock.
_BOOST, _NOISE = 1.25, 1.02
_BOUNDS = (
    Bound("dense_bf16_flop_per_s", "sparse_bf16_flop_per_s"),
    Bound("dense_fp8_flop_per_s", "sparse_fp8_flop_per_s"),
    Bound("measured_bf16_flop_per_s", "dense_bf16_flop_per_s"),
    Bound("sustained_bytes_per_s", "peak_bytes_per_s"),
    Bound("to_host_bytes_per_s", "peak_bytes_per_s"),
    Bound("duplex_bytes_per_s", "peak_bytes_per_s", 2.0),
    Bound("least_copy_bytes", "most_copy_bytes"),
    Bound("least_bytes_per_s", "most_bytes_per_s"),
    Bound("least_share_of_pinned", "most_share_of_pinned"),
    Bound("active_params", "total_params"),
    Bound("layer_params", "active_params"),
    Bound("head_params", "active_params"),
    Bound("experts_per_token", "experts"),
    Bound("kv_heads", "heads"),
    # A measured machine is bounded by the peaks of the accelerator and the link that it names.
    Bound("bf16_flop_per_s", "accelerator.dense_bf16_flop_per_s", _BOOST),
    Bound("fp8_flop_per_s", "accelerator.dense_fp8_flop_per_s", _BOOST),
    Bound("hbm_bytes_per_s", "accelerator.hbm_bytes_per_s", _BOOST),
    Bound("pinned_to_device_bytes_per_s", "link.peak_bytes_per_s", _NOISE),
    Bound("pinned_to_host_bytes_per_s", "link.peak_bytes_per_s", _NOISE),
)
# Dense bf16 FLOP a joule at the TDP. The best of `accelerators` reaches 2.3e12; figures with sparsity begin at 2.8e12
# (H100 SXM), 4.2e12 (H100 NVL) and 4.3e12 (H100 PCIe).
MOST_FLOP_PER_J = 3.5e12


def figure(values: Values, column: str) -> float | None:
    """Return a figure of a row; None if it is empty or the table has no such column."""
    value = values.get(column)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def contradiction(values: Values) -> Broken:
    """Return the column of a row that contradicts another one, and why; None if all fit."""
    for column, other, factor in _BOUNDS:
        value, bound = figure(values, column), figure(values, other)
        if value is not None and bound is not None and value > factor * bound:
            times = "" if factor == 1 else f"{factor:g} x "
            return column, f"{value:g} is above {times}{other}, {bound:g}"
    return _sparse_as_dense(values) or (broken_shape(values) if "full_attention_layers" in values else None)


def _sparse_as_dense(values: Values) -> Broken:
    """Return the dense peak of an accelerator that draws less power than any such peak needs, and why."""
    dense, power = figure(values, "dense_bf16_flop_per_s"), figure(values, "tdp_w")
    if dense is None or power is None or dense <= MOST_FLOP_PER_J * power:
        return None
    why = f"{dense:g} is above {MOST_FLOP_PER_J:g} FLOP/s a watt of tdp_w, {power:g}: is it the peak with sparsity?"
    return "dense_bf16_flop_per_s", why

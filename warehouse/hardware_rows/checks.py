"""What the figures of one row say about each other: bounds of one by another, what follows from a name."""

from __future__ import annotations

import re

from warehouse.declared.bounds import KIND_PEAKS, MEMORY_READS_PER_S
from warehouse.hardware_rows.cells import failure, is_bare
from warehouse.hardware_rows.files import Placed
from warehouse.hardware_rows.pcie import named_slot
from warehouse.hardware_rows.shapes import Broken, Values, check_shape, figure
from warehouse.hardware_rows.units import is_whole_gibi, mix_up

# Figures that are not below another one were mixed up: (smaller, larger, times the larger, what happened).
_BELOW = (
    ("dense_bf16_flop_per_s", "sparse_bf16_flop_per_s", 0.75, "above 3/4 of the sparse peak: dense is half of sparse"),
    ("dense_fp8_flop_per_s", "sparse_fp8_flop_per_s", 0.75, "above 3/4 of the sparse peak: dense is half of sparse"),
    ("sparse_bf16_flop_per_s", "dense_bf16_flop_per_s", 4.5, "more than 4 times the dense peak: another unit"),
    ("sparse_fp8_flop_per_s", "dense_fp8_flop_per_s", 4.5, "more than 4 times the dense peak: another unit"),
    ("dense_bf16_flop_per_s", "dense_fp8_flop_per_s", 1.02, "above the dense fp8 peak: sparse for dense, or swapped"),
    ("dense_fp8_flop_per_s", "dense_fp4_flop_per_s", 1.02, "above the dense fp4 peak: sparse for dense, or swapped"),
    ("dense_fp8_flop_per_s", "dense_bf16_flop_per_s", 4.5, "more than 4 times the dense bf16 peak: another unit"),
    ("dense_fp4_flop_per_s", "dense_fp8_flop_per_s", 4.5, "more than 4 times the dense fp8 peak: another unit"),
    ("measured_bf16_flop_per_s", "dense_bf16_flop_per_s", 1.0, "above the dense peak"),
    ("sustained_bytes_per_s", "peak_bytes_per_s", 1.0, "above the peak of one direction: the sum of both, or bits"),
    ("to_host_bytes_per_s", "peak_bytes_per_s", 1.0, "above the peak of one direction: the sum of both, or bits"),
    ("duplex_bytes_per_s", "peak_bytes_per_s", 2.0, "above the peak of both directions"),
    ("pageable_to_device_bytes_per_s", "pinned_to_device_bytes_per_s", 1.5, "above pinned copies: swapped, or bits"),
    ("pageable_to_host_bytes_per_s", "pinned_to_host_bytes_per_s", 1.5, "above pinned copies: swapped, or bits"),
    ("marginal_fp8_kv_bytes_per_token", "marginal_kv_bytes_per_token", 1.0, "above the bytes at bf16"),
    ("least_copy_bytes", "most_copy_bytes", 1.0, "above the largest copy"),
    ("least_bytes_per_s", "most_bytes_per_s", 1.0, "above the upper end"),
    ("least_share_of_pinned", "most_share_of_pinned", 1.0, "above the upper end"),
    ("active_params", "total_params", 1.0, "above the total"),
    ("layer_params", "active_params", 1.0, "above the active parameters, of which it is a part"),
    ("head_params", "active_params", 1.0, "above the active parameters, of which it is a part"),
    ("experts_per_token", "experts", 1.0, "above the number of experts"),
    ("kv_heads", "heads", 1.0, "above the query heads"),
)
# The other way round: (larger, smaller, least share of the smaller, what happened).
_NOT_BELOW = (
    ("measured_bf16_flop_per_s", "dense_bf16_flop_per_s", 0.05, "below a twentieth of the dense peak: another unit?"),
    ("sustained_bytes_per_s", "peak_bytes_per_s", 0.01, "below a hundredth of the peak: another unit?"),
    ("to_host_bytes_per_s", "peak_bytes_per_s", 0.01, "below a hundredth of the peak: another unit?"),
    ("duplex_bytes_per_s", "peak_bytes_per_s", 0.01, "below a hundredth of the peak: another unit?"),
    ("marginal_fp8_kv_bytes_per_token", "marginal_kv_bytes_per_token", 0.45, "below half of the bytes at bf16"),
)
_SPECIFIED = ("hbm_bytes", "hbm_bytes_per_s", "peak_bytes_per_s")
# Coding leaves 0.8 (generations 1 and 2) to 1 of it.
_PCIE_SHARE = (0.79, 1.01)
# 128b/130b coding takes 1.5 %.
_PCIE_NEAR = 0.02


def check_figures(rows: list[Placed]) -> None:
    """Check each row by itself.

    Raises:
        KappaError: Two figures cannot both be right; the message names file, row, column and the likely mix-up.
    """
    for path, number, values, cells in rows:
        broken = (_above(values), _gibi(values, cells), check_shape(values), _link(values), _memory(values))
        for found in broken:
            if found:
                raise failure(path, number, *found)


def _above(values: Values) -> Broken:
    for smaller, larger, factor, why in _BELOW:
        small, large = figure(values, smaller), figure(values, larger)
        if small is not None and large is not None and small > factor * large:
            return smaller, f"{small:g} is {why}"
    for column, other, share, why in _NOT_BELOW:
        value, beside = figure(values, column), figure(values, other)
        if value is not None and beside is not None and value < share * beside:
            return column, f"{value:g} is {why}"
    return None


def _gibi(values: Values, cells: dict[str, str]) -> Broken:
    """Find a figure of a data sheet that is a bare multiple of 2^30: data sheets count in 10^9."""
    for column in _SPECIFIED:
        value = figure(values, column)
        if value is not None and is_whole_gibi(value) and is_bare(cells.get(column, "")):
            gibi = value / 2**30
            return column, (
                f"{value:.0f} is {gibi:g} x 2^30: GiB where GB are meant? Write {gibi:g}e9, or the unit: '{gibi:g} GiB'"
            )
    return None


def _link(values: Values) -> Broken:
    peak = figure(values, "peak_bytes_per_s")
    if peak is None:
        return None
    most = KIND_PEAKS[str(values["kind"])]
    if peak > most.high:
        return "peak_bytes_per_s", (
            f"{peak:g} is above {most.high:g} for kind {values['kind']} ({most.why}): "
            "bits for bytes, or both directions?"
        )
    return _named_rate(str(values["link"]), peak)


def _named_rate(link: str, peak: float) -> Broken:
    """Find a peak that is not what a link's name says: pcie5-x16, or 2x400g for two ports of 400 Gb/s."""
    slot = named_slot(link)
    if slot:
        low, high = _PCIE_SHARE
        if not low * slot.raw <= peak <= high * slot.raw:
            mixed = mix_up(peak, slot.raw, "bytes/s", near=_PCIE_NEAR)
            return "peak_bytes_per_s", (
                f"{peak:g} is no rate of {slot.name}: one direction is {slot.raw:g} before coding"
                + (mixed and f"; it is {mixed}")
                + ". Another link needs another name"
            )
    ports = re.search(r"(?:([0-9]+)x)?([0-9]+)g\b", link.lower())
    if ports:
        rate = int(ports[1] or 1) * int(ports[2]) * 1e9 / 8
        mixed = mix_up(peak, rate, "bytes/s")
        if mixed:
            return (
                "peak_bytes_per_s",
                f"{peak:g} is not {ports[0]}: {ports[2]} Gb/s a port make {rate:g}; it is {mixed}",
            )
    return None


def _memory(values: Values) -> Broken:
    """Find a memory that would be read too often a second."""
    size, rate = figure(values, "hbm_bytes"), figure(values, "hbm_bytes_per_s")
    if size is None or rate is None:
        return None
    low, high, why = MEMORY_READS_PER_S
    if low <= rate / size <= high:
        return None
    return (
        "hbm_bytes_per_s",
        f"{rate:g} would read {size:g} bytes {rate / size:g} times a second ({why}): another unit?",
    )

"""The lines of an answer of `kappa crit`: label, column and how its value is written for a person."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warehouse.declared.formats import number, percent, yes_or_no
from warehouse.declared.formats import quantity as scaled

Row = dict[str, Any]
# Label, a column that has to be there, and the cell.
Line = tuple[str, str, Callable[[Row], str]]


def words(value: str | None) -> str:
    """Return the words, or - where there are none."""
    return "-" if value is None else value


def pays(row: Row, label: str = "") -> str:
    """Return when loading is faster: always, never, or for which K.

    >>> pays({"load_pays": "from", "load_pays_ranges": "31608-"})
    'from K = 31,608'
    >>> pays({"load_pays": "in ranges", "load_pays_ranges": "1-308, 757-"})
    'to K = 308, from K = 757'
    """
    word, ranges = row[f"load_pays{label}"], row[f"load_pays_ranges{label}"]
    if word in (None, "always", "never"):
        return words(word)
    parts = [_range(*part.split("-")) for part in ranges.split(", ")]
    return ", ".join(parts if len(parts) <= MOST_RANGES else [parts[0], f"... {len(parts)} ranges", parts[-1]])


MOST_RANGES = 3


def _range(first: str, last: str) -> str:
    if not last:
        return f"from K = {int(first):,}"
    return f"to K = {int(last):,}" if first == "1" else f"K = {int(first):,} to {int(last):,}"


def seconds(value: float | None) -> str:
    """Return seconds with a decimal prefix."""
    return scaled(value, "s")


def rate(value: float | None) -> str:
    """Return bytes per second with a decimal prefix."""
    return scaled(value, "B/s")


def _line(label: str, name: str, form: Callable[[Any], str]) -> Line:
    return label, name, lambda row: form(row[name])


TURN: list[Line] = [
    _line("pcie overhead (t_PCIe / t_GPU)", "pcie_overhead", number),
    _line("memory bound", "is_memory_bound", yes_or_no),
    _line("kappa_crit at this K and T", "kappa_crit_here", number),
    _line("TTFT, load then compute", "ttft_s", seconds),
    _line("  load", "transfer_s", seconds),
    _line("  compute", "compute_s", seconds),
    _line("  share of loading", "transfer_share", percent),
    _line("TTFT, layer by layer", "layerwise_ttft_s", seconds),
    _line("TTFT is never below", "ttft_floor_s", seconds),
    _line("computing K again instead", "recompute_s", seconds),
    _line("load or recompute", "faster", words),
    ("loading is faster", "load_pays", pays),
    _line("compute bound from a link of", "link_needed_bytes_per_s", rate),
    _line("bytes to load", "kv_bytes", lambda value: scaled(value, "B")),
    _line("requests/s that the link carries", "requests_per_s", number),
    _line("writing new KV back", "write_back_s", seconds),
    _line("T_sched, new tokens an iteration", "scheduled_tokens", number),
    _line("energy, all GPUs", "energy_j", lambda value: scaled(value, "J")),
    _line("average power, all GPUs", "average_power_w", lambda value: scaled(value, "W")),
]


def _split(label: str, *, is_load_alone: bool) -> list[Line]:
    """Return the TTFT at a percentile and how it splits, of the turn that has it; of a load alone its time."""
    cached, prefill = f"ttft_{label}_cached_tokens", f"ttft_{label}_prefill_tokens"
    turn: Line = ("  of the turn with K, T =", cached, lambda row: f"{row[cached]:,}, {row[prefill]:,}")
    load = f"ttft_{label}_transfer_s"
    if is_load_alone:
        return [_line(f"load, so TTFT is not below, {label}", load, seconds), turn]
    return [
        _line(f"TTFT, {label}", f"ttft_s_{label}", seconds),
        turn,
        _line("  load", load, seconds),
        _line("  compute", f"ttft_{label}_compute_s", seconds),
    ]


def workload_lines(row: Row) -> list[Line]:
    """Return the lines of a workload; its T at the percentiles stand in the labels."""
    percentiles = ("p50", "p90", "p99")
    when: list[Line] = [
        (
            f"  at T = {row[f'prefill_tokens_{label}']:,} ({label})",
            f"load_pays_{label}",
            lambda of, label=label: pays(of, f"_{label}"),  # type: ignore[misc]
        )
        for label in percentiles
    ]
    return [
        _line("memory-bound turns", "memory_bound_turn_share", percent),
        _line("memory-bound tokens", "memory_bound_token_share", percent),
        _line("memory-bound time", "memory_bound_time_share", percent),
        _line("share of time in transfer", "transfer_time_share", percent),
        *(_line(f"pcie overhead, {label}", f"pcie_overhead_{label}", number) for label in percentiles),
        *(line for label in percentiles for line in _split(label, is_load_alone=row["cost_model"] is None)),
        *(_line(f"compute bound from, {label}", f"link_needed_bytes_per_s_{label}", rate) for label in percentiles),
        _line("loading is faster (turns that reuse)", "load_is_faster_share", percent),
        *when,
        _line("requests/s that the link carries", "requests_per_s", number),
        _line("turns beyond the model's context", "over_context_turn_share", percent),
    ]

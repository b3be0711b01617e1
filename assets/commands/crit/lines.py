"""The lines of an answer of `kappa crit`: label, value and format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from pipelines.hardware.questions.answer import CritRow, TurnAnswer, WorkloadAnswer
from pipelines.hardware.questions.origins import NO_ROW
from pipelines.hardware.what_if import TurnCosts
from pipelines.hardware.workload_answers import AtPercentile
from warehouse.declared.formats import number, percent, yes_or_no
from warehouse.declared.formats import quantity as scaled

A = TypeVar("A", bound=TurnAnswer | WorkloadAnswer)
V = TypeVar("V")


class Line(NamedTuple, Generic[A]):
    """A line of an answer; left out if no answer has its value."""

    label: str
    value: Callable[[A], object]
    cell: Callable[[A], str]
    is_stacked: bool = False


def words(value: str | None) -> str:
    """Return the words, or - if there are none."""
    return "-" if value is None else value


def pays(answer: TurnCosts | AtPercentile) -> str:
    """Return for which K loading is faster than recomputing: always, never, or a range."""
    if answer.load_pays_ranges is None or answer.load_pays in (None, "always", "never"):
        return words(answer.load_pays)
    parts = [_range(*part.split("-")) for part in answer.load_pays_ranges.split(", ")]
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


def confidence_words(answer: TurnAnswer | WorkloadAnswer) -> str:
    """Return the confidences of an answer's rows in words, such as `model high, link secondary`."""
    pairs = {
        "model": answer.model_confidence,
        "accelerator": answer.accelerator_confidence,
        "link": answer.link_confidence,
        "platform": answer.platform_confidence,
        "tier": answer.tier_confidence,
    }
    told = {kind: "not sourced" if sure == NO_ROW else sure for kind, sure in pairs.items() if sure is not None}
    return ", ".join(f"{kind} {sure}" for kind, sure in told.items())


def confidence_cell(answer: CritRow | TurnAnswer | WorkloadAnswer) -> str:
    """Return the confidences of model, accelerator and link for a narrow column, such as `high/high/medium`."""
    return f"{answer.model_confidence}/{answer.accelerator_confidence}/{answer.link_confidence}"


def _line(label: str, value: Callable[[A], V], form: Callable[[V], str]) -> Line[A]:
    return Line(label, value, lambda answer: form(value(answer)))


TURN: list[Line[TurnAnswer]] = [
    _line("overhead (load / t_GPU)", lambda turn: turn.pcie_overhead, number),
    _line("memory bound", lambda turn: turn.is_memory_bound, yes_or_no),
    _line("kappa_crit at this K and T", lambda turn: turn.kappa_crit_here, number),
    _line("kappa_crit at this T", lambda turn: turn.kappa_crit_of_new_tokens, number),
    _line("TTFT, load then compute", lambda turn: turn.ttft_s, seconds),
    _line("  load", lambda turn: turn.transfer_s, seconds),
    _line("  compute", lambda turn: turn.compute_s, seconds),
    _line("  until the first token", lambda turn: turn.prefill_s, seconds),
    _line("  share of loading", lambda turn: turn.transfer_share, percent),
    _line("TTFT, layer by layer", lambda turn: turn.layerwise_ttft_s, seconds),
    _line("TTFT is never below", lambda turn: turn.ttft_floor_s, seconds),
    _line("computing K again instead", lambda turn: turn.recompute_s, seconds),
    _line("load or recompute", lambda turn: turn.faster, words),
    Line("loading is faster", lambda turn: turn.load_pays, pays, is_stacked=True),
    _line("compute bound from a link of", lambda turn: turn.link_needed_bytes_per_s, rate),
    _line("bytes to load", lambda turn: turn.kv_bytes, lambda value: scaled(value, "B")),
    _line("requests/s that the link carries", lambda turn: turn.requests_per_s, number),
    _line("writing new KV back", lambda turn: turn.write_back_s, seconds),
    _line("requests that the pool holds", lambda turn: turn.pool_requests, number),
    _line("T_sched, new tokens an iteration", lambda turn: turn.scheduled_tokens, number),
    _line("energy, all GPUs", lambda turn: turn.energy_j, lambda value: scaled(value, "J")),
    _line("average power, all GPUs", lambda turn: turn.average_power_w, lambda value: scaled(value, "W")),
]


def _at(
    label: str, percentile: str, value: Callable[[AtPercentile], V], form: Callable[[V], str]
) -> Line[WorkloadAnswer]:
    return _line(label, lambda workload: value(workload.percentiles()[percentile]), form)


def _split(p: str, *, is_load_alone: bool) -> list[Line[WorkloadAnswer]]:
    """Return the TTFT at a percentile and its split into load and compute; only the load without a cost model."""
    turn = _at(
        "  of the turn with K, T =",
        p,
        lambda at: (at.ttft_cached_tokens, at.ttft_prefill_tokens),
        lambda turn: f"{turn[0]:,}, {turn[1]:,}",
    )
    if is_load_alone:
        return [_at(f"load, so TTFT is not below, {p}", p, lambda at: at.ttft_transfer_s, seconds), turn]
    return [
        _at(f"TTFT, {p}", p, lambda at: at.ttft_s, seconds),
        turn,
        _at("  load", p, lambda at: at.ttft_transfer_s, seconds),
        _at("  compute", p, lambda at: at.ttft_compute_s, seconds),
    ]


def _when(p: str, prefill_tokens: int) -> Line[WorkloadAnswer]:
    return Line(
        f"  at T = {prefill_tokens:,} ({p})",
        lambda workload: workload.percentiles()[p].load_pays,
        lambda workload: pays(workload.percentiles()[p]),
        is_stacked=True,
    )


def workload_lines(workload: WorkloadAnswer) -> list[Line[WorkloadAnswer]]:
    """Return the lines of a workload; labels contain its T at the percentiles."""
    at, is_load_alone = workload.percentiles(), workload.cost_model is None
    return [
        _line("memory-bound turns", lambda of: of.memory_bound_turn_share, percent),
        _line("memory-bound tokens", lambda of: of.memory_bound_token_share, percent),
        _line("memory-bound time", lambda of: of.memory_bound_time_share, percent),
        _line("share of time in transfer", lambda of: of.transfer_time_share, percent),
        *(_at(f"overhead (load / t_GPU), {p}", p, lambda of: of.pcie_overhead, number) for p in at),
        *(line for p in at for line in _split(p, is_load_alone=is_load_alone)),
        *(_at(f"compute bound from, {p}", p, lambda of: of.link_needed_bytes_per_s, rate) for p in at),
        _line("loading is faster (reusing turns)", lambda of: of.load_is_faster_share, percent),
        *(_when(p, of.prefill_tokens) for p, of in at.items()),
        _line("requests/s that the link carries", lambda of: of.requests_per_s, number),
        _line("turns beyond the model's context", lambda of: of.over_context_turn_share, percent),
    ]

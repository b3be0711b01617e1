"""The first screen: the result in one sentence and one table, and the verdicts that it summarises."""

from __future__ import annotations

import re
from collections import Counter

from reports.data import COST_MODEL, Platform, ReportData, Row, platform_of
from reports.figures.style import SAMPLE_MARK
from reports.format import is_hypothetical, listing, percent, percent_range
from reports.page import Grid
from reports.sections import cache
from warehouse.declared.fields import HISTORY, REUSES
from warehouse.declared.formats import number
from warehouse.declared.tables import BOUNDNESS, KAPPA_CRIT, MODELS, SUMMARY
from warehouse.declared.turn_tables import SERIES
from warehouse.declared.verdicts import whatever

HALF = 0.5
_UPPER_BOUND = (
    "K is the upper bound of reuse: everything said before is taken as cached in host memory, nothing as still in GPU "
    "memory, nothing as evicted. "
)


def sentence(data: ReportData) -> str:
    """Return the result in one sentence, from the tables."""
    mark = f"{SAMPLE_MARK[0].upper()}{SAMPLE_MARK[1:]}, no result about the data sets. " if data.is_sample else ""
    platform = data.reference
    found = {workload: _rows(data, workload, platform) for workload in data.workloads}
    parts = [_part(data, workload, rows) for workload, rows in found.items() if rows]
    if platform is None or not parts:
        return f"{mark}No turn was joined with a model and a platform."
    models = {row["model"] for rows in found.values() for row in rows}
    plural = "s" if len(models) > 1 else ""
    return (
        f"{mark}For {len(models)} headline model{plural} on {platform.hardware}{_served(found)}, over cost models and "
        f"blocks of 1, 16 and 256 tokens, the link from host memory and not the GPU bounds prefill in "
        f"{listing(parts)}. {cache.sentence(data)}".rstrip()
    )


def _served(found: dict[str, list[Row]]) -> str:
    """Return the GPUs and formats of the models: the least number that holds each, in the format it is served in."""
    gpus = [row["tensor_parallel"] for rows in found.values() for row in rows]
    formats = sorted({row["weight_dtype"] for rows in found.values() for row in rows})
    least, most = min(gpus), max(gpus)
    count = f"{least}" if least == most else f"{least} to {most}"
    return f" ({count} GPU{'s' * (most > 1)}, the least on which each fits, weights in {listing(formats)})"


def _part(data: ReportData, workload: str, rows: list[Row]) -> str:
    beyond = sum(is_hypothetical(row["over_context_turn_share"]) for row in rows)
    cases = _cases(data, workload, {row["model"] for row in rows})
    share = percent_range([value for figures in cases.values() for value in figures.values()])
    verdicts = Counter(_without_values(whatever(figures, HALF)) for figures in cases.values())
    which = "" if beyond == len(rows) else f" for {beyond} of the {len(rows)} models"
    said = "; ".join(f"{words} for {models}" for words, models in verdicts.most_common())
    return f"{share} of the turns of {workload}" + (f" (hypothetical{which})" if beyond else "") + f" ({said})"


def _without_values(verdict: str) -> str:
    """Return a verdict without the values of its assumptions, which differ from model to model."""
    return re.sub(r" \([^)]*\)", "", verdict)


def _cases(data: ReportData, workload: str, models: set[str]) -> dict[str, dict[tuple[str, int], float]]:
    """Return the share of memory-bound turns on the reference platform, by model, then by cost model and block."""
    cases: dict[str, dict[tuple[str, int], float]] = {}
    for row in data.in_blocks or data.boundness:
        if row["workload"] == workload and row["model"] in models and platform_of(row) == data.reference:
            case = row["cost_model"], row["block_tokens"]
            cases.setdefault(row["model"], {})[case] = row["memory_bound_turn_share"]
    return cases


def _rows(data: ReportData, workload: str, platform: Platform | None) -> list[Row]:
    return [row for (name, _, where), row in data.bound.items() if name == workload and where == platform]


def basis_note(data: ReportData) -> str:
    """Return the note on the basis and assumptions of the headline."""
    basis = data.reference.basis if data.reference else "physical"
    return (
        f"Basis {basis}, cost_model 2n (t_GPU is 2 x active parameters for each new token and nothing else), bf16 keys "
        f"and values, reuse by single tokens, counting {data.how_counted}; the other cost models are under the "
        "verdicts. The range is over the headline models, each with the counts of its own tokenizer; a model marked "
        "(proxy) has a vocabulary that is not counted, and the counts of the tokenizer named with it are used. "
        f"{_reuse_words(data)}"
        "Hypothetical: more than 1 % of the turns are longer than the model's context."
    )


def _reuse_words(data: ReportData) -> str:
    """Return what K is, of the workloads that are shown with another reuse than `history` by name."""
    found: dict[str, list[str]] = {}
    for workload, shown in sorted(data.shown.items()):
        found.setdefault(shown.reuse, []).append(workload)
    others = [
        f"K of {listing(names)} is {reuse}: {REUSES[reuse]}. " for reuse, names in found.items() if reuse != HISTORY
    ]
    return "".join([_UPPER_BOUND if HISTORY in found or not found else "", *others])


def first_grid(data: ReportData) -> Grid:
    """Return the table of the first screen: a row per workload, tokenizer, counting and reuse."""
    platforms = [p for p in data.platforms if data.reference and p.hardware == data.reference.hardware]
    columns = (
        *(SUMMARY.field(name).label() for name in (*SERIES, "sessions", "turns")),
        "T p50 (tokens)",
        "K p50 (tokens)",
        "kappa ratio p50, reused turns",
        SUMMARY.field("pooled_kappa_ratio").label(),
        *(f"memory bound turns, {platform}" for platform in platforms),
    )
    rows = [_first_row(data, row, platforms) for row in data.summary]
    return Grid("result", "The workloads, and where they stand", columns, rows, words=3, note=STARS)


def parts_sentence(data: ReportData) -> str:
    """Return the sentence on workloads that are parts of the published sets; empty for full sets and for a sample."""
    if data.is_sample:
        return ""
    parts = [
        f"{row['workload']} {number(row['ours'])} of {number(row['value'])}"
        for row in data.comparison
        if row["metric"] == "records" and row["ours"] is not None and not row["is_full_set"]
    ]
    return f"Only parts of the published sets were counted (records): {', '.join(parts)}." if parts else ""


STARS = "* hypothetical for at least one of the models: more than 1 % of the turns are longer than its context."


def _first_row(data: ReportData, row: Row, platforms: list[Platform]) -> tuple[str, ...]:
    series = series_of(row)
    medians = {
        (p["metric"], p["population"]): p["value"]
        for p in data.percentiles
        if p["percentile"] == 50 and p["block_tokens"] == 1 and series_of(p) == series  # noqa: PLR2004
    }
    chosen = (("prefill_tokens", "all"), ("cached_tokens", "all"), ("kappa_ratio", "reused"))
    return (
        *series,
        number(row["sessions"]),
        number(row["turns"]),
        *(number(medians.get(key)) for key in chosen),
        number(row["pooled_kappa_ratio"]),
        *(_bound(data, row, platform) for platform in platforms),
    )


def _bound(data: ReportData, row: Row, platform: Platform) -> str:
    return bound_range(data, series_of(row), platform)


def series_of(row: Row) -> tuple[str, ...]:
    """Return the values of `SERIES` in a row."""
    return tuple(row[name] for name in SERIES)


def bound_range(data: ReportData, series: tuple[str, ...], platform: Platform) -> str:
    """Return the range over models of a series' memory bound turns, starred if hypothetical."""
    rows = [
        row
        for row in data.boundness
        if series_of(row) == series and row["cost_model"] == COST_MODEL and platform_of(row) == platform
    ]
    star = "*" if any(is_hypothetical(row["over_context_turn_share"]) for row in rows) else ""
    return percent_range([row["memory_bound_turn_share"] for row in rows]) + star


def verdict(row: Row) -> str:
    """Return the verdict of a row of boundness, marked hypothetical if its turns exceed the model's context.

    >>> verdict({"memory_bound_turn_share": 0.66, "over_context_turn_share": 0.0})
    'mostly memory bound'
    >>> verdict({"memory_bound_turn_share": 0.2, "over_context_turn_share": 0.02})
    'hypothetical: mostly compute bound'
    """
    side = "memory" if row["memory_bound_turn_share"] > HALF else "compute"
    doubt = "hypothetical: " if is_hypothetical(row["over_context_turn_share"]) else ""
    return f"{doubt}mostly {side} bound"


_SHARES = ("memory_bound_turn_share", "memory_bound_token_share", "memory_bound_time_share", "transfer_time_share")
_VERDICT_COLUMNS = (
    BOUNDNESS.field("workload").label(),
    BOUNDNESS.field("model").label(),
    MODELS.field("tokenizer").label(),
    "verdict",
    MODELS.field("max_context_tokens").label(),
    "turns beyond that",
    KAPPA_CRIT.field("kappa_crit").label(),
    *(BOUNDNESS.field(name).label() for name in _SHARES),
    BOUNDNESS.field("pcie_overhead_p50").label(),
)


def verdict_grids(data: ReportData) -> list[Grid]:
    """Return a table of verdicts for each basis of the reference hardware: a row per workload and model."""
    if data.reference is None:
        return []
    platforms = [p for p in data.platforms if p.hardware == data.reference.hardware]
    return [grid for platform in platforms if (grid := _verdicts(data, platform)).rows]


def _verdicts(data: ReportData, platform: Platform) -> Grid:
    rows = [
        (
            workload,
            data.model_label(model, workload),
            row["tokenizer"],
            verdict(row),
            number(data.models[model]["max_context_tokens"]),
            percent(row["over_context_turn_share"]),
            number(row["kappa_crit"]),
            *(percent(row[name]) for name in _SHARES),
            number(row["pcie_overhead_p50"]),
        )
        for workload in data.workloads
        for model in data.models
        if (row := data.bound.get((workload, model, platform))) is not None
    ]
    note = (
        "Mostly: more than half of all turns. "
        "The verdict is hypothetical where more than 1 % of the turns are longer than the model's context."
    )
    caption = f"Verdicts on {platform.hardware}, basis {platform.basis}, cost_model 2n, bf16"
    return Grid(f"verdicts-{platform.basis}", caption, _VERDICT_COLUMNS, rows, words=4, note=note)

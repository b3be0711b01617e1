"""Tables of percentiles, boundness by platform, kappa_crit and published figures."""

from __future__ import annotations

from reports.data import ReportData, Row
from reports.figures import boundness
from reports.format import is_hypothetical, listing, percent
from reports.page import Grid
from warehouse.declared.fields import METRICS, PERCENTILES
from warehouse.declared.formats import MISSING, number
from warehouse.declared.tables import PAPER_COMPARISON, TURNS
from warehouse.declared.tables import PERCENTILES as PERCENTILES_TABLE
from warehouse.declared.turn_tables import SERIES

_KEYS = (*SERIES, "population", "block_tokens")


def percentile_grids(data: ReportData) -> list[Grid]:
    """Return a table of percentiles for each metric that a workload has."""
    ratio_first = sorted(METRICS, key=lambda metric: metric != "kappa_ratio")
    return [grid for metric in ratio_first if (grid := _percentile_grid(data, metric)).rows]


def _percentile_grid(data: ReportData, metric: str) -> Grid:
    lines: dict[tuple[object, ...], dict[float, float]] = {}
    for row in data.percentiles:
        if row["metric"] == metric and (row["block_tokens"] == 1 or _moves_with_blocks(row)):
            lines.setdefault(tuple(row[key] for key in _KEYS), {})[row["percentile"]] = row["value"]
    columns = (*(PERCENTILES_TABLE.field(key).label() for key in _KEYS), *(f"p{p:g}" for p in PERCENTILES))
    rows = [(*map(str, key), *(number(values.get(p)) for p in PERCENTILES)) for key, values in lines.items()]
    return Grid(f"percentiles-{metric}", f"Percentiles of {_metric_label(metric)}", columns, rows, words=4)


def _moves_with_blocks(row: Row) -> bool:
    """Return whether the report shows a row at coarser blocks: only kappa_ratio over turns with K > 0."""
    return bool(row["metric"] == "kappa_ratio" and row["population"] == "reused")


def _metric_label(metric: str) -> str:
    """Return the label of a metric with its symbol; context_tokens is not a column of turns.

    >>> [_metric_label(m) for m in ("cached_tokens", "context_tokens", "kappa_ratio")]
    ['cached tokens (K)', 'context tokens (K + T)', 'kappa ratio (K / T)']
    """
    if metric not in TURNS.names:
        return "context tokens (K + T)"
    field = TURNS.field(metric)
    return f"{field.label()} ({field.description.split(':')[0].split(';')[0]})"


def bound_grids(data: ReportData) -> list[Grid]:
    """Return the heat map as tables: one per workload, a row per model, a column per platform."""
    columns = ("model", "turns beyond its context", *map(str, data.platforms))
    grids = []
    for workload in data.workloads:
        models = boundness.models_of(data, workload)
        rows = [_bound_row(data, workload, model) for model in models]
        caption = f"Memory bound turns of {workload}, % of all turns"
        grids.append(Grid(f"bound-{workload}", caption, columns, rows, words=2))
    return [grid for grid in grids if grid.rows]


def _bound_row(data: ReportData, workload: str, model: str) -> tuple[str, ...]:
    cells = [boundness.cell(data, workload, model, platform) or MISSING for platform in data.platforms]
    beyond = next(data.bound[key] for key in data.bound if key[:2] == (workload, model))["over_context_turn_share"]
    doubt = ", hypothetical" if is_hypothetical(beyond) else ""
    return (data.model_label(model, workload), percent(beyond) + doubt, *cells)


def crit_grid(data: ReportData) -> Grid:
    """Return kappa_crit of the headline models on the headline platforms, both bases side by side."""
    columns = ("model", "tokenizer", *map(str, data.platforms))
    rows = [
        (data.model_label(model), row["tokenizer"], *(number(data.crit.get((model, p))) for p in data.platforms))
        for model, row in data.models.items()
    ]
    note = (
        "bf16 keys and values. A dash: the bytes of a token are not constant, or the paper gives no inputs for "
        "the model. "
        "The table kappa_crit has every other model, platform and kv_dtype."
    )
    return Grid(
        "kappa-crit", "kappa_crit of the headline models and platforms (basis in brackets)", columns, rows, 2, note
    )


def comparison_grids(data: ReportData) -> list[Grid]:
    """Return the published figures with ours: first of hardware, then of each built workload."""
    groups: dict[str | None, list[Row]] = {name: [] for name in (None, *data.workloads)}
    for row in data.comparison:
        if row["workload"] in groups:
            groups[row["workload"]].append(row)
    sources = list(dict.fromkeys(row["source"] for rows in groups.values() for row in rows))
    return [_comparison_grid(name, rows, sources) for name, rows in groups.items() if rows]


def _comparison_grid(workload: str | None, rows: list[Row], sources: list[str]) -> Grid:
    used = [source for source in sources if any(row["source"] == source for row in rows)]
    labels = [PAPER_COMPARISON.field(name).label() for name in ("quantity", "tokenizer", "population")]
    columns = (*labels, "comparison", "published", "ours", "ratio", "source")
    cells = [_comparison_row(row, used.index(row["source"]) + 1) for row in rows]
    name, subject = (workload, workload) if workload else ("hardware", "hardware and models, basis paper")
    note = "Sources: " + "; ".join(f"[{i}] {source}" for i, source in enumerate(used, 1)) + "."
    return Grid(f"published-{name}", f"Published figures: {subject}", columns, cells, 4, note)


def _comparison_row(row: Row, source: int) -> tuple[str, ...]:
    return (
        row["quantity"],
        row["tokenizer"] or MISSING,
        row["population"] or MISSING,
        comparison_words(row),
        number(row["value"]),
        number(row["ours"]),
        number(row["ratio"]) if row["is_full_set"] else MISSING,
        f"[{source}]",
    )


def comparison_words(row: Row) -> str:
    """Return how a published figure and ours compare; a part of a set or a sample is not compared.

    >>> full = {"ours": 84.0, "is_full_set": True, "is_asserted": True, "tolerance": 0.05, "within_tolerance": True}
    >>> comparison_words(full), comparison_words({**full, "within_tolerance": False})
    ('met within 5 %', 'not met within 5 %')
    >>> comparison_words({**full, "is_full_set": False}), comparison_words({**full, "ours": None})
    ('not compared: not the full set', 'no value of ours')
    >>> comparison_words({**full, "is_asserted": False, "within_tolerance": None})
    'for orientation: not asserted'
    """
    if row["ours"] is None:
        return "no value of ours"
    if not row["is_full_set"]:
        return "not compared: not the full set"
    if row["within_tolerance"] is None:
        return "for orientation: not asserted"
    return f"{'met' if row['within_tolerance'] else 'not met'} within {row['tolerance'] * 100:g} %"


def not_compared(data: ReportData) -> str:
    """Return the sentence on workloads that are not compared; empty if all are."""
    partial = sorted(
        {r["workload"] for r in data.comparison if r["workload"] in data.workloads and not r["is_full_set"]}
    )
    if not partial:
        return ""
    why = "the text was generated" if data.is_sample else "a part of the set, or another edition, was measured"
    return f"Not compared: {listing(partial)}, since {why}. Our values are given without a ratio."

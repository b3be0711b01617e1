"""Figures of caches: hits over bytes, and where tokens come from with what then crosses the link."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from reports.data import ReportData, Row, platform_of
from reports.figures import style
from warehouse.declared.fields import LOGGED
from warehouse.declared.formats import quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL_IN, REST_IN, TIERS_IN = 1.75, 0.95, 1.7
ORIGINS = {"gpu_tokens_sum": "GPU memory", "link_tokens_sum": "host memory", "computed_tokens_sum": "computed"}
LEAST_LOG_BYTES = 8.5
HATCHES = ("", "////", "....")
SHOWN_HOSTS = (128e9, 512e9, 1024e9, 2048e9)


def workloads_of(data: ReportData) -> list[str]:
    """Return the workloads that have a curve, sorted by name."""
    return sorted({row["workload"] for row in data.cache.curves})


def draw_capacity(data: ReportData) -> Figure:
    """Return the figure of hit ratio over bytes: a panel a workload, a line a model, marks at the GPUs' own memory."""
    workloads = workloads_of(data)
    title = "prompt tokens that a cache of a size finds, by model (bf16 keys and values)"
    figure = style.new_figure(PANEL_IN * len(workloads) + REST_IN, title, is_sample=data.is_sample)
    panels = figure.subplots(len(workloads), 1, sharex=True, squeeze=False)[:, 0]
    looks = dict(zip(data.models, zip(style.colours(len(data.models)), _lines(data), strict=True), strict=True))
    for axes, workload in zip(panels, workloads, strict=True):
        for model, look in looks.items():
            _draw_model(axes, data, (workload, model), look)
        axes.set_title(workload, fontweight="bold")
        style.percent_axis(axes, "hit ratio, %")
    panels[-1].set_xlabel("bytes of keys and values, log scale")
    # Below it no cache is sold, and hardly a curve has begun to rise.
    panels[-1].set_xlim(left=LEAST_LOG_BYTES)
    style.log_axis(panels[-1].xaxis)
    named = [axes.get_legend_handles_labels() for axes in panels]
    handles = {label: handle for lines, labels in named for handle, label in zip(lines, labels, strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)
    return figure


def _lines(data: ReportData) -> list[object]:
    return [style.LINE_STYLES[place % len(style.LINE_STYLES)] for place in range(len(data.models))]


def _draw_model(axes: Axes, data: ReportData, names: tuple[str, str], look: tuple[str, object]) -> None:
    """Draw the curve of a model, the optimum in its bytes, and the memory of its GPUs on the reference platform."""
    (workload, model), (colour, line) = names, look
    row = data.models[model]
    curve, best = (
        [one for one in some if one["workload"] == workload and one["tokenizer"] in (row["tokenizer"], LOGGED)]
        for some in (data.cache.curves, data.cache.optimum)
    )
    token_bytes = row["marginal_kv_bytes_per_token"]
    if not curve or not token_bytes:
        return
    for points, width, label in ((curve, 1.4, data.model_label(model)), (best, 0.5, None)):
        places = [_log_bytes(point, token_bytes) for point in points]
        ratios = [100 * point["hit_ratio"] for point in points]
        style_of = {"linestyle": line} if label else {"linestyle": "-"}
        axes.plot(places, ratios, color=colour, linewidth=width, label=label, **style_of)
    for tier in tiers_of(data, workload, model):
        if tier["host_bytes"] == 0 and tier["gpu_capacity_blocks"]:
            place = math.log10(tier["gpu_capacity_blocks"] * tier["block_tokens"] * token_bytes)
            share = tier["gpu_tokens_sum"] / max(_tokens(tier), 1)
            axes.plot([place], [100 * share], marker="o", markersize=4, color=colour, linestyle="none")


def _log_bytes(point: Row, token_bytes: float) -> float:
    return math.log10(max(point["capacity_blocks"], 1) * point["block_tokens"] * token_bytes)


def tiers_of(data: ReportData, workload: str, model: str) -> list[Row]:
    """Return the rows of a workload and model on the reference platform, by size of host memory."""
    rows = [row for row in data.cache.tiers if (row["workload"], row["model"]) == (workload, model)]
    hardware = None if data.reference is None else data.reference.hardware
    return sorted((row for row in rows if platform_of(row).hardware == hardware), key=lambda row: row["host_bytes"])


def loaded_model(data: ReportData, workload: str) -> str | None:
    """Return the headline model that loads the largest share over the link, the first among equals."""
    last = {model: rows[-1] for model in data.models if (rows := tiers_of(data, workload, model))}
    return max(last, key=lambda model: last[model]["link_tokens_sum"] / max(_tokens(last[model]), 1), default=None)


def draw_tiers(data: ReportData) -> Figure:
    """Return the figure of origins and kappa_link by host memory: a row a workload, its model that loads most."""
    shown = {workload: model for workload in workloads_of(data) if (model := loaded_model(data, workload))}
    title = "where prompt tokens come from, and what the link then carries, by host memory"
    figure = style.new_figure(TIERS_IN * len(shown) + REST_IN, title, is_sample=data.is_sample)
    panels = figure.subplots(len(shown), 2, squeeze=False)
    for (left, right), (workload, model) in zip(panels, shown.items(), strict=True):
        rows = tiers_of(data, workload, model)
        _draw_origins(left, rows)
        _draw_kappa_link(right, [row for row in rows if row["host_bytes"] in SHOWN_HOSTS])
        left.set_title(f"{workload}: {data.model_label(model, workload)} x {rows[0]['gpus']}", fontweight="bold")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    more, words = panels[0, 1].get_legend_handles_labels()
    figure.legend([*handles, *more], [*labels, *words], loc="outside lower center", ncols=4)
    return figure


def _draw_origins(axes: Axes, rows: list[Row]) -> None:
    below = [0.0] * len(rows)
    places = list(range(len(rows)))
    for (name, label), colour, hatch in zip(ORIGINS.items(), style.colours(3), HATCHES, strict=True):
        shares = [100 * row[name] / max(_tokens(row), 1) for row in rows]
        axes.bar(places, shares, 0.8, below, color=f"{colour}66", edgecolor=colour, hatch=hatch, label=label)
        below = [low + share for low, share in zip(below, shares, strict=True)]
    axes.set_xticks(places, [_size(row) for row in rows], fontsize=6.8)
    axes.grid(visible=False, axis="x")
    style.percent_axis(axes, "% of prompt tokens")


def _draw_kappa_link(axes: Axes, rows: list[Row]) -> None:
    """Draw median, p90 and p99 of kappa_link at each size; a value below 0.1 lies on the edge of the log scale."""
    for level, marker, colour in zip((50, 90, 99), style.MARKERS, style.colours(3), strict=False):
        values = [math.log10(max(row[f"kappa_link_p{level}"], 0.1)) for row in rows]
        axes.plot(range(len(rows)), values, marker=marker, color=colour, linestyle=":", label=f"kappa_link p{level}")
    if rows and rows[0]["kappa_crit"]:
        axes.axhline(math.log10(rows[0]["kappa_crit"]), color=style.INK, linestyle="--", label="kappa_crit")
    axes.set_xticks(range(len(rows)), [_size(row) for row in rows], fontsize=6.8)
    axes.set_ylabel("K_link / T_eff, log scale")
    style.log_axis(axes.yaxis, most=4)


def _size(row: Row) -> str:
    return quantity(row["host_bytes"], "B").replace(" ", "\n") if row["host_bytes"] else "none"


def _tokens(row: Row) -> int:
    return sum(int(row[name]) for name in ORIGINS)

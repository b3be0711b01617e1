"""The heat map of memory bound turns, in percent, by workload, headline model and platform."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reports.data import Platform, ReportData
from reports.figures import style
from reports.format import is_hypothetical, whole_percent
from reports.histogram import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW_IN, PANEL_IN, REST_IN = 0.19, 0.3, 1.35
HYPOTHETICAL_MARK = "*"


def draw(data: ReportData) -> Figure:
    """Return the figure: a panel per workload, a row per model, a column per platform; numbers in percent."""
    panels = {workload: models_of(data, workload) for workload in data.workloads}
    panels = {workload: models for workload, models in panels.items() if models}
    heights = [ROW_IN * len(models) + PANEL_IN for models in panels.values()]
    title = "memory bound turns, % of all turns (t_PCIe > t_GPU, cost_model 2n)"
    figure = style.new_figure(sum(heights) + REST_IN, title, is_sample=data.is_sample)
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for panel, (workload, models) in zip(axes, panels.items(), strict=True):
        _draw_panel(panel, data, workload, models)
    columns = np.arange(len(data.platforms)) + 0.5
    axes[-1].set_xticks(columns, [_three_lines(platform) for platform in data.platforms], fontsize=6.8)
    note = "hypothetical: more than 1 % of the turns are longer than the model's context. Grey: no kappa_crit."
    figure.supxlabel(f"{HYPOTHETICAL_MARK} {note}", fontsize=7.5, x=0.012, ha="left")
    return figure


def models_of(data: ReportData, workload: str) -> list[str]:
    """Return the headline models whose tokenizer counted this workload, in headline order."""
    return [model for model in data.models if any((workload, model, p) in data.bound for p in data.platforms)]


def cell(data: ReportData, workload: str, model: str, platform: Platform) -> str:
    """Return the percentage of memory bound turns, starred if the verdict is hypothetical; empty if unknown."""
    row = data.bound.get((workload, model, platform))
    if row is None:
        return ""
    star = HYPOTHETICAL_MARK if is_hypothetical(row["over_context_turn_share"]) else ""
    return whole_percent(row["memory_bound_turn_share"]) + star


def _shares(data: ReportData, workload: str, models: list[str]) -> Floats:
    rows = [[data.bound.get((workload, model, platform)) for platform in data.platforms] for model in models]
    return np.array([[row["memory_bound_turn_share"] if row else np.nan for row in line] for line in rows])


def _draw_panel(axes: Axes, data: ReportData, workload: str, models: list[str]) -> None:
    import seaborn as sns  # noqa: PLC0415

    texts = np.array([[cell(data, workload, model, platform) for platform in data.platforms] for model in models])
    sns.heatmap(
        _shares(data, workload, models), annot=texts, fmt="", vmin=0, vmax=1, cmap="Blues", cbar=False, ax=axes,
        linewidths=0.6, linecolor="white", annot_kws={"fontsize": 7.5},
        yticklabels=[data.model_label(model, workload) for model in models], xticklabels=False,
    )  # fmt: skip
    axes.set_title(workload, fontweight="bold")
    axes.grid(visible=False)
    axes.set_facecolor("#eeeeee")
    axes.tick_params(left=False, bottom=False, labelrotation=0)


def _three_lines(platform: Platform) -> str:
    return f"{platform.accelerator}\n{platform.link}\n{platform.basis}"


def caption(data: ReportData) -> str:
    """Return the caption of the figure."""
    return (
        f"Share of all turns, first ones included, that wait for the link, at cost_model 2n, bf16 keys and values, "
        f"reuse by single tokens, counting "
        f"{data.how_counted}; each model with the counts of its own tokenizer (proxy: those of another one stand in "
        f"for a vocabulary that was not counted). "
        f"The darker, the more. {HYPOTHETICAL_MARK} hypothetical: more than 1 % of the turns are longer than the "
        f"model's context."
    )

"""The figure of TTFT over the request rate: a panel a workload, a line a model, on one platform."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.data import Platform, ReportData, Row, platform_of
from reports.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL_IN, REST_IN, COLUMNS = 2.1, 0.9, 2
LOW, HIGH = "ttft_p50_s", "ttft_p99_s"


def platform(data: ReportData) -> Platform | None:
    """Return the platform that is drawn: the first headline one on the physical basis that has rows."""
    there = {platform_of(row) for row in data.load}
    return next((one for one in data.platforms if one in there), None)


def draw(data: ReportData) -> Figure:
    """Return the figure: p90 of TTFT as a line, p50 to p99 as a band; a hollow marker where something limits."""
    drawn = [row for row in data.load if platform_of(row) == platform(data)]
    workloads = sorted({row["workload"] for row in drawn})
    rows = -(-len(workloads) // COLUMNS)
    title = f"TTFT over the request rate, {platform(data)}"
    figure = style.new_figure(REST_IN + PANEL_IN * rows, title, is_sample=data.is_sample)
    panels = figure.subplots(rows, COLUMNS, sharex=True, squeeze=False).ravel()
    models = [model for model in data.models if any(row["model"] == model for row in drawn)]
    colours = dict(zip(models, style.colours(len(models)), strict=True))
    for panel, workload in zip(panels, workloads, strict=False):
        _draw_panel(panel, [row for row in drawn if row["workload"] == workload], colours)
        panel.set_title(workload, fontsize=8, pad=3)
    for panel in panels[len(workloads) :]:
        panel.set_visible(False)
    _legend(figure, data, colours)
    return figure


def _draw_panel(panel: Axes, rows: list[Row], colours: dict[str, str]) -> None:
    for model, colour in colours.items():
        line = sorted((row for row in rows if row["model"] == model), key=lambda row: float(row["load_share"]))
        if not line:
            continue
        share = [float(row["load_share"]) for row in line]
        low, high = ([float(row[name]) for row in line] for name in (LOW, HIGH))
        panel.fill_between(share, low, high, color=colour, alpha=0.12)
        panel.plot(share, [float(row["ttft_p90_s"]) for row in line], color=colour, linewidth=1.2, zorder=3)
        limited = [row for row in line if row["limit"] != "none"]
        at = ([float(row["load_share"]) for row in limited], [float(row["ttft_p90_s"]) for row in limited])
        panel.plot(*at, "o", markersize=4, markerfacecolor="white", color=colour, zorder=4)
    panel.set_yscale("log")
    panel.set_ylabel("TTFT (s)", fontsize=7)
    panel.set_xlabel("rate / what link and accelerator carry", fontsize=7)
    panel.tick_params(labelsize=7)


def _legend(figure: Figure, data: ReportData, colours: dict[str, str]) -> None:
    from matplotlib.lines import Line2D  # noqa: PLC0415

    lines = [Line2D([], [], color=colour, label=data.model_label(model)) for model, colour in colours.items()]
    figure.legend(handles=lines, loc="outside lower center", ncols=4, fontsize=7, frameon=False)


def caption(data: ReportData) -> str:
    """Return the caption: what is drawn and how it was run."""
    return (
        "p90 of TTFT over the request rate as a line, p50 to p99 as a band; a marker where link, compute or memory "
        f"limits. {platform(data)}, the least GPUs that hold weights and cache, Poisson arrivals, first come first "
        "served, loads beside computing, sessions interleaved 16 at a time; kappa serve-sim takes other platforms."
    )

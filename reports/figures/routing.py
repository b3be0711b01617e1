"""The figure of the cheapest fleet: which machine serves which turns, by K and T. It needs prices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.data import ReportData, Row, platform_of
from reports.figures import style
from warehouse.declared.formats import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL_IN, REST_IN, COLUMNS = 2.0, 0.9, 3
CELL_PT = 120


def draw(data: ReportData) -> Figure:
    """Return the figure of one workload: a panel a model, a cell a class, coloured by the machine of most of it."""
    rows = shown(data)
    models = [model for model in data.models if any(row["model"] == model for row in rows)]
    lines = -(-len(models) // COLUMNS)
    title = f"The cheapest fleet for {rows[0]['workload']}"
    figure = style.new_figure(REST_IN + PANEL_IN * lines, title, is_sample=data.is_sample)
    panels = figure.subplots(lines, COLUMNS, sharex=True, sharey=True, squeeze=False).ravel()
    machines = sorted({platform_of(row).hardware for row in rows})
    colours = dict(zip(machines, style.colours(len(machines)), strict=True))
    bins = [sorted({int(row[name]) for row in rows}) for name in ("cached_from_tokens", "new_from_tokens")]
    for panel, model in zip(panels, models, strict=False):
        _draw_panel(panel, [row for row in rows if row["model"] == model], colours, bins)
        panel.set_title(data.model_label(model), fontsize=7.5, pad=3)
    for panel in panels[len(models) :]:
        panel.set_visible(False)
    _legend(figure, colours)
    return figure


def shown(data: ReportData) -> list[Row]:
    """Return the rows of the workload whose turns are of the most classes."""
    names = [str(row["workload"]) for row in data.fleet]
    first = max(sorted(set(names)), key=names.count, default="")
    return [row for row in data.fleet if row["workload"] == first]


def _draw_panel(panel: Axes, rows: list[Row], colours: dict[str, str], bins: list[list[int]]) -> None:
    cached, new = bins
    for row in rows:
        place = (cached.index(int(row["cached_from_tokens"])), new.index(int(row["new_from_tokens"])))
        size = CELL_PT * float(row["routed_turn_share"])
        panel.scatter(*place, s=size, marker="s", color=colours[platform_of(row).hardware], linewidths=0)
    panel.set_xticks(range(len(cached)), [f"{value:,}" for value in cached], fontsize=6, rotation=45)
    panel.set_yticks(range(len(new)), [f"{value:,}" for value in new], fontsize=6)
    panel.set_xlabel("K from (tokens)", fontsize=7)
    panel.set_ylabel("T from (tokens)", fontsize=7)
    panel.margins(0.15)


def _legend(figure: Figure, colours: dict[str, str]) -> None:
    from matplotlib.lines import Line2D  # noqa: PLC0415

    marks = [Line2D([], [], color=c, marker="s", linestyle="none", label=name) for name, c in colours.items()]
    figure.legend(handles=marks, loc="outside lower center", ncols=3, fontsize=7, frameon=False)


def caption(data: ReportData) -> str:
    """Return the caption: what is drawn, and the prices."""
    costs = {row["model"]: float(row["usd_per_million_turns"]) for row in shown(data)}
    told = ", ".join(f"{model} {number(usd)}" for model, usd in costs.items())
    return (
        "A square is a class of turns, its colour the machine that serves it, its size the share that this machine "
        f"serves. Prices are those of prices.csv; USD a million turns: {told}."
    )

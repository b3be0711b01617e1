"""One figure per workload: log histograms and cumulative curves of T, K and kappa_ratio, first turns separate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.data import ReportData
from reports.figures import style
from reports.format import percent
from reports.histogram import BINS_PER_DECADE, METRICS, Histogram, span
from warehouse.declared.fields import LOGGED, TURNS
from warehouse.declared.tables import TURNS as TURNS_TABLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import Collection
    from matplotlib.figure import Figure

HEIGHT_IN = 3.9
COARSER = 4  # five bars per decade: narrower bars leave gaps between the first whole numbers
LATER, FIRST = "later turns", "first turns"


def draw(data: ReportData, workload: str) -> Figure:
    """Return the figure of one workload: a column per metric, histogram at the top, cumulative curve at the bottom."""
    title = f"{workload}: new tokens T, cached tokens K and their ratio"
    figure = style.new_figure(HEIGHT_IN, title, is_sample=data.is_sample)
    axes = figure.subplots(2, len(METRICS), sharex="col", sharey="row", height_ratios=[1.15, 1])
    for column, metric in enumerate(METRICS):
        later, first = (data.histograms[workload, metric, is_first] for is_first in (False, True))
        low, high = span([later, first], per_decade=BINS_PER_DECADE)
        _draw_bars(axes[0, column], later, first, (low, high))
        _draw_cumulative(axes[1, column], later, first, (low, high))
        axes[1, column].set_xlabel(style.axis_label(TURNS_TABLE.field(metric)) + "\nlog scale")
        style.log_axis(axes[1, column].xaxis, most=6)
    axes[0, 0].set_ylabel(f"% of all {TURNS.label()}")
    style.percent_axis(axes[1, 0], f"% of first / later {TURNS.label()}\nbelow x")
    figure.align_ylabels()
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _draw_bars(axes: Axes, later: Histogram, first: Histogram, bins: tuple[int, int]) -> None:
    import seaborn as sns  # noqa: PLC0415

    total = max(later.total + first.total, 1)
    low, high = bins[0] // COARSER, bins[1] // COARSER
    for part, label, colour in zip((later, first), (LATER, FIRST), style.colours(2), strict=True):
        coarse = part.coarser(COARSER)
        edges = coarse.edges(low, high)
        sns.histplot(
            x=(edges[:-1] + edges[1:]) / 2, weights=100 * coarse.dense(low, high) / total, bins=edges.tolist(),
            element="step", fill=True, ax=axes, color=colour, label=label, linewidth=1.0,
        )  # fmt: skip
        _fill(axes.collections[-1], colour, is_first=label == FIRST)
    axes.set_title(_zeros(later, first), fontsize=7, fontweight="normal")


def _fill(bars: Collection, colour: str, *, is_first: bool) -> None:
    """Tint later turns and hatch first turns, so that both show where they overlap and in black and white."""
    bars.set_alpha(None)
    bars.set_edgecolor(colour)
    bars.set_facecolor("none" if is_first else f"{colour}44")
    if is_first:
        bars.set_hatch("//////")
        bars.set_linestyle("--")


def _zeros(later: Histogram, first: Histogram) -> str:
    """Return the share of turns with value 0, which a log axis cannot show; empty if there are none."""
    parts = [
        f"{percent(part.zeros / part.total)} of {kind}"
        for kind, part in (("first", first), ("later", later))
        if part.zeros and part.total
    ]
    return f"value 0, not drawn:\n{', '.join(parts)} {TURNS.label()}" if parts else ""


def _draw_cumulative(axes: Axes, later: Histogram, first: Histogram, bins: tuple[int, int]) -> None:
    import seaborn as sns  # noqa: PLC0415

    for part, colour, line in zip((later, first), style.colours(2), ("-", "--"), strict=True):
        if part.total:
            sns.lineplot(
                x=part.edges(*bins), y=100 * part.share_below(*bins), ax=axes, color=colour, linestyle=line,
                estimator=None, sort=False,
            )  # fmt: skip


def caption(data: ReportData, workload: str) -> str:
    """Return the caption of the figure."""
    later, first = (data.histograms[workload, "prefill_tokens", is_first].total for is_first in (False, True))
    return (
        f"{workload}, {_counted(data, workload)}: {first:,} first turns (turn_index 0), "
        f"{later:,} later ones. Above, the share of all turns in "
        f"each bin, five bins to a factor of ten; below, the share of first and of later turns under x."
    )


def _counted(data: ReportData, workload: str) -> str:
    shown = data.shown[workload]
    return (
        f"token counts of the log, reuse {shown.reuse}"
        if shown.counting == LOGGED
        else f"counted by {data.tokenizer} ({shown})"
    )

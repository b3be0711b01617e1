"""The figure of the first screen: kappa_ratio of turns and kappa_crit of models on platforms, on one axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from reports.data import Platform, ReportData
from reports.figures import style
from reports.histogram import BINS_PER_DECADE, Floats, span
from warehouse.declared.fields import KAPPA_RATIO, TURNS
from warehouse.declared.hardware_fields import KAPPA_CRIT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW_IN, TOP_IN, REST_IN = 0.21, 2.5, 1.65


@dataclass(frozen=True)
class Curve:
    """Share of a workload's turns above x, in percent; x is log10 of kappa_ratio."""

    name: str
    x: Floats
    y: Floats


def draw(data: ReportData) -> Figure:
    """Return the figure: at the top the shares of turns, below them a row of kappa_crit markers per model."""
    rows = sorted_models(data)
    height = TOP_IN + REST_IN + ROW_IN * len(rows)
    figure = style.new_figure(height, "kappa_ratio of the workloads against kappa_crit", is_sample=data.is_sample)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[TOP_IN, max(ROW_IN * len(rows), 0.4)])
    drawn = curves(data)
    top.set_xlim(*_limits(data, drawn))
    _draw_crit(bottom, data, rows)
    _draw_reference(top, bottom, data, rows)
    _draw_curves(top, drawn)
    handles, labels = bottom.get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=2, title="kappa_crit (basis in brackets)")
    return figure


def sorted_models(data: ReportData) -> list[str]:
    """Return the models with any kappa_crit, sorted by kappa_crit on the reference platform."""
    have = {model for (model, _), value in data.crit.items() if value is not None}
    order = {model: (data.crit.get((model, data.reference)) if data.reference else None) or 0.0 for model in have}
    return sorted(have, key=lambda model: (order[model], model))


def curves(data: ReportData) -> list[Curve]:
    """Return the share of all turns, first turns included, above each bin edge, for every drawn workload."""
    found = []
    for workload in data.drawn_workloads:
        turns = data.histograms[workload, "kappa_ratio", False] + data.histograms[workload, "kappa_ratio", True]
        low, high = span([turns], per_decade=BINS_PER_DECADE)
        found.append(Curve(workload, turns.edges(low, high), 100 * (1 - turns.share_below(low, high))))
    return found


def _limits(data: ReportData, drawn: Sequence[Curve]) -> tuple[float, float]:
    marks = [float(np.log10(value)) for value in data.crit.values() if value]
    # Cut the ends where nearly no turns are below or above: the curves are flat there.
    bends = [x for curve in drawn for x in curve.x[(curve.y > 0) & (curve.y < curve.y[0] - 2)].tolist()]
    return min([*marks, *bends, 0.0]) - 0.15, max([*marks, *bends, 1.0]) + 0.35


def _draw_crit(axes: Axes, data: ReportData, rows: list[str]) -> None:
    import seaborn as sns  # noqa: PLC0415

    alike = platforms_alike(data, rows)
    for colour, marker, (label, platform) in zip(style.colours(len(alike)), cycle(style.MARKERS), alike, strict=False):
        values = [data.crit.get((model, platform)) for model in rows]
        points = [(float(np.log10(value)), row) for row, value in enumerate(values) if value]
        if not points:
            continue
        x, y = zip(*points, strict=True)
        is_paper = platform.basis == "paper"
        sns.scatterplot(
            x=x, y=y, marker=marker, s=42, ax=axes, label=label, legend=False, zorder=3, linewidth=1.1,
            color="white" if is_paper else colour, edgecolor=colour if is_paper else "white",
        )  # fmt: skip
    axes.set_yticks(range(len(rows)), [data.model_label(model) for model in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlabel(f"{style.axis_label(KAPPA_RATIO)} above, {style.axis_label(KAPPA_CRIT)} here; no unit, log scale")
    style.log_axis(axes.xaxis)


def platforms_alike(data: ReportData, rows: list[str]) -> list[tuple[str, Platform]]:
    """Return one platform of each group with equal kappa_crit for every model, with a label that names the group.

    Their markers would overlap: such platforms have the same link, and accelerators that differ only in memory.
    """
    groups: dict[tuple[object, ...], list[Platform]] = {}
    for platform in data.platforms:
        values = tuple(data.crit.get((model, platform)) for model in rows)
        groups.setdefault((platform.link, platform.basis, values), []).append(platform)
    return [(" / ".join([p.accelerator for p in group[:-1]] + [str(group[-1])]), group[0]) for group in groups.values()]


def _draw_reference(top: Axes, bottom: Axes, data: ReportData, rows: list[str]) -> None:
    """Draw a line from each model's marker on the reference platform up through the curves."""
    title = f"share of {TURNS.label()} above x"
    for row, model in enumerate(rows):
        value = data.crit.get((model, data.reference)) if data.reference else None
        if value:
            x = float(np.log10(value))
            top.axvline(x, color="#666666", linewidth=0.7, zorder=1)
            bottom.plot([x, x], [row, -0.6], color="#666666", linewidth=0.7, zorder=1)
            title = (
                f"grey lines: kappa_crit on {data.reference};\n"
                "the height of a curve there is the memory bound share of the turns"
            )
    top.set_title(title, fontsize=7.5, fontweight="normal")


def _draw_curves(axes: Axes, drawn: Sequence[Curve]) -> None:
    import seaborn as sns  # noqa: PLC0415

    palette = style.colours(len(drawn))
    low, high = axes.get_xlim()
    for i, curve in enumerate(drawn):
        # Extend the curve beyond its bins: it is 0 from the last one on.
        across = [min(low, curve.x[0]), *curve.x, max(high, curve.x[-1])]
        sns.lineplot(
            x=across, y=[curve.y[0], *curve.y, curve.y[-1]], ax=axes, color=palette[i],
            linestyle=style.LINE_STYLES[i % len(style.LINE_STYLES)], estimator=None, sort=False, zorder=4,
        )  # fmt: skip
    style.percent_axis(axes, f"{TURNS.label()} with kappa_ratio\nabove x (% of all {TURNS.label()})")
    for colour, (curve, x, y, side) in zip(palette, _label_places(axes, drawn), strict=True):
        axes.annotate(
            curve.name, (x, y), (5 * side, 0), textcoords="offset points", color=style.darker(colour),
            fontweight="bold", zorder=5, ha="left" if side > 0 else "right", va="center",
            bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.85},
        )  # fmt: skip


def _label_places(axes: Axes, drawn: Sequence[Curve]) -> list[tuple[Curve, float, float, int]]:
    """Return the position of each curve's name: the one that covers least of the other curves and names."""
    low, high = axes.get_xlim()
    scale = np.array([high - low, 100.0])
    points = np.concatenate([_dense(curve) for curve in drawn] or [np.zeros((0, 2))]) / scale
    taken: list[Floats] = []
    places = []
    for curve in drawn:
        options = [(y, side) for y in range(12, 96, 4) for side in (1, -1) if y < curve.y[0]] or [(6, 1)]
        boxes = [_box(curve, y, side, scale) for y, side in options]
        costs = [_cover(box, points) + sum(500 * _overlap(box, other) for other in taken) for box in boxes]
        outside = [500 * (box[0] < low / scale[0] or box[2] > high / scale[0]) for box in boxes]
        best = int(np.argmin(np.array(costs) + np.array(outside)))
        taken.append(boxes[best])
        y, side = options[best]
        places.append((curve, float(np.clip(_crossing(curve, y), low, high)), float(y), side))
    return places


def _dense(curve: Curve) -> Floats:
    x = np.linspace(curve.x[0], curve.x[-1], 400)
    return np.column_stack((x, np.interp(x, curve.x, curve.y)))


def _crossing(curve: Curve, y: float) -> float:
    """Return the x at which a decreasing curve reaches y."""
    return float(np.interp(-y, -curve.y, curve.x))


def _box(curve: Curve, y: float, side: int, scale: Floats) -> Floats:
    """Return (left, bottom, right, top) of a name next to its curve, in fractions of the axes."""
    x, width = _crossing(curve, y) / scale[0], 0.0145 * len(curve.name)
    near = x + 0.012 * side
    left, right = sorted((near, near + side * width))
    return np.array([left, y / 100 - 0.04, right, y / 100 + 0.04])


def _cover(box: Floats, points: Floats) -> int:
    inside = (points[:, 0] > box[0]) & (points[:, 0] < box[2]) & (points[:, 1] > box[1]) & (points[:, 1] < box[3])
    return int(inside.sum())


def _overlap(box: Floats, other: Floats) -> bool:
    return bool(box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3])


def caption(data: ReportData) -> str:
    """Return the caption of the figure."""
    lines = (
        f" Grey lines stand at kappa_crit on {data.reference}: the height of a curve there is the share of turns "
        f"that are "
        "memory bound, exactly so for models of that vocabulary."
        if data.reference
        else ""
    )
    return (
        f"Each curve is the share of a workload's turns, first turns included, whose kappa_ratio is above x "
        f"({data.whose_counts}, {data.how_counted}).{lines} Below, kappa_crit of each headline model on each headline "
        f"platform at cost_model 2n, "
        f"bf16 keys and values; hollow markers: basis paper."
    )

"""The figure of the design questions: kappa_crit and compute bound turns of each model before and after a change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reports.data import COST_MODEL, ReportData, Row
from reports.design_answers import answers, crit_of, share_of, title, workloads_of
from reports.figures import style
from reports.format import listing
from warehouse.declared.hardware_fields import KAPPA_CRIT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW_IN, PANEL_IN, REST_IN = 0.155, 0.76, 0.75
MARKERS = ("o", "s", "^", "D", "v", "P")
HEAD_PT = 7.5
Variants = dict[str, list[Row]]


def basis_of(data: ReportData) -> str:
    """Return the basis to draw: physical if it has rows, else the first; empty without rows."""
    bases = {row["basis"] for row in data.design_questions}
    return "physical" if "physical" in bases else min(bases, default="")


def draw(data: ReportData) -> Figure:
    """Return the figure: per question a row of panels (kappa_crit, then each workload), with a line per model."""
    questions = _questions(data)
    models = [m for m in data.models if any(row["model"] == m for row in data.design_questions)]
    workloads = workloads_of(data)
    height = REST_IN + (PANEL_IN + ROW_IN * len(models)) * len(questions)
    heading = f"design questions, basis {basis_of(data)}, cost_model {COST_MODEL}"
    figure = style.new_figure(height, heading, is_sample=data.is_sample)
    axes = figure.subplots(len(questions), 1 + len(workloads), sharey=True, sharex="col", squeeze=False)
    for panels, (question, variants) in zip(axes, questions.items(), strict=True):
        _draw_question(list(panels), data, variants, models)
        _head(panels[0], f"{title(question)}, {next(iter(variants.values()))[0]['accelerator']}")
        for panel, workload in zip(panels[1:], workloads, strict=True):
            panel.set_title(workload, fontsize=HEAD_PT, pad=3)
    _label(list(axes[-1]))
    axes[0, 0].set_yticks(range(len(models)), [data.model_label(model) for model in models], fontsize=7)
    axes[0, 0].set_ylim(len(models) - 0.4, -0.6)
    return figure


def _questions(data: ReportData) -> dict[str, Variants]:
    found: dict[str, Variants] = {}
    for (basis, question, variant), rows in answers(data).items():
        if basis == basis_of(data):
            found.setdefault(question, {})[variant] = rows
    return found


def _draw_question(panels: list[Axes], data: ReportData, variants: Variants, models: list[str]) -> None:
    crit = [[crit_of(rows, model) for model in models] for rows in variants.values()]
    _draw_panel(panels[0], variants, [[float(np.log10(v)) if v else None for v in values] for values in crit])
    for panel, workload in zip(panels[1:], workloads_of(data), strict=True):
        _draw_panel(panel, variants, [[_percent(rows, m, workload) for m in models] for rows in variants.values()])
        panel.set_xlim(-4, 104)


def _percent(rows: list[Row], model: str, workload: str) -> float | None:
    row = share_of(rows, model, workload)
    return None if row is None else 100 * float(row["compute_bound_turn_share"])


def _draw_panel(axes: Axes, variants: Variants, values: list[list[float | None]]) -> None:
    """Draw a marker per variant for each model, with a line between them; the first is hollow and on top."""
    import seaborn as sns  # noqa: PLC0415

    for place, of_model in enumerate(zip(*values, strict=True)):
        known = [value for value in of_model if value is not None]
        if known:
            axes.plot([min(known), max(known)], [place, place], color="#bbbbbb", linewidth=1.0, zorder=1)
    palette = [style.INK, *style.colours(len(variants) - 1)]
    for i, (name, found) in enumerate(zip(variants, values, strict=True)):
        points = [(value, place) for place, value in enumerate(found) if value is not None]
        if points:
            x, y = zip(*points, strict=True)
            edge, fill = (palette[i], "none") if i == 0 else ("white", palette[i])
            sns.scatterplot(
                x=x, y=y, ax=axes, marker=MARKERS[i % len(MARKERS)], label=name, legend=False, color=fill,
                edgecolor=edge, s=30 if i == 0 else 20, zorder=3 if i == 0 else 2, linewidth=0.9 if i == 0 else 0.3,
            )  # fmt: skip
    axes.tick_params(left=False)


def _head(axes: Axes, heading: str) -> None:
    """Write the question above its row of panels, then the legend of the markers and the panel's title."""
    from matplotlib.transforms import ScaledTranslation  # noqa: PLC0415

    # Empty lines reserve space for the question and the legend, which span the whole row.
    axes.set_title(f"\n\n\n{KAPPA_CRIT.label()}", fontsize=HEAD_PT, pad=3)
    above = axes.transAxes + ScaledTranslation(0, 1.75 * HEAD_PT / 72, axes.figure.dpi_scale_trans)
    handles, labels = axes.get_legend_handles_labels()
    legend = axes.legend(
        handles, labels, loc="lower left", bbox_to_anchor=(0, 1), bbox_transform=above, ncols=len(labels),
        borderaxespad=0, borderpad=0, handletextpad=0.1, handlelength=1.2, columnspacing=1.2, fontsize=HEAD_PT - 0.5,
    )  # fmt: skip
    question = axes.annotate(
        heading, (0, 1), (0, 3.1 * HEAD_PT), xycoords="axes fraction", textcoords="offset points", fontweight="bold",
        fontsize=HEAD_PT + 0.5, annotation_clip=False,
    )  # fmt: skip
    legend.set_in_layout(False)
    question.set_in_layout(False)


def _label(axes: list[Axes]) -> None:
    axes[0].set_xlabel("log scale")
    style.log_axis(axes[0].xaxis, most=4)
    for panel in axes[1:]:
        panel.set_xticks([0, 50, 100])
        panel.set_xlabel("% of turns\ncompute bound")


def caption(data: ReportData) -> str:
    """Return the caption of the figure."""
    questions = _questions(data)
    machines = dict.fromkeys(next(iter(variants.values()))[0]["accelerator"] for variants in questions.values())
    return (
        "Hollow circles: the first variant, what the others are compared with. Left, kappa_crit; right, the share of "
        "all turns that is compute bound (t_PCIe <= t_GPU), a panel a workload, a row a model. "
        f"Asked of {listing(list(machines))}, over pcie5-x16 "
        f"unless the variant says otherwise; basis {basis_of(data)}, cost_model {COST_MODEL}, counting "
        f"{data.how_counted}. The tables hold basis paper too."
    )

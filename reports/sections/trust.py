"""How far the predictions are to be trusted: their error against public measurements, by what was measured."""

from __future__ import annotations

from reports.data import ReportData
from reports.page import Block, Grid, Paragraph, Section
from warehouse.declared.formats import MISSING, number

_COLUMNS = ("measured", "points", "mean factor", "worst factor", "held out: mean factor", "held out: worst factor")
_READING = (
    "A factor is how many times a prediction of the cost model full is off, either way; means are geometric. Held out: "
    "predicted by numbers that were fitted without the point's source, and the worst of those is the band of an answer "
    "of `kappa crit`. The model's shape was chosen in sight of these measurements, so even that is kind."
)


def section(data: ReportData) -> Section:
    """Return the section; empty where no measurement has a prediction."""
    blocks: list[Block] = [Paragraph(f"{sentence(data)} {_READING}"), grid(data)] if data.errors else []
    return Section("How near the predictions are to public measurements", blocks)


def sentence(data: ReportData) -> str:
    """Return the nearest and the farthest class, held out, in a sentence."""
    held_out = {row["error_class"]: row["held_out_worst_factor"] for row in data.errors}
    known = {name: factor for name, factor in held_out.items() if factor is not None}
    if not known:
        return "No prediction was held against a measurement that its numbers were not fitted to."
    best, worst = min(known, key=known.__getitem__), max(known, key=known.__getitem__)
    points = sum(row["points"] for row in data.errors)
    return (
        f"{points} public measurements in {len(data.errors)} classes: {_words(best)} was within "
        f"{number(known[best])}, {_words(worst)} within {number(known[worst])}."
    )


def grid(data: ReportData) -> Grid:
    """Return a row for each class of measurements."""
    names = ("mean_factor", "worst_factor", "held_out_mean_factor", "held_out_worst_factor")
    rows = [
        (_words(row["error_class"]), number(row["points"]), *(_factor(row[name]) for name in names))
        for row in data.errors
    ]
    return Grid("errors", "Predicted against measured, by what was measured", _COLUMNS, rows)


def _words(error_class: str) -> str:
    return error_class.replace("-", " ")


def _factor(value: float | None) -> str:
    return MISSING if value is None else number(value)

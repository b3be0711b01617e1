"""The values that the paper prints and our reproductions, with misses and measurements marked as such."""

from __future__ import annotations

from reports.data import ReportData, Row
from reports.format import PERCENT
from reports.page import Grid
from warehouse.declared.formats import MISSING, exact, number, points
from warehouse.declared.tables import PAPER_VALUES

_COLUMNS = (
    *(
        PAPER_VALUES.field(name).label().removesuffix(" (of the metric)")
        for name in ("quantity", "printed", "reproduced", "residual", "verdict", "why")
    ),
)
READING = (
    "Hardware is on basis paper, the source paper's own inputs. Residual: reproduced / printed - 1. Equal when "
    "rounded: to the digits that were printed. A measurement is never asserted; the model's value is given with it "
    "where a model gives one."
)


def value_grids(data: ReportData) -> list[Grid]:
    """Return the tables of the report's warehouse; see `grids_of`."""
    return grids_of(data.paper_values)


def grids_of(rows: list[Row]) -> list[Grid]:
    """Return the printed values of hardware and models, then those of each workload.

    Args:
        rows: The view `paper_values`.
    """
    groups: dict[str | None, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["workload"], []).append(row)
    return [_grid(workload, rows) for workload, rows in groups.items()]


def _grid(workload: str | None, rows: list[Row]) -> Grid:
    cells = [_row(row) for row in rows]
    subject = workload or "hardware and models, basis paper"
    return Grid(f"paper-{workload or 'hardware'}", f"Printed values: {subject}", _COLUMNS, cells, words_at=(4, 5))


def _row(row: Row) -> tuple[str, ...]:
    residual = row["residual"]
    return (
        row["quantity"],
        exact(row["printed"]),
        number(row["reproduced"]),
        MISSING if residual is None else points(residual) + PERCENT,
        value_words(row),
        row["why"] or MISSING,
    )


def is_measurement(row: Row) -> bool:
    """Return whether the paper measured the value on its machine, so that no formula needs to reproduce it."""
    return bool((row["why"] or "").startswith("measured"))


def is_miss(row: Row) -> bool:
    """Return whether the paper's own inputs fail to give the value that it prints."""
    return bool(row["verdict"] == "differs" and row["workload"] is None and not is_measurement(row))


def value_words(row: Row) -> str:
    """Return the verdict on a printed value, with the kind of value if it is a miss or a measurement.

    >>> value_words({"verdict": "differs", "workload": None, "why": "a miss: 1 is not 2"})
    'miss: differs'
    >>> value_words({"verdict": "differs", "workload": None, "why": "measured on one machine"})
    'measurement, not asserted: differs from the model'
    >>> value_words({"verdict": "not reproduced", "workload": "finqa", "why": "of a workload"})
    'not reproduced: the full set was not counted'
    """
    verdict = str(row["verdict"])
    if is_measurement(row):
        beside = {"differs": "differs from the model", "not reproduced": "no model gives it"}.get(verdict, verdict)
        return f"measurement, not asserted: {beside}"
    if verdict == "not reproduced" and row["workload"] is not None:
        return "not reproduced: the full set was not counted"
    return f"miss: {verdict}" if is_miss(row) else verdict


def summary(data: ReportData) -> str:
    """Return how many printed values are reproduced, missed, measured, or lack the counts of their full set."""
    rows = data.paper_values
    measured = sum(map(is_measurement, rows))
    theirs = [row for row in rows if not is_measurement(row)]
    verdicts = [row["verdict"] for row in theirs]
    misses = sum(map(is_miss, theirs))
    differ = verdicts.count("differs") - misses
    parts = [
        f"{verdicts.count('within 1 %')} are reproduced within 1{PERCENT}",
        f"{verdicts.count('equal when rounded')} are equal when rounded to the printed digits",
        f"{misses} are misses of the paper's own arithmetic",
        *([f"{differ} of the data sets differ from our counts"] if differ else []),
        f"{measured} are measurements of one machine, which no test asserts",
        f"{verdicts.count('not reproduced')} are not reproduced here, since the full set was not counted",
    ]
    return f"The paper prints {len(rows)} values that are kept here: {'; '.join(parts)}."

"""Fit the timing model's numbers without each origin in turn, and write what they predict for its points.

`python -m bench.held_out` prints the fit on all points and every class's errors, and with `--write` replaces
`warehouse/reference/held_out.csv`.
"""

from __future__ import annotations

import csv
import sys

from pipelines.hardware.entities import typed
from pipelines.hardware.machines import read_sources
from pipelines.hardware.validation.bands import factor
from pipelines.hardware.validation.fitting import START, fit, held_out
from pipelines.hardware.validation.predicting import Point, predicted
from warehouse.hardware_rows.rows import FOLDER, load_reference


def main() -> None:
    """Print the errors, and write the table where asked."""
    sources, points = read_sources(), typed(Point, load_reference("validation").to_pylist())
    scored = [point for point in points if point.is_scored]
    for number in fit(scored, sources, START):
        sys.stdout.write(f"{number}\n")
    without = held_out(points, sources)
    for point in scored:
        ours = predicted(point, sources) or 0.0
        line = f"{point.point:<5} {point.error_class:<24} {ours / point.measured:6.2f}"
        sys.stdout.write(f"{line} {without[point.point] / point.measured:6.2f}\n")
    for limit in (1.5, 2.0):
        ours = sum(factor(predicted(point, sources) or 0.0, point.measured) <= limit for point in scored)
        theirs = sum(factor(without[point.point], point.measured) <= limit for point in scored)
        sys.stdout.write(f"within {limit}: {ours} of {len(scored)}, held out {theirs}\n")
    if "--write" in sys.argv:
        with (FOLDER / "held_out.csv").open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([("point", "held_out"), *without.items()])


if __name__ == "__main__":
    main()

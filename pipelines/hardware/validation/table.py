"""The table `validation`: predictions beside public measurements."""

from __future__ import annotations

from dataclasses import asdict

import pyarrow as pa

from pipelines.hardware.entities import typed
from pipelines.hardware.machines import Sources
from pipelines.hardware.validation.bands import factor
from pipelines.hardware.validation.predicting import Point, predicted
from warehouse.declared.tables import VALIDATION
from warehouse.hardware_rows.rows import load_reference


def validation(sources: Sources) -> pa.Table:
    """Return every public measurement with the prediction of the default numbers, and of those without its origin."""
    held_out = {row["point"]: row["held_out"] for row in load_reference("held_out").to_pylist()}
    rows = []
    for point in typed(Point, load_reference("validation").to_pylist()):
        ours, theirs = predicted(point, sources), held_out.get(point.point)
        row = asdict(point) | {
            "predicted": ours,
            "held_out": theirs,
            "factor": None if ours is None else factor(ours, point.measured),
            "held_out_factor": None if theirs is None else factor(theirs, point.measured),
        }
        rows.append({name: row[name] for name in VALIDATION.names})
    return VALIDATION.rows(rows)

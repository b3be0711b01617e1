"""`kappa calibrate`: a user's own measurements as points, and the numbers that they give for each accelerator."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipelines.hardware.machines import Sources, named
from pipelines.hardware.served import numbers_of
from pipelines.hardware.validation.fitting import LINK, LINK_BOUNDS, START, Fitted, fit
from pipelines.hardware.validation.predicting import Point, predicted
from warehouse.errors import ErrorCode, KappaError

NEEDED = ("model", "accelerator", "tensor_parallel", "cached_tokens", "new_tokens", "quantity", "measured")
OPTIONAL = ("link", "weight_dtype")
TIMED = ("load_s", "prefill_s", "ttft_s")
QUANTITIES = (*TIMED, "host_to_device_bytes_per_s")


@dataclass(frozen=True, slots=True)
class Calibration:
    """The numbers of one accelerator, and the factor by which its points are off before and after, at most."""

    accelerator: str
    points: int
    numbers: list[Fitted]
    worst_before: float
    worst_after: float


def read_points(path: Path, sources: Sources) -> list[Point]:
    """Return the measurements of a CSV file.

    The columns are `NEEDED`, and `OPTIONAL`; seconds, or bytes/s, are in `measured`, which of them in `quantity`.

    Raises:
        KappaError: the file cannot be read, or a row is not usable; the message names row and column.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _unusable(path, None, "", str(error)) from error
    if not rows:
        raise _unusable(path, None, "", "it has no row")
    lacking = [name for name in NEEDED if name not in rows[0]]
    if lacking:
        raise _unusable(path, 1, lacking[0], f"the columns are {', '.join(NEEDED)}, and {', '.join(OPTIONAL)}")
    return [_point(path, number, row, sources) for number, row in enumerate(rows, 2)]


def _point(path: Path, number: int, row: Mapping[str, str | None], sources: Sources) -> Point:
    cells = {name: (row.get(name) or "").strip() for name in (*NEEDED, *OPTIONAL)}
    known = {"model": sources.models, "accelerator": sources.accelerators, "link": sources.links}
    names: dict[str, Any] = {}
    for column, rows_of in known.items():
        found = named(rows_of, cells[column]) if cells[column] else None
        if found is None and (cells[column] or column != "link"):
            raise _unusable(path, number, column, f"{cells[column]!r} is in no row of {column}s")
        names[column] = getattr(found, column) if found else None
    if cells["quantity"] not in QUANTITIES:
        raise _unusable(path, number, "quantity", f"it is none of {', '.join(QUANTITIES)}")
    measured = _number(path, number, "measured", cells["measured"], float)
    if not 0 < measured < float("inf"):
        raise _unusable(path, number, "measured", "it is not above zero")
    counts = {name: _number(path, number, name, cells[name] or least, int)
              for name, least in (("tensor_parallel", "1"), ("cached_tokens", "0"), ("new_tokens", "1"))}  # fmt: skip
    if counts["tensor_parallel"] < 1 or counts["cached_tokens"] < 0 or counts["new_tokens"] < 1:
        raise _unusable(path, number, "tensor_parallel, cached_tokens, new_tokens", "below 1, 0 or 1")
    return Point(
        point=f"row {number}", error_class="", **names, gpus=counts["tensor_parallel"],
        weight_dtype=cells["weight_dtype"] or None, cached_tokens=counts["cached_tokens"],
        new_tokens=counts["new_tokens"], quantity=cells["quantity"], measured=measured, bytes_per_s=None,
        node_bytes_per_s=None, copied_bytes=None, copy_latency_s=None, is_scored=True, origin=str(path), note=None,
        retrieved="", confidence="high", source=str(path),
    )  # fmt: skip


def _number(path: Path, row: int, column: str, text: str, kind: type[Any]) -> Any:  # noqa: ANN401 - int or float
    try:
        return kind(text)
    except ValueError as error:
        raise _unusable(path, row, column, f"{text!r} is no number") from error


def _unusable(path: Path, row: int | None, column: str, why: str) -> KappaError:
    place = "" if row is None else f", row {row}, column {column}"
    return KappaError(f"{path}{place} is not usable", why, "see docs/validation.md", code=ErrorCode.BAD_ROW)


def calibrate(points: Iterable[Point], sources: Sources) -> list[Calibration]:
    """Return the numbers of each accelerator that its points give, from those that are taken for it until now."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(str(point.accelerator), []).append(point)
    return [_of_one(name, mine, sources) for name, mine in groups.items()]


def _of_one(accelerator: str, points: list[Point], sources: Sources) -> Calibration:
    now = numbers_of(sources, accelerator)
    start = {name: (min(max(now[name], low), high), low, high) for name, (_, low, high) in START.items()}
    # Bounds of the fractions are of the measured product where there is one; those of others are wide enough for both.
    own = replace(sources, fitted_numbers=[row for row in sources.fitted_numbers
                                           if row.accelerator in {None, accelerator}])  # fmt: skip
    if any(point.quantity != "prefill_s" for point in points):
        link = next((point.link for point in points if point.link), None)
        rate = sources.links[link].bytes_per_s if link else 50e9
        start[LINK] = (rate, *LINK_BOUNDS)
    found = fit(points, own, start)
    after = {number.number: number.value for number in found}
    return Calibration(
        accelerator, len(points), found, _worst(points, own, start_of(start)), _worst(points, own, after)
    )


def start_of(start: Mapping[str, tuple[float, float, float]]) -> dict[str, float]:
    """Return the numbers at which a fit starts."""
    return {name: value for name, (value, _, _) in start.items()}


def _worst(points: list[Point], sources: Sources, numbers: Mapping[str, float]) -> float:
    from pipelines.hardware.validation.bands import factor  # noqa: PLC0415
    from pipelines.hardware.validation.fitting import with_numbers  # noqa: PLC0415

    there = with_numbers(sources, numbers)
    return max(factor(predicted(point, there) or 1e-12, point.measured) for point in points)

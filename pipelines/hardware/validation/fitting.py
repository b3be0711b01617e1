"""The fit of the timing model's numbers to measurements: robust least squares of log(predicted / measured)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pipelines.hardware.entities import FittedNumber
from pipelines.hardware.machines import Sources
from pipelines.hardware.validation.predicting import Point, predicted

Floats = npt.NDArray[np.float64]
# Beyond this error of a logarithm a point counts by its size, no longer by its square.
_SOFT = 0.3
# How strongly a number is held to where it starts: the residual of a factor e.
_PRIOR = 0.15
# Measurements settle a number where they leave it within this factor.
_SETTLED = 1.5
# Where a number starts, and the least and greatest that are possible.
START: dict[str, tuple[float, float, float]] = {
    "linear_fraction": (0.7, 0.3, 0.95),
    "expert_fraction": (0.3, 0.05, 0.9),
    "attention_fraction": (0.6, 0.1, 0.8),
    "hbm_fraction": (0.8, 0.6, 0.95),
    "layer_s": (5e-4, 1e-4, 1.5e-3),
    "token_s": (1e-6, 1e-8, 2e-5),
    "node_layer_s": (5e-5, 1e-6, 1e-2),
}
LINK = "link_bytes_per_s"
LINK_BOUNDS = (1e8, 3e12)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A number as measurements give it, the range that they leave open, and whether they settle it."""

    number: str
    value: float
    least: float
    most: float
    is_identifiable: bool


def fit(points: Sequence[Point], sources: Sources, start: Mapping[str, tuple[float, float, float]]) -> list[Fitted]:
    """Return the numbers that fit the points best, each within its bounds and near its start.

    A source weighs the root of its points. The range of a number is two standard errors of the fit either way, its
    hold to the start included; what no measurement touches keeps the start and is not identifiable.

    Args:
        points: Measurements that have a prediction.
        sources: The sourced rows.
        start: For each number to fit: start, least, greatest.
    """
    from scipy.optimize import least_squares  # noqa: PLC0415 - slow to import

    names, counts = [*start], Counter(point.origin for point in points)
    first, low, high = (np.log([start[name][n] for name in names]) for n in range(3))
    weights = np.array([counts[point.origin] ** -0.25 for point in points])

    def residuals(logs: Floats) -> Floats:
        there = with_numbers(sources, dict(zip(names, np.exp(logs).tolist(), strict=True)))
        ours = np.array([predicted(point, there) or np.nan for point in points])
        off = np.log(ours / np.array([point.measured for point in points]))
        return np.concatenate([weights * off, _PRIOR * (logs - first)])

    found = least_squares(residuals, np.clip(first, low + 1e-6, high - 1e-6), bounds=(low, high), loss="soft_l1",
                          f_scale=_SOFT, diff_step=1e-4)  # fmt: skip
    jacobian = found.jac[: len(points)]
    spread = max(float(np.mean(residuals(found.x)[: len(points)] ** 2)) ** 0.5, 0.02)
    errors = spread * np.sqrt(np.diag(np.linalg.inv(jacobian.T @ jacobian + _PRIOR**2 * np.eye(len(names)))))
    touched = np.linalg.norm(jacobian, axis=0)
    return [_number(name, found.x[n], errors[n], float(touched[n]), (low[n], high[n])) for n, name in enumerate(names)]


def _number(name: str, log: float, error: float, touched: float, bounds: tuple[float, float]) -> Fitted:
    is_at_bound = min(log - bounds[0], bounds[1] - log) < 1e-3  # noqa: PLR2004 - of a logarithm
    is_settled = touched > _PRIOR and 2 * error < np.log(_SETTLED) and not is_at_bound
    low, high = (float(np.exp(np.clip(log + way * 2 * error, *bounds))) for way in (-1, 1))
    return Fitted(name, float(np.exp(log)), low, high, bool(is_settled))


def with_numbers(sources: Sources, numbers: Mapping[str, float]) -> Sources:
    """Return the sources with numbers of the timing model replaced, for every accelerator."""
    kept = [row for row in sources.fitted_numbers if row.number not in numbers]
    first = sources.fitted_numbers[0]
    ours: list[FittedNumber] = [
        replace(first, number=name, accelerator=None, value=value) for name, value in numbers.items()
    ]
    return replace(sources, fitted_numbers=[*ours, *kept])


def held_out(points: Sequence[Point], sources: Sources) -> dict[str, float]:
    """Return what numbers fitted without its origin predict for each scored point."""
    scored = [point for point in points if point.is_scored]
    found: dict[str, float] = {}
    for origin in dict.fromkeys(point.origin for point in scored):
        others = [point for point in scored if point.origin != origin]
        numbers = {fitted.number: fitted.value for fitted in fit(others, sources, START)}
        there = with_numbers(sources, numbers)
        found |= {point.point: value for point in scored if point.origin == origin
                  and (value := predicted(point, there)) is not None}  # fmt: skip
    return {point.point: found[point.point] for point in scored}

"""Routing of classes to priced machines as a linear programme, solved by scipy's HiGHS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.serving.engine.requests import Floats, Loading
from warehouse.errors import ErrorCode, KappaError
from warehouse.formulas.serving_load import routing_kappa

PLANNED_USE = 0.7
_HOUR_S = 3600.0
_ZERO = 1e-9


@dataclass(frozen=True, slots=True)
class Fleet:
    """Machines and what each class of turns takes on each.

    Attributes:
        names: Of the machines.
        usd_per_hour: Of each, its accelerators together, shape (machines,).
        hours: Most hours of each; infinite where there are enough, shape (machines,).
        turns: n of each class, shape (classes,).
        load_s: Mean x, shape (classes, machines).
        compute_s: Mean c, shape (classes, machines).
        loading: Whether loads go beside computing.
        use: Share of its hours that a machine is planned to be busy, above 0 and at most 1.
    """

    names: tuple[str, ...]
    usd_per_hour: Floats
    hours: Floats
    turns: Floats
    load_s: Floats
    compute_s: Floats
    loading: Loading = "async"
    use: float = PLANNED_USE


@dataclass(frozen=True, slots=True)
class Routing:
    """A cheapest routing.

    Attributes:
        share: Of each class on each machine, shape (classes, machines).
        hours: Of each machine, shape (machines,).
        usd: Cost of all turns.
        shadow_usd_per_hour: What one more hour of a machine would save, shape (machines,); 0 where hours are left.
        usd_best_single: Cost with the one machine that is cheapest alone; None where none has the hours.
        best_single: Its name.
        usd_round_robin: Cost with equal shares of each class on every machine; None where hours lack.
    """

    share: Floats
    hours: Floats
    usd: float
    shadow_usd_per_hour: Floats
    usd_best_single: float | None
    best_single: str | None
    usd_round_robin: float | None


def cheapest(fleet: Fleet) -> Routing:
    """Return the routing of least cost: min sum_p price_p H_p with every class served and H_p within its hours.

    Blocking: sum_i n_i y_ip (x_ip + c_ip) <= 3600 u H_p. Async: the same for x and for c apart.

    Raises:
        KappaError: the hours do not carry all turns.
    """
    from scipy.optimize import linprog  # noqa: PLC0415 - slow to import

    classes, machines = fleet.load_s.shape
    # HiGHS takes 1e-7 for nothing: seconds are in parts of the busiest machine's, costs in parts of the dearest.
    second = max(float((fleet.turns[:, None] * seconds).sum(axis=0).max()) for seconds in _stations(fleet)) or 1.0
    dollar = float(fleet.usd_per_hour.max())
    an_hour = _HOUR_S * fleet.use / second
    cost = np.concatenate([np.zeros(classes * machines), fleet.usd_per_hour / dollar])
    rows = np.vstack([_busy_rows(fleet, seconds / second) for seconds in _stations(fleet)])
    every = np.hstack([np.repeat(np.eye(classes), machines, axis=1), np.zeros((classes, machines))])
    most = [(0, 1)] * (classes * machines) + [
        (0, None if np.isinf(hours) else hours * an_hour) for hours in fleet.hours
    ]
    found = linprog(cost, rows, np.zeros(len(rows)), every, np.ones(classes), most, method="highs")
    if found.status != 0:
        raise KappaError(
            "no routing serves all turns",
            "the hours of the machines are too few",
            "give more hours, or leave them out",
            code=ErrorCode.NOTHING_FITS,
        )
    share = found.x[: classes * machines].reshape(classes, machines)
    share = np.where(share < _ZERO, 0.0, np.where(share > 1 - _ZERO, 1.0, share))
    shadow = np.maximum(-found.upper.marginals[classes * machines :], 0.0) * dollar
    alone = {name: _usd(fleet, _all_on(fleet, place)) for place, name in enumerate(fleet.names)}
    best = min(
        (name for name, usd in alone.items() if usd is not None), key=lambda name: alone[name] or 0.0, default=None
    )
    return Routing(
        share=share,
        hours=np.maximum(found.x[classes * machines :], 0.0) / an_hour,
        usd=float(found.fun) * dollar / an_hour,
        shadow_usd_per_hour=shadow,
        usd_best_single=None if best is None else alone[best],
        best_single=best,
        usd_round_robin=_usd(fleet, np.full((classes, machines), 1 / machines)),
    )


def _stations(fleet: Fleet) -> Sequence[Floats]:
    """Return the seconds of each class on each machine, for each station that it keeps busy."""
    if fleet.loading == "blocking":
        return [fleet.load_s + fleet.compute_s]
    return [fleet.load_s, fleet.compute_s]


def _busy_rows(fleet: Fleet, seconds: Floats) -> Floats:
    """Return a row a machine: its busy time less that of its hours, over the shares and then the hours."""
    classes, machines = seconds.shape
    rows = np.zeros((machines, classes * machines + machines))
    for place in range(machines):
        rows[place, place : classes * machines : machines] = fleet.turns * seconds[:, place]
        rows[place, classes * machines + place] = -1.0
    return rows


def _all_on(fleet: Fleet, place: int) -> Floats:
    share = np.zeros_like(fleet.load_s)
    share[:, place] = 1.0
    return share


def _usd(fleet: Fleet, share: Floats) -> float | None:
    """Return the cost of given shares; None where the hours do not carry them."""
    busy = np.max([(fleet.turns[:, None] * share * seconds).sum(axis=0) for seconds in _stations(fleet)], axis=0)
    hours = busy / (_HOUR_S * fleet.use)
    return None if (hours > fleet.hours * (1 + _ZERO)).any() else float((hours * fleet.usd_per_hour).sum())


@dataclass(frozen=True, slots=True)
class Threshold:
    """The rule of two blocking machines under cost model 2n: turns above kappa go to `above`, the others to `below`."""

    kappa: float
    above: str
    below: str


def threshold(
    names: tuple[str, str],
    usd_per_hour: Sequence[float],
    load_token_s: Sequence[float],
    compute_token_s: Sequence[float],
) -> Threshold | None:
    """Return the one threshold of kappa_ratio between two machines; None where one of them is cheaper for all turns.

    Args:
        names: Of the two.
        usd_per_hour: Their prices with shadow prices.
        load_token_s: Seconds to load one cached token on each.
        compute_token_s: Seconds to compute one new token on each.
    """
    # q is the one on which a cached token costs less.
    p, q = (0, 1) if usd_per_hour[0] * load_token_s[0] >= usd_per_hour[1] * load_token_s[1] else (1, 0)
    if usd_per_hour[p] * load_token_s[p] == usd_per_hour[q] * load_token_s[q]:
        return None
    found = routing_kappa(
        usd_per_hour[p], load_token_s[p], compute_token_s[p], usd_per_hour[q], load_token_s[q], compute_token_s[q]
    )
    return Threshold(found, names[q], names[p]) if found > 0 else None

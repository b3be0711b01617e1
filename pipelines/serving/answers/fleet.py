"""The answers of `kappa serve-sim --fleet`: each class of turns on the machines of the cheapest fleet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from pipelines.hardware.entities import KappaCrit, known
from pipelines.hardware.machines import Sources
from pipelines.hardware.what_if import Setting
from pipelines.serving.answers.answer import FleetAnswer
from pipelines.serving.answers.answering import about_of, chosen, reader
from pipelines.serving.answers.question import ServeQuestion
from pipelines.serving.answers.reading import ReadTurns
from pipelines.serving.fleet.classes import TurnClasses, classes_of
from pipelines.serving.fleet.prices import Price, pairs, prices
from pipelines.serving.fleet.routing import Fleet, Routing, cheapest, threshold
from warehouse.errors import ErrorCode, KappaError

Chosen = tuple[KappaCrit, Setting]
_MILLION = 1e6


@dataclass(frozen=True, slots=True)
class _Asked:
    """What all fleets of a question share: the question, prices and hours by accelerator, and the reader of turns."""

    question: ServeQuestion
    prices: Mapping[str, Price]
    hours: Mapping[str, float]
    read: Callable[[str], ReadTurns]


def fleets(
    question: ServeQuestion, sources: Sources, database: Callable[[], Path], user: Path | None = None
) -> list[FleetAnswer]:
    """Return the cheapest fleet for each chosen model: a row for each class on each machine that serves a part of it.

    A machine is a platform times the accelerators that share the model's layers, and its price is theirs together.

    Raises:
        UsageError: the question contradicts itself, or has an impossible number.
        KappaError: a name is unknown, nothing fits the choice, no chosen accelerator has a price, or hours lack.
    """
    names = [*sources.accelerators]
    priced, hours = prices(question.prices, names, user), pairs(question.hours, "--hours", names)
    machines = [*chosen(question, sources)]
    found = fleets_of(question, machines, priced, hours, reader(question, database))
    if not found:
        raise KappaError(
            "no chosen machine has a price",
            f"there are prices of {', '.join(sorted(priced))}",
            "add --price ACCELERATOR=USD, or choose other machines",
            code=ErrorCode.NOTHING_FITS,
        )
    return found


def fleets_of(
    question: ServeQuestion,
    machines: Sequence[Chosen],
    priced: Mapping[str, Price],
    hours: Mapping[str, float],
    read: Callable[[str], ReadTurns],
) -> list[FleetAnswer]:
    """Return the cheapest fleet for each model of the machines that have a price; empty where none has.

    Args:
        question: What is asked.
        machines: Models on platforms; those of the paper are no machines that anyone rents.
        priced: Prices by accelerator.
        hours: Most hours by accelerator; as many as needed where there is none.
        read: From a tokenizer to the turns.

    Raises:
        KappaError: the hours are too few.
    """
    asked = _Asked(question, priced, hours, read)
    usable = [one for one in machines if one[0].accelerator in priced and one[0].basis != "paper"]
    ordered = sorted(usable, key=lambda one: one[0].model)
    return [row for _, same in groupby(ordered, lambda one: one[0].model) for row in _fleet(asked, [*same])]


def _fleet(asked: _Asked, machines: Sequence[Chosen]) -> Iterator[FleetAnswer]:
    found = asked.read(machines[0][1].model.tokenizer)
    turns = found.turns
    classes = classes_of(turns.cached_tokens, turns.new_tokens)
    cached, new = turns.cached_tokens.astype(np.float64), turns.new_tokens.astype(np.float64)
    fleet = Fleet(
        tuple(f"{row.accelerator} over {row.link}" for row, _ in machines),
        np.array([_usd(asked, one) for one in machines]),
        np.array([asked.hours.get(row.accelerator, np.inf) for row, _ in machines]),
        classes.turns.astype(np.float64),
        np.column_stack([classes.means(setting.transfer_s(cached)) for _, setting in machines]),
        np.column_stack([classes.means(setting.compute_s(cached, new)) for _, setting in machines]),
        asked.question.loading,
        asked.question.use,
    )
    yield from _rows(asked, machines, found, classes, fleet)


def _usd(asked: _Asked, machine: Chosen) -> float:
    row, setting = machine
    return asked.prices[row.accelerator].usd_per_hour * setting.machine.tensor_parallel


def _rows(
    asked: _Asked, machines: Sequence[Chosen], found: ReadTurns, classes: TurnClasses, fleet: Fleet
) -> Iterator[FleetAnswer]:
    routing = cheapest(fleet)
    kappa = _threshold(asked.question, machines, fleet, routing)
    million = _MILLION / float(fleet.turns.sum())
    for place, cell in zip(*np.nonzero(routing.share), strict=True):
        row, setting = machines[cell]
        price = asked.prices[row.accelerator]
        yield FleetAnswer(
            **about_of(asked.question, row, setting, found),
            loading=fleet.loading,
            cached_from_tokens=int(classes.cached_from[place]),
            new_from_tokens=int(classes.new_from[place]),
            turns=int(classes.turns[place]),
            turn_share=float(routing.share[place, cell]),
            load_s=float(fleet.load_s[place, cell]),
            compute_s=float(fleet.compute_s[place, cell]),
            usd_per_hour=float(fleet.usd_per_hour[cell]),
            machine_hours=float(routing.hours[cell]),
            shadow_usd_per_hour=float(routing.shadow_usd_per_hour[cell]),
            usd_per_million_turns=routing.usd * million,
            best_single=routing.best_single,
            best_single_usd_per_million_turns=_times(routing.usd_best_single, million),
            round_robin_usd_per_million_turns=_times(routing.usd_round_robin, million),
            routing_kappa=kappa,
            price_source=price.source,
            price_retrieved=price.retrieved,
        )


def _times(usd: float | None, factor: float) -> float | None:
    return None if usd is None else usd * factor


def _threshold(question: ServeQuestion, machines: Sequence[Chosen], fleet: Fleet, routing: Routing) -> float | None:
    """Return kappa* of two blocking machines under cost model 2n; None for any other fleet."""
    settings = [setting for _, setting in machines]
    model = settings[0].model
    is_linear = model.kv_bytes_per_token is not None and all(setting.cost_model == "2n" for setting in settings)
    if question.loading != "blocking" or len(settings) != 2 or not is_linear:  # noqa: PLR2004 - p and q
        return None
    usd = (fleet.usd_per_hour + routing.shadow_usd_per_hour).tolist()
    load = [float(setting.transfer_s(1.0)) for setting in settings]
    compute = [known(model.flops_per_token) / setting.machine.flop_per_s for setting in settings]
    rule = threshold((fleet.names[0], fleet.names[1]), usd, load, compute)
    return None if rule is None else rule.kappa

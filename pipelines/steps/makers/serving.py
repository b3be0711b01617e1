"""The tables of turns that meet: load and schedule on the first headline platform, fleet over all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.hardware.machines import Sources, read_sources
from pipelines.hardware.questions.answer import Series
from pipelines.serving.answers.answering import answers_on, chosen
from pipelines.serving.answers.fleet import fleets_of
from pipelines.serving.answers.question import ServeQuestion
from pipelines.serving.answers.reading import COLUMNS, ReadTurns, served_turns
from pipelines.serving.fleet.prices import prices_of
from pipelines.steps.makers.hardware import user_rows
from pipelines.steps.series import some
from pipelines.steps.turn_products import TURNS_FILE
from warehouse.declared.fields import LOGGED
from warehouse.declared.schema import Table
from warehouse.declared.serving.tables import FLEET, LOAD, SCHEDULE
from warehouse.declared.turn_tables import SERIES
from warehouse.hardware_rows.rows import FOLDER, load_reference
from warehouse.home.products import Product
from warehouse.home.staging import Staging

SERVING = ("load", "schedule", "fleet")
# Enough for p99. The command takes any number, and any platform.
TURNS = 1000
LOAD_SHARES = (0.3, 0.7, 0.9, 1.1)
SCHEDULED_SHARE = 1.1
POLICIES = ("fifo", "fill", "fill+age:5", "fair")
# What a server computes is counted by `chat`, or logged; `text` would say the same of fewer tokens.
COUNTINGS = ("chat", "logged")
_RENAMED = {"turns": "served_turns"}
_RENAMED_FLEET = {
    "turns": "class_turns",
    "turn_share": "routed_turn_share",
    "load_s": "class_load_s",
    "compute_s": "class_compute_s",
    "usd_per_hour": "machine_usd_per_hour",
}


def load_rows(staging: Staging, parts: list[Product]) -> pa.Table:
    """Return TTFT, shares and limit of every series over the request rate."""
    question = ServeQuestion(turns=TURNS, load_shares=LOAD_SHARES)
    return _table(LOAD, _RENAMED, _runs(staging, parts, question))


def schedule_rows(staging: Staging, parts: list[Product]) -> pa.Table:
    """Return what each policy makes of every series where the machine is a little overloaded."""
    question = ServeQuestion(turns=TURNS, load_shares=(SCHEDULED_SHARE,), policies=POLICIES, has_knee=False)
    return _table(SCHEDULE, _RENAMED, _runs(staging, parts, question))


def fleet_rows(staging: Staging, parts: list[Product]) -> pa.Table:
    """Return the cheapest fleet for every series and model; no row without prices."""
    user = user_rows(staging)
    found, sources = prices_of((), (), user), read_sources(FOLDER, user)
    question = ServeQuestion(turns=0, is_fleet=True)
    rows = [
        asdict(answer)
        for read, of_part in _parts(parts, question, sources if found else None)
        for answer in fleets_of(question, of_part, found, {}, read)
    ]
    return _table(FLEET, _RENAMED_FLEET, rows)


def _runs(staging: Staging, parts: list[Product], question: ServeQuestion) -> Iterator[dict[str, Any]]:
    user = user_rows(staging)
    sources, simulated = read_sources(FOLDER, user), _simulated(user)
    for read, of_part in _parts(parts, question, sources):
        for row, setting in of_part:
            if (row.accelerator, row.link) != simulated:
                continue
            accelerator = sources.accelerators[row.accelerator]
            yield from (asdict(answer) for answer in answers_on(question, row, setting, accelerator, read))


def _simulated(user: Path) -> tuple[str, str] | None:
    """Return accelerator and link that are simulated, the first headline ones on the physical basis; None without."""
    rows = load_reference("headlines", FOLDER, user).to_pylist()
    return next(((row["accelerator"], row["link"]) for row in rows if row["basis"] == "physical"), None)


def _parts(
    parts: list[Product], question: ServeQuestion, sources: Sources | None
) -> Iterator[tuple[Callable[[str], ReadTurns], list[Any]]]:
    """Yield the turns of each series, and the headline pairs of the models that are counted by its tokenizer."""
    if sources is None:
        return
    every = chosen(replace(question, workload="any"), sources)
    pairs = [(row, setting) for row, setting in every if row.basis == "physical"]
    for part in some(parts):
        names = {name: part.meta[name] for name in SERIES}
        if names["counting"] not in COUNTINGS:
            continue
        turns = served_turns(pq.read_table(part.file(TURNS_FILE), columns=list(COLUMNS)), question)
        found = ReadTurns(Series(**names), turns, bool(part.meta["is_sample"]))
        is_logged = names["tokenizer"] == LOGGED
        alike = [one for one in pairs if is_logged or one[1].model.tokenizer == names["tokenizer"]]
        yield _always(found), alike


def _always(found: ReadTurns) -> Callable[[str], ReadTurns]:
    return lambda _tokenizer: found


def _table(table: Table, renamed: Mapping[str, str], rows: Any) -> pa.Table:  # noqa: ANN401 - rows of answers
    named = ({renamed.get(name, name): value for name, value in row.items()} for row in rows)
    return table.rows([{name: row[name] for name in table.names} for row in named])

"""The turns of a question's workload from the warehouse of a home folder, in the order of service."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.capacity.distances import Hits, first
from pipelines.capacity.machines.workload_requests import Ask, log_of
from pipelines.capacity.requests import Requests
from pipelines.hardware.questions.answer import Series
from pipelines.hardware.questions.workload_turns import read_turns
from pipelines.serving.answers.question import ServeQuestion
from pipelines.serving.answers.turns import ServedTurns, in_order
from warehouse.database.engine import fetch, read_only
from warehouse.declared.turn_tables import SERIES

COLUMNS = ("session_id", "cached_tokens", "prefill_tokens", "output_tokens")


@dataclass(frozen=True, slots=True)
class ReadTurns:
    """Turns, the series that they are of, and whether their text is generated.

    Attributes:
        log: Requests and hits of a log whose blocks have identities, where its order is that of the turns.
    """

    series: Series
    turns: ServedTurns
    is_sample: bool
    log: tuple[Requests, Hits] | None = None


def read_served(database: Path, question: ServeQuestion, tokenizer: str) -> ReadTurns:
    """Return the turns of the workload that a question asks about.

    Raises:
        KappaError: the file is no database, or lacks the series.
    """
    found = read_turns(database, question.crits()[0], tokenizer)
    where = " AND ".join(f"{name} = ${name}" for name in SERIES)
    with read_only(database) as connection:
        query = f"SELECT {', '.join(COLUMNS)} FROM turns WHERE {where}"  # noqa: S608 - declared names
        table = fetch(connection, query, asdict(found.series))
        turns = served_turns(table, question)
        log = read_log(partial(fetch, connection), found.series, turns) if question.tiers else None
    return ReadTurns(found.series, turns, found.is_sample, log)


def read_log(ask: Ask, series: Series, turns: ServedTurns) -> tuple[Requests, Hits] | None:
    """Return the requests of a log and their hits, as many as there are turns; None where they are not the turns."""
    found = log_of(ask, (series.workload, series.tokenizer, series.counting, series.reuse))
    if found is None:
        return None
    requests, hits, _ = found
    count, context = len(turns.new_tokens), turns.cached_tokens + turns.new_tokens
    if len(requests) < count or (requests.context_tokens[:count] != context).any():
        return None
    return first(requests, hits, count)


def served_turns(table: pa.Table, question: ServeQuestion) -> ServedTurns:
    """Return turns in the order of service.

    Args:
        table: The columns `COLUMNS`, turns of a session in a row and in order.
        question: How many, sessions at a time, and the block.
    """
    session = np.asarray(table["session_id"].combine_chunks().dictionary_encode().indices).astype(np.int64)
    columns = (table["cached_tokens"], table["prefill_tokens"], pc.fill_null(table["output_tokens"], 0))
    cached, new, output = (column.to_numpy().astype(np.int64) for column in columns)
    return in_order(session, cached, new, output, question.sessions, question.chunk_tokens, question.turns)

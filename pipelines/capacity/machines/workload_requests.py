"""The requests of a question's workload from the warehouse of a home folder, in the order of service."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from pipelines.capacity.distances import Hits, hits_of
from pipelines.capacity.interleaving import interleaved
from pipelines.capacity.machines.question import CacheQuestion
from pipelines.capacity.requests import Requests, in_order, requests_of_turns
from pipelines.capacity.tables import of_log
from pipelines.hardware.questions.names import known_name
from warehouse.database.engine import fetch, read_only
from warehouse.declared.capacity_tables import LOG_ORDER
from warehouse.declared.fields import HISTORY, LOGGED, PREFIX
from warehouse.declared.turn_tables import SERIES
from warehouse.errors import ErrorCode, KappaError

Ask: TypeAlias = Callable[[str, dict[str, object]], pa.Table]
Series: TypeAlias = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Served:
    """The requests of one series in one order of service.

    Attributes:
        series: Values of `SERIES`.
        interleaving: Sessions served at a time; 0 for the log's own order.
        requests: In order of service.
        hits: Their hits.
        is_chained: Whether a block is found only where all before it are, in every prompt.
        is_sample: Whether the text is generated.
    """

    series: Series
    interleaving: int
    requests: Requests
    hits: Hits
    is_chained: bool
    is_sample: bool


def read_requests(database: Path, question: CacheQuestion, tokenizer: str) -> Served:
    """Return the requests of the workload, counted by a tokenizer or by the log itself.

    Raises:
        KappaError: the warehouse lacks the workload, or knows no blocks of it.
    """
    with read_only(database) as connection:
        logs = fetch(connection, "SELECT DISTINCT workload, tokenizer, counting, reuse FROM log_requests").to_pylist()
        rows = fetch(
            connection, "SELECT DISTINCT workload, tokenizer, counting, reuse, is_sample FROM summary"
        ).to_pylist()
        workload = known_name("workload", question.workload, {row["workload"] for row in rows})
        found = _chosen(
            [row for row in rows if row["workload"] == workload and _is_known(row, logs)], question, tokenizer
        )
        if found is None:
            raise _nothing(workload, question, tokenizer)
        series = (workload, found["tokenizer"], found["counting"], found["reuse"])
        if series[3] == PREFIX:
            return _of_log(partial(fetch, connection), series, is_sample=found["is_sample"])
        query = (
            "SELECT session_id, cached_tokens, prefill_tokens, coalesce(output_tokens, 0) AS output_tokens FROM turns "
            "WHERE workload = $w AND tokenizer = $t AND counting = $c AND reuse = $r ORDER BY rowid"
        )
        turns = fetch(connection, query, dict(zip("wtcr", series, strict=True)))
    cached, prefill, output = (turns[f"{kind}_tokens"].to_numpy() for kind in ("cached", "prefill", "output"))
    sessions = turns["session_id"].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    turns_of = requests_of_turns(cached, prefill, output, sessions, question.block_tokens)
    order = interleaved(sessions, question.sessions)
    requests = in_order(turns_of, order)
    return Served(series, question.sessions, requests, hits_of(requests), True, found["is_sample"])


def _of_log(ask: Ask, series: Series, *, is_sample: bool) -> Served:
    """Return the requests of a log from the tables that hold their reuse distances."""
    found = log_of(ask, series)
    if found is None:
        raise _nothing_of_log(series)
    requests, hits, is_chained = found
    return Served(series, LOG_ORDER, requests, hits, is_chained, is_sample)


def log_of(ask: Ask, series: Series) -> tuple[Requests, Hits, bool] | None:
    """Return the requests of a log in their order, their hits, and whether identities are chained; None without any.

    Args:
        ask: Returns the rows of a query with its parameters.
        series: Values of `SERIES`.
    """
    where = "WHERE workload = $w AND tokenizer = $t AND counting = $c AND reuse = $r ORDER BY"
    names: dict[str, object] = dict(zip("wtcr", series, strict=True))
    rows = ask(f"FROM log_requests {where} request", names)
    if not rows.num_rows:
        return None
    pieces = ask(f"FROM reuse_distances {where} request, start_block", names)
    requests, hits = of_log(rows, pieces)
    return requests, hits, bool(rows["is_chained"][0].as_py())


def _nothing_of_log(series: Series) -> KappaError:
    return KappaError(
        f"{series[0]} has no request with blocks",
        "the home folder holds none",
        f"run `kappa run --workload {series[0]}`",
        code=ErrorCode.NOT_BUILT,
    )


def _chosen(rows: list[dict[str, Any]], question: CacheQuestion, tokenizer: str) -> dict[str, Any] | None:
    """Return the series that fits the question: prefix before history, the log's own counts before text before chat."""
    fits = [
        row
        for row in rows
        if row["tokenizer"] in (tokenizer, LOGGED)
        and row["reuse"] in (PREFIX, HISTORY)
        and question.counting in (None, row["counting"])
        and question.reuse in (None, row["reuse"])
    ]
    preference = (LOGGED, "text", "chat")
    return min(fits, key=lambda row: (row["reuse"] != PREFIX, preference.index(row["counting"])), default=None)


def _is_known(row: dict[str, Any], logs: list[dict[str, Any]]) -> bool:
    """Return whether the blocks of a series are known: places in a session, or identities of a log."""
    return row["reuse"] == HISTORY or {name: row[name] for name in SERIES} in logs


def _nothing(workload: str, question: CacheQuestion, tokenizer: str) -> KappaError:
    asked = " ".join(part for part in (question.counting, question.reuse) if part)
    return KappaError(
        f"{workload} has no blocks{' of ' + asked if asked else ''} counted by {tokenizer}",
        "the home folder does not hold them; what a server itself reported says nothing of other sizes",
        f"run `kappa run --workload {workload} --tokenizer {tokenizer}`",
        code=ErrorCode.NOT_BUILT,
    )


def order_words(interleaving: int) -> str:
    """Return the order of service in words.

    >>> order_words(0), order_words(1), order_words(256)
    ("in the log's own order", 'one session after the other', '256 sessions at a time, a turn each in turn')
    """
    if interleaving == LOG_ORDER:
        return "in the log's own order"
    if interleaving == 1:
        return "one session after the other"
    return f"{interleaving:,} sessions at a time, a turn each in turn"

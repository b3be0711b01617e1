"""The turns of a question's workload from the warehouse of a home folder."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.hardware.entities import known
from pipelines.hardware.questions.answer import Series
from pipelines.hardware.questions.names import known_name
from pipelines.hardware.questions.question import OneQuestion
from warehouse.database.engine import fetch, read_only
from warehouse.declared.fields import COUNTINGS, LOGGED, REUSES
from warehouse.declared.turn_tables import SERIES
from warehouse.errors import ErrorCode, KappaError

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class WorkloadTurns:
    """K and T of every turn of a series, each of shape (turns,), and whether its text is generated."""

    series: Series
    cached_tokens: Ints
    prefill_tokens: Ints
    is_sample: bool


def read_turns(database: Path, question: OneQuestion, tokenizer: str) -> WorkloadTurns:
    """Return K and T of every turn of the workload in a warehouse, of the series that the question asks about.

    Args:
        database: The warehouse.
        question: What is asked.
        tokenizer: That of the model; where the question names none and the workload has no turns by it, those of
            another one stand for it.

    Raises:
        KappaError: the file is no database, or lacks the workload, counting, reuse or tokenizer.
    """
    with read_only(database) as connection:
        summary = fetch(connection, "FROM summary").to_pylist()
        workload = known_name("workload", known(question.workload), {row["workload"] for row in summary})
        rows = [row for row in summary if row["workload"] == workload]
        found = _series(question, rows, question.tokenizer or tokenizer)
        if found is None and question.tokenizer is None:
            proxies = (_series(question, rows, other) for other in sorted({row["tokenizer"] for row in rows}))
            found = next((one for one in proxies if one is not None), None)
        if found is None:
            raise _no_turns(question, workload, question.tokenizer or tokenizer)
        series = Series(**{name: found[name] for name in SERIES})
        where = " AND ".join(f"{name} = ${name}" for name in SERIES)
        query = f"SELECT cached_tokens, prefill_tokens FROM turns WHERE {where}"  # noqa: S608 - declared names
        table = fetch(connection, query, asdict(series))
    cached, prefill = (table[name].to_numpy() for name in ("cached_tokens", "prefill_tokens"))
    return WorkloadTurns(series, cached, prefill, found["is_sample"])


def _series(question: OneQuestion, summary: list[dict[str, Any]], tokenizer: str) -> dict[str, Any] | None:
    """Return the row of `summary` asked about: of several the first reuse, then the first counting, as declared."""
    asked = {"counting": question.counting, "reuse": question.reuse}
    fits = [
        row
        for row in summary
        if row["tokenizer"] in (tokenizer, LOGGED) and all(row[n] == asked[n] for n in asked if asked[n] is not None)
    ]
    reuses = list(REUSES)
    return min(fits, key=lambda r: (reuses.index(r["reuse"]), COUNTINGS.index(r["counting"])), default=None)


def _no_turns(question: OneQuestion, workload: str, tokenizer: str) -> KappaError:
    how = f" counted as {question.counting}" if question.counting else ""
    how += f" with reuse {question.reuse}" if question.reuse else ""
    return KappaError(
        f"{workload} has no turns{how} by {tokenizer}",
        "the home folder does not hold them",
        f"run `kappa run --workload {workload} --tokenizer {tokenizer}`",
        code=ErrorCode.NOT_BUILT,
    )

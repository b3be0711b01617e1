"""The turns of a question's workload from the warehouse of a home folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipelines.hardware.entities import known
from pipelines.hardware.questions.names import known_name
from pipelines.hardware.questions.question import OneQuestion
from warehouse.database.engine import fetch, read_only
from warehouse.errors import ErrorCode, KappaError

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class WorkloadTurns:
    """K and T of every turn of a workload, each of shape (turns,), and whether its text is generated."""

    workload: str
    cached_tokens: Ints
    prefill_tokens: Ints
    is_sample: bool


def read_turns(database: Path, question: OneQuestion, tokenizer: str) -> WorkloadTurns:
    """Return K and T of every turn of the workload in a warehouse.

    Raises:
        KappaError: the file is no database, or lacks the workload, counting or tokenizer.
    """
    counting = question.counting or "text"
    with read_only(database) as connection:
        samples = {row["workload"]: row["is_sample"] for row in fetch(connection, "FROM summary").to_pylist()}
        workload = known_name("workload", known(question.workload), samples)
        query = (
            "SELECT cached_tokens, prefill_tokens FROM turns WHERE workload = $w AND tokenizer = $t AND counting = $c"
        )
        table = fetch(connection, query, {"w": workload, "t": tokenizer, "c": counting})
    if not table.num_rows:
        raise KappaError(
            f"{workload} has no turns counted as {counting} by {tokenizer}",
            "the home folder does not hold them",
            f"run `kappa run --workload {workload} --tokenizer {tokenizer}`",
            code=ErrorCode.NOT_BUILT,
        )
    cached, prefill = (table[name].to_numpy() for name in ("cached_tokens", "prefill_tokens"))
    return WorkloadTurns(workload, cached, prefill, samples[workload])

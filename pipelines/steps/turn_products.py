"""What both ways to make turns share: the counts and conversations that they are made from, and how they rest."""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.sessions.rejects import REJECTED
from pipelines.steps.product_names import conversations_name, counts_name, turns_name
from pipelines.turns.derivation import Turns
from pipelines.turns.tables import empty_turns, turns_table
from pipelines.workloads.declaration import Workload
from warehouse.declared.turn_tables import SERIES
from warehouse.errors import ErrorCode, KappaError
from warehouse.home.products import Draft, Product
from warehouse.home.staging import Staging

LOG = logging.getLogger("kappa")
TURNS_FILE = "turns.parquet"


def counted(staging: Staging, workload: Workload, tokenizer: str) -> tuple[Product, Product]:
    """Return counts and conversations; KappaError where the counts are those of an older state."""
    counts = staging.require(counts_name(workload.name, tokenizer))
    conversations = staging.require(conversations_name(workload.name))
    if counts.meta["conversations"] != conversations.identity:
        why, remedy = "they belong to an older state of the conversations", "materialize them first, or run `kappa run`"
        raise KappaError(f"{counts.name} are stale", why, remedy, code=ErrorCode.STALE)
    return counts, conversations


def write_turns(draft: Draft, turns: Turns, sessions: pa.Table, series: tuple[str, str, str, str]) -> None:
    """Write the turns of a series (values of `SERIES`) and the rejects among them, and note how many."""
    table, rejects = turns_table(turns, sessions, series), empty_turns(turns, sessions, *series[:2])
    pq.write_table(table, draft.folder / TURNS_FILE, compression="zstd")
    pq.write_table(rejects, draft.folder / REJECTED)
    draft.meta.update(zip(SERIES, series, strict=True))
    draft.meta.update(turns=table.num_rows, rejected=rejects.num_rows)
    LOG.info("%s: %s turns", turns_name(*series), f"{table.num_rows:,}")


def turn_notes(counts: Product, conversations: Product) -> dict[str, Any]:
    """Return what turns take over from the products before them."""
    notes = {name: counts.meta[name] for name in ("fingerprint", "special_token_messages")}
    kept = ("is_sample", "uncounted_parts", "reasoning_messages")
    return {**notes, **{name: conversations.meta[name] for name in kept}}

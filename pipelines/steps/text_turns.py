"""Derives K, T and kappa_ratio of every turn from the counts of the texts, nothing added."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.sessions.writing import SESSIONS
from pipelines.steps.counts import COUNTS
from pipelines.steps.inputs import turns_inputs
from pipelines.steps.product_names import turns_name
from pipelines.steps.turn_products import counted, turn_notes, write_turns
from pipelines.turns.derivation import Turns, chat_turns, document_turns
from pipelines.workloads.declaration import Workload
from warehouse.declared.fields import HISTORY
from warehouse.home.products import Product, identity_of
from warehouse.home.staging import Staging


def derive_turns(staging: Staging, workload: Workload, tokenizer: str) -> Product:
    """Derive K, T and kappa_ratio of every turn from the counts of `text`; a turn with K + T = 0 is a reject."""
    counts, conversations = counted(staging, workload, tokenizer)
    name = turns_name(workload.name, tokenizer, "text", HISTORY)
    inputs = turns_inputs(counts.identity, workload.kind, tokenizer, "text")
    if (product := staging.reuse(name, identity_of(**inputs))) is not None:
        return product
    with staging.build(name, inputs=inputs) as draft:
        turns = _turns_of(workload, pq.read_table(counts.file(COUNTS)))
        write_turns(
            draft, turns, pq.read_table(conversations.file(SESSIONS)), (workload.name, tokenizer, "text", HISTORY)
        )
        draft.meta.update(turn_notes(counts, conversations))
        draft.meta.update(engine=counts.meta["engine"], engine_version=counts.meta["engine_version"])
    return staging.require(name)


def _turns_of(workload: Workload, counts: pa.Table) -> Turns:
    session = counts["session"].to_numpy().astype(np.int64)
    order = np.lexsort((counts["position"].to_numpy(), session))
    derive = chat_turns if workload.kind == "chat" else document_turns
    return derive(session[order], counts["role"].to_numpy()[order], counts["tokens"].to_numpy()[order])

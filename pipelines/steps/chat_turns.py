"""Counts K, T and kappa_ratio of every turn as a server sees it, by the chat template of a tokenizer."""

from __future__ import annotations

import dataclasses
from functools import partial

import pyarrow.parquet as pq

from pipelines.chat.counting import count_chat
from pipelines.counting.engines import exact_counter
from pipelines.io.progress import Progress
from pipelines.sessions.messages import Messages
from pipelines.sessions.structures import structures
from pipelines.sessions.writing import SESSIONS
from pipelines.steps.counts import COUNTS
from pipelines.steps.distrust import distrust, is_distrusted
from pipelines.steps.fetching import own_tokenizers, tokenizer_file_of
from pipelines.steps.forgetting import with_text
from pipelines.steps.inputs import turns_inputs
from pipelines.steps.product_names import tokenizer_name, turns_name
from pipelines.steps.turn_products import counted, turn_notes, write_turns
from pipelines.workloads.declaration import Workload
from warehouse.declared.fields import HISTORY
from warehouse.errors import ErrorCode, KappaError
from warehouse.home.products import Product, identity_of
from warehouse.home.staging import Staging


def count_chat_turns(staging: Staging, workload: Workload, tokenizer: str) -> Product:
    """Count K, T and kappa_ratio of every turn as a server sees it, by the tokenizer's chat template."""
    counts, conversations = counted(staging, workload, tokenizer)
    name = turns_name(workload.name, tokenizer, "chat", HISTORY)
    inputs = turns_inputs(counts.identity, workload.kind, tokenizer, "chat", own_tokenizers(staging))
    if (product := staging.reuse(name, identity_of(**inputs))) is not None:
        return product
    file = tokenizer_file_of(staging, staging.require(tokenizer_name(tokenizer)))
    progress = Progress(f"{workload.name}: count chat with {tokenizer}", conversations.meta["text_bytes"])
    tokens = pq.read_table(counts.file(COUNTS), columns=["tokens"])["tokens"].to_numpy()
    fast = exact_counter(file) if is_distrusted(staging, tokenizer, file.fingerprint) else None
    conversations = with_text(staging, workload)
    messages = Messages(conversations.folder)
    with staging.reading(conversations):
        found = count_chat(
            messages, file, workload.kind, text_tokens=tokens, fast=fast,
            structured=partial(structures, conversations.folder), on_progress=progress.reach,
        )  # fmt: skip
    if found.wrong_texts:
        distrust(staging, tokenizer, file.fingerprint)
        why = "the comparison of whole prompts found what the sample of texts did not"
        what = f"{counts.meta['engine']} miscounts {found.wrong_texts:,} messages of {workload.name} with {tokenizer}"
        remedy = "run again: Hugging Face's engine then counts everything for this tokenizer"
        raise KappaError(what, why, remedy, code=ErrorCode.MISCOUNT)
    with staging.build(name, inputs=inputs) as draft:
        sessions = pq.read_table(conversations.file(SESSIONS))
        write_turns(draft, found.turns, sessions, (workload.name, tokenizer, "chat", HISTORY))
        draft.meta.update(
            turn_notes(counts, conversations),
            engine=found.engine, engine_version=found.engine_version, checked_turns=found.checked_turns,
            rendered_turns=found.rendered_turns, is_exact=found.is_exact,
            differences=[dataclasses.asdict(difference) for difference in found.differences],
        )  # fmt: skip
    return staging.require(name)

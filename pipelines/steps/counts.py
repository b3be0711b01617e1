"""Counts the tokens of every message of a workload by a tokenizer."""

from __future__ import annotations

import dataclasses
import logging

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.counting.engines import exact_counter
from pipelines.counting.verified import check_budget, count_checked
from pipelines.io.progress import Progress
from pipelines.sessions.messages import Messages
from pipelines.steps.distrust import is_distrusted
from pipelines.steps.fetching import tokenizer_file_of
from pipelines.steps.forgetting import with_text
from pipelines.steps.inputs import counts_inputs
from pipelines.steps.product_names import conversations_name, counts_name, tokenizer_name
from pipelines.workloads.declaration import Workload
from warehouse.home.products import Product, identity_of
from warehouse.home.staging import Staging

LOG = logging.getLogger("kappa")
COUNTS = "counts.parquet"


def count_tokens(staging: Staging, workload: Workload, tokenizer: str) -> Product:
    """Count the tokens of every message; the exact engine checks a sample and recounts on a difference."""
    conversations = staging.require(conversations_name(workload.name))
    file = tokenizer_file_of(staging, staging.require(tokenizer_name(tokenizer)))
    distrusted = is_distrusted(staging, tokenizer, file.fingerprint)
    inputs = counts_inputs(conversations.identity, file.fingerprint, distrusted=distrusted)
    name = counts_name(workload.name, tokenizer)
    if (product := staging.reuse(name, identity_of(**inputs))) is not None:
        return product
    conversations = with_text(staging, workload)
    messages = Messages(conversations.folder)
    progress = Progress(f"{workload.name}: count with {tokenizer}", conversations.meta["text_bytes"])
    budget = check_budget(conversations.meta["text_bytes"])
    fast = exact_counter(file) if distrusted else None
    with staging.reading(conversations):
        counted = count_checked(messages.texts, file, fast=fast, check_bytes=budget, on_progress=progress.reach)
        counts = messages.owners.append_column("tokens", pa.array(counted.tokens, pa.int64()))
    with staging.build(name, inputs=inputs) as draft:
        pq.write_table(counts, draft.folder / COUNTS, use_dictionary=False)
        draft.meta.update(
            engine=counted.engine, engine_version=counted.engine_version, fingerprint=file.fingerprint,
            conversations=conversations.identity, special_token_messages=int(counted.special.sum()),
            checked_texts=counted.checked_texts, checked_bytes=counted.checked_bytes, is_exact=counted.is_exact,
            differences=[dataclasses.asdict(difference) for difference in counted.differences],
            messages=len(counted.tokens),
            tokens=int(counted.tokens.sum()),
        )  # fmt: skip
    how = f"{counted.engine}, {counted.checked_texts:,} texts compared with Hugging Face"
    LOG.info("%s: %s tokens (%s)", name, f"{int(counted.tokens.sum()):,}", how)
    return staging.require(name)

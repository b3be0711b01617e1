"""The steps from fetched files to turns, each a function from products to a product.

A step whose inputs did not change returns the product that it made before.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.counting import count_checked
from pipelines.fetching import tokenizer_file_of
from pipelines.products import conversations_name, counts_name, raw_name, tokenizer_name, turns_name
from pipelines.progress import Progress
from pipelines.sessions import MESSAGES, REJECTED, SESSIONS, SessionsWriter
from pipelines.turn_tables import empty_turns, turns_table
from pipelines.turns import Turns, chat_turns, document_turns
from pipelines.workload import InputFile, Workload
from warehouse.code_version import code_version
from warehouse.errors import KappaError
from warehouse.staging import Product, Staging, identity_of

LOG = logging.getLogger("kappa")
COUNTS, TURNS_FILE = "counts.parquet", "turns.parquet"
TEXT_BATCH = 2048


def read_conversations(staging: Staging, workload: Workload) -> Product:
    """Read the fetched files into sessions of messages, and what cannot be used into rejects.

    Raises:
        KappaError: not one record can be used.
    """
    raw = staging.require(raw_name(workload.name))
    contents = [(file["path"], file["sha256"]) for file in raw.meta["files"]]
    name = conversations_name(workload.name)
    identity = identity_of(step="conversations", code=code_version(), workload=workload.name, files=contents)
    if (product := staging.reuse(name, identity)) is not None:
        return _told(product)
    with staging.build(name, identity) as draft:
        writer = SessionsWriter(draft.folder, workload.name)
        files = [InputFile(file["path"], Path(file["local"])) for file in raw.meta["files"]]
        progress = Progress(f"{workload.name}: read", sum(file["bytes"] for file in raw.meta["files"]))
        workload.read(files, writer, progress)
        writer.close()
        draft.meta.update(_read_notes(writer, raw))
        _require_some(writer, workload)
    return _told(staging.require(name))


def _read_notes(writer: SessionsWriter, raw: Product) -> dict[str, Any]:
    return {
        "records": dict(writer.records),
        "kept": writer.kept,
        "rejected": len(writer.rejects),
        "sessions": len(writer.session_ids),
        "messages": writer.messages,
        "text_bytes": writer.text_bytes,
        "truncated": [f"{r.path}: {r.detail}" for r in writer.rejects if r.reason == "truncated"],
        "raw": raw.meta,
        "is_sample": raw.meta["is_sample"],
    }


def _told(product: Product) -> Product:
    """Tell what was read, and loudly, at every run, where a file is cut."""
    meta = product.meta
    counts = f"{meta['sessions']:,} sessions, {meta['messages']:,} messages, {meta['rejected']:,} records left out"
    LOG.info("%s: %s", product.name, counts)
    for cut in meta["truncated"]:
        LOG.warning("%s: A FILE IS CUT: %s; only its whole records are used", product.name, cut)
    return product


def _require_some(writer: SessionsWriter, workload: Workload) -> None:
    """Raise KappaError where nothing of the workload can be used."""
    if not writer.kept:
        why = (
            f"all {len(writer.rejects)} are rejected, the first one: {writer.rejects[0].detail}"
            if writer.rejects
            else ""
        )
        raise KappaError(
            f"{workload.name} holds no usable record", why or "its files are empty", f"look at {workload.repo_id}"
        )


def count_tokens(staging: Staging, workload: Workload, tokenizer: str) -> Product:
    """Count the tokens of every message; the exact engine checks a sample and recounts on a difference."""
    conversations = staging.require(conversations_name(workload.name))
    file = tokenizer_file_of(staging.require(tokenizer_name(tokenizer)))
    name = counts_name(workload.name, tokenizer)
    identity = identity_of(
        step="counts", code=code_version(), conversations=conversations.identity, fingerprint=file.fingerprint
    )
    if (product := staging.reuse(name, identity)) is not None:
        return product
    messages = conversations.file(MESSAGES)
    progress = Progress(f"{workload.name}: count with {tokenizer}", conversations.meta["text_bytes"])
    counted = count_checked(partial(_texts, messages), file, on_progress=progress.reach)
    with staging.build(name, identity) as draft:
        columns = pq.read_table(messages, columns=["session", "position", "role"])
        pq.write_table(columns.append_column("tokens", pa.array(counted.tokens, pa.int64())), draft.folder / COUNTS)
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


def _texts(messages: Path) -> Iterator[pa.Array]:
    for batch in pq.ParquetFile(messages).iter_batches(batch_size=TEXT_BATCH, columns=["text"], use_threads=False):
        yield batch.column(0)


def derive_turns(staging: Staging, workload: Workload, tokenizer: str, counting: str = "text") -> Product:
    """Derive K, T and kappa_ratio of every turn from the counts; a turn with K + T = 0 is a reject."""
    counts = staging.require(counts_name(workload.name, tokenizer))
    conversations = staging.require(conversations_name(workload.name))
    name = turns_name(workload.name, tokenizer)
    if counts.meta["conversations"] != conversations.identity:
        raise KappaError(
            f"{name} cannot be derived",
            "its token counts belong to an older state of the conversations",
            f"materialize {counts.name} first",
        )
    identity = identity_of(step="turns", code=code_version(), counts=counts.identity, counting=counting)
    if (product := staging.reuse(name, identity)) is not None:
        return product
    with staging.build(name, identity) as draft:
        turns = _turns_of(workload, pq.read_table(counts.file(COUNTS)))
        sessions = pq.read_table(conversations.file(SESSIONS))
        table = turns_table(turns, sessions, workload.name, tokenizer, counting)
        pq.write_table(table, draft.folder / TURNS_FILE, compression="zstd")
        rejects = empty_turns(turns, sessions, workload.name)
        pq.write_table(rejects, draft.folder / REJECTED)
        draft.meta.update(
            workload=workload.name, tokenizer=tokenizer, counting=counting, conversations=conversations.identity,
            engine=counts.meta["engine"], engine_version=counts.meta["engine_version"],
            fingerprint=counts.meta["fingerprint"], special_token_messages=counts.meta["special_token_messages"],
            is_sample=conversations.meta["is_sample"], turns=table.num_rows, rejected=rejects.num_rows,
        )  # fmt: skip
    LOG.info("%s: %s turns", name, f"{table.num_rows:,}")
    return staging.require(name)


def _turns_of(workload: Workload, counts: pa.Table) -> Turns:
    session = counts["session"].to_numpy().astype(np.int64)
    order = np.lexsort((counts["position"].to_numpy(), session))
    derive = chat_turns if workload.kind == "chat" else document_turns
    return derive(session[order], counts["role"].to_numpy()[order], counts["tokens"].to_numpy()[order])

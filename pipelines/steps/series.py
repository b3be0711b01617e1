"""The steps from fetched files to turns, each a function from products to a product.

A step whose inputs did not change returns the product that it made before.
"""

from __future__ import annotations

import dataclasses
import logging
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.chat.counting import count_chat
from pipelines.counting.engines import exact_counter
from pipelines.counting.verified import check_budget, count_checked
from pipelines.io.json_array import NOT_AN_OBJECT, TOO_DEEP
from pipelines.io.progress import Progress
from pipelines.io.verified import unchanged
from pipelines.sessions.messages import Messages
from pipelines.sessions.rejects import REJECTED
from pipelines.sessions.writing import SESSIONS, SessionsWriter
from pipelines.steps.fetching import tokenizer_file_of
from pipelines.steps.product_names import (
    conversations_name,
    counts_name,
    distrusted_name,
    raw_name,
    tokenizer_name,
    turns_name,
)
from pipelines.turns.derivation import Turns, chat_turns, document_turns
from pipelines.turns.tables import empty_turns, turns_table
from pipelines.workloads.declaration import InputFile, Workload
from warehouse.errors import ErrorCode, KappaError
from warehouse.home.code_version import code_version
from warehouse.home.staging import Draft, Product, Staging, identity_of

LOG = logging.getLogger("kappa")
ENGINES = ("fastokens", "tokenizers")
# Records of which nothing can be used.
UNREAD = (NOT_AN_OBJECT, TOO_DEEP)
COUNTS, TURNS_FILE = "counts.parquet", "turns.parquet"


def read_conversations(staging: Staging, workload: Workload) -> Product:
    """Read the fetched files into sessions of messages, and what cannot be used into rejects.

    Raises:
        KappaError: not one record can be used.
    """
    raw = staging.require(raw_name(workload.name))
    name, identity = conversations_name(workload.name), conversations_identity(raw.meta)
    if (product := staging.reuse(name, identity)) is not None:
        return _told(product)
    # Gigabytes of text, whose sha256 nobody would compare.
    with staging.build(name, identity, is_deep=False) as draft:
        writer = SessionsWriter(draft.folder, workload.name)
        files = [InputFile(file["path"], Path(file["local"])) for file in raw.meta["files"]]
        progress = Progress(f"{workload.name}: read", sum(file["bytes"] for file in raw.meta["files"]))
        with unchanged({Path(file["local"]): file["sha256"] for file in raw.meta["files"]}):
            workload.read(files, writer, progress)
        writer.close()
        draft.meta.update(_read_notes(writer, raw))
        _require_some(writer, workload)
    return _told(staging.require(name))


def _read_notes(writer: SessionsWriter, raw: Product) -> dict[str, Any]:
    return {
        "records": dict(writer.records),
        "kept": writer.kept,
        "rejected": writer.rejects.records,
        "sessions": len(writer.session_ids),
        "messages": writer.messages,
        "text_bytes": writer.text_bytes,
        "truncated": writer.rejects.cuts,
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
    """Raise KappaError where nothing of the workload, or not one whole record of one of its files, can be read."""
    rejects, remedy = writer.rejects, f"look at {workload.repo_id}"
    for path, records in writer.records.items():
        unread = sum(rejects.counts[path, reason] for reason in UNREAD)
        if path in rejects.first and unread == records:
            raise KappaError(
                f"{path} of {workload.name} holds no whole record",
                rejects.first[path].detail,
                remedy,
                code=ErrorCode.NO_RECORD,
            )
        if not records:
            LOG.warning("%s: %s holds no record", workload.name, path)
    if not writer.kept:
        first = next(iter(rejects.first.values()), None)
        why = f"all {rejects.records:,} are rejected, the first one: {first.detail}" if first else "its files are empty"
        raise KappaError(f"{workload.name} holds no usable record", why, remedy, code=ErrorCode.NO_RECORD)


def count_tokens(staging: Staging, workload: Workload, tokenizer: str) -> Product:
    """Count the tokens of every message; the exact engine checks a sample and recounts on a difference."""
    conversations = staging.require(conversations_name(workload.name))
    file = tokenizer_file_of(staging.require(tokenizer_name(tokenizer)))
    distrusted = is_distrusted(staging, tokenizer, file.fingerprint)
    identity = counts_identity(conversations.identity, file.fingerprint, distrusted=distrusted)
    name = counts_name(workload.name, tokenizer)
    if (product := staging.reuse(name, identity)) is not None:
        return product
    messages = Messages(conversations.folder)
    progress = Progress(f"{workload.name}: count with {tokenizer}", conversations.meta["text_bytes"])
    budget = check_budget(conversations.meta["text_bytes"])
    fast = exact_counter(file) if distrusted else None
    with staging.reading(conversations):
        counted = count_checked(messages.texts, file, fast=fast, check_bytes=budget, on_progress=progress.reach)
        counts = messages.owners.append_column("tokens", pa.array(counted.tokens, pa.int64()))
    with staging.build(name, identity) as draft:
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


def derive_turns(staging: Staging, workload: Workload, tokenizer: str) -> Product:
    """Derive K, T and kappa_ratio of every turn from the counts of `text`; a turn with K + T = 0 is a reject."""
    counts, conversations = _counted(staging, workload, tokenizer)
    name = turns_name(workload.name, tokenizer, "text")
    identity = turns_identity(counts.identity, "text")
    if (product := staging.reuse(name, identity)) is not None:
        return product
    with staging.build(name, identity) as draft:
        turns = _turns_of(workload, pq.read_table(counts.file(COUNTS)))
        _write_turns(draft, turns, pq.read_table(conversations.file(SESSIONS)), (workload.name, tokenizer, "text"))
        draft.meta.update(_turn_notes(counts, conversations))
        draft.meta.update(engine=counts.meta["engine"], engine_version=counts.meta["engine_version"])
    return staging.require(name)


def count_chat_turns(staging: Staging, workload: Workload, tokenizer: str) -> Product:
    """Count K, T and kappa_ratio of every turn as a server sees it, by the tokenizer's chat template."""
    counts, conversations = _counted(staging, workload, tokenizer)
    name = turns_name(workload.name, tokenizer, "chat")
    identity = turns_identity(counts.identity, "chat")
    if (product := staging.reuse(name, identity)) is not None:
        return product
    file = tokenizer_file_of(staging.require(tokenizer_name(tokenizer)))
    progress = Progress(f"{workload.name}: count chat with {tokenizer}", conversations.meta["text_bytes"])
    tokens = pq.read_table(counts.file(COUNTS), columns=["tokens"])["tokens"].to_numpy()
    fast = exact_counter(file) if is_distrusted(staging, tokenizer, file.fingerprint) else None
    messages = Messages(conversations.folder)
    with staging.reading(conversations):
        counted = count_chat(messages, file, workload.kind, text_tokens=tokens, fast=fast, on_progress=progress.reach)
    if counted.wrong_texts:
        _distrust(staging, tokenizer, file.fingerprint)
        why = "the comparison of whole prompts found what the sample of texts did not"
        what = f"{counts.meta['engine']} miscounts {counted.wrong_texts:,} messages of {workload.name} with {tokenizer}"
        raise KappaError(
            what,
            why,
            "run again: Hugging Face's engine then counts everything for this tokenizer",
            code=ErrorCode.MISCOUNT,
        )
    with staging.build(name, identity) as draft:
        sessions = pq.read_table(conversations.file(SESSIONS))
        _write_turns(draft, counted.turns, sessions, (workload.name, tokenizer, "chat"))
        draft.meta.update(
            _turn_notes(counts, conversations),
            engine=counted.engine, engine_version=counted.engine_version, checked_turns=counted.checked_turns,
            rendered_turns=counted.rendered_turns, is_exact=counted.is_exact,
            differences=[dataclasses.asdict(difference) for difference in counted.differences],
        )  # fmt: skip
    return staging.require(name)


def is_distrusted(staging: Staging, tokenizer: str, fingerprint: str) -> bool:
    """Whether a miscount by these versions of the engines is on record for a tokenizer."""
    return staging.find(distrusted_name(tokenizer), _distrusted_identity(fingerprint)) is not None


def _distrust(staging: Staging, tokenizer: str, fingerprint: str) -> None:
    with staging.build(distrusted_name(tokenizer), _distrusted_identity(fingerprint)):
        LOG.warning("%s: the fast engine is not used any more for this tokenizer", tokenizer)


def _distrusted_identity(fingerprint: str) -> str:
    return identity_of(step="distrusted", fingerprint=fingerprint, engines={name: version(name) for name in ENGINES})


def _counted(staging: Staging, workload: Workload, tokenizer: str) -> tuple[Product, Product]:
    """Return counts and conversations; KappaError where the counts are those of an older state."""
    counts = staging.require(counts_name(workload.name, tokenizer))
    conversations = staging.require(conversations_name(workload.name))
    if counts.meta["conversations"] != conversations.identity:
        why, remedy = "they belong to an older state of the conversations", "materialize them first, or run `kappa run`"
        raise KappaError(f"{counts.name} are stale", why, remedy, code=ErrorCode.STALE)
    return counts, conversations


def _write_turns(draft: Draft, turns: Turns, sessions: pa.Table, series: tuple[str, str, str]) -> None:
    """Write the turns of a series (workload, tokenizer, counting) and the rejects among them, and note how many."""
    table, rejects = turns_table(turns, sessions, *series), empty_turns(turns, sessions, series[0])
    pq.write_table(table, draft.folder / TURNS_FILE, compression="zstd")
    pq.write_table(rejects, draft.folder / REJECTED)
    draft.meta.update(zip(("workload", "tokenizer", "counting"), series, strict=True))
    draft.meta.update(turns=table.num_rows, rejected=rejects.num_rows)
    LOG.info("%s: %s turns", turns_name(*series), f"{table.num_rows:,}")


def _turn_notes(counts: Product, conversations: Product) -> dict[str, Any]:
    """Return what turns take over from the products before them."""
    notes = {name: counts.meta[name] for name in ("fingerprint", "special_token_messages")}
    return {**notes, "is_sample": conversations.meta["is_sample"]}


def _turns_of(workload: Workload, counts: pa.Table) -> Turns:
    session = counts["session"].to_numpy().astype(np.int64)
    order = np.lexsort((counts["position"].to_numpy(), session))
    derive = chat_turns if workload.kind == "chat" else document_turns
    return derive(session[order], counts["role"].to_numpy()[order], counts["tokens"].to_numpy()[order])


def conversations_identity(raw: dict[str, Any]) -> str:
    """Return the identity of the conversations that this code reads from these files."""
    contents = [(file["path"], file["sha256"]) for file in raw["files"]]
    return identity_of(step="conversations", code=code_version(), workload=raw["workload"], files=contents)


def counts_identity(conversations: str, fingerprint: str, *, distrusted: bool) -> str:
    """Return the identity of the counts of these conversations by a tokenizer, see `is_distrusted`."""
    engines = {name: version(name) for name in ENGINES[distrusted:]}
    return identity_of(
        step="counts", code=code_version(), conversations=conversations, fingerprint=fingerprint, engines=engines
    )


def turns_identity(counts: str, counting: str) -> str:
    """Return the identity of the turns out of these counts."""
    return identity_of(step="turns", code=code_version(), counts=counts, counting=counting)


def is_current(staging: Staging, turns: Product) -> bool:
    """Whether this code made these turns, from the conversations and by the tokenizer that are staged now."""
    meta = turns.meta
    conversations = staging.newest(conversations_name(meta["workload"]))
    tokenizer = staging.newest(tokenizer_name(meta["tokenizer"]))
    if conversations is None or tokenizer is None:
        return False
    read = conversations_identity(conversations.meta["raw"])
    fingerprint = tokenizer.meta["fingerprint"]
    distrusted = is_distrusted(staging, meta["tokenizer"], fingerprint)
    counted = counts_identity(read, fingerprint, distrusted=distrusted)
    return (conversations.identity, turns.identity) == (read, turns_identity(counted, meta["counting"]))

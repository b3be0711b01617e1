"""The steps from a repository to turns, each a function from products to a product. A step whose inputs did not change
returns the product that it made before.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.counting import count_checked
from pipelines.hub import FetchedFile, Hub
from pipelines.progress import Progress
from pipelines.sessions import MESSAGES, REJECTED, SESSIONS, SessionsWriter
from pipelines.tokenizer_files import TokenizerFile, fetch_tokenizer
from pipelines.tokenizer_specs import TokenizerSpec, tokenizer_spec
from pipelines.turns import Turns, chat_turns, document_turns
from pipelines.workload import InputFile, Workload
from warehouse.code_version import code_version
from warehouse.errors import KappaError
from warehouse.staging import Product, Staging, identity_of
from warehouse.tables import REJECTS, TURNS

LOG = logging.getLogger("kappa")
COUNTS, TURNS_FILE = "counts.parquet", "turns.parquet"
TEXT_BATCH = 2048


def raw_name(workload: str) -> str:
    """Return the name of the product of `fetch_raw`."""
    return f"raw/{workload}"


def conversations_name(workload: str) -> str:
    """Return the name of the product of `read_conversations`."""
    return f"conversations/{workload}"


def tokenizer_name(tokenizer: str) -> str:
    """Return the name of the product of `fetch_tokenizer_file`."""
    return f"tokenizer_files/{tokenizer}"


def counts_name(workload: str, tokenizer: str) -> str:
    """Return the name of the product of `count_tokens`."""
    return f"token_counts/{workload}/{tokenizer}"


def turns_name(workload: str, tokenizer: str) -> str:
    """Return the name of the product of `derive_turns`."""
    return f"turns/{workload}/{tokenizer}"


def fetch_raw(staging: Staging, workload: Workload, hub: Hub) -> Product:
    """Pin the repository's commit, fetch and verify the workload's files, and note them.

    Raises:
        KappaError: the repository or a file cannot be had; it says why.
    """
    LOG.info("%s: fetching %s", workload.name, workload.repo_id)
    revision = hub.revision(workload.repo_id)
    known = hub.files(workload.repo_id, revision)
    files: list[FetchedFile] = []
    for path in workload.select(hub, workload.repo_id, revision):
        if path not in known:
            raise KappaError(
                f"{workload.repo_id} has no file {path}",
                f"at commit {revision[:12]} it is not there",
                "look at its page",
            )
        files.append(hub.fetch(workload.repo_id, revision, known[path]))
    return _noted(staging, workload, revision, files, is_sample=hub.is_sample)


def _noted(
    staging: Staging, workload: Workload, revision: str, files: list[FetchedFile], *, is_sample: bool
) -> Product:
    notes = [
        {"path": f.path, "repo_id": f.repo_id, "bytes": f.bytes, "sha256": f.sha256, "local": str(f.local)}
        for f in files
    ]
    name, identity = raw_name(workload.name), identity_of(step="raw", revision=revision, files=notes)
    if (product := staging.reuse(name, identity)) is not None:
        return product
    with staging.build(name, identity) as draft:
        draft.meta.update(
            workload=workload.name,
            revision=revision,
            files=notes,
            is_sample=is_sample,
            fetched_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
    return staging.require(name)


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
        return product
    with staging.build(name, identity) as draft:
        writer = SessionsWriter(draft.folder, workload.name)
        files = [InputFile(file["path"], Path(file["local"])) for file in raw.meta["files"]]
        progress = Progress(f"{workload.name}: read", sum(file["bytes"] for file in raw.meta["files"]))
        workload.read(files, writer, progress)
        writer.close()
        draft.meta.update(_read_notes(writer, raw))
        _require_some(writer, workload)
    return staging.require(name)


def _read_notes(writer: SessionsWriter, raw: Product) -> dict[str, Any]:
    return {
        "records": dict(writer.records),
        "kept": writer.kept,
        "rejected": len(writer.rejects),
        "sessions": len(writer.session_ids),
        "messages": writer.messages,
        "text_bytes": writer.text_bytes,
        "truncated": [f"{r.path}: {r.detail}" for r in writer.rejects if r.reason == "truncated"],
        "files": [[file["path"], file["sha256"]] for file in raw.meta["files"]],
        "is_sample": raw.meta["is_sample"],
    }


def _require_some(writer: SessionsWriter, workload: Workload) -> None:
    """Tell truncations loudly; raise KappaError where nothing of the workload can be used."""
    for reject in writer.rejects:
        if reject.reason == "truncated":
            LOG.warning("%s: %s is cut: %s; its whole records are used", workload.name, reject.path, reject.detail)
    if not writer.kept:
        why = (
            f"all {len(writer.rejects)} are rejected, the first one: {writer.rejects[0].detail}"
            if writer.rejects
            else ""
        )
        raise KappaError(
            f"{workload.name} holds no usable record", why or "its files are empty", f"look at {workload.repo_id}"
        )


def fetch_tokenizer_file(staging: Staging, spec: TokenizerSpec, *, offline: bool) -> Product:
    """Fetch and verify one tokenizer's file and keep it.

    Raises:
        KappaError: it cannot be had on any way.
    """
    LOG.info("%s: fetching the tokenizer", spec.name)
    folder = staging.root / "vocabularies"
    folder.mkdir(parents=True, exist_ok=True)
    file = fetch_tokenizer(spec, folder, offline=offline)
    notes = {
        "repo_id": file.repo_id, "revision": file.revision, "path": spec.path, "sha256": file.sha256,
        "fingerprint": file.fingerprint, "bytes": file.bytes, "local": str(file.path),
    }  # fmt: skip
    name, identity = tokenizer_name(spec.name), identity_of(step="tokenizer", **notes)
    if (product := staging.reuse(name, identity)) is not None:
        return product
    with staging.build(name, identity) as draft:
        draft.meta.update(tokenizer=spec.name, max_context_tokens=spec.max_context_tokens, **notes)
    return staging.require(name)


def tokenizer_file_of(product: Product) -> TokenizerFile:
    """Return the tokenizer's file that a product notes."""
    meta = product.meta
    return TokenizerFile(
        spec=tokenizer_spec(meta["tokenizer"]), path=Path(meta["local"]), repo_id=meta["repo_id"],
        revision=meta["revision"], sha256=meta["sha256"], fingerprint=meta["fingerprint"], bytes=meta["bytes"],
    )  # fmt: skip


def count_tokens(staging: Staging, workload: Workload, tokenizer: str) -> Product:
    """Count the tokens of every message by one tokenizer; the exact engine checks a sample and recounts on a difference."""
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
            differences=[vars_of(difference) for difference in counted.differences], messages=len(counted.tokens),
            tokens=int(counted.tokens.sum()),
        )  # fmt: skip
    return staging.require(name)


def vars_of(difference: object) -> dict[str, Any]:
    """Return a difference's fields as JSON values."""
    from dataclasses import asdict, is_dataclass  # noqa: PLC0415

    assert is_dataclass(difference) and not isinstance(difference, type)
    return asdict(difference)


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
    return staging.require(name)


def _turns_of(workload: Workload, counts: pa.Table) -> Turns:
    session = counts["session"].to_numpy().astype(np.int64)
    order = np.lexsort((counts["position"].to_numpy(), session))
    derive = chat_turns if workload.kind == "chat" else document_turns
    return derive(session[order], counts["role"].to_numpy()[order], counts["tokens"].to_numpy()[order])


def turns_table(turns: Turns, sessions: pa.Table, workload: str, tokenizer: str, counting: str) -> pa.Table:
    """Return the turns with K + T > 0 as rows of the `turns` table."""
    keep = ~turns.is_empty
    cached, prefill, index = turns.cached[keep], turns.prefill[keep], turns.turn_index[keep]
    count = len(cached)
    columns = {
        "workload": _constant(workload, count),
        "tokenizer": _constant(tokenizer, count),
        "counting": _constant(counting, count),
        "session_id": sessions["session_id"].combine_chunks().take(pa.array(turns.session[keep])),
        "turn_index": pa.array(index.astype(np.int32)),
        "cached_tokens": pa.array(cached),
        "prefill_tokens": pa.array(prefill),
        "output_tokens": pa.array(turns.output[keep], mask=~turns.has_output[keep]),
        "kappa_ratio": pa.array(cached / prefill),
        "is_first_turn": pa.array(index == 0),
    }
    return TURNS.conform(pa.table(columns))


def empty_turns(turns: Turns, sessions: pa.Table, workload: str) -> pa.Table:
    """Return the turns with K + T = 0 as rows of the `rejects` table."""
    ids, paths, records = (sessions[name].to_pylist() for name in ("session_id", "path", "record"))
    where = np.flatnonzero(turns.is_empty)
    return REJECTS.rows(
        [
            {
                "workload": workload,
                "path": paths[session],
                "record": records[session],
                "level": "turn",
                "session_id": ids[session],
                "turn_index": int(index),
                "reason": "empty_turn",
                "detail": "no token in the turn and none before it",
            }  # fmt: skip
            for session, index in zip(turns.session[where].tolist(), turns.turn_index[where].tolist(), strict=True)
        ]
    )


def _constant(value: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.string()), count)

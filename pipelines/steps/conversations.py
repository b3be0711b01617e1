"""Reads a workload's fetched files into sessions of messages, and what cannot be used into rejects."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from pipelines.io.json_array import NOT_AN_OBJECT, TOO_DEEP
from pipelines.io.progress import Progress
from pipelines.io.verified import unchanged
from pipelines.sessions.writing import SessionsWriter
from pipelines.steps.inputs import conversations_inputs
from pipelines.steps.product_names import conversations_name, raw_name
from pipelines.workloads.declaration import InputFile, Workload
from warehouse.errors import ErrorCode, KappaError
from warehouse.home.products import Product, identity_of
from warehouse.home.staging import Staging

LOG = logging.getLogger("kappa")
# Records of which nothing can be used.
UNREAD = (NOT_AN_OBJECT, TOO_DEEP)


def read_conversations(staging: Staging, workload: Workload) -> Product:
    """Read the fetched files into sessions of messages, and what cannot be used into rejects.

    Raises:
        KappaError: not one record can be used.
    """
    raw = staging.require(raw_name(workload.name))
    name, inputs = conversations_name(workload.name), conversations_inputs(raw.meta)
    if (product := staging.reuse(name, identity_of(**inputs))) is not None:
        return _told(product)
    # Gigabytes of text, whose sha256 nobody would compare.
    with staging.build(name, inputs=inputs, is_deep=False) as draft:
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
        "requests": writer.served,
        "text_bytes": writer.text_bytes,
        "uncounted_parts": writer.uncounted_parts,
        "reasoning_messages": writer.reasoning,
        "truncated": writer.rejects.cuts,
        "notes": writer.notes,
        "raw": raw.meta,
        "is_sample": raw.meta["is_sample"],
    }


def _told(product: Product) -> Product:
    """Tell what was read, and loudly, at every run, where a file is cut."""
    meta = product.meta
    what = f"{meta['requests']:,} requests" if meta["requests"] else f"{meta['messages']:,} messages"
    counts = f"{meta['sessions']:,} sessions, {what}, {meta['rejected']:,} records left out"
    LOG.info("%s: %s", product.name, counts)
    for note in meta["notes"]:
        LOG.warning("%s: %s", product.name, note)
    for cut in meta["truncated"]:
        LOG.warning("%s: A FILE IS CUT: %s; only its whole records are used", product.name, cut)
    return product


def _require_some(writer: SessionsWriter, workload: Workload) -> None:
    """Raise KappaError where nothing of the workload, or not one whole record of one of its files, can be read."""
    rejects, remedy = writer.rejects, f"look at {workload.repo_id}"
    for path, records in writer.records.items():
        unread = sum(rejects.counts[path, reason] for reason in UNREAD)
        if path in rejects.first and unread == records:
            what = f"{path} of {workload.name} holds no whole record"
            raise KappaError(what, rejects.first[path].detail, remedy, code=ErrorCode.NO_RECORD)
        if not records:
            LOG.warning("%s: %s holds no record", workload.name, path)
    if not writer.kept:
        first = next(iter(rejects.first.values()), None)
        why = f"all {rejects.records:,} are rejected, the first one: {first.detail}" if first else "its files are empty"
        raise KappaError(f"{workload.name} holds no usable record", why, remedy, code=ErrorCode.NO_RECORD)

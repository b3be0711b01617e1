"""What is fetched and verified: a workload's files at a pinned commit, a tokenizer's file."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path

from pipelines.fetch.hub import FetchedFile, Hub
from pipelines.steps.product_names import home_of, raw_name, tokenizer_name
from pipelines.vocab.files import TokenizerFile, fetch_tokenizer
from pipelines.vocab.specs import TokenizerSpec, tokenizer_spec
from pipelines.workloads.declaration import Workload
from warehouse.errors import ErrorCode, KappaError
from warehouse.hardware_rows.tokenizer_names import own_tokenizer_folder
from warehouse.home.products import Product, identity_of
from warehouse.home.staging import Staging

LOG = logging.getLogger("kappa")


def fetch_raw(staging: Staging, workload: Workload, hub: Hub) -> Product:
    """Pin the repository's commit, fetch and verify the workload's files, and note them.

    Raises:
        KappaError: the repository or a file cannot be had; it says why.
    """
    hub = workload.hub or hub
    if hub.is_offline and (earlier := _still_there(staging, workload)) is not None:
        LOG.info("%s: offline, the files fetched before are used", workload.name)
        return earlier
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
                code=ErrorCode.HUB_FILE_MISSING,
            )
        files.append(hub.fetch(workload.repo_id, revision, known[path]))
    return _noted(staging, workload, revision, files, is_sample=hub.is_sample)


def _still_there(staging: Staging, workload: Workload) -> Product | None:
    """Return what was fetched last where its files still lie there; offline nothing newer can be known."""
    known = staging.newest(raw_name(workload.name))
    return known if known is not None and all(Path(file["local"]).is_file() for file in known.meta["files"]) else None


def _noted(
    staging: Staging, workload: Workload, revision: str, files: list[FetchedFile], *, is_sample: bool
) -> Product:
    """Keep what was fetched, the time of the first fetch included, as a product."""
    notes = [
        {"path": f.path, "repo_id": f.repo_id, "bytes": f.bytes, "sha256": f.sha256, "local": str(f.local)}
        for f in files
    ]
    inputs = [{key: value for key, value in note.items() if key != "local"} for note in notes]
    own = {} if workload.declared is None else {"declared": workload.declared}
    name, identity = raw_name(workload.name), identity_of(step="raw", revision=revision, files=inputs, **own)
    if (product := staging.reuse(name, identity)) is not None:
        return staging.amend(product, files=notes)
    with staging.build(name, identity) as draft:
        draft.meta.update(
            workload=workload.name,
            revision=revision,
            files=notes,
            is_sample=is_sample,
            kind=workload.kind,
            declared=workload.declared,
            fetched_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
    return staging.require(name)


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
    inputs = {key: value for key, value in notes.items() if key != "local"}
    inputs |= {"step": "tokenizer", "max_context_tokens": spec.max_context_tokens}
    name, identity = tokenizer_name(spec.name), identity_of(**inputs)
    if (product := staging.reuse(name, identity)) is not None:
        return staging.amend(product, local=notes["local"])
    with staging.build(name, inputs=inputs) as draft:
        draft.meta.update(tokenizer=spec.name, max_context_tokens=spec.max_context_tokens, **notes)
    return staging.require(name)


def own_tokenizers(staging: Staging) -> Path:
    """Return the folder of a user's own tokenizers, in the home folder that the products rest in."""
    return own_tokenizer_folder(home_of(staging))


def tokenizer_file_of(staging: Staging, product: Product) -> TokenizerFile:
    """Return the tokenizer's file that a product notes."""
    meta, own = product.meta, own_tokenizers(staging)
    return TokenizerFile(
        spec=tokenizer_spec(meta["tokenizer"], own), path=Path(meta["local"]), repo_id=meta["repo_id"],
        revision=meta["revision"], sha256=meta["sha256"], fingerprint=meta["fingerprint"], bytes=meta["bytes"],
    )  # fmt: skip

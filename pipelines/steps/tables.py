"""The tables over everything that is staged, one function a table; what DuckDB computes is in `warehouse`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.hardware.boundness import boundness
from pipelines.hardware.design_questions import design_questions
from pipelines.hardware.machines import read_sources
from pipelines.hardware.ratios import hardware_tables
from pipelines.sessions.rejects import REJECTED
from pipelines.steps.product_names import conversations_name, raw_name, table_name, tokenizer_name
from pipelines.steps.series import TURNS_FILE, is_current
from pipelines.workloads.sets import workloads
from warehouse.database.aggregates import percentiles_of, summary_of
from warehouse.declared.tables import TABLES
from warehouse.errors import ErrorCode, KappaError
from warehouse.hardware_rows.rows import FOLDER, load_reference, user_folder, user_rows_identity
from warehouse.home.code_version import code_version
from warehouse.home.lake import write_table
from warehouse.home.staging import Product, Staging, identity_of

LOG = logging.getLogger("kappa")
HARDWARE = ("models", "accelerators", "links", "platforms", "kappa_crit", "headlines")
STAGED = (
    "sources",
    "tokenizers",
    "rejects",
    "percentiles",
    "summary",
    *HARDWARE,
    "boundness",
    "design_questions",
    "published",
)


def series(staging: Staging) -> list[Product]:
    """Return the turns of every workload, tokenizer and counting that this code made from what is staged now.

    Others are left out, and it is told: one warehouse never mixes two revisions of a set, nor two ways to derive.
    """
    products = [staging.newest(product) for name in workloads() for product in staging.names(f"turns/{name}")]
    found = [product for product in products if product is not None]
    for product in found:
        if not is_current(staging, product):
            _warn_once(product.name, product.identity)
    return [product for product in found if is_current(staging, product)]


@cache
def _warn_once(name: str, identity: str) -> None:
    del identity
    LOG.warning("%s is left out: older data or older code made it; `kappa run` renews it", name)


def table_identity(staging: Staging, table: str) -> str:
    """Return the identity that a table has where it is made from what is staged now."""
    return _identity(staging, table, _parts(staging, table))


def _identity(staging: Staging, table: str, parts: list[Product]) -> str:
    return identity_of(step=table_name(table), code=code_version(), inputs=_inputs(staging, table, parts))


def _parts(staging: Staging, table: str) -> list[Product]:
    return [] if table in HARDWARE or table == "published" else series(staging)


def stage_table(staging: Staging, table: str) -> Product:
    """Make one table over everything that is staged.

    Raises:
        KappaError: there are no turns yet.
        KeyError: the table is not one that is staged.
    """
    parts = _parts(staging, table)
    name, identity = table_name(table), _identity(staging, table, parts)
    if (product := staging.reuse(name, identity)) is not None:
        return product
    data = TABLES[table].conform(_MAKERS[table](staging, parts))
    with staging.build(name, identity) as draft:
        write_table(data, draft.folder / f"{table}.parquet")
        draft.meta["rows"] = data.num_rows
    return staging.require(name)


def _inputs(staging: Staging, table: str, parts: list[Product]) -> list[str]:
    """Return the identities of what a table depends on."""
    inputs = [product.identity for product in parts]
    if table in (*HARDWARE, "boundness", "design_questions"):
        inputs.append(user_rows_identity(user_rows(staging)))
    if table == "sources":
        found = [staging.require(conversations_name(workload)) for workload in _workloads(parts)]
        inputs += [_raw_identity(raw_of(staging, conversations)) for conversations in found]
    if table == "tokenizers":
        inputs += [staging.require(tokenizer_name(tokenizer)).identity for tokenizer in _tokenizers(parts)]
    return inputs


def user_rows(staging: Staging) -> Path:
    """Return the folder of the user's own rows, in the home folder that the products rest in."""
    return user_folder(staging.root.parents[1])


def _workloads(parts: list[Product]) -> list[str]:
    return list(dict.fromkeys(part.meta["workload"] for part in parts))


def _tokenizers(parts: list[Product]) -> list[str]:
    return sorted({part.meta["tokenizer"] for part in parts})


def table_of(product: Product) -> str:
    """Return the name of the table that a product holds."""
    return product.name.split("/")[1]


def read_table(product: Product) -> pa.Table:
    """Return the rows of a staged table."""
    table = table_of(product)
    return pq.read_table(product.file(f"{table}.parquet")).cast(TABLES[table].arrow_schema)


def raw_of(staging: Staging, conversations: Product) -> dict[str, Any]:
    """Return what was fetched for these conversations: the newest fetch where its files are the same, else their own.

    A new commit often leaves the files that are used as they were; then nothing is read again, and the newest commit is
    the one to name. A fetch whose files were not read yet is not what the turns came from.
    """
    own: dict[str, Any] = conversations.meta["raw"]
    newest = staging.newest(raw_name(own["workload"]))
    if newest is None or _contents(newest.meta) != _contents(own):
        return own
    return newest.meta


def _raw_identity(raw: dict[str, Any]) -> str:
    """Return a hash of what was fetched, but for where it lies on this machine."""
    files = [{key: value for key, value in file.items() if key != "local"} for file in raw["files"]]
    return identity_of(raw={**raw, "files": files})


def _contents(raw: dict[str, Any]) -> list[tuple[str, str]]:
    return [(file["path"], file["sha256"]) for file in raw["files"]]


def _sources(staging: Staging, parts: list[Product]) -> pa.Table:
    rows: list[dict[str, object]] = []
    for name in _workloads(parts):
        conversations = staging.require(conversations_name(name))
        raw = raw_of(staging, conversations)
        rows += [
            {
                "workload": name,
                "repo_id": file["repo_id"],
                "revision": raw["revision"],
                "path": file["path"],
                "bytes": file["bytes"],
                "sha256": file["sha256"],
                "records": conversations.meta["records"][file["path"]],
                "licence": "generated by kappa" if raw["is_sample"] else workloads()[name].licence,
                "fetched_at": datetime.fromisoformat(raw["fetched_at"]),
                "is_sample": raw["is_sample"],
            }
            for file in raw["files"]
        ]
    return TABLES["sources"].rows(rows)


def _tokenizer_rows(staging: Staging, parts: list[Product]) -> pa.Table:
    rows: dict[tuple[str, str], dict[str, object]] = {}
    for part in parts:
        meta = staging.require(tokenizer_name(part.meta["tokenizer"])).meta
        columns = ("tokenizer", "repo_id", "revision", "path", "sha256", "fingerprint", "max_context_tokens")
        rows[part.meta["tokenizer"], part.meta["engine"]] = {
            **{column: meta[column] for column in columns},
            "engine": part.meta["engine"],
            "engine_version": part.meta["engine_version"],
        }
    return TABLES["tokenizers"].rows([rows[key] for key in sorted(rows)])


def _rejects(staging: Staging, parts: list[Product]) -> pa.Table:
    """Records left out of each workload, then turns left out; all tokenizers leave the same turns out of `text`."""
    tables = []
    for name in _workloads(parts):
        tables.append(pq.read_table(staging.require(conversations_name(name)).file(REJECTED)))
        texts = [part for part in parts if (part.meta["workload"], part.meta["counting"]) == (name, "text")]
        tables += [pq.read_table(part.file(REJECTED)) for part in texts[:1]]
    return pa.concat_tables([TABLES["rejects"].rows([]), *tables])


def _percentiles(staging: Staging, parts: list[Product]) -> pa.Table:
    del staging
    return pa.concat_tables([percentiles_of(part.file(TURNS_FILE)) for part in some(parts)])


def _summary(staging: Staging, parts: list[Product]) -> pa.Table:
    del staging
    return pa.concat_tables(
        [
            summary_of(
                part.file(TURNS_FILE),
                special_token_messages=part.meta["special_token_messages"],
                is_sample=part.meta["is_sample"],
            )
            for part in some(parts)
        ]
    )


def _boundness(staging: Staging, parts: list[Product]) -> pa.Table:
    user = user_rows(staging)
    hardware, headlines = hardware_tables(FOLDER, user), load_reference("headlines", FOLDER, user)
    tables = []
    for part in some(parts):
        turns = pq.read_table(part.file(TURNS_FILE), columns=["cached_tokens", "prefill_tokens"])
        names = {name: part.meta[name] for name in ("workload", "tokenizer", "counting")}
        tables.append(boundness([turns], **names, hardware=hardware, headlines=headlines))
    return pa.concat_tables(tables)


def _design_questions(staging: Staging, parts: list[Product]) -> pa.Table:
    user = user_rows(staging)
    headlines = load_reference("headlines", FOLDER, user).to_pylist()
    models, sources = [row["model"] for row in headlines if row["model"]], read_sources(FOLDER, user)
    tables = []
    for part in some(parts):
        turns = pq.read_table(part.file(TURNS_FILE), columns=["cached_tokens", "prefill_tokens"])
        names = {name: part.meta[name] for name in ("workload", "tokenizer", "counting")}
        tables.append(design_questions([turns], **names, sources=sources, models=models))
    return pa.concat_tables(tables)


def some(parts: list[Product]) -> list[Product]:
    """Return the series; KappaError where there are none."""
    if not parts:
        raise KappaError(
            "there are no turns yet",
            "no workload was counted here",
            "materialize a workload, or run `kappa run`",
            code=ErrorCode.NOT_BUILT,
        )
    return parts


def _hardware(table: str) -> Callable[[Staging, list[Product]], pa.Table]:
    return lambda staging, _parts: hardware_tables(FOLDER, user_rows(staging))[table]


_MAKERS: dict[str, Callable[[Staging, list[Product]], pa.Table]] = {
    "sources": _sources,
    "tokenizers": _tokenizer_rows,
    "rejects": _rejects,
    "percentiles": _percentiles,
    "summary": _summary,
    "boundness": _boundness,
    "design_questions": _design_questions,
    "published": lambda _staging, _parts: load_reference("published"),
    **{table: _hardware(table) for table in HARDWARE if table != "headlines"},
    "headlines": lambda staging, _parts: load_reference("headlines", FOLDER, user_rows(staging)),
}

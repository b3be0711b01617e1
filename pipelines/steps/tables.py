"""The tables over everything that is staged: which there are, what each is made from, and where it rests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.steps.fetching import own_tokenizers
from pipelines.steps.inputs import inputs_of
from pipelines.steps.makers import capacity, hardware, limits, origins, serving, statistics
from pipelines.steps.product_names import conversations_name, home_of, table_name, tokenizer_name
from pipelines.steps.series import series
from pipelines.workloads.known import known_workloads
from warehouse.declared.tables import TABLES
from warehouse.hardware_rows.rows import user_rows_identity
from warehouse.hardware_rows.tokenizer_names import own_models, tokenizer_names
from warehouse.home.lake import write_table
from warehouse.home.products import Inputs, Product, identity_of
from warehouse.home.staging import Staging

HARDWARE = ("models", "accelerators", "links", "platforms", "kappa_crit", "headlines", "validation")
CAPACITY = tuple(capacity.MAKERS)
STAGED = (
    "sources",
    "tokenizers",
    "rejects",
    "percentiles",
    "summary",
    *HARDWARE,
    "boundness",
    "design_questions",
    *CAPACITY,
    "cache_tiers",
    *serving.SERVING,
    "published",
)


def table_identity(staging: Staging, table: str) -> str:
    """Return the identity that a table has where it is made from what is staged now."""
    return identity_of(**_inputs(staging, table, _parts(staging, table)))


def _parts(staging: Staging, table: str) -> list[Product]:
    return [] if table in HARDWARE or table == "published" else series(staging)


def stage_table(staging: Staging, table: str) -> Product:
    """Make one table over everything that is staged.

    Raises:
        KappaError: there are no turns yet.
        KeyError: the table is not one that is staged.
    """
    parts = _parts(staging, table)
    name, inputs = table_name(table), _inputs(staging, table, parts)
    if (product := staging.reuse(name, identity_of(**inputs))) is not None:
        return product
    data = TABLES[table].conform(_MAKERS[table](staging, parts))
    with staging.build(name, inputs=inputs) as draft:
        write_table(data, draft.folder / f"{table}.parquet")
        draft.meta["rows"] = data.num_rows
    return staging.require(name)


def _inputs(staging: Staging, table: str, parts: list[Product]) -> Inputs:
    """Return what a table depends on: `inputs_of` with what it is made from."""
    made_from: dict[str, Any] = {"turns": {product.name: product.identity for product in parts}}
    if table in (*HARDWARE, "boundness", "design_questions", "cache_tiers", *serving.SERVING):
        own = own_tokenizers(staging)
        made_from |= {"own_rows": user_rows_identity(hardware.user_rows(staging)), "known": tokenizer_names(own=own)}
        made_from["own_tokenizers"] = own_models(own)
    if table == "sources":
        found = [staging.require(conversations_name(workload)) for workload in origins.workloads_of(parts)]
        raw = [origins.raw_of(staging, conversations) for conversations in found]
        made_from["fetched"] = {one["workload"]: origins.raw_identity(one) for one in raw}
        known = known_workloads(home_of(staging))
        made_from["licences"] = [known[one["workload"]].licence for one in raw]
    if table == "tokenizers":
        found = [staging.require(tokenizer_name(tokenizer)) for tokenizer in origins.tokenizers_of(parts)]
        made_from["files"] = {product.name: product.identity for product in found}
    return inputs_of(table, **made_from)


def table_of(product: Product) -> str:
    """Return the name of the table that a product holds."""
    return product.name.split("/")[1]


def read_table(product: Product) -> pa.Table:
    """Return the rows of a staged table."""
    table = table_of(product)
    return pq.read_table(product.file(f"{table}.parquet")).cast(TABLES[table].arrow_schema)


def _hardware(table: str) -> Callable[[Staging, list[Product]], pa.Table]:
    return lambda staging, _parts: hardware.hardware(staging)[table]


_MAKERS: dict[str, Callable[[Staging, list[Product]], pa.Table]] = {
    "sources": origins.sources,
    "tokenizers": origins.tokenizers,
    "rejects": origins.rejects,
    "percentiles": statistics.percentiles,
    "summary": statistics.summary,
    "boundness": limits.boundness_rows,
    "design_questions": limits.design_question_rows,
    **capacity.MAKERS,
    "cache_tiers": capacity.cache_tier_rows,
    "load": serving.load_rows,
    "schedule": serving.schedule_rows,
    "fleet": serving.fleet_rows,
    "published": lambda _staging, _parts: hardware.published(),
    **{table: _hardware(table) for table in HARDWARE if table not in {"headlines", "validation"}},
    "headlines": lambda staging, _parts: hardware.headlines(staging),
    "validation": lambda staging, _parts: hardware.validations(staging),
}

"""The warehouse of the next generation: every staged table in one database file and one lake."""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.steps.inputs import code_version, inputs_of
from pipelines.steps.makers.hardware import user_rows
from pipelines.steps.makers.origins import raw_of
from pipelines.steps.product_names import conversations_name, table_name
from pipelines.steps.series import series, some
from pipelines.steps.tables import STAGED, read_table, table_identity, table_of
from pipelines.steps.turn_products import TURNS_FILE
from warehouse.database.build import build_database
from warehouse.declared.tables import GENERATIONS, TABLES
from warehouse.declared.turn_tables import SERIES
from warehouse.errors import ErrorCode, KappaError
from warehouse.hardware_rows.files import user_rows_identity
from warehouse.home.generation import DATABASE, LAKE
from warehouse.home.home import Home
from warehouse.home.lake import files_of, write_lake
from warehouse.home.products import Product, identity_of
from warehouse.home.staging import Staging

WAREHOUSE = "warehouse"
LOG = logging.getLogger("kappa")


def build_warehouse(staging: Staging, home: Home, run_id: str, started_at: datetime) -> Product:
    """Put every staged table into one database file and a lake, ready to be published as the next generation."""
    parts = some(series(staging))
    tables = [_current_table(staging, table) for table in STAGED]
    inputs = inputs_of(WAREHOUSE, made_from={product.name: product.identity for product in [*parts, *tables]})
    content = identity_of(**inputs)
    if (product := _published(staging, home, content)) is not None:
        return product
    generation = home.next_generation()
    inputs |= {"generation": generation}
    identity = identity_of(**inputs)
    if (product := staging.reuse_whole(WAREHOUSE, identity)) is not None:
        return product
    with staging.build(WAREHOUSE, inputs=inputs) as draft:
        files = _lake_files(draft.folder / LAKE, generation, parts, tables)
        note = {"generation": generation, "run_id": run_id, "started_at": started_at, "finished_at": datetime.now(UTC)}
        earlier = _earlier_generations(staging, home, is_sample=parts[0].meta["is_sample"])
        generations = pa.concat_tables([earlier, _generation_rows(staging, parts, note)])
        files["generations"] = write_lake(GENERATIONS, [generations], draft.folder / LAKE, generation)
        draft.meta["rows"] = build_database(draft.folder / DATABASE, files)
        draft.meta.update(
            generation=generation, content=content, is_sample=parts[0].meta["is_sample"],
            own_rows=user_rows_identity(user_rows(staging)),
            series=[[part.meta[name] for name in SERIES] for part in parts],
        )  # fmt: skip
    return staging.require(WAREHOUSE)


def _current_table(staging: Staging, table: str) -> Product:
    """Return a staged table; KappaError where it was made from other turns than those that are staged now."""
    product = staging.require(table_name(table))
    if product.identity != table_identity(staging, table):
        raise KappaError(
            f"table {table} is stale",
            "what it is made from changed since",
            "materialize it first, or run `kappa run`",
            code=ErrorCode.STALE,
        )
    return product


def _lake_files(lake: Path, generation: int, parts: list[Product], tables: list[Product]) -> dict[str, list[Path]]:
    """Write every table into the lake; return the staged file or files of each, which hold all columns."""
    files = {"turns": [part.file(TURNS_FILE) for part in parts]}
    schema = TABLES["turns"].arrow_schema
    write_lake(TABLES["turns"], (pq.read_table(path).cast(schema) for path in files["turns"]), lake, generation)
    for product in tables:
        name = table_of(product)
        write_lake(TABLES[name], [read_table(product)], lake, generation)
        files[name] = [product.file(f"{name}.parquet")]
    return files


def _published(staging: Staging, home: Home, content: str) -> Product | None:
    """Return the warehouse that is current where it has the same content, is as it was published and still staged."""
    note = home.current_note()
    if note is None or note.get("content") != content:
        return None
    if found := home.faults(DATABASE, LAKE):
        more = f" and {len(found) - 3} others" if found[3:] else ""
        told = ", ".join(found[:3]) + more
        LOG.warning("generation %d is not whole (%s): the same is published anew", note["generation"], told)
        return None
    return staging.reuse_whole(WAREHOUSE, note["warehouse"])


def _generation_rows(staging: Staging, parts: list[Product], note: dict[str, object]) -> pa.Table:
    """Return the rows of `generations` for the state that is being built; `note` holds what is the same in all."""
    rows = []
    for part in parts:
        revision = raw_of(staging, staging.require(conversations_name(part.meta["workload"])))["revision"]
        series = {name: part.meta[name] for name in ("workload", "tokenizer", "fingerprint")}
        rows.append({**note, **series, "revision": revision, "code_version": code_version()})
    return GENERATIONS.rows(rows)


def _earlier_generations(staging: Staging, home: Home, *, is_sample: bool) -> pa.Table:
    """Return the rows of the states published before; a sample and the real sets share no history."""
    note = home.current_note()
    if note is None or note["is_sample"] != is_sample:
        return GENERATIONS.rows([])
    # A damaged file is made good from the product that it was linked to, or from the state before.
    staged = staging.newest(WAREHOUSE)
    folders = [home.current, *([staged.folder] if staged else [])]
    folders += [home.generations / str(number) for number in reversed(home.numbers())]
    for folder in folders:
        for path in files_of(GENERATIONS, folder / LAKE):
            # Damaged, or with other columns.
            with suppress(FileNotFoundError, ValueError):
                return pq.ParquetFile(path).read().cast(GENERATIONS.arrow_schema)
    LOG.warning("the table generations begins anew: what was published before cannot be read")
    return GENERATIONS.rows([])

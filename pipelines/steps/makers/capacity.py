"""The tables of what a cache of a given size gives: out of the reuse distances of each series, and on machines."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.capacity.machines.tier_rows import Machines, machines_of, tier_rows
from pipelines.capacity.tables import SHOWN_SESSIONS
from pipelines.hardware.machines import read_sources
from pipelines.steps.makers.hardware import user_rows
from pipelines.steps.reuse.reuse_distances import block_sizes, measure_reuse, served
from pipelines.steps.series import some
from warehouse.declared.capacity_tables import (
    CACHE_POLICIES,
    CACHE_TIERS,
    CAPACITY,
    LOG_ORDER,
    LOG_REQUESTS,
    REUSE_DISTANCES,
    REUSE_TIMES,
    TOP_PREFIXES,
)
from warehouse.declared.schema import Table
from warehouse.declared.turn_tables import SERIES
from warehouse.hardware_rows.rows import FOLDER
from warehouse.home.products import Product
from warehouse.home.staging import Staging


def of_series(table: Table) -> Callable[[Staging, list[Product]], pa.Table]:
    """Return the maker of a table that the reuse distances of each series have rows of."""

    def rows(staging: Staging, parts: list[Product]) -> pa.Table:
        measured = [measure_reuse(staging, part) for part in some(parts) if block_sizes(staging, part)]
        files = [pq.read_table(product.file(f"{table.name}.parquet")) for product in measured]
        return pa.concat_tables([table.rows([]), *files])

    return rows


TABLES = (CAPACITY, CACHE_POLICIES, REUSE_TIMES, TOP_PREFIXES, LOG_REQUESTS, REUSE_DISTANCES)
MAKERS = {table.name: of_series(table) for table in TABLES}


def cache_tier_rows(staging: Staging, parts: list[Product]) -> pa.Table:
    """Return what the headline models on the headline platforms find where, at each size of host memory."""
    machines = machines_of(read_sources(FOLDER, user_rows(staging)))
    return pa.concat_tables([CACHE_TIERS.rows([]), *(_of_part(staging, part, machines) for part in some(parts))])


def _of_part(staging: Staging, part: Product, machines: Machines) -> pa.Table:
    names = {name: part.meta[name] for name in SERIES}
    sizes = block_sizes(staging, part)
    if not sizes:
        return CACHE_TIERS.rows([])
    by_order = served(staging, part, sizes[0])
    order = LOG_ORDER if LOG_ORDER in by_order else SHOWN_SESSIONS
    return tier_rows(names, order, *by_order[order], machines)

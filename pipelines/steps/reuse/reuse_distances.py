"""What a cache of any size gives each series: reuse distances, from the turns alone or from the blocks of a log."""

from __future__ import annotations

import logging

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.capacity.distances import Hits, hits_of
from pipelines.capacity.requests import Requests, requests_of_ids, requests_of_turns
from pipelines.capacity.tables import capacity_rows, log_rows, orders, policy_rows, prefix_rows, reuse_time_rows
from pipelines.steps.inputs import inputs_of
from pipelines.steps.product_names import reuse_distances_name
from pipelines.steps.reuse.logged_turns import requests_of
from pipelines.steps.turn_products import TURNS_FILE
from warehouse.declared.capacity_tables import LOG_REQUESTS, REUSE_DISTANCES
from warehouse.declared.fields import HISTORY
from warehouse.declared.turn_tables import SERIES
from warehouse.home.products import Product, identity_of
from warehouse.home.staging import Staging

STEP = "measured_reuse"
# Blocks of vLLM and chunks of LMCache; a log comes with blocks of its own.
TEXT_BLOCKS = (16, 256)
LOG = logging.getLogger("kappa")
Served = dict[int, tuple[Requests, Hits]]


def measure_reuse(staging: Staging, turns: Product) -> Product:
    """Measure the reuse distances of a series; the rows that it gives to the tables of capacity are its files."""
    series = [turns.meta[name] for name in SERIES]
    name, inputs = reuse_distances_name(*series), inputs_of(STEP, turns=turns.identity)
    if (product := staging.reuse(name, identity_of(**inputs))) is not None:
        return product
    with staging.build(name, inputs=inputs) as draft:
        tables = _rows(staging, turns, dict(zip(SERIES, series, strict=True)))
        for table, rows in tables.items():
            pq.write_table(rows, draft.folder / f"{table}.parquet", compression="zstd")
        draft.meta.update({table: rows.num_rows for table, rows in tables.items()})
    LOG.info("%s: %s rows of capacity", name, f"{tables['capacity'].num_rows:,}")
    return staging.require(name)


def served(staging: Staging, turns: Product, block_tokens: int) -> Served:
    """Return the requests of a series and their hits, by sessions served at a time."""
    requests, _ = _requests(staging, turns, block_tokens)
    return {sessions: (ordered, hits_of(ordered)) for sessions, ordered in orders(requests).items()}


def block_sizes(staging: Staging, turns: Product) -> tuple[int, ...]:
    """Return the block sizes at which the reuse of a series is known: those of a log, or of an engine for text.

    None where blocks have no identities, only what a server reported.
    """
    if turns.meta["reuse"] == HISTORY:
        return TEXT_BLOCKS
    log = requests_of(staging, turns.meta["workload"], turns)
    return (log.block_tokens,) if log and log.block_tokens else ()


def _rows(staging: Staging, turns: Product, names: dict[str, str]) -> dict[str, pa.Table]:
    found = {table.name: [table.rows([])] for table in (LOG_REQUESTS, REUSE_DISTANCES)}
    for block in block_sizes(staging, turns):
        requests, sessions = _requests(staging, turns, block)
        by_order = {count: (ordered, hits_of(ordered)) for count, ordered in orders(requests).items()}
        first, hits = next(iter(by_order.values()))
        rows = {
            "capacity": capacity_rows(names, by_order),
            "cache_policies": policy_rows(names, by_order),
            "reuse_times": reuse_time_rows(names, first, hits),
            "top_prefixes": prefix_rows(names, first, hits, sessions),
        }
        if first.ids is not None:
            rows |= dict(zip(("log_requests", "reuse_distances"), log_rows(names, first, hits), strict=True))
        for table, part in rows.items():
            found.setdefault(table, []).append(part)
    return {table: pa.concat_tables(parts) for table, parts in found.items()}


def _requests(staging: Staging, turns: Product, block_tokens: int) -> tuple[Requests, list[str]]:
    """Return the requests of a series, in order of service or of the file, and the names of the sessions by number."""
    if turns.meta["reuse"] != HISTORY and (log := requests_of(staging, turns.meta["workload"], turns)) is not None:
        requests = requests_of_ids(
            block_tokens=log.block_tokens, offsets=log.offsets, ids=log.ids, lookup_counts=log.lookup_blocks,
            context_tokens=log.context_tokens, session=log.session, arrival_s=log.arrival_s,
        )  # fmt: skip
        return requests, log.sessions
    columns = ["session_id", "cached_tokens", "prefill_tokens", "output_tokens"]
    table = pq.read_table(turns.file(TURNS_FILE), columns=columns)
    sessions = table["session_id"].combine_chunks().dictionary_encode()
    numbers = sessions.indices.to_numpy().astype(np.int64)
    cached, prefill = (table[name].to_numpy() for name in ("cached_tokens", "prefill_tokens"))
    output = pc.fill_null(table["output_tokens"], 0).to_numpy()
    return requests_of_turns(cached, prefill, output, numbers, block_tokens), sessions.dictionary.to_pylist()

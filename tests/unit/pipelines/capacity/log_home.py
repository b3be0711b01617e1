"""A database with one log in it, made from generated prompts: tables of capacity, turns, models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.capacity.distances import hits_of
from pipelines.capacity.requests import Requests
from pipelines.capacity.tables import capacity_rows, log_rows, policy_rows, prefix_rows, reuse_time_rows
from pipelines.hardware.ratios import hardware_tables
from warehouse.database.aggregates import summary_of
from warehouse.database.build import build_database
from warehouse.declared.capacity_tables import LOG_ORDER
from warehouse.declared.tables import TABLES
from warehouse.hardware_rows.rows import load_reference

LOG = {"workload": "log", "tokenizer": "logged", "counting": "logged", "reuse": "prefix"}


def log_tables(requests: Requests) -> dict[str, pa.Table]:
    """Return the rows of the log in every table of capacity, and its turns."""
    hits = hits_of(requests)
    by_order = {LOG_ORDER: (requests, hits)}
    sessions = [f"s{number}" for number in range(int(requests.session.max()) + 1)]
    log, pieces = log_rows(LOG, requests, hits)
    return {
        "capacity": capacity_rows(LOG, by_order),
        "cache_policies": policy_rows(LOG, by_order),
        "reuse_times": reuse_time_rows(LOG, requests, hits),
        "top_prefixes": prefix_rows(LOG, requests, hits, sessions),
        "log_requests": log,
        "reuse_distances": pieces,
        "turns": _turns(requests, requests.cached_tokens(hits.blocks_at(10**9, len(requests)))),
    }


def build(folder: Path, requests: Requests) -> Path:
    """Write a database with the log and the sourced rows; return its path."""
    tables = log_tables(requests) | hardware_tables() | {"headlines": load_reference("headlines")}
    files: dict[str, list[Path]] = {name: [] for name, table in TABLES.items() if not table.is_view}
    for name, rows in tables.items():
        files[name] = [folder / f"{name}.parquet"]
        pq.write_table(rows, files[name][0])
    files["summary"] = [folder / "summary.parquet"]
    pq.write_table(summary_of(files["turns"][0], special_token_messages=0, is_sample=False), files["summary"][0])
    build_database(folder / "warehouse.duckdb", files)
    return folder / "warehouse.duckdb"


def _turns(requests: Requests, cached: np.ndarray) -> pa.Table:
    prefill = requests.context_tokens - cached
    rows = {
        **{name: [value] * len(requests) for name, value in LOG.items()},
        "session_id": [f"r{number}" for number in range(len(requests))],
        "turn_index": np.zeros(len(requests), np.int32),
        "cached_tokens": cached,
        "prefill_tokens": prefill,
        "output_tokens": np.ones(len(requests), np.int64),
        "kappa_ratio": cached / prefill,
        "is_first_turn": np.ones(len(requests), bool),
    }
    return TABLES["turns"].conform(pa.table(rows))

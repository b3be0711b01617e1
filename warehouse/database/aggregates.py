"""Percentiles and totals of turns, computed by DuckDB from Parquet. Exact: nothing is sampled or sketched."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from warehouse.database.engine import fetch, in_memory, one_file
from warehouse.declared.fields import BLOCK_TOKENS
from warehouse.declared.schema import quoted
from warehouse.declared.tables import PERCENTILES, SUMMARY

_SQL = Path(__file__).parents[1] / "sql"


def percentiles_of(turns: Path, blocks: Sequence[int] = BLOCK_TOKENS) -> pa.Table:
    """Return the rows of `percentiles` for one series.

    Args:
        turns: Parquet file with the rows of one workload, tokenizer and counting.
        blocks: block sizes in tokens; the published ones by default.

    Returns:
        One row for each population, block size, metric and percentile; none for a metric without values.
    """
    query = " UNION ALL ".join(f"FROM percentiles_of_turns({int(block)})" for block in blocks)
    with in_memory(turns.parent) as connection:
        file = quoted(one_file(turns))
        connection.execute(f"CREATE VIEW turns AS FROM read_parquet({file}, hive_partitioning = false)")
        connection.execute(_sql("percentiles"))
        return PERCENTILES.conform(fetch(connection, f"{query} ORDER BY ALL"))


def summary_of(turns: Path, *, special_token_messages: int, is_sample: bool, uncounted_parts: int = 0) -> pa.Table:
    """Return the row of `summary` for one series; no row if it has no turns."""
    parameters: dict[str, object] = {
        "turns": one_file(turns),
        "special": special_token_messages,
        "uncounted": uncounted_parts,
        "is_sample": is_sample,
    }
    with in_memory(turns.parent) as connection:
        return SUMMARY.conform(fetch(connection, _sql("summary"), parameters))


def _sql(name: str) -> str:
    return (_SQL / f"{name}.sql").read_text("utf8")

"""Percentiles and totals of turns, by DuckDB over the turns' Parquet. Exact: nothing is sampled or sketched."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from warehouse.engine import fetch, in_memory, one_file
from warehouse.fields import BLOCK_TOKENS, PERCENTILES
from warehouse.tables import PERCENTILES as PERCENTILES_TABLE
from warehouse.tables import SUMMARY

_SQL = Path(__file__).parent / "sql"


def percentiles_of(turns: Path) -> pa.Table:
    """Return the rows of `percentiles` for one series.

    Args:
        turns: Parquet file with the rows of one workload, tokenizer and counting.

    Returns:
        One row for each population, block size, metric and percentile; a metric without any value has none.
    """
    parameters: dict[str, object] = {
        "turns": one_file(turns),
        "blocks": list(BLOCK_TOKENS),
        "percentiles": list(PERCENTILES),
    }
    with in_memory(turns.parent) as connection:
        return PERCENTILES_TABLE.conform(fetch(connection, _sql("percentiles"), parameters))


def summary_of(turns: Path, *, special_token_messages: int, is_sample: bool) -> pa.Table:
    """Return the row of `summary` for one series; none where it has no turns."""
    parameters: dict[str, object] = {
        "turns": one_file(turns),
        "special": special_token_messages,
        "is_sample": is_sample,
    }
    with in_memory(turns.parent) as connection:
        return SUMMARY.conform(fetch(connection, _sql("summary"), parameters))


def _sql(name: str) -> str:
    return (_SQL / f"{name}.sql").read_text("utf8")

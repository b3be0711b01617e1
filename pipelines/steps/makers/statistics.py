"""The tables that DuckDB computes over the turns of each series."""

from __future__ import annotations

import pyarrow as pa

from pipelines.steps.series import some
from pipelines.steps.turn_products import TURNS_FILE
from warehouse.database.aggregates import percentiles_of, summary_of
from warehouse.home.products import Product
from warehouse.home.staging import Staging


def percentiles(staging: Staging, parts: list[Product]) -> pa.Table:
    """Return percentiles of K, T and kappa_ratio of every series."""
    del staging
    return pa.concat_tables([percentiles_of(part.file(TURNS_FILE)) for part in some(parts)])


def summary(staging: Staging, parts: list[Product]) -> pa.Table:
    """Return the totals of every series."""
    del staging
    return pa.concat_tables(
        [
            summary_of(
                part.file(TURNS_FILE),
                special_token_messages=part.meta["special_token_messages"],
                uncounted_parts=part.meta["uncounted_parts"],
                is_sample=part.meta["is_sample"],
            )
            for part in some(parts)
        ]
    )

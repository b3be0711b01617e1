"""Checks derived from the declared tables: schema, empty values, bounds, allowed values, unique keys.

Each check returns the rows that break it, so that a person sees what is wrong and not only that something is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.schema import Field, Table

SHOWN_ROWS = 20


@dataclass(frozen=True)
class Violation:
    """One rule of a table that rows break: the rule in words, how many rows, and the first of them."""

    rule: str
    count: int
    rows: pa.Table


def violations(table: Table, data: pa.Table) -> list[Violation]:
    """Return every declared rule that `data` breaks; an empty list where all hold."""
    if not data.schema.equals(table.arrow_schema):
        return [
            Violation(
                f"schema is not the declared one: {_schema_difference(table, data)}", data.num_rows, data.slice(0, 0)
            )
        ]
    masks: list[tuple[str, pa.ChunkedArray]] = []
    for field in table.fields:
        masks.extend(_field_rules(field, data[field.name]))
    found = [_violation(rule, data.filter(mask)) for rule, mask in masks if pc.any(mask).as_py()]
    return found + _duplicates(table, data)


def _schema_difference(table: Table, data: pa.Table) -> str:
    declared = {f"{field.name}: {field.type}{'' if field.nullable else ' not null'}" for field in table.arrow_schema}
    given = {f"{field.name}: {field.type}{'' if field.nullable else ' not null'}" for field in data.schema}
    return f"missing {sorted(declared - given)}, not declared {sorted(given - declared)}"


def _field_rules(field: Field, column: pa.ChunkedArray) -> list[tuple[str, pa.ChunkedArray]]:
    rules = []
    if not field.nullable:
        rules.append((f"{field.name} is not NULL", column.is_null()))
    if pa.types.is_floating(column.type):
        rules.append((f"{field.name} is finite", pc.fill_null(pc.invert(pc.is_finite(column)), fill_value=False)))
    if field.minimum is not None:
        rules.append(
            (f"{field.name} >= {field.minimum:g}", pc.fill_null(pc.less(column, field.minimum), fill_value=False))
        )
    if field.maximum is not None:
        rules.append(
            (f"{field.name} <= {field.maximum:g}", pc.fill_null(pc.greater(column, field.maximum), fill_value=False))
        )
    if field.values:
        known = pc.is_in(column, value_set=pa.array(field.values, column.type))
        rules.append(
            (f"{field.name} is one of {', '.join(field.values)}", pc.and_(pc.invert(known), column.is_valid()))
        )
    return rules


def _duplicates(table: Table, data: pa.Table) -> list[Violation]:
    if not table.key or not data.num_rows:
        return []
    groups = data.group_by(list(table.key)).aggregate([([], "count_all")])
    repeated = groups.filter(pc.greater(groups["count_all"], 1))
    return [_violation(f"({', '.join(table.key)}) is unique", repeated)] if repeated.num_rows else []


def _violation(rule: str, rows: pa.Table) -> Violation:
    return Violation(rule, rows.num_rows, rows.slice(0, SHOWN_ROWS))


def kappa_times_t(turns: pa.Table) -> list[Violation]:
    """Return the turns where kappa_ratio x T is not K to the last bit of rounding."""
    cached = turns["cached_tokens"].to_numpy()
    product = turns["kappa_ratio"].to_numpy() * turns["prefill_tokens"].to_numpy()
    broken = ~np.isclose(product, cached, rtol=1e-12, atol=0)
    return (
        [_violation("kappa_ratio x prefill_tokens = cached_tokens", turns.filter(pa.array(broken)))]
        if broken.any()
        else []
    )


def not_monotone(percentiles: pa.Table) -> list[Violation]:
    """Return the percentiles that are smaller than the one before them of the same series, population and metric."""
    ordered = percentiles.sort_by([(name, "ascending") for name in (*_SERIES, "percentile")])
    labels = [ordered[name].to_numpy(zero_copy_only=False) for name in _SERIES]
    same = np.logical_and.reduce([label[1:] == label[:-1] for label in labels])
    falls = np.concatenate(([False], same & (np.diff(ordered["value"].to_numpy()) < 0)))[: ordered.num_rows]
    return (
        [_violation("a percentile is not below the one before it", ordered.filter(pa.array(falls)))]
        if falls.any()
        else []
    )


_SERIES = ("workload", "tokenizer", "counting", "population", "block_tokens", "metric")

"""Checks: what the declared tables say (schema, empty values, bounds, keys), and what must hold between tables.

Each check returns the rows that break it, so that a person sees what is wrong and not only that something is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.declared.schema import Field, Table

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
    found = [violation(rule, data.filter(mask)) for rule, mask in masks if pc.any(mask).as_py()]
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
    return [violation(f"({', '.join(table.key)}) is unique", repeated)] if repeated.num_rows else []


def violation(rule: str, rows: pa.Table) -> Violation:
    """Return a broken rule with the number of rows that break it, and the first of them."""
    return Violation(rule, rows.num_rows, rows.slice(0, SHOWN_ROWS))


def not_monotone(percentiles: pa.Table) -> list[Violation]:
    """Return the percentiles that are smaller than the one before them of the same series, population and metric."""
    ordered = percentiles.sort_by([(name, "ascending") for name in (*_SERIES, "percentile")])
    labels = [ordered[name].to_numpy(zero_copy_only=False) for name in _SERIES]
    same = np.logical_and.reduce([label[1:] == label[:-1] for label in labels])
    falls = np.concatenate(([False], same & (np.diff(ordered["value"].to_numpy()) < 0)))[: ordered.num_rows]
    return (
        [violation("a percentile is not below the one before it", ordered.filter(pa.array(falls)))]
        if falls.any()
        else []
    )


def other_turns(by_tokenizer: dict[str, pa.Table]) -> list[Violation]:
    """Return the turns of one workload and counting that one tokenizer has and another one has not.

    Args:
        by_tokenizer: tables with `session_id` and `turn_index`; all are compared with the first.
    """
    keys = ["session_id", "turn_index"]
    tables = {name: table.select(keys) for name, table in by_tokenizer.items()}
    first, others = next(iter(tables), ""), list(tables)[1:]
    found = []
    for other in others:
        # Almost always equal, row for row; a join of full sets costs a second.
        if not tables[first].equals(tables[other]):
            for here, there in ((first, other), (other, first)):
                alone = (
                    tables[here]
                    .join(tables[there], keys, join_type="left anti")
                    .sort_by([(k, "ascending") for k in keys])
                )
                found += [violation(f"{there} has every turn of {here}", alone)] if alone.num_rows else []
    return found


def other_counts(published: pa.Table, workload: str, measured: dict[str, int]) -> list[Violation]:
    """Return the published counts of a full set that are not ours, with the difference: upstream changed.

    Args:
        published: rows of the table `published`; those asserted with the statistic `count` are compared, exactly.
        workload: name of the workload.
        measured: our number by metric: `records`, `sessions`.
    """
    rows = [
        {"metric": row["metric"], "published": int(row["value"]), "ours": measured[row["metric"]],
         "difference": measured[row["metric"]] - int(row["value"]), "source": row["source"]}
        for row in published.to_pylist()
        if row["workload"] == workload and row["statistic"] == "count" and row["is_asserted"]
        and row["metric"] in measured and measured[row["metric"]] != row["value"]
    ]  # fmt: skip
    words = ", ".join(f"{row['difference']:+,} {row['metric']}" for row in rows)
    return (
        [violation(f"counts of the full set are those published ({words})", pa.Table.from_pylist(rows))] if rows else []
    )


def other_fingerprints(product: str, found: str, tokenizer: str, expected: str) -> list[Violation]:
    """Return the row of a product whose counts do not carry the fingerprint of the tokenizer's verified file."""
    row = {"product": product, "fingerprint": found, "tokenizer": tokenizer, "expected": expected}
    return (
        [violation("counts carry the tokenizer's fingerprint", pa.table({k: [v] for k, v in row.items()}))]
        if found != expected
        else []
    )


def unbalanced(records: dict[str, int], kept: int, rejected: int) -> list[Violation]:
    """Return the difference between the records read and those kept or rejected, if there is one."""
    lost = sum(records.values()) - kept - rejected
    rows = pa.table({"read": [sum(records.values())], "kept": [kept], "rejected": [rejected]})
    return [Violation("records read = kept + rejected", abs(lost), rows)] if lost else []


_SERIES = ("workload", "tokenizer", "counting", "population", "block_tokens", "metric")

"""Checks of one table against its declaration (schema, empty values, bounds, keys), and checks between tables.

Each check returns the rows that break it, so a person sees which values are wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.declared.schema import Field, Table
from warehouse.declared.turn_tables import SERIES

SHOWN_ROWS = 20


@dataclass(frozen=True)
class Violation:
    """A broken rule of a table: the rule in words, the number of rows that break it, and the first of them.

    `words` describes the fault where the rule and the number of rows are not enough.
    """

    rule: str
    count: int
    rows: pa.Table
    words: str = ""

    @property
    def sentence(self) -> str:
        """Return the fault as a sentence."""
        return self.words or f"{counted(self.count, 'row')} break{'s' * (self.count == 1)} the rule `{self.rule}`"


def counted(count: int, thing: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count:,} {thing}" + "s" * (count != 1)


def violations(table: Table, data: pa.Table) -> list[Violation]:
    """Return every declared rule that `data` breaks; an empty list if all hold."""
    if not data.schema.equals(table.arrow_schema):
        words = f"schema is not the declared one: {_schema_difference(table, data)}"
        return [Violation(words, data.num_rows, data.slice(0, 0), words)]
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
    """Return the percentiles below the previous one of the same series, population and metric."""
    ordered = percentiles.sort_by([(name, "ascending") for name in (*_ORDER, "percentile")])
    labels = [ordered[name].to_numpy(zero_copy_only=False) for name in _ORDER]
    same = np.logical_and.reduce([label[1:] == label[:-1] for label in labels])
    falls = np.concatenate(([False], same & (np.diff(ordered["value"].to_numpy()) < 0)))[: ordered.num_rows]
    return (
        [violation("a percentile is not below the one before it", ordered.filter(pa.array(falls)))]
        if falls.any()
        else []
    )


def other_turns(by_tokenizer: dict[str, pa.Table]) -> list[Violation]:
    """Return the turns of one workload and counting that one tokenizer has and another lacks.

    Args:
        by_tokenizer: tables with `session_id` and `turn_index`; each is compared with the first.
    """
    keys = ["session_id", "turn_index"]
    tables = {name: table.select(keys) for name, table in by_tokenizer.items()}
    first, others = next(iter(tables), ""), list(tables)[1:]
    found = []
    for other in others:
        # The tables are almost always equal row for row; a join of full sets costs a second.
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
    """Return the published counts of a full set that differ from ours: only a part was counted, or upstream changed.

    Args:
        published: rows of the table `published`; asserted rows with the statistic `count` are compared exactly.
        workload: name of the workload.
        measured: our count by metric: `records`, `sessions`.
    """
    rows = [
        {"metric": row["metric"], "published": int(row["value"]), "ours": measured[row["metric"]],
         "difference": measured[row["metric"]] - int(row["value"]), "source": row["source"]}
        for row in published.to_pylist()
        if row["workload"] == workload and row["statistic"] == "count" and row["is_asserted"]
        and row["metric"] in measured and measured[row["metric"]] != row["value"]
    ]  # fmt: skip
    if not rows:
        return []
    ours = " and ".join(counted(int(row["ours"]), str(row["metric"]).removesuffix("s")) for row in rows)
    theirs = " and ".join(f"{row['published']:,}" for row in rows)
    is_part = all(int(row["difference"]) < 0 for row in rows)
    why = "only a part was counted" if is_part else "it changed upstream"
    words = f"{ours} where the published set has {theirs} ({why})"
    return [Violation("counts of the full set are those published", len(rows), pa.Table.from_pylist(rows), words)]


def other_fingerprints(product: str, found: str, tokenizer: str, expected: str) -> list[Violation]:
    """Return the row of a product whose counts have another fingerprint than the tokenizer's verified file."""
    if found == expected:
        return []
    row = {"product": product, "fingerprint": found, "tokenizer": tokenizer, "expected": expected}
    words = f"it was counted by a tokenizer file of fingerprint {found}, that of {tokenizer} has {expected}"
    return [Violation("counts carry the tokenizer's fingerprint", 1, pa.Table.from_pylist([row]), words)]


def unbalanced(records: dict[str, int], kept: int, rejected: int) -> list[Violation]:
    """Return the difference between the records read and the records kept or rejected; empty if they add up."""
    read = sum(records.values())
    if read == kept + rejected:
        return []
    rows = pa.table({"read": [read], "kept": [kept], "rejected": [rejected]})
    words = f"{counted(read, 'record')} read, {kept:,} kept and {rejected:,} rejected, which do not add up"
    return [Violation("records read = kept + rejected", abs(read - kept - rejected), rows, words)]


_ORDER = (*SERIES, "population", "block_tokens", "metric")

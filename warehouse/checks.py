"""Checks: what the declared tables say (schema, empty values, bounds, keys), and what must hold between rows.

Each check returns the rows that break it, so that a person sees what is wrong and not only that something is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.schema import Field, Table

SHOWN_ROWS = 20
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


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


def context_differs(percentiles: pa.Table) -> list[Violation]:
    """Return percentiles of K + T that another block size has otherwise: rounding K moves tokens, it loses none."""
    context = percentiles.filter(pc.equal(percentiles["metric"], "context_tokens"))
    names = ["workload", "tokenizer", "counting", "population", "percentile"]
    groups = context.group_by(names).aggregate([("value", "min"), ("value", "max")])
    broken = groups.filter(pc.greater(groups["value_max"], groups["value_min"]))
    return [_violation("context = K + T at every block size", broken)] if broken.num_rows else []


def turn_order(turns: pa.Table, kind: str) -> list[Violation]:
    """Return the turns that do not follow from the turn before them in their session (design rules 2 to 7).

    Args:
        turns: rows of one series, in any order.
        kind: `chat` or `documents`, as the workload says.
    """
    if not turns.num_rows:
        return []
    session = pc.dictionary_encode(turns["session_id"]).combine_chunks().indices.to_numpy()
    order = np.lexsort((turns["turn_index"].to_numpy(), session))
    ordered, session = turns.take(pa.array(order)), session[order]
    is_text = ordered["counting"][0].as_py() == "text"
    rules = (
        _document_rules(ordered, session, is_text) if kind == "documents" else _chat_rules(ordered, session, is_text)
    )
    cached, prefill = ordered["cached_tokens"].to_numpy(), ordered["prefill_tokens"].to_numpy()
    rules["0 <= K < K + T"] = (cached < 0) | (prefill <= 0)
    return [_violation(rule, ordered.filter(pa.array(broken))) for rule, broken in rules.items() if broken.any()]


def _chat_rules(turns: pa.Table, session: Ints, is_text: bool) -> dict[str, Bools]:
    index, cached, prefill = (turns[name].to_numpy() for name in ("turn_index", "cached_tokens", "prefill_tokens"))
    follows = np.concatenate(([False], session[1:] == session[:-1]))
    rules = {
        "a first turn has nothing cached": (index == 0) & (cached > 0),
        "turn_index grows by 1": follows & (np.diff(index, prepend=index[0]) != 1),
    }
    if is_text:
        grown = cached + prefill + pc.fill_null(turns["output_tokens"], 0).to_numpy()
        expected = np.concatenate((cached[:1], grown[:-1]))
        # Design rule 5: where T would be 0, one token moves from K to T.
        is_moved = (cached == expected - 1) & (prefill == 1)
        rules["context grows by T and the reply"] = follows & (cached != expected) & ~is_moved
    return rules


def _document_rules(turns: pa.Table, session: Ints, is_text: bool) -> dict[str, Bools]:
    if not is_text:
        return {}
    cached, prefill = turns["cached_tokens"].to_numpy(), turns["prefill_tokens"].to_numpy()
    document = np.maximum.reduceat(cached, np.flatnonzero(np.diff(session, prepend=-1)))
    expected = document[np.cumsum(np.diff(session, prepend=session[0]) != 0)]
    is_moved = (cached == expected - 1) & (prefill == 1)
    return {"K is the same for all questions of a document": (cached != expected) & ~is_moved}


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
                found += [_violation(f"{there} has every turn of {here}", alone)] if alone.num_rows else []
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
        [_violation(f"counts of the full set are those published ({words})", pa.Table.from_pylist(rows))]
        if rows
        else []
    )


def other_fingerprints(product: str, found: str, tokenizer: str, expected: str) -> list[Violation]:
    """Return the row of a product whose counts do not carry the fingerprint of the tokenizer's verified file."""
    row = {"product": product, "fingerprint": found, "tokenizer": tokenizer, "expected": expected}
    return (
        [_violation("counts carry the tokenizer's fingerprint", pa.table({k: [v] for k, v in row.items()}))]
        if found != expected
        else []
    )


def unbalanced(records: dict[str, int], kept: int, rejected: int) -> list[Violation]:
    """Return the difference between the records read and those kept or rejected, if there is one."""
    lost = sum(records.values()) - kept - rejected
    rows = pa.table({"read": [sum(records.values())], "kept": [kept], "rejected": [rejected]})
    return [Violation("records read = kept + rejected", abs(lost), rows)] if lost else []


_SERIES = ("workload", "tokenizer", "counting", "population", "block_tokens", "metric")

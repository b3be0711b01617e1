"""Checks out of the declarations: each rule finds the rows that break it, and only those."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from warehouse.checks.tables import (
    SHOWN_ROWS,
    Violation,
    not_monotone,
    other_counts,
    other_fingerprints,
    other_turns,
    unbalanced,
    violations,
)
from warehouse.declared.schema import Field, Table
from warehouse.declared.tables import PERCENTILES, TABLES, TURNS
from warehouse.hardware_rows.rows import load_reference

T = Table(
    "t",
    "one",
    ("k", "l"),
    (
        Field("k", pa.string(), "", "", values=("a", "b")),
        Field("l", pa.int64(), "", "", minimum=0, maximum=10),
        Field("x", pa.float64(), "", "", minimum=-1.5, nullable=True),
        Field("n", pa.string(), "", "", nullable=True, values=("u",)),
    ),
)
GOOD: dict[str, object] = {"k": "a", "l": 0, "x": -1.5, "n": None}


def broken(*rows: dict[str, object]) -> list[tuple[str, int]]:
    """Return (rule, rows) of each violation."""
    return [(v.rule, v.count) for v in violations(T, T.rows([GOOD | row for row in rows]))]


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_empty_tables_hold(table: Table) -> None:
    """No row breaks no rule."""
    assert violations(table, table.rows([])) == []


def test_bounds_are_inside() -> None:
    """The bounds themselves, NULL where it may be, and known values hold."""
    # l from 0 to 10
    assert broken({"l": 0}, {"l": 10}, {"k": "b", "x": None, "n": "u"}) == []


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ({"k": None}, "k is not NULL"),
        ({"l": None}, "l is not NULL"),
        ({"k": "c"}, "k is one of a, b"),
        ({"k": ""}, "k is one of a, b"),
        ({"n": "v"}, "n is one of u"),
        ({"l": -1}, "l >= 0"),
        ({"l": 11}, "l <= 10"),
        ({"x": -1.6}, "x >= -1.5"),
        ({"x": float("nan")}, "x is finite"),
        ({"x": float("inf")}, "x is finite"),
    ],
)
def test_each_rule(row: dict[str, object], rule: str) -> None:
    """One row that breaks one rule is found beside rows that break none."""
    # 1 of 2 rows
    assert broken({"k": "b", "l": 5}, row) == [(rule, 1)]


def test_a_key_is_unique() -> None:
    """Rows that repeat a key are found once a key; NULLs in a key are equal."""
    # keys (a, 1) twice, (b, 1) three times, (a, 2) once
    rows = [{"l": 1}, {"l": 1}, *[{"k": "b", "l": 1}] * 3, {"l": 2}]
    assert broken(*rows) == [("(k, l) is unique", 2)]


def test_the_rows_are_shown() -> None:
    """A violation holds the first rows that break it, and counts all."""
    (found,) = violations(T, T.rows([GOOD | {"l": -n} for n in range(1, 31)]))
    # 30 rows, 20 shown
    assert (found.count, found.rows.num_rows, found.rows["l"][0].as_py()) == (30, SHOWN_ROWS, -1)


def test_another_schema() -> None:
    """A column that is missing, of another type, or may be NULL, is named, and nothing else is checked."""
    for columns, named in (({"k": ["a"]}, "l: int64 not null"), ({"k": [5]}, "k: int64")):
        (found,) = violations(T, pa.table(columns))
        assert found.rule.startswith("schema is not the declared one: missing [")
        assert named in found.rule
    chunked = pa.chunked_array([], pa.string())
    (found,) = violations(TURNS, TURNS.rows([]).set_column(0, pa.field("workload", pa.string()), chunked))
    # 0 rows, but the column may be NULL
    assert (found.count, "not declared ['workload: string']" in found.rule) == (0, True)


def values(*found: float, metric: str = "kappa_ratio", population: str = "all") -> list[dict[str, Any]]:
    """Return rows of `percentiles` with these values at 1, 2, 3, ... %."""
    series = {"workload": "w", "tokenizer": "t", "counting": "text", "reuse": "history", "block_tokens": 1}
    kind = series | {"population": population, "metric": metric}
    return [kind | {"percentile": float(n), "value": value} for n, value in enumerate(found, 1)]


def test_percentiles_rise() -> None:
    """A value below the one before it in the same series is found, whatever the order of the rows."""
    rows = [*values(1, 1, 2), *values(0, 5, 4, metric="cached_tokens"), *values(0.5, population="reused")]
    for order in (rows, rows[::-1]):
        (found,) = not_monotone(PERCENTILES.rows(order))
        # 5 > 4 at 3 %; series begin anew
        assert (found.count, found.rows["percentile"].to_pylist()) == (1, [3.0])
    assert not_monotone(PERCENTILES.rows(values(3))) == []
    assert not_monotone(PERCENTILES.rows([])) == []


def told(found: list[Violation]) -> list[tuple[str, int]]:
    """Return (rule, rows) of violations."""
    return [(violation.rule, violation.count) for violation in found]


def test_tokenizers_see_the_same_turns(turns_table: Callable[..., pa.Table]) -> None:
    """A turn that one has and another has not is found on its side, whatever the order of rows."""
    first = turns_table([("a", 0, 0, 3, 2), ("a", 1, 5, 1, 4), ("b", 0, 0, 1, 1)])
    assert other_turns({"x": first, "y": first.take([2, 0, 1])}) == []
    assert other_turns({"x": first}) == other_turns({}) == []
    # y lacks (a, 1) and has (c, 0)
    found = other_turns({"x": first, "y": pa.concat_tables([first.take([0, 2]), turns_table([("c", 0, 0, 1, 1)])])})
    assert told(found) == [("y has every turn of x", 1), ("x has every turn of y", 1)]
    assert [violation.rows.to_pylist() for violation in found] == [
        [{"session_id": "a", "turn_index": 1}],
        [{"session_id": "c", "turn_index": 0}],
    ]


def test_counts_of_full_sets() -> None:
    """The published sizes are compared to the record, and both numbers are told in one sentence."""
    published = load_reference("published")
    sizes = {"sharegpt": 90_665, "narrativeqa": 46_765, "finqa": 7_437}
    for name, records in sizes.items():
        assert other_counts(published, name, {"records": records}) == []
    assert other_counts(published, "narrativeqa", {"records": 46_765, "sessions": 1_572}) == []
    (found,) = other_counts(published, "narrativeqa", {"records": 46_765, "sessions": 1_580})
    # 1,580 - 1,572 = 8
    assert found.sentence == "1,580 sessions where the published set has 1,572 (it changed upstream)"
    (part,) = other_counts(published, "narrativeqa", {"records": 1, "sessions": 2})
    expected = "1 record and 2 sessions where the published set has 46,765 and 1,572 (only a part was counted)"
    assert part.sentence == expected
    assert {"metric": "sessions", "published": 1572, "ours": 1580, "difference": 8}.items() <= found.rows.to_pylist()[
        0
    ].items()
    # 90k conversations is a rounded figure: not asserted, not compared
    assert other_counts(published, "sharegpt", {"records": 90_665, "sessions": 90_000}) == []


def test_fingerprints() -> None:
    """Counts of another tokenizer file are named with both fingerprints."""
    assert other_fingerprints("turns/w/t", "f1", "t", "f1") == []
    (found,) = other_fingerprints("turns/w/t", "f0", "t", "f1")
    row = {"product": "turns/w/t", "fingerprint": "f0", "tokenizer": "t", "expected": "f1"}
    assert found.rows.to_pylist() == [row]
    assert found.sentence == "it was counted by a tokenizer file of fingerprint f0, that of t has f1"


def test_records_reconcile() -> None:
    """Records that are neither kept nor rejected, and those that are both, are counted."""
    # 7 + 3 = 8 + 2
    assert unbalanced({"a": 7, "b": 3}, 8, 2) == []
    for kept, lost in ((7, 1), (10, 2)):
        (found,) = unbalanced({"a": 7, "b": 3}, kept, 2)
        assert (found.count, found.rows.to_pylist()) == (lost, [{"read": 10, "kept": kept, "rejected": 2}])
        assert found.sentence == f"10 records read, {kept} kept and 2 rejected, which do not add up"


def test_sentences() -> None:
    """A rule is told with the number of rows that break it, one or many; another schema is told by itself."""
    one, many = (violations(T, T.rows([GOOD | {"l": -n} for n in range(1, 1 + count)])) for count in (1, 1200))
    # 1 row, 1,200 rows
    assert [found.sentence for found in (*one, *many)] == [
        "1 row breaks the rule `l >= 0`", "1,200 rows break the rule `l >= 0`",
    ]  # fmt: skip
    (schema,) = violations(T, pa.table({"k": ["a"]}))
    assert schema.sentence == schema.rule

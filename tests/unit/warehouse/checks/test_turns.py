"""Checks of turns: each rule finds the row that breaks it, and only that one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.sessions.writing import ASSISTANT, DOCUMENT, USER
from pipelines.turns.derivation import chat_turns, document_turns
from pipelines.turns.tables import turns_table as table_of_turns
from warehouse.checks.tables import Violation
from warehouse.checks.turns import KINDS, RULES, other_contexts, rules_of, turn_violations
from warehouse.declared.fields import BLOCK_TOKENS, COUNTINGS
from warehouse.declared.tables import PERCENTILES, TURNS

# The design's chats, a moved token, an opening reply, a rejected first turn; and documents, one with an empty question.
CHATS = [
    # [h3 g2 h1 g4 h2 g1]
    ("a", 0, 0, 3, 2), ("a", 1, 5, 1, 4), ("a", 2, 10, 2, 1),
    # [h3 g2 h0 g1 h4]: 3 + 2 = 5 are before turn 1, which is empty: K = 5 - 1, T = 1; then 5 + 0 + 1 = 6
    ("b", 0, 0, 3, 2), ("b", 1, 4, 1, 1), ("b", 2, 6, 4, None),
    # [h0 g2 h3 g1]: turn 0 is rejected
    ("c", 1, 2, 3, 1),
]  # fmt: skip
DOCUMENTS = [
    ("d", 0, 100, 7, None), ("d", 1, 99, 1, None), ("d", 2, 100, 1, None), ("d", 3, 100, 4, None),
    # all questions empty or of one token: 50 and 49 are both right
    ("e", 0, 50, 1, None), ("e", 1, 49, 1, None),
    ("f", 0, 5, 3, None),
]  # fmt: skip
Rows = list[tuple[Any, ...]]


def broken(found: dict[str, list[Violation]]) -> dict[str, list[tuple[str, int]]]:
    """Return (session, turn_index) of the rows that break each broken rule."""
    return {
        name: [(row["session_id"], row["turn_index"]) for row in violation.rows.to_pylist()]
        for name, (violation,) in ((name, some) for name, some in found.items() if some)
    }


def replaced(turns: pa.Table, column: str, values: list[Any]) -> pa.Table:
    """Return the turns with other values in one column."""
    return turns.set_column(
        TURNS.names.index(column), TURNS.arrow_schema.field(column), pa.array(values, TURNS.field(column).type)
    )


@pytest.mark.parametrize(("kind", "rows"), [("chat", CHATS), ("documents", DOCUMENTS)])
def test_by_hand(turns_table: Callable[..., pa.Table], kind: str, rows: Rows) -> None:
    """The design's examples hold in any order of rows, and no turns break nothing."""
    for order in (rows, rows[::-1], rows[3:] + rows[:3], []):
        found = turn_violations(turns_table(order), kind, "text", "history")
        assert found == {rule.name: [] for rule in rules_of(kind, "text", "history")}


# Each plants one turn in a session of its own, or in the place of the last one.
@pytest.mark.parametrize(
    ("kind", "counting", "planted", "rule"),
    [
        ("chat", "text", ("x", 0, 4, 3, 1), "first_turn"),
        ("chat", "chat", ("x", 0, 4, 3, 1), "first_turn"),
        # 4 + 4 + 2 = 10 are before turn 2 of `a`, or 9 where T is 1
        ("chat", "text", ("a", 3, 14, 5, 1), "context_grows"),
        ("chat", "text", ("a", 3, 12, 5, 1), "context_grows"),
        ("chat", "text", ("a", 3, 11, 1, 1), "context_grows"),
        ("chat", "text", ("a", 4, 13, 1, 1), "turn_index"),
        ("chat", "chat", ("a", 4, 70, 1, 1), "turn_index"),
        ("documents", "text", ("d", 4, 99, 2, None), "document_cached"),
        ("documents", "text", ("d", 4, 98, 1, None), "document_cached"),
        ("documents", "text", ("d", 4, 101, 9, None), "document_cached"),
        ("documents", "text", ("e", 2, 47, 1, None), "document_cached"),
    ],
)
def test_one_bad_row(
    turns_table: Callable[..., pa.Table], kind: str, counting: str, planted: tuple[Any, ...], rule: str
) -> None:
    """One turn that breaks one rule is the row that is returned, and no other rule is broken."""
    rows = [*(CHATS if kind == "chat" else DOCUMENTS), planted]
    for order in (rows, rows[::-1]):
        turns = replaced(turns_table(order), "counting", [counting] * len(rows))
        assert broken(turn_violations(turns, kind, counting, "history")) == {rule: [planted[:2]]}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("counting", COUNTINGS)
@pytest.mark.parametrize(
    ("ratio", "rules"),
    [
        (math.inf, {"finite", "kappa_times_t"}),
        (math.nan, {"finite", "kappa_times_t"}),
        # 10 / 2 is 5
        (5 * (1 + 1e-9), {"kappa_times_t"}),
    ],
)
def test_one_bad_ratio(
    turns_table: Callable[..., pa.Table], kind: str, counting: str, ratio: float, rules: set[str]
) -> None:
    """A ratio that is not finite, or off by a billionth, is found by kind and counting alike."""
    rows = [("a", 1, 10, 2, 1), ("b", 1, 2**40 + 1, 3, 0)]
    turns = replaced(turns_table(rows), "kappa_ratio", [ratio, (2**40 + 1) / 3])
    assert broken(turn_violations(turns, kind, counting, "history")) == {rule: [("a", 1)] for rule in rules}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("counting", COUNTINGS)
@pytest.mark.parametrize(("k", "t"), [(5, 0), (-1, 4), (5, -2)])
def test_cached_below_context(turns_table: Callable[..., pa.Table], kind: str, counting: str, k: int, t: int) -> None:
    """0 <= K < K + T: one turn where nothing, or less, is computed, or less than nothing was cached."""
    turns = turns_table([("a", 1, 5, 2, 1), ("b", 1, 7, 2, 1)])
    turns = replaced(replaced(turns, "cached_tokens", [k, 7]), "prefill_tokens", [t, 2])
    turns = replaced(turns, "kappa_ratio", [k / t if t else 0.0, 3.5])
    found = broken(turn_violations(turns, kind, counting, "history"))
    assert found["cached_below_context"] == [("a", 1)]


def test_chat_keeps_no_sums(turns_table: Callable[..., pa.Table]) -> None:
    """By `chat` a template may drop earlier text, so context may shrink, and a document's K may differ."""
    rows = turns_table([("a", 0, 0, 30, 2), ("a", 1, 5, 10, 4)])
    assert broken(turn_violations(rows, "chat", "chat", "history")) == {}
    assert broken(turn_violations(rows, "documents", "chat", "history")) == {}
    # 30 + 2 are before turn 1
    assert broken(turn_violations(rows, "chat", "text", "history")) == {"context_grows": [("a", 1)]}


def test_a_document_is_there_at_its_first_question(turns_table: Callable[..., pa.Table]) -> None:
    """The first question finds the document cached; a first request of a chat finds nothing."""
    rows = turns_table([("a", 0, 4, 3, None)])
    assert broken(turn_violations(rows, "documents", "text", "history")) == {}
    assert broken(turn_violations(rows, "chat", "text", "history")) == {"first_turn": [("a", 0)]}


def test_every_rule_is_planted() -> None:
    """The tests above break every rule, so a new rule needs its own."""
    assert {rule.name for rule in RULES} == {
        "finite", "kappa_times_t", "cached_below_context", "first_turn", "turn_index", "context_grows",
        "document_cached",
    }  # fmt: skip


@given(st.lists(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=1, max_size=8), max_size=5))
def test_whatever_is_derived_holds(sessions: list[list[tuple[bool, int]]]) -> None:
    """Turns that the derivation rules give from any messages break nothing."""
    session = np.array([n for n, messages in enumerate(sessions) for _ in messages], np.int64)
    role = np.array([ASSISTANT if is_reply else USER for messages in sessions for is_reply, _ in messages], np.int8)
    tokens = np.array([count for messages in sessions for _, count in messages], np.int64)
    names = pa.table({"session_id": [f"s{n}" for n in range(len(sessions))]})
    derived = chat_turns(session, role, tokens)
    assert (
        broken(
            turn_violations(table_of_turns(derived, names, ("w", "t", "text", "history")), "chat", "text", "history")
        )
        == {}
    )


@given(st.lists(st.tuples(st.integers(0, 9), st.lists(st.integers(0, 3), min_size=1, max_size=4)), max_size=5))
def test_whatever_is_derived_of_documents_holds(documents: list[tuple[int, list[int]]]) -> None:
    """The same of documents and their questions."""
    session = np.array([n for n, (_, asked) in enumerate(documents) for _ in (0, *asked)], np.int64)
    role = np.array([DOCUMENT if not n else USER for _, asked in documents for n in range(len(asked) + 1)], np.int8)
    tokens = np.array([count for size, asked in documents for count in (size, *asked)], np.int64)
    names = pa.table({"session_id": [f"d{n}" for n in range(len(documents))]})
    derived = document_turns(session, role, tokens)
    assert (
        broken(
            turn_violations(
                table_of_turns(derived, names, ("w", "t", "text", "history")), "documents", "text", "history"
            )
        )
        == {}
    )


def contexts(values: dict[tuple[str, int, float], float]) -> pa.Table:
    """Return rows of `percentiles` of K + T by (population, block, percentile)."""
    series = {
        "workload": "w",
        "tokenizer": "llama-3.1",
        "counting": "text",
        "reuse": "history",
        "metric": "context_tokens",
    }
    return PERCENTILES.rows(
        [
            series | {"population": population, "block_tokens": block, "percentile": percentile, "value": value}
            for (population, block, percentile), value in values.items()
        ]
    )


def test_context_is_k_plus_t(turns_table: Callable[..., pa.Table]) -> None:
    """Percentiles of the context are those of K + T at every block size; one that is not is the row returned."""
    turns = turns_table([("a", 0, 0, 3, 2), ("a", 1, 5, 1, 4), ("b", 1, 100, 30, None)])
    # K + T = 3 6 130: the median is 6, of the turns with K > 0 it is 68, their p75 is 99
    good = {("all", block, 50.0): 6.0 for block in BLOCK_TOKENS} | {
        ("reused", 1, 50.0): 68.0,
        ("reused", 1, 75.0): 99.0,
    }
    assert other_contexts(contexts(good), turns) == []
    for place in good:
        (found,) = other_contexts(contexts(good | {place: good[place] + 0.001}), turns)
        assert found.count == 1
        (row,) = found.rows.to_pylist()
        assert (row["population"], row["block_tokens"], row["percentile"]) == place
    # a percentile of turns that are not there
    (found,) = other_contexts(contexts({("reused", 1, 50.0): 4.0}), turns.slice(0, 1))
    assert found.count == 1
    assert other_contexts(contexts({}), turns) == []

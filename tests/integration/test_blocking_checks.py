"""Checks through the graph: one planted row stops what depends on it, and is exactly what the check returns."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hub_stand_in import HubStandIn
from kappa_process import Kappa
from test_graph import checks, made, materialize

from pipelines.steps.turn_products import TURNS_FILE
from warehouse.checks.turns import RULES
from warehouse.declared.schema import Table
from warehouse.declared.tables import PERCENTILES, TURNS
from warehouse.home.contents import contents_of
from warehouse.home.home import Home
from warehouse.home.products import CONTENTS
from warehouse.home.staging import META

CHAT, DOCUMENTS = "turns/sharegpt/llama-3.1/text/history", "turns/narrativeqa/llama-3.1/text/history"
Row = dict[str, Any]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Keep Dagster's log lines out of the test output."""
    level = logging.getLogger("dagster").level
    logging.getLogger("dagster").setLevel(logging.CRITICAL)
    yield
    logging.getLogger("dagster").setLevel(level)


@pytest.fixture(scope="module")
def home(full: Kappa, tmp_path_factory: pytest.TempPathFactory) -> Kappa:
    """A copy of the home with all workloads; what a test spoils in it is mended."""
    return full.twin(tmp_path_factory.mktemp("spoilt") / "home")


@pytest.fixture
def spoil(home: Kappa, hub: HubStandIn) -> Iterator[Callable[..., None]]:
    """Return a function that changes the staged rows of a product; they are as they were at the end."""
    del hub
    before: dict[Path, bytes] = {}

    def change(product: str, file: str, table: Table, edit: Callable[[list[Row]], list[Row]]) -> None:
        staging = Home(home.home).staging(is_sample=False)
        staged = staging.require(product)
        path = staged.file(file)
        before.update({one: one.read_bytes() for one in (path, staged.file(META))})
        rows = edit(pq.read_table(path).to_pylist())
        # Published files are the same file by hard links.
        path.unlink()
        pq.write_table(pa.Table.from_pylist(rows, table.arrow_schema), path)
        # As if the step had written it.
        staging.amend(staged, **{CONTENTS: contents_of(staged.folder, META)})

    yield change
    for path, body in before.items():
        path.unlink()
        path.write_bytes(body)


def returned(check: dg.AssetCheckEvaluation) -> list[dict[str, str]]:
    """Return the rows that a check shows, each as text by column."""
    found = []
    for shown in check.metadata.values():
        head, _, *lines = [
            [cell.strip() for cell in line.strip("|").split("|")] for line in str(shown.value).split("\n")
        ]
        found += [dict(zip(head, line, strict=True)) for line in lines]
    return found


def at(session: str, index: int, **values: object) -> Callable[[list[Row]], list[Row]]:
    """Return an edit that gives one turn other values, and kappa_ratio with them where it is not given."""

    def edit(rows: list[Row]) -> list[Row]:
        for row in rows:
            if (row["session_id"], row["turn_index"]) == (session, index):
                row.update(values)
                if "kappa_ratio" not in values and row["prefill_tokens"]:
                    row["kappa_ratio"] = row["cached_tokens"] / row["prefill_tokens"]
        return rows

    return edit


# Chat a is (0,3) (5,1) (10,2), chat d (0,2) (4,1); story one has questions of 2 and 3 tokens after its 6.
PLANTED: dict[str, tuple[str, str, int, dict[str, object]]] = {
    "finite": (CHAT, "a", 2, {"kappa_ratio": math.inf}),
    "kappa_times_t": (CHAT, "a", 2, {"kappa_ratio": 5.1}),
    "cached_below_context": (CHAT, "a", 2, {"prefill_tokens": 0}),
    "first_turn": (CHAT, "a", 0, {"cached_tokens": 1}),
    "turn_index": (CHAT, "d", 1, {"turn_index": 2}),
    "context_grows": (CHAT, "a", 2, {"cached_tokens": 11}),
    "document_cached": (DOCUMENTS, "one", 1, {"cached_tokens": 5}),
}


@pytest.mark.parametrize("rule", [rule.name for rule in RULES])
def test_a_turn_that_breaks_a_rule(home: Kappa, spoil: Callable[..., None], rule: str) -> None:
    """The check of that rule fails as an error with exactly the planted row; no table is made from the turns."""
    product, session, index, values = PLANTED[rule]
    spoil(product, TURNS_FILE, TURNS, at(session, index, **values))
    result = materialize(home, product, "summary", "percentiles")
    check = checks(result)[f"{product}:{rule}"]
    assert (check.passed, check.blocking, check.severity) == (False, True, dg.AssetCheckSeverity.ERROR)
    rows = returned(check)
    assert [(row["session_id"], row["turn_index"]) for row in rows] == [(session, str(values.get("turn_index", index)))]
    assert made(result) == {product}


def test_a_turn_that_one_tokenizer_does_not_see(home: Kappa, spoil: Callable[..., None]) -> None:
    """`same_turns` fails with the one turn that the other tokenizer has, and names both; nothing is published."""
    spoil(CHAT, TURNS_FILE, TURNS, lambda rows: [row for row in rows if row["session_id"] != "c"])
    before = home.state()
    result = materialize(home, "summary", "warehouse", "report", "generations")
    check = checks(result)["summary:same_turns"]
    assert (check.passed, check.blocking) == (False, True)
    # c has one turn that was not rejected
    assert returned(check) == [{"session_id": "c", "turn_index": "1"}]
    assert "sharegpt by text by history: llama-3.1 has every turn of qwen3" in str(check.description)
    assert made(result) == {"summary"}
    assert home.state() == before


def test_a_percentile_that_is_not_of_k_plus_t(home: Kappa, spoil: Callable[..., None]) -> None:
    """`context` fails with the one percentile that is not that of K + T of the turns."""
    place = {
        "workload": "finqa", "tokenizer": "qwen3", "counting": "text", "reuse": "history",
        "population": "reused", "block_tokens": 16, "metric": "context_tokens", "percentile": 50.0,
    }  # fmt: skip

    def edit(rows: list[Row]) -> list[Row]:
        return [row | {"value": row["value"] + 0.5} if place.items() <= row.items() else row for row in rows]

    spoil("tables/percentiles", "percentiles.parquet", PERCENTILES, edit)
    result = materialize(home, "percentiles", "warehouse")
    check = checks(result)["percentiles:context"]
    assert (check.passed, check.blocking) == (False, True)
    (row,) = returned(check)
    # K + T of the three questions: 8 + 2, 8 + 4, 5 + 1; the median is 10
    assert row == {name: str(value) for name, value in place.items()} | {"percentile": "50.0", "value": "10.5"}
    assert made(result) == {"percentiles"}


def test_a_set_of_another_size_stops_nothing(home: Kappa, spoil: Callable[..., None]) -> None:
    """`published_counts` warns with the difference, is not blocking, and what depends on the set is made."""
    del spoil
    result = materialize(home, "conversations/finqa", "token_counts/finqa/qwen3", "turns/finqa/qwen3/text/history")
    check = checks(result)["conversations/finqa:published_counts"]
    assert (check.passed, check.blocking, check.severity) == (False, False, dg.AssetCheckSeverity.WARN)
    # 4 records where 7,437 are published: -7,433
    assert [(row["metric"], row["ours"], row["difference"]) for row in returned(check)] == [("records", "4", "-7433")]
    assert check.description == "4 records where the published set has 7,437 (only a part was counted)"
    assert result.success
    assert len(made(result)) == 3

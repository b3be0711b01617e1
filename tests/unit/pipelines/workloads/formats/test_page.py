"""docs/traces.md: each row of its worked examples, and the names that it lists."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pipelines.workloads.formats import trace, usage
from warehouse.declared.fields import REJECT_REASONS, REUSES

PAGE = (Path(__file__).parents[5] / "docs" / "traces.md").read_text("utf8")


def cells(head: str) -> list[list[str]]:
    """Return the rows of the table whose head begins with these words."""
    (table,) = re.findall(rf"^\| {re.escape(head)}.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()]


TRACES, RECORDS = cells("B | requests"), cells("record | n")


@pytest.mark.parametrize("row", TRACES, ids=lambda row: row[1])
def test_traces(row: list[str]) -> None:
    """K and T of the last request."""
    size, requests, expected, _ = row
    read = [
        {"timestamp": 0, "input_length": int(n), "block_size": int(size), "hash_ids": [int(one) for one in ids.split()]}
        for n, ids in re.findall(r"(\d+) \[([\d ]*)\]", requests)
    ]
    turns = trace.read((("a", number, one) for number, one in enumerate(read)), {}).turns()
    assert f"{turns.cached[-1]}, {turns.prefill[-1]}" == expected


@pytest.mark.parametrize("row", RECORDS, ids=lambda row: row[0])
def test_records(row: list[str]) -> None:
    """n, K and T of each vendor's record."""
    record, n, expected = row
    turns = usage.read([("a", 0, json.loads(record.strip("`")))], {}).turns()
    assert [str(turns.cached[0] + turns.prefill[0]), f"{turns.cached[0]}, {turns.prefill[0]}"] == [n, expected]


def test_names() -> None:
    """The page names every role, every reuse, and reasons that there are."""
    assert (len(TRACES), len(RECORDS)) == (5, 7)
    for form in (trace, usage):
        assert ", ".join(f"`{role.name}`" for role in form.ROLES) in PAGE
    assert [row[0].strip("`") for row in cells("reuse | K is")] == list(REUSES)
    assert {row[0].strip("`") for row in cells("reason | when")} <= set(REJECT_REASONS)

"""docs/turns.md: each row of each table of worked examples, by the arrays of the product."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from pipelines.sessions.writing import ASSISTANT, DOCUMENT, QUESTION, ROLE_NAMES, SYSTEM, TOOL, USER
from pipelines.turns.derivation import chat_turns, document_turns
from pipelines.workloads.chat_records import ROLES
from warehouse.formulas.kappa import block_tokens

PAGE = (Path(__file__).parents[4] / "docs" / "turns.md").read_text("utf8")
LETTERS = {"h": USER, "g": ASSISTANT, "s": SYSTEM, "t": TOOL, "d": DOCUMENT, "q": QUESTION}


def cells(head: str) -> list[list[str]]:
    """Return the rows of every table whose head begins with these words."""
    tables = re.findall(rf"^\| {re.escape(head)}.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for table in tables for line in table.splitlines()]


def numbers(text: str) -> list[int]:
    """Return the whole numbers of a text."""
    return [int(number) for number in re.findall(r"\d+", text)]


MESSAGES, BLOCKS, NAMES = cells("messages"), cells("K, T |"), cells("in the data set")


def test_the_page_has_its_tables() -> None:
    """Nothing below passes because a table is not found."""
    # messages: 7 runs + 2 opening replies + 3 outputs + 3 with T = 0 + 2 documents = 17
    assert (len(MESSAGES), len(BLOCKS), len(NAMES)) == (17, 4, 4)


@pytest.mark.parametrize("row", MESSAGES, ids=lambda row: row[0])
def test_messages(row: list[str]) -> None:
    """K, T and, where the page says it, output of each turn."""
    messages = [(LETTERS[word[0]], int(word[1:])) for word in row[0].split()]
    role, tokens = (np.array(column) for column in zip(*messages, strict=True))
    derive = document_turns if DOCUMENT in role else chat_turns
    turns = derive(np.zeros(len(role), np.int64), role.astype(np.int8), tokens.astype(np.int64))
    assert np.column_stack([turns.cached, turns.prefill]).ravel().tolist() == numbers(row[1])
    if len(row) == len(("messages", "turns", "output", "why")):
        output = [str(n) if there else "NULL" for n, there in zip(turns.output, turns.has_output, strict=True)]
        assert output == row[2].split()


@pytest.mark.parametrize("row", BLOCKS, ids=lambda row: f"{row[0]} by {row[1]}")
def test_blocks(row: list[str]) -> None:
    """K and T with whole blocks only."""
    cached, prefill = numbers(row[0])
    assert list(block_tokens(cached, prefill, int(row[1]))) == numbers(row[2])


def test_roles() -> None:
    """The names of the page are those that the reader knows, all of them, with their roles."""
    shown = {name.strip(): row[1].split(":")[0] for row in NAMES for name in row[0].split(",")}
    assert shown == {name: ROLE_NAMES[role] for name, role in ROLES.items()}

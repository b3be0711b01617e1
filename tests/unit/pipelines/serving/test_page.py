"""docs/serving.md: each row of its tables of worked examples, by the code of the product."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from serving_cases import run

from pipelines.serving.engine.work import seconds_a_token
from pipelines.serving.line.ttft import line

PAGE = (Path(__file__).parents[4] / "docs" / "serving.md").read_text("utf8")
ROWS = [tuple(cell.strip() for cell in row.strip("|").split("|")) for row in PAGE.splitlines() if row.startswith("| ")]
ENGINE = [row for row in ROWS if row[1].startswith("(")]
LINE = [row for row in ROWS if len(row) == 6 and row[0].isdigit()]
NAMES = {"budget": "token_budget", "pool": "pool_tokens", "hold": "hold_s"}


def numbers(text: str) -> list[float]:
    """Return numbers between blanks."""
    return [float(number) for number in text.split()]


def options(text: str) -> dict[str, object]:
    """Return what a case is run with."""
    pairs = [part.split(" ") for part in text.split(", ") if part]
    kinds = {"policy": str, "loading": str, "decode": str, "hold": float}
    return {NAMES.get(name, name): kinds.get(name, int)(value) for name, value in pairs}


def test_every_case_is_there() -> None:
    """The eight cases of the design, and starvation with and without ageing."""
    assert {row[0] for row in (*ENGINE, *LINE)} == {*"12345678", "starvation", "ageing"}


@pytest.mark.parametrize("row", ENGINE)
def test_engine(row: tuple[str, ...]) -> None:
    """TTFT of each turn is as printed."""
    turns = [tuple(float(n) for n in turn.split(",")) for turn in re.findall(r"\(([^)]*)\)", row[1])]
    assert run(turns, **options(row[2])).ttft_s.tolist() == numbers(row[3])


@pytest.mark.parametrize("row", LINE)
def test_line(row: tuple[str, ...]) -> None:
    """TTFT of each turn in the line is as printed."""
    arrival, load, compute = (np.array(numbers(cell)) for cell in row[1:4])
    assert line(arrival, load, compute, int(row[4])).ttft_s.tolist() == numbers(row[5])


def test_the_paper_s_scheduled_tokens() -> None:
    """42 turns of 11,115 + 82 tokens fit into 479,150: blocking computes 42 x 82 tokens an iteration, async 82.

    70B in bf16 over 15 GB/s: 0.2428 s a load, and 0.26 ms a token.
    """
    assert "42 x 82 = 3,444" in PAGE
    rows = [(0, 11_115, 82, 0, 0.2428)] * 420
    work = seconds_a_token(np.full(420, 82), 2.6e-4)
    for loading, tokens in (("blocking", 42 * 82), ("async", 82)):
        found = run(rows, pool_tokens=479_150, token_budget=8192, loading=loading, work=work)
        assert np.median(found.iteration_s[:, 3]) == tokens

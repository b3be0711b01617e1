"""Many answers in one table: its columns, its width, Markdown, and what a pool holds."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assets.commands.cli import main
from warehouse.hardware_rows.rows import load_reference

Crit = Callable[..., list[dict[str, Any]]]
H100 = ("--accelerator", "h100-sxm", "--link", "pcie5-x16", "--basis", "physical")
TWO = ("--model", "llama-3.1-70b", "--model", "qwen3-32b", *H100, "--tensor-parallel", "1")
TURN = ("--cached-tokens", "20000", "--new-tokens", "100")


@pytest.fixture
def text(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., str]:
    """Return a function that runs `kappa crit` in an empty home and returns its text."""

    def run(*arguments: str) -> str:
        assert main(["crit", "--home", str(tmp_path), *arguments]) == 0
        return capsys.readouterr().out

    return run


def test_one_table_and_one_sentence(text: Callable[..., str]) -> None:
    """Two models: a line each and cost model, what they share above, the best below."""
    lines = text(*TWO, *TURN, "--cost-model", "2n").splitlines()
    assert lines[0] == "K = 20,000 cached, T = 100 new tokens: kappa_ratio 200"
    assert lines[1] == "all: accelerator h100-sxm, link pcie5-x16, basis physical, KV bf16, GPUs 1, t_GPU 2n"
    assert [line.split()[0] for line in lines[3:6]] == ["model", "llama-3.1-70b", "qwen3-32b"]
    # 20,000 x 327,680 / 54.4e9 = 120.5 ms + 25.93 ms; 20,000 x 262,144 / 54.4e9 = 96.38 ms + 12.04 ms
    assert sum(line.startswith("Best of 2") for line in lines) == 1
    assert all(
        words in " ".join(" ".join(lines).split())
        for words in ("qwen3-32b, TTFT 108.4 ms by loading", "last llama-3.1-70b, 146.4 ms")
    )


@pytest.mark.parametrize("question", [(), TURN], ids=["kappa_crit", "turn"])
def test_the_widest_question_fits(text: Callable[..., str], question: tuple[str, ...]) -> None:
    """The longest names of every table, all of them varying, within 100 columns; --wide shows each whole."""
    names = {
        f"--{table[:-1]}": sorted((row[table[:-1]] for row in load_reference(table).to_pylist()), key=len)[-2:]
        for table in ("models", "accelerators", "links")
    }
    more = ("--kv-dtype", "bf16", "--kv-dtype", "fp8", "--tensor-parallel", "1", "--tensor-parallel", "16")
    options = [part for name, values in names.items() for value in values for part in (name, value)]
    narrow = text(*options, *more, *question)
    assert max(map(len, narrow.splitlines())) <= 100
    assert "--wide adds" in narrow
    wide = text(*options, *more, *question, "--wide")
    assert all(name in wide for values in names.values() for name in values)
    assert "--wide adds" not in wide
    assert "confidence" in wide


def test_markdown(text: Callable[..., str], tmp_path: Path) -> None:
    """A table of Markdown with as many cells in each line, numbers to the right; --output F.md writes the same."""
    shown = text(*TWO, *TURN, "--cost-model", "2n", "--format", "markdown")
    table = [line for line in shown.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in table}) == 1
    assert re.fullmatch(r"\| --- \| --- \| ---: \|.*", table[1])
    # heading, rule, two models
    assert len(table) == 4
    assert main(["crit", "--home", str(tmp_path / "home"), *TWO, *TURN, "--cost-model", "2n",
                 "--output", str(tmp_path / "answer.md")]) == 0  # fmt: skip
    assert (tmp_path / "answer.md").read_text("utf8") == shown


def test_a_pool(crit: Crit, text: Callable[..., str]) -> None:
    """A pool names how many such requests it holds; where that is none, no verdict says load or recompute."""
    names = ("--model", "qwen2.5-32b", *H100, "--cached-tokens", "8000", "--new-tokens", "200", "--cost-model", "2n")
    (row,) = crit(*names, "--pool-tokens", "18144")
    # 18,144 / 8,200 = 2.21; T_sched 18,144 / (1 + 40)
    assert (row["pool_requests"], row["faster"], row["warnings"]) == (2, "load", None)
    assert row["scheduled_tokens"] == pytest.approx(18_144 / 41)
    # 8,200 + 2,000 generated: 1.78
    (longer,) = crit(*names, "--pool-tokens", "18144", "--output-tokens", "2000")
    assert longer["pool_requests"] == 1
    (none,) = crit(*names, "--pool-tokens", "8199")
    assert (none["pool_requests"], none["faster"], none["scheduled_tokens"]) == (0, "neither", None)
    assert "the pool of 8,199 tokens does not hold the 8,200 of this turn" in none["warnings"]
    shown = text(*names, "--pool-tokens", "8199")
    assert re.search(r"requests that the pool holds +0\n", shown)
    assert "pool holds" in text(*names, "--model", "qwen3-32b", "--pool-tokens", "18144")


def test_a_peak_with_sparsity_is_doubted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """1,671 TFLOP/s are the sparse figure of an H100 NVL: 4.2e12 a watt is refused, and without its power noted."""
    folder = tmp_path / "reference"
    folder.mkdir()
    columns = "accelerator,dense_bf16_flop_per_s,hbm_bytes,hbm_bytes_per_s,tdp_w,retrieved,confidence,source"
    row = "our-h100-nvl,{},94e9,3.9e12,{},2024-05-01,high,a card"
    found = []
    for dense, power in itertools.product(("1671e12", "835.5e12"), ("400", "")):
        text = f"{columns}\n{row.format(dense, power)}\n"
        (folder / "accelerators.csv").write_text(text, "utf8")
        names = ["crit", "--home", str(tmp_path), "--model", "llama-3.1-70b", "--accelerator", "our-h100-nvl",
                 "--link", "pcie5-x16", "--format", "json"]  # fmt: skip
        code = main(names)
        told = capsys.readouterr()
        found.append((code, "sparsity" in told.err, "sparsity" in told.out))
    assert found == [(1, True, False), (0, False, True), (0, False, False), (0, False, False)]


def test_a_pipe_in_a_name_ends_no_cell(text: Callable[..., str], tmp_path: Path) -> None:
    """A user's link with a bar and an angle bracket in its name stays one cell of text."""
    folder = tmp_path / "reference"
    folder.mkdir()
    with (folder / "links.csv").open("w", encoding="utf8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["link", "kind", "peak_bytes_per_s", "retrieved", "confidence", "source"])
        writer.writerow(["a|b <i>", "pcie", "60e9", "2024-05-01", "high", "a card"])
    names = ("--model", "llama-3.1-70b", "--accelerator", "h100-sxm", "--link", "a|b <i>", "--link", "pcie5-x16")
    shown = text(*names, "--basis", "physical", "--format", "markdown")
    assert r"a\|b &lt;i>" in shown
    assert len({line.replace(r"\|", "").count("|") for line in shown.splitlines() if line.startswith("|")}) == 1

"""The design questions of the paper: kappa_crit by hand, and the share of a workload that becomes compute bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipelines.hardware.design_questions import VARIANTS, design_questions
from pipelines.hardware.entities import Pair
from pipelines.hardware.machines import read_sources
from pipelines.hardware.ratios import kappa_crit_rows
from warehouse.declared.tables import DESIGN_QUESTIONS

SOURCES = read_sources()
MODELS = ["llama-3.1-70b", "qwen3-235b-a22b", "deepseek-v3", "gpt-oss-120b"]


def run(turns: list[tuple[int, int]], tokenizer: str = "llama-3.1") -> list[dict[str, Any]]:
    """Return the rows of (K, T) pairs."""
    batch = {"cached_tokens": np.array([k for k, _ in turns]), "prefill_tokens": np.array([t for _, t in turns])}
    names = {"workload": "w", "tokenizer": tokenizer, "counting": "text", "reuse": "history"}
    return list(design_questions([batch], **names, sources=SOURCES, models=MODELS).to_pylist())


def crit(tokenizer: str, basis: str, model: str) -> dict[tuple[str, str], float]:
    """Return kappa_crit by question and variant."""
    rows = [row for row in run([(0, 1)], tokenizer) if (row["basis"], row["model"]) == (basis, model)]
    return {(row["question"], row["variant"].split(",")[0]): row["kappa_crit"] for row in rows}


def test_the_printed_values() -> None:
    """NVLink-C2C as printed and as wired, and one memory, on the paper's basis."""
    qwen, deepseek = crit("qwen3", "paper", "qwen3-235b-a22b"), crit("llama-3.1", "paper", "deepseek-v3")
    # 0.23e6 x 900e9 / 5000e12 = 41.4, 1.06e6 x ... = 190.8; half of both at 450 GB/s; 8000 / 5000: 368 and 1696
    for variant, expected in (("900 GB/s", (41.4, 190.8)), ("450 GB/s", (20.7, 95.4))):
        assert (qwen["nvlink-c2c", variant], deepseek["nvlink-c2c", variant]) == pytest.approx(expected)
    assert qwen["unified-memory", "8000 GB/s"] == pytest.approx(368)
    assert deepseek["unified-memory", "8000 GB/s"] == pytest.approx(1696)
    # today: 0.23e6 x 13.5e-6 = 3.105, both as printed
    assert qwen["nvlink-c2c", "pcie5-x16"] == pytest.approx(3.105)


def test_physical_by_hand() -> None:
    """Exact bytes, sustained compute."""
    found = crit("llama-3.1", "physical", "llama-3.1-70b")
    # 2 x 70,553,706,496 / 327,680 x 450e9 / (0.55 x 2500e12) = 430,626 x 3.27273e-4 = 140.93
    assert found["nvlink-c2c", "450 GB/s"] == pytest.approx(140.93, abs=0.01)
    # 211.5e9 in its place, one GPU of two loading: 66.24, and that is the table's kappa_crit
    sustained = found["nvlink-c2c", "nvlink-c2c"]
    assert sustained == pytest.approx(66.24, abs=0.01)
    (of_table,) = [
        row.kappa_crit
        for row in kappa_crit_rows(SOURCES, Pair("gb200", "nvlink-c2c-gb300", "physical"), kv_dtypes=("bf16",))
        if row.model == "llama-3.1-70b"
    ]
    assert sustained == of_table
    # on an H100: 43.0448; a latent has 80 x 576 x 2 = 92,160 bytes: x 327,680 / 92,160 = 3.5556 -> 153.05
    assert found["mla", "the model's own cache"] == pytest.approx(43.0448, abs=1e-3)
    assert found["mla", "a latent of 512 + 64 in every layer"] == pytest.approx(153.05, abs=0.01)
    # 8 bits with their scales: / 0.5625 = 76.524; 4 bits: / 0.3125 = 137.74
    assert found["kv-quantisation", "8 bit"] == pytest.approx(76.524, abs=0.01)
    assert found["kv-quantisation", "4 bit"] == pytest.approx(137.74, abs=0.01)
    # a model that has a latent already gains nothing: 61 x 576 x 2 = 70,272 are its own bytes
    own = crit("llama-3.1", "physical", "deepseek-v3")
    assert own["mla", "a latent of 512 + 64 in every layer"] == pytest.approx(own["mla", "the model's own cache"])


def test_shares_by_hand() -> None:
    """Turns at kappa_ratio 0, 40, 60, 200, 1000 of Llama-3.1-70B on an H100."""
    rows = run([(0, 5), (400, 10), (600, 10), (2000, 10), (10_000, 10)])
    found = {
        (row["question"], row["variant"]): (row["compute_bound_turn_share"], row["gained_turn_share"])
        for row in rows
        if (row["basis"], row["model"]) == ("physical", "llama-3.1-70b")
    }
    # 43.04: 0 and 40 are compute bound; 76.5: 60 as well; 137.7 not more
    assert found["kv-quantisation", "bf16"] == (0.4, 0)
    assert found["kv-quantisation", "8 bit"] == pytest.approx((0.6, 0.2))
    assert found["kv-quantisation", "4 bit"] == pytest.approx((0.6, 0.2))


def test_rows_and_keys() -> None:
    """A row for each variant of each counted model and basis; bytes that are not constant have no kappa_crit."""
    rows = run([(100, 10)])
    # llama-3.1-70b and deepseek-v3 (by proxy) on both bases: 11 variants, one of them on the physical basis alone
    assert (len(VARIANTS), len(rows)) == (11, 2 * (11 + 10))
    keys = {tuple(row[name] for name in DESIGN_QUESTIONS.key) for row in rows}
    assert len(keys) == len(rows)
    assert "gpt-oss-120b" not in {row["model"] for row in rows}
    assert all(row["gained_turn_share"] >= 0 for row in rows)


def test_no_turn_gives_no_row() -> None:
    """A share of nothing is no number."""
    assert run([]) == []

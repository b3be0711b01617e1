"""The comparison of several answers: which are compared, which is best, what is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pipelines.hardware.machines import read_sources
from pipelines.hardware.questions.answer import CritAnswer, TurnAnswer
from pipelines.hardware.questions.crit import crit as ask
from pipelines.hardware.questions.question import CritQuestion
from pipelines.hardware.questions.verdict import verdict
from warehouse.home.home import Home

SOURCES = read_sources()
TWO: dict[str, Any] = {"model": "llama-3.1-70b", "accelerator": ["h100-sxm", "gh200-96gb"], "basis": "physical"}
TURN: dict[str, Any] = {"cached_tokens": 20_000, "new_tokens": 100}


def answers(tmp_path: Path, **question: object) -> list[CritAnswer]:
    """Return the answers to a question."""
    return ask(CritQuestion(**question), SOURCES, Home(tmp_path).database)  # type: ignore[arg-type]


def test_kappa_crit_the_highest(tmp_path: Path) -> None:
    """375 GB/s against 54.4: 296.7 and 43.04 under the same peak."""
    found = verdict(answers(tmp_path, **TWO, link=["pcie5-x16", "nvlink-c2c"]))
    assert found is not None
    assert (found.column, found.best.accelerator, found.best.link) == ("kappa_crit", "h100-sxm", "nvlink-c2c")
    for words in ("Best of 4", "basis physical", "h100-sxm over nvlink-c2c", "296.7", "43.04"):
        assert words in found.sentence


def test_a_turn_by_the_shorter_way(tmp_path: Path) -> None:
    """Under `full`, the fullest cost model; the figure is the lesser of loading and recomputing, by NumPy too."""
    found = answers(tmp_path, **TWO, **TURN, link="pcie5-x16", kv_dtype=["bf16", "int4"])
    chosen = verdict(found)
    assert chosen is not None
    of_full = [answer for answer in found if isinstance(answer, TurnAnswer) and answer.cost_model == "full"]
    assert len(of_full) == 4
    times = [np.minimum(answer.ttft_s, answer.recompute_s) for answer in of_full]  # type: ignore[type-var]
    assert chosen.best == of_full[int(np.argmin(times))]
    # bf16 on four H100: 20,000 x 81,920 / 54.4e9 = 30.1 ms over t_GPU; int4 with its scales is 0.3125 of it, under
    assert "memory bound: 2 of 4" in chosen.sentence
    assert "by loading" in chosen.sentence


def test_what_is_not_comparable_is_counted(tmp_path: Path) -> None:
    """A model without kappa_crit, a turn that the pool does not hold."""
    found = verdict(answers(tmp_path, **TWO | {"model": ["llama-3.1-70b", "gpt-oss-120b"]}, link="pcie5-x16"))
    assert found is not None
    assert "2 without it" in found.sentence
    assert verdict(answers(tmp_path, **TWO, **TURN, pool_tokens=20_099)) is None


def test_one_choice_is_no_comparison(tmp_path: Path) -> None:
    """Several bases or cost models of one choice are one choice; nothing is nothing."""
    one = {"model": "llama-3.1-70b", "accelerator": "h100-sxm", "link": "pcie5-x16"}
    assert verdict(answers(tmp_path, **one)) is None
    assert verdict(answers(tmp_path, **one, **TURN)) is None
    assert verdict([]) is None


def test_the_basis_that_has_most(tmp_path: Path) -> None:
    """The paper has no H200, so the physical basis is compared."""
    found = verdict(answers(tmp_path, model="llama-3.1-70b", accelerator=["h100-sxm", "h200-sxm"], link="pcie5-x16"))
    assert found is not None
    assert found.best.basis == "physical"

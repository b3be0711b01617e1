"""`crit` as Python asks it: typed answers, and the same rows as the command prints."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from refusals import refused

from pipelines.hardware.machines import read_sources
from pipelines.hardware.questions.answer import CritRow, TurnAnswer, flat_row
from pipelines.hardware.questions.choosing import chosen_rows
from pipelines.hardware.questions.crit import crit as ask
from pipelines.hardware.questions.question import CritQuestion, OneQuestion
from warehouse.errors import ErrorCode, UsageError
from warehouse.home.home import Home

SOURCES = read_sources()
H100: dict[str, Any] = {"model": "llama-3.1-70b", "accelerator": "H100-SXM", "link": "pcie5-x16", "basis": "physical"}
OPTIONS = ("--model", "llama-3.1-70b", "--accelerator", "H100-SXM", "--link", "pcie5-x16", "--basis", "physical")
TURN = {"cached_tokens": 65_536, "new_tokens": 64}
Crit = Callable[..., list[dict[str, Any]]]


def test_kappa_crit_by_hand(tmp_path: Path, crit: Crit) -> None:
    """2 x 70,553,706,496 / 327,680 x 54.4e9 / (0.55 x 989.5e12) = 43.0448; the home is not read."""
    question = CritQuestion(**H100)
    (answer,) = ask(question, SOURCES, Home(tmp_path / "none").database)
    assert isinstance(answer, CritRow)
    assert answer.kappa_crit == pytest.approx(43.0448, abs=1e-4)
    assert [flat_row(question, answer)] == crit(*OPTIONS)


def test_a_turn_by_hand(tmp_path: Path, crit: Crit) -> None:
    """Typed answers a cost model; the flat row has what was asked for, and no column that was not."""
    question = CritQuestion(**H100, **TURN, pool_tokens=479_150)
    answers = ask(question, SOURCES, Home(tmp_path).database)
    (turn, *_) = (answer for answer in answers if isinstance(answer, TurnAnswer))
    # 65,536 x 327,680 / 4 / 54.4e9 = 0.0986895 s; 479,150 / 1025
    assert (turn.cost_model, turn.transfer_s) == ("2n", pytest.approx(0.0986895, abs=1e-6))
    assert turn.scheduled_tokens == pytest.approx(467.463, abs=1e-3)
    rows = [flat_row(question, answer) for answer in answers]
    assert "write_back_s" not in rows[0]
    assert rows == crit(*OPTIONS, "--cached-tokens", "65536", "--new-tokens", "64", "--pool-tokens", "479150")


def test_a_question_is_checked(tmp_path: Path) -> None:
    """The question itself is refused, whoever asks it."""
    with refused(ErrorCode.USAGE, "--cached-tokens", kind=UsageError):
        ask(CritQuestion(cached_tokens=5), SOURCES, Home(tmp_path).database)


def test_a_sustained_fraction_is_of_this_question_alone(tmp_path: Path) -> None:
    """Half of 0.55 doubles kappa_crit, and the sources stay as they were."""
    found = [ask(CritQuestion(**H100, sustained_fraction=f), SOURCES, Home(tmp_path).database) for f in (0.275, None)]
    half, usual = (row for rows in found for row in rows if isinstance(row, CritRow))
    assert half.kappa_crit == pytest.approx(2 * 43.0448, abs=1e-3)
    assert usual.kappa_crit == pytest.approx(43.0448, abs=1e-4)


class TestSeveral:
    """Fields that take several values: each combination is answered, none is lost."""

    CHOICES: ClassVar[dict[str, Any]] = {
        "model": ["llama-3.1-70b", "llama-3.1-8b"], "accelerator": ["h100-sxm", "h200-sxm"], "link": "pcie5-x16",
        "kv_dtype": ("bf16", "fp8"), "tensor_parallel": [1, 4], "basis": "physical",
    }  # fmt: skip

    def test_every_combination_as_if_asked_by_itself(self, tmp_path: Path) -> None:
        """2 models x 2 GPUs x 1 link x 2 formats x 2 counts = 16 answers, in that order."""
        database = Home(tmp_path).database
        found = ask(CritQuestion(**self.CHOICES), SOURCES, database)
        choices = itertools.product(*(self.CHOICES[name] for name in ("model", "accelerator", "kv_dtype")), [1, 4])
        alone = [
            answer
            for model, accelerator, kv_dtype, gpus in choices
            for answer in ask(
                CritQuestion(
                    model=model, accelerator=accelerator, link="pcie5-x16", kv_dtype=kv_dtype, tensor_parallel=gpus,
                    basis="physical",
                ),
                SOURCES,
                database,
            )
        ]  # fmt: skip
        assert len(found) == 16
        assert found == alone

    def test_the_same_again_is_answered_once(self, tmp_path: Path) -> None:
        """Two spellings of a name are one model."""
        (answer,) = ask(
            CritQuestion(**H100 | {"model": ["llama-3.1-70b", "Llama 3.1_70B"]}), SOURCES, Home(tmp_path).database
        )
        assert isinstance(answer, CritRow)
        assert answer.model == "llama-3.1-70b"

    @pytest.mark.parametrize(
        ("several", "words"),
        [
            ({"model": []}, "--model is empty"),
            ({"tensor_parallel": [1, 0]}, "--tensor-parallel 0"),
            # 11 x 11 x 11 = 1,331
            ({"model": ["a"] * 11, "accelerator": ["b"] * 11, "link": ["c"] * 11}, "too much"),
        ],
    )
    def test_what_cannot_be(self, tmp_path: Path, several: dict[str, Any], words: str) -> None:
        """No value, an impossible one among possible ones, more than anyone reads."""
        with refused(ErrorCode.USAGE, words, kind=UsageError):
            ask(CritQuestion(**several), SOURCES, Home(tmp_path).database)

    def test_one_unknown_name_refuses_all(self, tmp_path: Path) -> None:
        """No value is passed over."""
        with refused(ErrorCode.UNKNOWN_NAME, "llama-3.1-7b"):
            ask(CritQuestion(model=["llama-3.1-8b", "llama-3.1-7b"]), SOURCES, Home(tmp_path).database)

    def test_on_the_command_line(self, crit: Crit) -> None:
        """An option again adds a value."""
        rows = crit(*OPTIONS, "--model", "llama-3.1-8b", "--tensor-parallel", "2", "--tensor-parallel", "16")
        assert [(row["model"], row["tensor_parallel"]) for row in rows] == [
            ("llama-3.1-70b", 2), ("llama-3.1-70b", 16), ("llama-3.1-8b", 2), ("llama-3.1-8b", 16),
        ]  # fmt: skip


def test_a_workload_is_asked_on_the_headline_platforms() -> None:
    """Nothing else named, a verdict has the rows of headlines.csv: 8 models on 6 physical platforms, not on all."""
    rows = chosen_rows(OneQuestion(workload="mine", basis="physical"), SOURCES)
    shown = {(row.accelerator, row.link) for row in SOURCES.headlines if row.basis == "physical"}
    assert {(row.accelerator, row.link) for row in rows} == shown
    assert len(rows) == 8 * len(shown) == 48
    # a link that is named opens all that have it
    named = chosen_rows(OneQuestion(workload="mine", basis="physical", link="pcie5-x16"), SOURCES)
    assert len({row.accelerator for row in named}) > len(shown)

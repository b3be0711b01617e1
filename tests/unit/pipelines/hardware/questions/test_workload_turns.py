"""Whose counts answer about a workload: those that are asked for, the model's, or a proxy that is named."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from refusals import refused

from kappa.asking import answers_of
from pipelines.hardware.questions.answer import WorkloadAnswer
from pipelines.hardware.questions.question import CritQuestion
from warehouse.errors import ErrorCode, KappaError, UsageError

# K and T of the one turn of each series
SERIES = {("chats", "qwen3", "text"): (100, 10), ("chats", "llama-3.1", "chat"): (200, 20),
          ("chats", "mine", "text"): (300, 30), ("alone", "mine", "text"): (400, 40),
          ("log", "logged", "logged"): (500, 50)}  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a folder with a database of series of one turn each, and the name of a tokenizer of one's own."""
    with duckdb.connect(str(tmp_path / "warehouse.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE turns (workload TEXT, tokenizer TEXT, counting TEXT, reuse TEXT,"
            " cached_tokens BIGINT, prefill_tokens BIGINT)"
        )
        for series, tokens in SERIES.items():
            connection.execute("INSERT INTO turns VALUES (?, ?, ?, 'history', ?, ?)", [*series, *tokens])
        connection.execute(
            "CREATE TABLE summary AS SELECT workload, tokenizer, counting, reuse, FALSE AS is_sample FROM turns"
        )
    (tmp_path / "tokenizers").mkdir()
    (tmp_path / "tokenizers" / "mine.toml").write_text("", "utf8")
    return tmp_path


def asked(home: Path, workload: str, model: str = "qwen3-32b", **given: str) -> WorkloadAnswer:
    """Return the answer by one cost model about a model and a workload."""
    question = CritQuestion(
        model=model, accelerator="h100-sxm", link="pcie5-x16", basis="physical", cost_model="2n", workload=workload,
        **given,
    )  # fmt: skip
    (answer,) = answers_of(question, home, lambda: home / "warehouse.duckdb")
    assert isinstance(answer, WorkloadAnswer)
    return answer


def test_the_counts_of_the_model(home: Path) -> None:
    """Without a tokenizer the model's own counts, which are no proxy."""
    answer = asked(home, "chats")
    assert (answer.tokenizer, answer.p50.ttft_cached_tokens, answer.is_tokenizer_proxy) == ("qwen3", 100, False)


@pytest.mark.parametrize(("name", "cached"), [("llama-3.1", 200), ("mine", 300), ("MINE", 300)])
def test_the_counts_that_are_asked_for(home: Path, name: str, cached: int) -> None:
    """Those of another tokenizer, the user's own too: a proxy, and the answer names it and the model's own."""
    answer = asked(home, "chats", tokenizer=name)
    assert (answer.p50.ttft_cached_tokens, answer.is_tokenizer_proxy) == (cached, True)
    assert all(word in str(answer.warnings) for word in (answer.tokenizer, "qwen3", "qwen3-32b"))


def test_a_proxy_where_there_are_no_counts(home: Path) -> None:
    """A workload that only another tokenizer counted is answered by that one, and it is named."""
    answer = asked(home, "alone")
    assert (answer.tokenizer, answer.p50.ttft_cached_tokens, answer.is_tokenizer_proxy) == ("mine", 400, True)
    assert "mine" in str(answer.warnings)


def test_the_counts_of_a_log(home: Path) -> None:
    """They answer whatever is asked for, and no tokenizer of ours is named as a proxy."""
    answer = asked(home, "log", tokenizer="qwen3")
    assert (answer.tokenizer, answer.is_tokenizer_proxy) == ("logged", True)
    assert "proxy for" not in str(answer.warnings)


def test_names_that_are_refused(home: Path) -> None:
    """An unknown name is answered by the nearest; counts that are not here by the run that makes them."""
    with pytest.raises(KappaError) as error:
        asked(home, "chats", tokenizer="minne")
    assert error.value.code is ErrorCode.UNKNOWN_NAME
    assert "mine" in str(error.value)
    with refused(ErrorCode.NOT_BUILT, "alone", "qwen3"):
        asked(home, "alone", tokenizer="qwen3")
    with refused(ErrorCode.USAGE, "--tokenizer", kind=UsageError):
        answers_of(CritQuestion(model="qwen3-32b", tokenizer="qwen3"), home, lambda: home / "none")

"""Arguments of the public functions: another type is one line of usage that says what is wanted, never a bare error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

import kappa
from kappa.arguments import opened, require_question
from warehouse.errors import ErrorCode, UsageError

ODD: list[Any] = [5, 5.5, b"x", [], {}, type, True]


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAPPA_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("odd", [*ODD, None, ""], ids=repr)
def test_a_source_is_a_path(odd: object) -> None:
    """Text that is not empty, or a path: no process is started for anything else."""
    source: Any = odd
    with refused(ErrorCode.USAGE, "source", kind=UsageError):
        kappa.profile(source)


@pytest.mark.parametrize("name", ["home", "name", "format", "fields"])
@pytest.mark.parametrize("odd", [5, 5.5, b"x", [1], type, True], ids=repr)
def test_what_is_said_of_a_source(name: str, odd: object) -> None:
    """Its name and format are text, its fields a mapping, its home a path."""
    given: Any = {name: odd}
    with refused(ErrorCode.USAGE, name, kind=UsageError):
        kappa.profile("log.jsonl", **given)


@pytest.mark.parametrize("fields", ["x", {"session": 5}, {5: "x"}, [("session", "x")]], ids=repr)
def test_fields_are_a_mapping_of_text(fields: object) -> None:
    """Text is no mapping, and a path is text."""
    given: Any = fields
    with refused(ErrorCode.USAGE, "fields", kind=UsageError):
        kappa.profile("log.jsonl", fields=given)


@pytest.mark.parametrize("odd", [*ODD, ""], ids=repr)
def test_a_home_is_a_path(odd: object) -> None:
    """Of what is opened too; None is KAPPA_HOME."""
    home: Any = odd
    with refused(ErrorCode.USAGE, "home", kind=UsageError):
        kappa.open(home)
    assert opened(None).path.name == "home"


QUESTIONS: list[tuple[Callable[..., object], str, list[Any]]] = [
    (kappa.crit, "model", [5, b"x", [5], {}]),
    (kappa.crit, "basis", [5, [], b"x"]),
    (kappa.crit, "cached_tokens", ["zz", [], 5.5, b"x", True]),
    (kappa.crit, "sustained_fraction", ["zz", [], b"x", True]),
    (kappa.crit, "tensor_parallel", ["zz", b"x", 5.5, [5.5]]),
    (kappa.crit, "pipeline", ["zz", 1, None]),
    (kappa.serve_sim, "workload", [5, b"x", []]),
    (kappa.serve_sim, "engine", ["engines", 5, ["engine"]]),
    (kappa.serve_sim, "tiers", ["dram=1GB", [5]]),
]


@pytest.mark.parametrize(("ask", "name", "odd"), QUESTIONS)
def test_fields_of_a_question(ask: Callable[..., object], name: str, odd: list[Any]) -> None:
    """Each field is of the type that its declaration names."""
    for value in odd:
        given = {"model": "llama-3.1-8b"} | {name: value}
        with refused(ErrorCode.USAGE, name, kind=UsageError):
            ask(**given)


def test_a_question_is_one() -> None:
    """Anything else is named by its type."""
    question: Any = 5
    with refused(ErrorCode.USAGE, "the question", "int", kind=UsageError):
        kappa.cache(question)


def test_numbers_of_numpy_are_numbers() -> None:
    """What comes out of a data frame goes into a question."""
    tokens: Any = np.int64(7)
    fraction: Any = np.float64(0.5)
    asked = kappa.CritQuestion(model=("a", "b"), cached_tokens=tokens, new_tokens=1, sustained_fraction=fraction)
    require_question(asked, kappa.CritQuestion)


@pytest.mark.parametrize(
    "name", ["weight_dtype", "compute_dtype", "mla_attention", "block_layout", "cost_model", "basis"]
)
def test_words_of_a_question(name: str) -> None:
    """A word that is none of the few is refused with those that there are."""
    with refused(ErrorCode.USAGE, f"--{name.replace('_', '-')} zz", kind=UsageError):
        kappa.crit(model="llama-3.1-8b", **{name: "zz"})  # type: ignore[arg-type]

"""`crit`: a question about models on hardware, and its typed answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, fields, replace
from functools import cache
from pathlib import Path

from pipelines.hardware import caveats
from pipelines.hardware.configs.naming import with_named
from pipelines.hardware.entities import KappaCrit
from pipelines.hardware.machines import Sources
from pipelines.hardware.questions.answer import CritAnswer, CritRow
from pipelines.hardware.questions.answering import answers
from pipelines.hardware.questions.checks import check_question
from pipelines.hardware.questions.choosing import chosen_rows
from pipelines.hardware.questions.names import settled
from pipelines.hardware.questions.origins import origins, pair_notes
from pipelines.hardware.questions.question import CritQuestion, OneQuestion, one_by_one
from pipelines.hardware.questions.workload_turns import WorkloadTurns, read_turns


def crit(question: CritQuestion, sources: Sources, database: Callable[[], Path]) -> list[CritAnswer]:
    """Return the answers to a question: `CritRow`s, for a turn `TurnAnswer`s, for a workload `WorkloadAnswer`s.

    Fields with several values are answered one combination after the other, the same combination only once. Without
    any choice the answers are about the headline models and platforms; a second-hand row is chosen only if the
    question names it.

    Args:
        question: The question.
        sources: The sourced rows, see `machines.read_sources`.
        database: Returns the database that holds the workload; called only for a workload.

    Raises:
        UsageError: the question contradicts itself, or has an impossible number.
        KappaError: a name is unknown (the nearest are named), or nothing fits the choice.
    """
    asked = one_by_one(question)
    for one in asked:
        check_question(one)
    sources = with_named(sources, (one.model for one in asked))
    sources = replace(sources, sustained_fraction=question.sustained_fraction)
    settled_ones = list(dict.fromkeys(settled(one, sources) for one in asked))

    @cache
    def turns_of(tokenizer: str) -> WorkloadTurns:
        return read_turns(database(), settled_ones[0], tokenizer)

    return [answer for one in settled_ones for answer in _answers(one, sources, turns_of)]


def _answers(question: OneQuestion, sources: Sources, turns_of: Callable[[str], WorkloadTurns]) -> Iterable[CritAnswer]:
    rows = chosen_rows(question, sources)
    if question.is_about_turns:
        return answers(question, sources, rows, turns_of)
    return [_crit_row(question, sources, row) for row in rows]


def _crit_row(question: OneQuestion, sources: Sources, row: KappaCrit) -> CritRow:
    model, found = sources.models[row.model], origins(sources, question, row.model, row)
    warnings = pair_notes(sources, row, found) + caveats.tensor_parallel_caveats(model, row.tensor_parallel)
    names = {field.name for field in fields(CritRow)}
    return CritRow(
        **asdict(row),
        **{name: value for name, value in asdict(found).items() if name in names},
        is_tokenizer_proxy=model.is_tokenizer_proxy,
        why_no_kappa_crit=caveats.why_no_kappa_crit(model, row.kv_dtype),
        warnings=caveats.together(warnings),
    )

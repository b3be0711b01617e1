"""The run of one own workload and what follows from it: shared by `kappa profile` and `kappa.profile`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from assets.commands.crit.text import View, answer_text
from assets.commands.running import build
from kappa.asking import answers_of
from pipelines.hardware.questions.question import CritQuestion
from pipelines.vocab.specs import tokenizer_spec, tokenizer_specs
from pipelines.workloads.own import adding
from pipelines.workloads.own.sources import name_of_source
from warehouse.home.home import Home

if TYPE_CHECKING:
    from pipelines.hardware.questions.answer import CritAnswer


def profiled(home: Home, added: adding.Added, tokenizers: list[str]) -> None:
    """Declare a workload, count it and publish it beside what the home folder holds.

    Raises:
        KappaError: a step failed; the last good generation is as it was.
    """
    chosen = [tokenizer_spec(name).name for name in dict.fromkeys(tokenizers)] or list(tokenizer_specs())
    adding.write(home, added)
    build(home, [added.name], chosen, is_sample=False)


def verdict(home: Home, name: str) -> str:
    """Return in words what a workload asks of the headline models and machines."""
    return answer_text(answers(home, name), View())


def answers(home: Home, name: str) -> list[CritAnswer]:
    """Return what a workload asks of the headline models and machines."""
    return answers_of(CritQuestion(workload=name), home.path, home.database)


def profile_source(home: Home, source: str, name: str | None, form: str | None, fields: dict[str, str]) -> str:
    """Declare and count a source without a word on standard output; return the name of its workload."""
    wish = adding.Wish(name or name_of_source(source), source, form, tuple(fields.items()))
    with Path(os.devnull).open("rb") as nothing:
        profiled(home, adding.understood(home, wish, nothing), [])
    return wish.name

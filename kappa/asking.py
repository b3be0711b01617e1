"""`kappa.crit`: the answers of `kappa crit` as typed objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

from kappa.arguments import require_question
from pipelines.capacity.machines.question import CacheQuestion
from pipelines.hardware.questions.question import CritQuestion
from warehouse.hardware_rows.tokenizer_names import own_tokenizer_folder, tokenizer_names
from warehouse.home.home import Home, home_path

if TYPE_CHECKING:
    from pipelines.capacity.machines.answer import CacheAnswer
    from pipelines.hardware.questions.answer import CritAnswer

P = ParamSpec("P")


def answers_of(question: CritQuestion, home: Path, database: Callable[[], Path]) -> list[CritAnswer]:
    """Return the answers from the sourced rows, the user's own rows in `home`, and the turns in a database.

    Raises:
        UsageError: the question contradicts itself, or has an impossible number.
        KappaError: a name is unknown (the nearest are named), or nothing fits the choice.
    """
    require_question(question, CritQuestion)
    from pipelines.hardware.machines import read_sources  # noqa: PLC0415 - pyarrow and NumPy are slow to import
    from pipelines.hardware.questions.crit import crit as answers  # noqa: PLC0415
    from pipelines.hardware.questions.names import known_name  # noqa: PLC0415
    from warehouse.hardware_rows.rows import FOLDER, user_folder  # noqa: PLC0415

    if question.tokenizer is not None:
        known = tokenizer_names(own=own_tokenizer_folder(home))
        question = replace(question, tokenizer=known_name("tokenizer", question.tokenizer, known))
    return answers(question, read_sources(FOLDER, user_folder(home)), database)


def cache_answer_of(question: CacheQuestion, home: Path, database: Callable[[], Path]) -> CacheAnswer:
    """Return the answer from the sourced rows, the user's own rows in `home`, and the turns in a database.

    Raises:
        UsageError: the question has an impossible number.
        KappaError: a name is unknown, the model does not fit, or the workload is not in the warehouse.
    """
    require_question(question, CacheQuestion)
    from pipelines.capacity.machines.answering import cache as answer  # noqa: PLC0415 - NumPy is slow to import
    from pipelines.hardware.machines import read_sources  # noqa: PLC0415
    from warehouse.hardware_rows.rows import FOLDER, user_folder  # noqa: PLC0415

    return answer(question, read_sources(FOLDER, user_folder(home)), database)


def _asking(question: Callable[P, CritQuestion]) -> Callable[P, list[CritAnswer]]:
    """Return `crit`, which takes the fields of the question: their names and types are declared once, there."""

    def crit(*arguments: P.args, **named: P.kwargs) -> list[CritAnswer]:
        """Return kappa_crit of models on hardware, or its effect on a turn or a workload.

        The arguments are those of `CritQuestion`. With `cached_tokens` and `new_tokens` the answers are `TurnAnswer`s,
        with `workload` `WorkloadAnswer`s, else `CritRow`s. A workload and a user's own rows come from the home folder
        in KAPPA_HOME, else `./data`; `Warehouse.crit` uses its own.

        Raises:
            UsageError: the question contradicts itself, or has an impossible number.
            KappaError: a name is unknown (the nearest are named), or nothing fits the choice.

        >>> (row,) = crit(model="llama-3.1-70b", accelerator="h100-sxm", link="pcie5-x16", basis="physical")
        >>> round(row.kappa_crit, 1), row.link_confidence
        (43.0, 'high')
        """
        home = home_path(None)
        return answers_of(question(*arguments, **named), home, Home(home).database)

    return crit


crit = _asking(CritQuestion)


def cache(question: CacheQuestion) -> CacheAnswer:
    """Return how much of a workload caches of several sizes keep, for a model on a machine.

    The workload and a user's own rows come from the home folder in KAPPA_HOME, else `./data`; `Warehouse.cache` uses
    its own.

    Raises:
        UsageError: the question has an impossible number.
        KappaError: a name is unknown, the model does not fit, or the workload is not in the warehouse.
    """
    home = home_path(None)
    return cache_answer_of(question, home, Home(home).database)

"""`kappa.serve_sim`: the answers of `kappa serve-sim` as typed objects."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

from kappa.arguments import require_question
from pipelines.serving.answers.question import ServeQuestion
from warehouse.home.home import Home, home_path

if TYPE_CHECKING:
    from pipelines.serving.answers.answer import FleetAnswer, ServeAnswer

P = ParamSpec("P")


def answers_of(
    question: ServeQuestion, home: Path, database: Callable[[], Path]
) -> list[ServeAnswer] | list[FleetAnswer]:
    """Return the answers from the sourced rows, the user's own rows in `home`, and the turns in a database.

    Raises:
        UsageError: the question contradicts itself, or has an impossible number.
        KappaError: a name is unknown (the nearest are named), nothing fits the choice, or a price lacks.
    """
    require_question(question, ServeQuestion)
    from pipelines.hardware.machines import read_sources  # noqa: PLC0415 - pyarrow and NumPy are slow to import
    from pipelines.serving.answers.answering import serve  # noqa: PLC0415
    from pipelines.serving.answers.fleet import fleets  # noqa: PLC0415
    from warehouse.hardware_rows.rows import FOLDER, user_folder  # noqa: PLC0415

    user = user_folder(home)
    sources = read_sources(FOLDER, user)
    return fleets(question, sources, database, user) if question.is_fleet else serve(question, sources, database)


def _asking(question: Callable[P, ServeQuestion]) -> Callable[P, list[ServeAnswer] | list[FleetAnswer]]:
    """Return `serve_sim`, which takes the fields of the question: their names and types are declared once, there."""

    def serve_sim(*arguments: P.args, **named: P.kwargs) -> list[ServeAnswer] | list[FleetAnswer]:
        """Return what happens when the turns of a workload meet on a machine, or the cheapest fleet for them.

        The arguments are those of `ServeQuestion`. With `is_fleet` the answers are `FleetAnswer`s, else `ServeAnswer`s.
        The workload and a user's own rows come from the home folder in KAPPA_HOME, else `./data`; `Warehouse.serve_sim`
        uses its own.

        Raises:
            UsageError: the question contradicts itself, or has an impossible number.
            KappaError: a name is unknown (the nearest are named), nothing fits the choice, or a price lacks.
        """
        home = home_path(None)
        return answers_of(question(*arguments, **named), home, Home(home).database)

    return serve_sim


serve_sim = _asking(ServeQuestion)

"""`kappa.profile`: a log of one's own from its files to what it asks of models and machines."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from warehouse.home.home import Home, home_path

if TYPE_CHECKING:
    from pipelines.hardware.questions.answer import CritAnswer


def profile(
    source: str | os.PathLike[str],
    *,
    home: str | os.PathLike[str] | None = None,
    name: str | None = None,
    format: str | None = None,  # noqa: A002 - the option of the command line
    fields: Mapping[str, str] | None = None,
) -> list[CritAnswer]:
    """Declare a source as a workload, count it, publish it in the home folder, and return its `WorkloadAnswer`s.

    Args:
        source: a file, a folder, a glob, or `hf://datasets/org/name[@revision][/path]`.
        home: the home folder; None for KAPPA_HOME, else `./data`.
        name: the workload's name; None for that of the file.
        format: one of docs/workloads.md; None to find it out.
        fields: dotted paths by role, where names differ.

    Raises:
        KappaError: the source is not understood, or a step failed; what was published before is as it was.
    """
    # The graph is above this package; only this function reaches up to it.
    from assets.commands.profiling import answers, profile_source  # noqa: PLC0415

    place = Home(home_path(None if home is None else os.fspath(home)))
    return answers(place, profile_source(place, os.fspath(source), name, format, dict(fields or {})))

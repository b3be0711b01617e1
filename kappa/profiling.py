"""`kappa.profile`: a log of one's own from its files to what it asks of models and machines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kappa.arguments import opened, optional_text, path_text, texts_by_name
from kappa.asking import answers_of
from pipelines.hardware.questions.question import CritQuestion
from warehouse.errors import ErrorCode, KappaError

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
        UsageError: an argument is of another type.
        KappaError: the source is not understood, or a step failed; what was published before is as it was.
    """
    place = opened(home)
    asked = {
        "home": str(place.path),
        "source": path_text("source", source),
        "name": optional_text("name", name),
        "format": optional_text("format", format),
        "fields": texts_by_name("fields", fields),
    }
    request = json.dumps(asked)
    # The graph runs in a process of its own: Dagster sets up logging and signals for all of one.
    command = [sys.executable, "-m", "assets.commands.own.profiling", request]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603 - ours
    answer = json.loads(done.stdout.splitlines()[-1]) if done.stdout else {}
    if "name" not in answer:
        what, why, remedy, code = answer.get("error") or _ended(done.returncode)
        raise KappaError(what, why, remedy, code=ErrorCode(code))
    return answers_of(CritQuestion(workload=answer["name"]), place.path, place.database)


def _ended(code: int) -> tuple[str, str, str, str]:
    why = f"its process ended with code {code}; the last good state is as it was"
    return "the source was not counted", why, "run it again, or try `kappa profile`", ErrorCode.UNEXPECTED.value

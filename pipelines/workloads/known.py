"""All workloads of a home folder: the built-in ones, then those that its user declared."""

from __future__ import annotations

import difflib
from pathlib import Path

from pipelines.workloads.declaration import Workload
from pipelines.workloads.own.declared import declared_in
from pipelines.workloads.own.workload import own_workload
from pipelines.workloads.sets import workloads
from warehouse.errors import ErrorCode, KappaError
from warehouse.hardware_rows.names import listed_names


def own_workloads(home: Path) -> dict[str, Workload]:
    """Return the workloads that are declared in a home folder, by name.

    Raises:
        KappaError: a declaration is not usable.
    """
    return {name: own_workload(home, name, declaration) for name, declaration in declared_in(home).items()}


def known_workloads(home: Path) -> dict[str, Workload]:
    """Return every workload of a home folder by name, the built-in ones first.

    Raises:
        KappaError: a declaration is not usable.
    """
    return {**workloads(), **own_workloads(home)}


def known_workload(home: Path, name: str) -> Workload:
    """Return one workload.

    Raises:
        KappaError: the name is unknown; the known ones are named.
    """
    known = known_workloads(home)
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        remedy = f"did you mean {near[0]}" if near else "choose one of them, or declare it with `kappa add`"
        what, why = f"unknown workload {name!r}", listed_names(name, known)
        raise KappaError(what, why, remedy, code=ErrorCode.UNKNOWN_NAME)
    return known[name]

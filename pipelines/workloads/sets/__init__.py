"""One module a workload: its files, its record format, its sample. A new module adds a workload."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from pipelines.generated.writing import Samples
from pipelines.workloads.declaration import Workload
from warehouse.errors import ErrorCode, KappaError
from warehouse.hardware_rows.names import listed_names


@cache
def workloads() -> dict[str, Workload]:
    """Return every workload by name, in declared order.

    Raises:
        KappaError: two modules declare the same name.
    """
    modules = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    declared: list[Workload] = sorted((module.WORKLOAD for module in modules), key=lambda one: (one.order, one.name))
    found = {one.name: one for one in declared}
    if len(found) < len(declared):
        twice = next(name for name in found if [one.name for one in declared].count(name) > 1)
        raise KappaError(
            f"two workloads are named {twice!r}",
            f"both are in {__path__[0]}",
            "rename one of them",
            code=ErrorCode.NAME_CLASH,
        )
    return found


def module_of(name: str) -> str:
    """Return the name of the module that declares a workload."""
    modules = (f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__))
    return next(module for module in modules if importlib.import_module(module).WORKLOAD.name == name)


def samples() -> Samples:
    """Return each workload's repository with its sample generator."""
    return [(one.repo_id, one.sample) for one in workloads().values()]


def workload(name: str) -> Workload:
    """Return one workload.

    Raises:
        KappaError: the name is unknown; the known ones are named.
    """
    known = workloads()
    if name not in known:
        raise KappaError(
            f"unknown workload {name!r}",
            listed_names(name, known),
            "choose one of them",
            code=ErrorCode.UNKNOWN_NAME,
        )
    return known[name]

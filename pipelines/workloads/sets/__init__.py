"""One module a workload: where its files are, how a record becomes a session. A new module is a new workload."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from pipelines.workloads.declaration import Workload
from warehouse.errors import KappaError

_ORDER = ("sharegpt", "sharegpt-v3", "narrativeqa", "finqa")


@cache
def workloads() -> dict[str, Workload]:
    """Return every workload by name, the paper's first."""
    modules = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    found: dict[str, Workload] = {module.WORKLOAD.name: module.WORKLOAD for module in modules}
    rank = {name: n for n, name in enumerate(_ORDER)}
    return dict(sorted(found.items(), key=lambda item: (rank.get(item[0], len(rank)), item[0])))


def workload(name: str) -> Workload:
    """Return one workload.

    Raises:
        KappaError: there is none of that name; the known ones are named.
    """
    known = workloads()
    if name not in known:
        raise KappaError(f"unknown workload {name!r}", f"known are {', '.join(known)}", "choose one of them")
    return known[name]

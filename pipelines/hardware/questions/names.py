"""The names that `kappa crit` is given: in any case of letters, and with the nearest ones where there is none."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from pipelines.hardware.machines import Sources
from warehouse.errors import KappaError
from warehouse.formulas.kv_bytes import KV_ELEMENT_BYTES
from warehouse.hardware_rows.names import find_name, nearest_names


def settle_names(options: argparse.Namespace, sources: Sources) -> None:
    """Put the names as the tables write them in the place of those that were given.

    Raises:
        KappaError: a name is in no table; the nearest are named.
    """
    platforms = sources.rows["platforms"]
    links = [row["link"] for row in (*sources.rows["links"], *platforms)]
    known = {
        "model": [row["model"] for row in sources.rows["models"]],
        "accelerator": [row["accelerator"] for row in (*sources.rows["accelerators"], *platforms)],
        "link": links,
        "tier": links,
        "kv_dtype": list(KV_ELEMENT_BYTES),
    }
    for kind, names in known.items():
        given = getattr(options, kind)
        if given is not None:
            setattr(options, kind, known_name(kind.replace("_", " "), given, names))


def known_name(kind: str, given: str, names: Iterable[str]) -> str:
    """Return the name that is meant, as `warehouse.hardware_rows.names.find_name` finds it.

    Raises:
        KappaError: there is none; the nearest are named.
    """
    there = sorted(set(names))
    found = find_name(given, there)
    if found is None:
        raise _unknown_name(kind, given, there)
    return found


def _unknown_name(kind: str, given: str, names: list[str]) -> KappaError:
    near = nearest_names(given, names)
    table = {"model": "models", "accelerator": "accelerators", "link": "links", "tier": "links"}.get(kind)
    return KappaError(
        f"unknown {kind} {given!r}",
        f"nearest are {', '.join(near)}" if near else "there is none yet",
        f"`kappa sql 'FROM {table}'` lists those of the tables" if table else f"choose one of {', '.join(names)}",
    )

"""The names in a question: found in any case, and with the nearest names where there is no match."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pipelines.hardware.configs.naming import row_name
from pipelines.hardware.machines import Sources
from pipelines.hardware.questions.question import OneQuestion
from warehouse.errors import ErrorCode, KappaError
from warehouse.formulas.kv_bytes import KV_ELEMENT_BYTES
from warehouse.hardware_rows.names import find_name, nearest_names


def settled(question: OneQuestion, sources: Sources) -> OneQuestion:
    """Return the question with names in the tables' spelling; a sustained fraction makes the basis physical.

    Raises:
        KappaError: a name is in no table; the nearest are named.
    """
    platforms = sources.platforms
    links = [*sources.links, *(row.link for row in platforms)]
    accelerators = [*sources.accelerators, *(row.accelerator for row in platforms)]
    return replace(
        question,
        model=_model(question.model, sources),
        accelerator=_known("accelerator", question.accelerator, accelerators),
        link=_known("link", question.link, links),
        tier=_known("tier", question.tier, links),
        kv_dtype=_known("kv dtype", question.kv_dtype, KV_ELEMENT_BYTES),
        basis=question.basis if question.sustained_fraction is None else "physical",
    )


def _model(given: str | None, sources: Sources) -> str | None:
    found = None if given is None else row_name(given, sources.models)
    return found or _known("model", given, sources.models)


def _known(kind: str, given: str | None, names: Iterable[str]) -> str | None:
    return None if given is None else known_name(kind, given, names)


def known_name(kind: str, given: str, names: Iterable[str]) -> str:
    """Return the name that matches, as `warehouse.hardware_rows.names.find_name` finds it.

    Raises:
        KappaError: no name matches; the nearest are named.
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
        code=ErrorCode.UNKNOWN_NAME,
    )

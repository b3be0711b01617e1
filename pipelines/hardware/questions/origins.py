"""The sourced rows that an answer uses: the confidence of each, and the source of each figure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from pipelines.hardware.entities import Accelerator, Link, OnPlatform, known
from pipelines.hardware.machines import GIVEN_LINK, Sources, measured_of, named
from pipelines.hardware.questions.answer import Origins
from pipelines.hardware.questions.question import OneQuestion

# The parts of one chip are at most 1.31 apart (H100 SXM and PCIe).
_MOST_OF_A_CHIP = 1.5
# Confidence of figures without a sourced row: printed in the paper, given by the user, or measured on this machine.
PRINTED, GIVEN, MEASURED, NO_ROW = "printed", "given", "measured", "none"


@dataclass(frozen=True, slots=True)
class _Row:
    """The confidence and source of a sourced row."""

    confidence: str | None
    source: str | None


def origins(sources: Sources, question: OneQuestion, model: str, platform: OnPlatform) -> Origins:
    """Return the confidence of each row in use and the source of each figure."""
    of_model, of_accelerator, of_link = _of_basis(sources, model, platform)
    if question.bandwidth_bytes_per_s is not None:
        of_link = _Row(GIVEN, "--bandwidth")
    pair = next((p for p in sources.platforms if _place(p) == _place(platform)), None)
    tier = _sourced(named(sources.links, question.tier) if question.tier else None)
    return Origins(
        model_confidence=of_model.confidence,
        accelerator_confidence=of_accelerator.confidence,
        link_confidence=of_link.confidence,
        platform_confidence=pair.confidence if pair else None if platform.link == GIVEN_LINK else NO_ROW,
        tier_confidence=tier.confidence,
        flops_per_token_source=of_model.source,
        kv_bytes_per_token_source=of_model.source,
        flop_per_s_source=of_accelerator.source,
        bytes_per_s_source=of_link.source,
        tier_bytes_per_s_source=tier.source,
    )


def _sourced(row: Link | None) -> _Row:
    return _Row(row.confidence, row.source) if row else _Row(None, None)


def _place(row: OnPlatform) -> tuple[str, str, str]:
    return row.accelerator, row.link, row.basis


def _of_basis(sources: Sources, model: str, platform: OnPlatform) -> tuple[_Row, _Row, _Row]:
    """Return the confidence of model, accelerator and link; a bandwidth that the user gave is in no table."""
    shape = sources.models[model]
    if platform.basis == "paper":
        printed = named(sources.paper_accelerators, platform.accelerator), named(sources.paper_links, platform.link)
        compute, rate = (_Row(PRINTED, row.source if row else None) for row in printed)
        return _Row(PRINTED, sources.paper_models[model].source), compute, rate
    of_model = _Row(shape.confidence, shape.source)
    if platform.basis == "measured" and any(row.accelerator == platform.accelerator for row in sources.measured):
        measured = _Row(MEASURED, measured_of(sources, platform).source)
        return of_model, measured, measured
    accelerator, link = named(sources.accelerators, platform.accelerator), named(sources.links, platform.link)
    whose = "an assumption" if sources.sustained_fraction is None else "--sustained-fraction"
    assumed = f"; dense bf16 peak x {sources.fraction(shape)}, {whose}"
    compute = _Row(known(accelerator).confidence, known(accelerator).source + assumed)
    return of_model, compute, _sourced(link)


def pair_notes(sources: Sources, platform: OnPlatform, found: Origins) -> list[str]:
    """Return a sentence where accelerator and link are sourced but their pair is not, and one on an unlikely peak."""
    notes = _peak_notes(sources.accelerators, platform.accelerator) if platform.basis == "physical" else []
    if found.platform_confidence == NO_ROW:
        pair = f"{platform.accelerator} with {platform.link}"
        notes.append(f"no physical row of platforms says that {pair} is built: the rows of both are taken as they are")
    return notes


def _peak_notes(accelerators: Mapping[str, Accelerator], name: str) -> list[str]:
    """Return a sentence where a dense peak is far above those of the same chip: with sparsity it would be twice."""
    alike = {row for row in accelerators if row != name and _chips(row) & _chips(name)}
    most = max((accelerators[row].dense_bf16_flop_per_s for row in alike), default=math.inf)
    given = accelerators[name].dense_bf16_flop_per_s
    if given <= _MOST_OF_A_CHIP * most:
        return []
    times, others = given / most, ", ".join(sorted(alike))
    why = f"is {times:.3g} times that of {others}: is it the figure with sparsity?"
    return [f"the dense peak of {name}, {given:g} FLOP/s, {why}"]


def _chips(name: str) -> set[str]:
    """Return the parts of a name that name a chip: letters and digits, and no size of a memory.

    >>> sorted(_chips("gh200-96gb")), sorted(_chips("rtx-pro-6000"))
    (['gh200'], [])
    """
    parts = name.casefold().split("-")
    return {part for part in parts if re.fullmatch(r"[a-z]+\d+[a-z]*", part)}

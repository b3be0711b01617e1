"""The sourced rows that an answer uses: the confidence of each, and the source of each figure."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.hardware.entities import Link, OnPlatform, known
from pipelines.hardware.machines import GIVEN_LINK, Sources, measured_of, named
from pipelines.hardware.questions.answer import Origins
from pipelines.hardware.questions.question import CritQuestion

# Confidence of figures without a sourced row: printed in the paper, given by the user, or measured on this machine.
PRINTED, GIVEN, MEASURED, NO_ROW = "printed", "given", "measured", "none"


@dataclass(frozen=True, slots=True)
class _Row:
    """The confidence and source of a sourced row."""

    confidence: str | None
    source: str | None


def origins(sources: Sources, question: CritQuestion, model: str, platform: OnPlatform) -> Origins:
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
    if platform.basis == "measured":
        measured = _Row(MEASURED, measured_of(sources, platform).source)
        return of_model, measured, measured
    accelerator, link = named(sources.accelerators, platform.accelerator), named(sources.links, platform.link)
    whose = "an assumption" if sources.sustained_fraction is None else "--sustained-fraction"
    assumed = f"; dense bf16 peak x {sources.fraction(shape)}, {whose}"
    compute = _Row(known(accelerator).confidence, known(accelerator).source + assumed)
    return of_model, compute, _sourced(link)


def pair_notes(platform: OnPlatform, found: Origins) -> list[str]:
    """Return a sentence where accelerator and link are sourced but their pair is not."""
    if found.platform_confidence != NO_ROW:
        return []
    pair = f"{platform.accelerator} with {platform.link}"
    return [f"no physical row of platforms says that {pair} is built: the rows of both are taken as they are"]

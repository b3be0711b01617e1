"""The answers about a turn or a workload: one for each chosen model and platform and each cost model known for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from pipelines.hardware import caveats, costs
from pipelines.hardware.costs import Machine
from pipelines.hardware.entities import KappaCrit, Model, OnPlatform, known
from pipelines.hardware.machines import Sources, measured_of, named
from pipelines.hardware.questions.answer import (
    About,
    Asked,
    Extras,
    Origins,
    Tier,
    TurnAnswer,
    WorkloadAnswer,
)
from pipelines.hardware.questions.assumptions import of_turn, of_workload
from pipelines.hardware.questions.choosing import serving_of
from pipelines.hardware.questions.deployed import WHOLE_LAYERS, bands, deployment_caveats, stored_whole
from pipelines.hardware.questions.origins import origins, pair_notes
from pipelines.hardware.questions.question import OneQuestion
from pipelines.hardware.questions.workload_turns import WorkloadTurns
from pipelines.hardware.ratios import paper_ratios, printed_kappa_hw
from pipelines.hardware.served import Served, fitted, serve
from pipelines.hardware.what_if import Setting, TurnCosts, known_cost_models, turn_answer
from pipelines.hardware.workload_answers import workload_answer
from warehouse.declared.fields import LOGGED
from warehouse.errors import ErrorCode, KappaError
from warehouse.formulas import kappa, kv_bytes, serving

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Case:
    """A chosen row of kappa_crit, adjusted to the question.

    Attributes:
        row: The row, with kappa_crit at the rate that includes the tier.
        model: On the paper's basis with the paper's figures.
        machine: Its rates, tier and tensor parallelism included.
        served: Its GPUs and formats.
        tier: The tier in the question.
        origins: The confidence and sources of the answer.
        as_printed: See `what_if.Setting`.
    """

    row: KappaCrit
    model: Model
    machine: Machine
    served: Served
    tier: Tier
    origins: Origins
    as_printed: float = 1.0
    stored: Model | None = None


def answers(
    question: OneQuestion, sources: Sources, rows: list[KappaCrit], turns_of: Callable[[str], WorkloadTurns]
) -> list[TurnAnswer] | list[WorkloadAnswer]:
    """Return one answer for each chosen row of kappa_crit and each cost model that is known for it.

    A model with unknown parameters has one answer, of its load only.

    Args:
        question: The question.
        sources: The sourced rows.
        rows: The chosen rows.
        turns_of: Returns the turns of the question's workload as a tokenizer counts them.

    Raises:
        KappaError: the workload is not in the home folder, or no chosen model has an answer.
    """
    settings = list(_settings(question, sources, rows))
    if not settings:
        raise KappaError(
            f"cost model {question.cost_model} cannot be told here",
            _why_not(sources, rows) or "the paper's basis is 2n",
            "leave out --cost-model, or choose --basis physical",
            code=ErrorCode.NOTHING_FITS,
        )
    if question.workload is None:
        return [_turn(question, sources, case, setting) for case, setting in settings]
    return [_workload(question, sources, case, setting, turns_of(case.model.tokenizer)) for case, setting in settings]


def _settings(question: OneQuestion, sources: Sources, rows: list[KappaCrit]) -> Iterator[tuple[Case, Setting]]:
    for row in rows:
        case = _case(question, sources, row)
        names: list[str | None] = [*known_cost_models(case.model, case.machine, row.basis)]
        if question.cost_model is not None:
            names = [name for name in names if name == question.cost_model]
        for name in names or ([None] if question.cost_model is None else []):
            yield case, Setting(case.model, case.machine, row.kv_dtype, name, case.as_printed, case.stored)


def _why_not(sources: Sources, rows: list[KappaCrit]) -> str | None:
    gaps = (caveats.missing(sources.models[row.model], row.basis) for row in rows)
    return next((gap for gap in gaps if gap), None)


def _case(question: OneQuestion, sources: Sources, row: KappaCrit) -> Case:
    """Return the model, with the paper's figures on the paper's basis, and its machine, adjusted to the question."""
    model, rate = sources.models[row.model], question.bandwidth_bytes_per_s
    served = serve(sources, row, model, serving_of(question), kv_dtype=row.kv_dtype, bytes_per_s=rate)
    machine, as_printed = served.machine, 1.0
    if row.basis == "paper":
        paper = sources.paper_models[row.model]
        printed = printed_kappa_hw(sources, row) if rate is None else None
        found = paper_ratios(paper, replace(machine, flop_per_s=machine.flop_per_s / served.gpus), "bf16", printed)
        as_printed = kappa.kappa_crit(known(found.kappa_m), found.kappa_hw) / known(found.kappa_crit)
        flops = kappa.flops_per_token(paper.active_params)
        model = replace(model, flops_per_token=flops, marginal_kv_bytes_per_token=paper.kv_bytes_per_token)
    tier = Tier()
    if question.tier:
        row, machine, tier = _behind_tier(question, sources, row, machine)
    stored = stored_whole(model) if question.whole_layers else None
    return Case(row, model, machine, served, tier, origins(sources, question, row.model, row), as_printed, stored)


def _behind_tier(
    question: OneQuestion, sources: Sources, row: KappaCrit, machine: Machine
) -> tuple[KappaCrit, Machine, Tier]:
    link, crit, name = machine.bytes_per_s, row.kappa_crit, known(question.tier)
    share = 1.0 if question.tier_share is None else question.tier_share
    there = min(tier_bytes_per_s(sources, row.basis, name), link)
    rate = serving.tiered_bytes_per_s(link, there, share)
    with_tier, all_there = (None if crit is None else crit * r / link for r in (rate, there))
    tier = Tier(tier=name, tier_share=share, tier_bytes_per_s=there, tier_kappa_crit=all_there, link_kappa_crit=crit)
    return replace(row, kappa_crit=with_tier), replace(machine, bytes_per_s=rate), tier


def tier_bytes_per_s(sources: Sources, basis: str, tier: str) -> float:
    """Return the rate of a tier in bytes/s: of the paper's own link on its basis where it has one, else of `links`.

    Raises:
        KappaError: no row has its bandwidth.
    """
    paper = named(sources.paper_links, tier) if basis == "paper" else None
    link = paper or named(sources.links, tier)
    if link is None:
        raise KappaError(
            f"--tier {tier} has no rate",
            "only `kappa measure` knows it",
            "name a link of `links`",
            code=ErrorCode.NOTHING_FITS,
        )
    return link.bytes_per_s


def _about(question: OneQuestion, sources: Sources, case: Case) -> About:
    row, model = case.row, case.model
    kv_share = _bytes_share(question, case)
    band = bands(sources, model, case.served, row)
    return About(
        model=row.model,
        accelerator=row.accelerator,
        link=row.link,
        basis=row.basis,
        kv_dtype=row.kv_dtype,
        kappa_crit=row.kappa_crit,
        is_tokenizer_proxy=model.is_tokenizer_proxy,
        tensor_parallel=case.served.gpus,
        block_tokens=question.chunk_tokens,
        flop_per_s=case.machine.flop_per_s,
        bytes_per_s=case.machine.bytes_per_s / kv_share,
        link_bytes_per_s=case.machine.bytes_per_s,
        sustained_fraction=sources.fraction(model) if row.basis == "physical" else None,
        is_as_printed=case.as_printed != 1.0,
        least_gpus=_least_gpus(question, sources, row, model),
        weight_dtype=case.served.weight_dtype,
        compute_dtype=case.served.compute_dtype,
        batch=case.machine.batch,
        mla_attention=question.mla_attention if model.attention.startswith("mla") else None,
        weight_bytes=case.served.fit.weight_bytes if case.served.fit else None,
        deployed_pool_tokens=_pool_tokens(case),
        copied_bytes=case.served.copied_bytes,
        load_band=band.load,
        compute_band=band.compute,
        ttft_band=band.ttft,
        bands=band.words,
        why_no_kappa_crit=caveats.why_no_kappa_crit(model, row.kv_dtype),
        missing=caveats.missing(model, row.basis),
    )


def _least_gpus(question: OneQuestion, sources: Sources, platform: OnPlatform, model: Model) -> int | None:
    """Return the least GPUs on which weights and pool fit; None where none does, or where a size is unknown."""
    row = named(sources.accelerators, platform.accelerator)
    found = fitted(row, model, replace(serving_of(question), gpus=None)) if row else None
    return found.gpus if found and found.fits else None


def _bytes_share(question: OneQuestion, case: Case) -> float:
    """Return the share of a token's bytes that each GPU loads."""
    if question.mla_attention == "data" and case.model.attention.startswith("mla"):
        return 1 / case.served.gpus
    return kv_bytes.kv_share_of_gpu(case.machine.tensor_parallel, case.model.kv_heads) / case.machine.stages


def _pool_tokens(case: Case) -> int | None:
    """Return the tokens that the pool holds; None where the weights leave none, or a token has no constant bytes."""
    held = case.served.fit
    per_token, _ = costs.held_bytes(case.stored or case.model, case.row.kv_dtype)
    if held is None or held.pool_bytes <= 0 or not per_token:
        return None
    share = kv_bytes.kv_share_of_gpu(case.machine.tensor_parallel, case.model.kv_heads) / case.machine.stages
    return int(held.pool_bytes // (per_token * share))


def _warnings(question: OneQuestion, sources: Sources, case: Case, *, context_tokens: int = 0) -> str | None:
    return caveats.together(
        [
            *pair_notes(sources, case.row, case.origins),
            *deployment_caveats(case.model, case.row, case.served, question.mla_attention),
            *(caveats.tensor_parallel_caveats(case.model, case.machine.tensor_parallel)),
            *([WHOLE_LAYERS] if case.stored else []),
            *caveats.format_caveats(case.model, case.row.kv_dtype),
            *caveats.context_caveats(case.model, context_tokens),
            *caveats.pool_caveats(question.pool_tokens, context_tokens + (question.output_tokens or 0)),
        ]
    )


def _turn(question: OneQuestion, sources: Sources, case: Case, setting: Setting) -> TurnAnswer:
    cached, new = known(question.cached_tokens), known(question.new_tokens)
    turn = turn_answer(setting, cached, new, question.chunk_tokens)
    pool = _pool_tokens(case)
    asked = Asked(
        asked_cached_tokens=cached,
        asked_new_tokens=new,
        deployed_pool_requests=None if pool is None else pool // (cached + new),
    )
    extras = _extras(question, sources, case, turn)
    if extras.pool_requests == 0:
        turn = replace(turn, faster="neither")
    ranged = of_turn(setting, case.row.basis, cached, new)
    parts = (_about(question, sources, case), asked, turn, extras, ranged)
    warnings = _warnings(question, sources, case, context_tokens=cached + new)
    return _joined(TurnAnswer, *parts, case.tier, case.origins, warnings=warnings)


def _workload(
    question: OneQuestion, sources: Sources, case: Case, setting: Setting, turns: WorkloadTurns
) -> WorkloadAnswer:
    found = workload_answer(setting, turns.cached_tokens, turns.prefill_tokens, question.chunk_tokens)
    about = _about(question, sources, case)
    own, counted = case.model.tokenizer, turns.series.tokenizer
    about = replace(about, is_tokenizer_proxy=about.is_tokenizer_proxy or counted != own)
    warnings = _warnings(question, sources, case)
    if counted not in (own, LOGGED):
        proxy = f"counted by {counted}, a proxy for {own}, the tokenizer of {case.model.model}"
        warnings = caveats.together([*caveats.apart(warnings), proxy])
    ranged = of_workload(setting, case.row.basis, turns.cached_tokens, turns.prefill_tokens)
    parts = (about, turns.series, found, ranged, case.tier, case.origins)
    return _joined(WorkloadAnswer, *parts, warnings=warnings, is_sample=turns.is_sample)


def _joined(kind: Callable[..., T], *parts: Any, **more: object) -> T:  # noqa: ANN401 - dataclasses
    """Return an answer with the fields of its parts."""
    return kind(**{field.name: getattr(part, field.name) for part in parts for field in fields(part)}, **more)


def _extras(question: OneQuestion, sources: Sources, case: Case, turn: TurnCosts) -> Extras:
    """Return the optional parts of the answer: write-back, T_sched, energy."""
    write_back = scheduled = requests = energy = power = None
    if question.output_tokens is not None:
        to_host, tokens = _to_host(question, sources, case), turn.prefill_tokens + question.output_tokens
        write_back = serving.write_back_s(tokens, turn.kv_bytes_per_token, to_host)
    if question.pool_tokens is not None:
        context = turn.cached_tokens + turn.prefill_tokens + (question.output_tokens or 0)
        requests = int(serving.pool_requests(question.pool_tokens, context))
        scheduled = kappa.scheduled_tokens(question.pool_tokens, turn.kappa_ratio) if requests else None
    if question.idle_w is not None and turn.compute_s is not None:
        idle, busy, gpus = question.idle_w, known(question.busy_w), case.served.gpus
        energy = serving.energy_j(idle, busy, turn.transfer_s, turn.compute_s, gpus)
        power = serving.average_power_w(idle, busy, known(turn.transfer_share), gpus)
    return Extras(
        write_back_s=write_back,
        scheduled_tokens=scheduled,
        pool_requests=requests,
        energy_j=energy,
        average_power_w=power,
    )


def _to_host(question: OneQuestion, sources: Sources, case: Case) -> float:
    """Return the rate of the copy back to host memory while loads go on, that of a load where it is unknown."""
    share = _bytes_share(question, case)
    return (question.bandwidth_bytes_per_s or _link_to_host(sources, case.row)) / share


def _link_to_host(sources: Sources, row: OnPlatform) -> float:
    if row.basis == "measured" and any(m.accelerator == row.accelerator for m in sources.measured):
        return measured_of(sources, row).pinned_to_host_bytes_per_s
    link = known(named(sources.links, row.link))
    alone = link.to_host_bytes_per_s or link.bytes_per_s
    if link.duplex_bytes_per_s is None:
        return alone
    return serving.write_back_bytes_per_s(alone, link.bytes_per_s, link.duplex_bytes_per_s)


def settings_of(question: OneQuestion, sources: Sources, row: KappaCrit) -> list[tuple[Case, Setting]]:
    """Return a chosen row adjusted to the question, once for each cost model that is known for it and asked for."""
    return [(case, setting) for case, setting in _settings(question, sources, [row]) if setting.cost_model is not None]

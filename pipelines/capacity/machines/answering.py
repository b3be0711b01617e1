"""Answers a question about the cache of a workload for a model on a machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pipelines.capacity.curve import Curve, curve_of
from pipelines.capacity.machines.answer import CacheAnswer, CacheRow
from pipelines.capacity.machines.deployment import slowness
from pipelines.capacity.machines.loads import load
from pipelines.capacity.machines.question import CacheQuestion, Tier, checked
from pipelines.capacity.machines.tier_rows import HOST_BYTES, ModelOnMachine, model_on_machine
from pipelines.capacity.machines.workload_requests import Served, read_requests
from pipelines.capacity.policies import optimum
from pipelines.hardware.caveats import tensor_parallel_caveats
from pipelines.hardware.entities import Pair
from pipelines.hardware.machines import Sources, machine_of
from pipelines.hardware.questions.names import known_name
from warehouse.declared.formats import quantity
from warehouse.errors import ErrorCode, KappaError
from warehouse.formulas.cache_size import blocks_in
from warehouse.formulas.kv_bytes import KV_ELEMENT_BYTES

KNEE_BYTES, KNEE_GAIN = 100e9, 0.01
ENDLESS = 2**60


@dataclass(frozen=True, slots=True)
class _Case:
    """What all rows of an answer share: machine, rate of its link, requests with their hits, and their curve."""

    machine: ModelOnMachine
    bytes_per_s: float
    served: Served
    curve: Curve


def cache(question: CacheQuestion, sources: Sources, database: Callable[[], Path]) -> CacheAnswer:
    """Return how much of a workload caches keep, and what crosses the link.

    Raises:
        UsageError: a number of the question is not possible.
        KappaError: a name is unknown, the model does not fit, or the workload is not in the warehouse.
    """
    settled = _settled(checked(question), sources)
    pair = _pair(settled, sources)
    model = sources.models[settled.model]
    machine = model_on_machine(sources, model, pair, settled.kv_dtype, settled.gpus)
    if machine is None:
        raise KappaError(
            f"{model.model} has no place on {pair.accelerator}",
            "its size is unknown, or no number of accelerators that divides its heads holds it",
            "name another accelerator, or --gpus",
            code=ErrorCode.NOTHING_FITS,
        )
    served = read_requests(database(), settled, model.tokenizer)
    curve = curve_of(served.requests, served.hits)
    rate = machine_of(sources, pair, model).bytes_per_s
    return _answer(settled, _Case(machine, rate, served, curve))


def _settled(question: CacheQuestion, sources: Sources) -> CacheQuestion:
    links = [*sources.links, *(row.link for row in sources.platforms)]
    return replace(
        question,
        model=known_name("model", question.model, sources.models),
        accelerator=known_name("accelerator", question.accelerator, sources.accelerators),
        link=None if question.link is None else known_name("link", question.link, links),
        kv_dtype=known_name("kv dtype", question.kv_dtype, KV_ELEMENT_BYTES),
    )


def _pair(question: CacheQuestion, sources: Sources) -> Pair:
    """Return the accelerator with the link that was named, else with the first that it is built with."""
    built = [row for row in sources.platforms if row.accelerator == question.accelerator and row.basis == "physical"]
    link = question.link or next((row.link for row in built), None)
    if link is None:
        raise KappaError(
            f"no link of {question.accelerator} is known",
            "no row of platforms says what it is built with",
            "name one with --link",
            code=ErrorCode.NOTHING_FITS,
        )
    return Pair(question.accelerator, link, "physical")


def _answer(question: CacheQuestion, case: _Case) -> CacheAnswer:
    placed, curve, model = case.machine.deployment, case.curve, case.machine.model
    workload, tokenizer, counting, reuse = case.served.series
    block_bytes = placed.host_token_bytes * curve.block_tokens
    knee = curve.knee(KNEE_BYTES / block_bytes, KNEE_GAIN) - placed.gpu_blocks(curve.block_tokens)
    knee_bytes = max(knee, 0) * block_bytes
    rows = tuple(_row(question, case, tiers) for tiers in _caches(question.tiers))
    beyond = [place for place, row in enumerate(rows) if row.size_bytes >= knee_bytes]
    return CacheAnswer(
        workload=workload, tokenizer=tokenizer, counting=counting, reuse=reuse,
        interleaving=case.served.interleaving, block_tokens=curve.block_tokens, is_sample=case.served.is_sample,
        is_tokenizer_proxy=model.is_tokenizer_proxy or tokenizer != model.tokenizer,
        requests=curve.requests, context_tokens=curve.context_tokens,
        endless_hit_ratio=float(curve.hit_ratio(ENDLESS)),
        across_share=int(curve.across_tokens[-1]) / max(curve.endless_tokens, 1),
        model=model.model, accelerator=case.machine.platform.accelerator, link=case.machine.platform.link,
        kv_dtype=question.kv_dtype, gpus=placed.gpus, gpu_pool_bytes=placed.pool_bytes * placed.gpus,
        kv_token_bytes=placed.host_token_bytes, kappa_crit=case.machine.kappa_crit,
        knee_bytes=knee_bytes, is_best_exact=case.served.is_chained,
        notes=tuple(tensor_parallel_caveats(model, placed.gpus)), rows=rows,
        verdict_row=len(rows) - 1 if question.tiers or not beyond else beyond[0],
    )  # fmt: skip


def _caches(tiers: Sequence[Tier]) -> list[Sequence[Tier]]:
    """Return the caches asked for: with one tier more each, or with the sizes of host memory that are sold."""
    if tiers:
        return [tiers[:count] for count in range(len(tiers) + 1)]
    return [[Tier("dram", size)] if size else [] for size in HOST_BYTES]


def _row(question: CacheQuestion, case: _Case, tiers: Sequence[Tier]) -> CacheRow:
    placed, curve, requests = case.machine.deployment, case.curve, case.served.requests
    size = curve.block_tokens
    blocks = [placed.gpu_blocks(size), *(placed.host_blocks(tier.size_bytes, size) for tier in tiers)]
    slow = [slowness(placed, case.bytes_per_s, tier.bytes_per_s) for tier in tiers]
    found = load(requests, case.served.hits, blocks, case.machine.waits if case.machine.setting else None, slow)
    held, total = sum(blocks), max(curve.context_tokens, 1)
    size_bytes = sum(tier.size_bytes for tier in tiers)
    step = size_bytes or HOST_BYTES[1]
    more = held + int(blocks_in(step, size, placed.host_token_bytes))
    hits = int(curve.tokens_at(held))
    best = requests.cached_tokens(optimum(requests, case.served.hits, held).blocks).sum()
    rate = question.requests_per_s or _rate(case.served)
    per_request = found.tokens_per_request * placed.host_token_bytes
    tokens = found.tokens
    return CacheRow(
        tiers=" + ".join(f"{quantity(tier.size_bytes, 'B')} of {tier.name}" for tier in tiers),
        size_bytes=size_bytes, capacity_tokens=held * size, hit_ratio=hits / total,
        share_of_endless=hits / max(curve.endless_tokens, 1), best_hit_ratio=float(best) / total,
        gpu_token_share=float(tokens.gpu_tokens.sum()) / total, link_token_share=float(tokens.k_link.sum()) / total,
        computed_token_share=float(tokens.computed_tokens.sum()) / total,
        kappa_link_p50=found.kappa_link[0], kappa_link_p90=found.kappa_link[1], kappa_link_p99=found.kappa_link[2],
        link_bound_turn_share=found.link_bound_turn_share, compute_bound_turn_share=found.compute_bound_turn_share,
        no_link_turn_share=found.no_link_turn_share, link_bytes_per_request=per_request,
        link_bytes_per_s=None if rate is None else per_request * rate,
        next_bytes=step, next_hit_ratio=(int(curve.tokens_at(more)) - hits) / total,
    )  # fmt: skip


def _rate(served: Served) -> float | None:
    arrival = served.requests.arrival_s
    if arrival is None or not (span := float(arrival.max() - arrival.min())):
        return None
    return len(served.requests) / span

"""The answers of `kappa serve-sim`: one for each chosen model and machine, policy and rate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.hardware.configs.naming import with_named
from pipelines.hardware.entities import Accelerator, KappaCrit
from pipelines.hardware.machines import Sources, named
from pipelines.hardware.questions.answering import settings_of
from pipelines.hardware.questions.checks import check_question
from pipelines.hardware.questions.choosing import chosen_rows
from pipelines.hardware.questions.names import settled
from pipelines.hardware.questions.question import OneQuestion
from pipelines.hardware.what_if import Setting
from pipelines.serving.answers.answer import ServeAnswer
from pipelines.serving.answers.goodput import interval
from pipelines.serving.answers.question import JOHNSON, ServeQuestion, check
from pipelines.serving.answers.reading import ReadTurns, read_served
from pipelines.serving.answers.runs import Station
from pipelines.serving.answers.summary import RunAnswer
from pipelines.serving.answers.tiered import tiered
from pipelines.serving.machines.served import IDLE_SHARE, capped, pool_of, served, tdp_of
from warehouse.errors import ErrorCode, KappaError

# The fullest of these that is known.
COST_MODELS = ("full", "attention", "2n")


def serve(question: ServeQuestion, sources: Sources, database: Callable[[], Path]) -> list[ServeAnswer]:
    """Return the answers to a question about one machine at a time.

    Args:
        question: What is asked.
        sources: The sourced rows.
        database: Returns the database that holds the workload.

    Raises:
        UsageError: the question contradicts itself, or has an impossible number.
        KappaError: a name is unknown, nothing fits the choice, the series is not in the home folder, or no turn fits.
    """
    read = reader(question, database)
    found = [
        answer
        for row, setting in chosen(question, sources)
        for answer in answers_on(question, row, setting, named(sources.accelerators, row.accelerator), read)
    ]
    if not found:
        raise KappaError(
            "no chosen machine can serve the workload",
            "the weights leave no memory for a turn",
            "give more --tensor-parallel, or --pool-tokens",
            code=ErrorCode.NOTHING_FITS,
        )
    return found


def reader(question: ServeQuestion, database: Callable[[], Path]) -> Callable[[str], ReadTurns]:
    """Return a function from a tokenizer to the workload's turns, which reads each once."""

    @cache
    def read(tokenizer: str) -> ReadTurns:
        return read_served(database(), question, tokenizer)

    return read


def chosen(question: ServeQuestion, sources: Sources) -> Iterator[tuple[KappaCrit, Setting]]:
    """Yield each chosen model on each chosen platform, with its cost model and its number of GPUs.

    Raises:
        UsageError: the question contradicts itself, or has an impossible number.
        KappaError: a name is unknown, or nothing fits the choice.
    """
    check(question)
    ones = question.crits()
    for one in ones:
        check_question(one)
    sources = with_named(sources, tuple(one.model for one in ones))
    sources = replace(sources, sustained_fraction=question.sustained_fraction)
    for one in ones:
        yield from _chosen(settled(one, sources), sources)


def _chosen(asked: OneQuestion, sources: Sources) -> Iterator[tuple[KappaCrit, Setting]]:
    for row in chosen_rows(replace(asked, tensor_parallel=None), sources):
        settings = {setting.cost_model: setting for _, setting in settings_of(asked, sources, row)}
        fullest = next((settings[name] for name in COST_MODELS if name in settings), None)
        if fullest is not None:
            yield row, fullest


def answers_on(
    question: ServeQuestion,
    row: KappaCrit,
    setting: Setting,
    accelerator: Accelerator | None,
    read: Callable[[str], ReadTurns],
) -> Iterator[ServeAnswer]:
    """Yield the answers of one model on one machine; none where its memory holds no turn."""
    if question.cap_w is not None and accelerator is not None:
        setting = capped(setting, question.cap_w, accelerator)
    pool = None if accelerator is None else pool_of(setting, accelerator)
    found = read(setting.model.tokenizer)
    limits = question.limits(pool)
    held = found.turns.cached_tokens + found.turns.new_tokens + found.turns.output_tokens
    if limits.pool_tokens is not None and limits.pool_tokens < held.min():
        return
    about = about_of(question, row, setting, found)
    turns, loaded = found.turns, None
    if question.tiers and accelerator is not None:
        split = tiered(found, question.tiers, question.chunk_tokens, setting, accelerator)
        turns, loaded = split.turns, split.loaded_tokens
        about |= {"gpu_token_share": split.gpu_token_share, "link_token_share": split.link_token_share}
    station = Station(question, turns, served(setting, turns.cached_tokens, turns.new_tokens, loaded), limits)
    for policy in question.policies:
        more = _of_policy(question, station, policy)
        for rate in _rates(question, station, policy):
            runs = [station.run(policy, rate, question.seed + n) for n in range(question.seeds)]
            yield _answer(about | more, station, policy, rate, runs, accelerator)


def about_of(question: ServeQuestion, row: KappaCrit, setting: Setting, found: ReadTurns) -> dict[str, Any]:
    """Return the columns that say what an answer is about."""
    return asdict(found.series) | {
        "model": row.model,
        "accelerator": row.accelerator,
        "link": row.link,
        "basis": row.basis,
        "kv_dtype": row.kv_dtype,
        "cost_model": setting.cost_model,
        "tensor_parallel": setting.machine.tensor_parallel,
        "block_tokens": question.chunk_tokens,
        "is_sample": found.is_sample,
    }


def _of_policy(question: ServeQuestion, station: Station, policy: str) -> dict[str, float | None]:
    if station.limits.closed is not None or policy == JOHNSON:
        return {}
    goodput = None if question.slo_s is None else station.largest_rate_per_s(policy, question.slo_s)
    knee = station.knee_per_s(policy) if question.has_knee else None
    return {"knee_per_s": knee, "goodput_per_s": goodput}


def _rates(question: ServeQuestion, station: Station, policy: str) -> Sequence[float | None]:
    if question.rates_per_s:
        return question.rates_per_s
    if station.limits.closed is not None or policy == JOHNSON or question.log is not None:
        return (None,)
    # What link and accelerator carry says little where most tokens are decoded: there the knee is the measure.
    knee = station.knee_per_s(policy) if station.limits.decode == "shared" else None
    return [share * (knee or station.carried_per_s) for share in question.load_shares]


def _answer(  # noqa: PLR0913, PLR0917 - what it is about, how it was run, and what came out
    about: dict[str, Any],
    station: Station,
    policy: str,
    rate: float | None,
    runs: list[RunAnswer],
    accelerator: Accelerator | None,
) -> ServeAnswer:
    p90 = interval([run.ttft_p90_s for run in runs])
    figures = mean_of(runs)
    span = figures.pop("span_s")
    del figures["compute_busy_s"]
    energy = _energy(runs, accelerator)
    gpus = about["tensor_parallel"]
    return ServeAnswer(
        **about,
        policy=policy,
        arrivals="backlog" if policy == JOHNSON else station.question.arrivals,
        pool_tokens=station.limits.pool_tokens,
        carried_per_s=station.carried_per_s,
        rate_per_s=rate,
        load_share=None if rate is None else rate / station.carried_per_s,
        seeds=len(runs),
        ttft_p90_low_s=p90.low,
        ttft_p90_high_s=p90.high,
        served_per_s=figures["turns"] / span,
        average_power_w=None if energy is None else energy / span,
        energy_j=None if energy is None else energy * gpus,
        **figures,
    )


def mean_of(runs: list[RunAnswer]) -> dict[str, Any]:
    """Return the mean of each figure over runs; the limit is that of most runs, counts are rounded."""
    rows = [asdict(run) for run in runs]
    merged: dict[str, Any] = {}
    for name, first in rows[0].items():
        values = [row[name] for row in rows if row[name] is not None]
        if isinstance(first, str):
            merged[name] = max(sorted(set(values)), key=values.count)
        elif isinstance(first, int):
            merged[name] = round(float(np.mean(values)))
        else:
            merged[name] = float(np.mean(values)) if values else None
    return merged


def _energy(runs: list[RunAnswer], accelerator: Accelerator | None) -> float | None:
    """Return the mean energy of a run of one GPU, idle power IDLE_SHARE of its thermal design power."""
    if accelerator is None or accelerator.tdp_w is None:
        return None
    tdp = tdp_of(accelerator)
    return float(np.mean([run.energy_j(IDLE_SHARE * tdp, tdp) for run in runs]))

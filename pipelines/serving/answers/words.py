"""The answers in words: what limits, where the knee is, and who serves which turns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from pipelines.serving.answers.answer import FleetAnswer, ServeAnswer
from pipelines.serving.answers.question import ServeQuestion
from pipelines.serving.fleet.classes import CACHED_BINS, NEW_BINS
from warehouse.declared.formats import number, percent, quantity


def legend(question: ServeQuestion, answers: Sequence[ServeAnswer]) -> list[str]:
    """Return the lines below a table of runs."""
    first = answers[0]
    served = max(answer.turns for answer in answers)
    lines = [
        f"{served:,} turns of {first.workload} ({first.tokenizer}, {first.counting}, {first.reuse})"
        + (", generated text" if first.is_sample else "")
        + f"; {question.sessions} sessions interleaved, their turns do not wait for each other.",
        (
            f"{question.loading} loading, cost model {_either(answers, 'cost_model')}, {_gpus(answers)}, pool "
            f"{_pool(answers)}, decode {question.decode}; the first tenth is not counted."
        ),
    ]
    lines += _tier_words(question, first)
    rejected = max(answer.rejected_turns for answer in answers)
    if rejected:
        lines.append(f"{rejected:,} turns were rejected: K + T + output is above the pool.")
    if any(answer.knee_per_s is not None for answer in answers):
        lines.append("knee_per_s: largest rate with p90 TTFT within twice that of an idle machine, to 1 %.")
    if question.slo_s:
        lines.append(f"goodput_per_s: largest rate with p90 TTFT within {question.slo_s:g} s, to 1 %.")
    lines += _best(answers)
    lines.append("--format json: the parts of TTFT, shares, fairness and energy.")
    return lines


def _either(answers: Sequence[ServeAnswer], name: str) -> str:
    return " or ".join(dict.fromkeys(str(getattr(answer, name)) for answer in answers))


def _gpus(answers: Sequence[ServeAnswer]) -> str:
    counts = [answer.tensor_parallel for answer in answers]
    least, most = min(counts), max(counts)
    return f"{least}{f' to {most}' * (most > least)} GPU{'s' * (most > 1)}"


def _pool(answers: Sequence[ServeAnswer]) -> str:
    pools = [answer.pool_tokens for answer in answers if answer.pool_tokens is not None]
    if not pools:
        return "without end"
    least, most = min(pools), max(pools)
    return f"{least:,}{f' to {most:,}' * (most > least)} tokens"


def _best(answers: Sequence[ServeAnswer]) -> list[str]:
    """Return a sentence on who carries most and least before TTFT doubles; none of a single machine."""
    knees = {_subject(answer): answer.knee_per_s for answer in answers if answer.knee_per_s is not None}
    if len(knees) < 2:  # noqa: PLR2004 - a comparison has two
        return []
    best, last = max(knees, key=knees.__getitem__), min(knees, key=knees.__getitem__)
    least = f"least {last}, {number(knees[last])}"
    return [f"Most turns a second before p90 TTFT doubles: {best}, {number(knees[best])}; {least}."]


def _subject(answer: ServeAnswer) -> str:
    gpus = f"{answer.tensor_parallel} x " if answer.tensor_parallel > 1 else ""
    return f"{answer.model} on {gpus}{answer.accelerator} over {answer.link}, {answer.policy}"


def _tier_words(question: ServeQuestion, first: ServeAnswer) -> list[str]:
    """Return the line on where the tokens come from; none where all of K crosses the link."""
    if first.gpu_token_share is None or first.link_token_share is None:
        return []
    behind = " and ".join(f"{quantity(tier.size_bytes, 'B')} of {tier.name}" for tier in question.tiers)
    on_gpu, over_link = first.gpu_token_share, first.link_token_share
    said = (
        f"With {behind} behind the GPUs' memory ({first.model} on {first.accelerator}) {percent(on_gpu)} of the "
        f"prompts' tokens lie on the GPU, {percent(over_link)} cross the link, {percent(1 - on_gpu - over_link)} are "
        "computed."
    )
    return [said]


def routing_words(answers: Sequence[FleetAnswer]) -> list[str]:
    """Return a fleet in words: for each model who serves what, the hours, the cost, and what it is compared with."""
    return [line for model, rows in groupby(answers, lambda one: one.model) for line in _of_model(model, [*rows])]


def _of_model(model: str, rows: list[FleetAnswer]) -> Iterable[str]:
    first = rows[0]
    yield f"{model}, {first.loading} loading: {number(first.usd_per_million_turns)} USD a million turns"
    for name, mine in groupby(sorted(rows, key=_machine), _machine):
        parts = [*mine]
        shadow = parts[0].shadow_usd_per_hour
        saves = f"; an hour more would save {number(shadow)} USD" if shadow else ""
        yield f"  {name} ({number(parts[0].machine_hours)} h{saves}) serves {_classes(parts)}"
    if first.routing_kappa is not None:
        yield f"  rule: turns with kappa_ratio above {number(first.routing_kappa)} to the machine with the faster link"
    single, robin = first.best_single_usd_per_million_turns, first.round_robin_usd_per_million_turns
    alone = "none has the hours" if single is None else f"{first.best_single}, {number(single)} USD"
    yield f"  best single machine: {alone}"
    yield f"  round robin: {'hours lack' if robin is None else f'{number(robin)} USD'}"
    when = f", {first.price_retrieved}" if first.price_retrieved else ""
    yield f"  prices: {first.price_source}{when}"


def _machine(answer: FleetAnswer) -> str:
    gpus = f"{answer.tensor_parallel} x " if answer.tensor_parallel > 1 else ""
    return f"{gpus}{answer.accelerator} over {answer.link}"


def _classes(rows: Sequence[FleetAnswer]) -> str:
    """Return classes in words, those of one bin of K together."""
    parts = []
    for cached, same in groupby(rows, lambda one: one.cached_from_tokens):
        news = [_bin(one.new_from_tokens, NEW_BINS) + _part(one.turn_share) for one in same]
        parts.append(f"K {_bin(cached, CACHED_BINS)} with T {', '.join(news)}")
    return "; ".join(parts)


def _bin(least: int, bins: Sequence[int]) -> str:
    """Return a bin as a range.

    >>> _bin(0, CACHED_BINS), _bin(256, CACHED_BINS), _bin(65536, CACHED_BINS)
    ('0', '256-1023', 'from 65,536')
    """
    place = bins.index(least)
    if place + 1 == len(bins):
        return f"from {least:,}"
    last = bins[place + 1] - 1
    return f"{least:,}" if last == least else f"{least}-{last}"


def _part(share: float) -> str:
    return "" if share == 1 else f" ({percent(share)} of them)"

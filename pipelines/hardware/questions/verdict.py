"""One sentence over the answers to a question that names several models, machines or formats, and the best of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipelines.hardware.questions.answer import CritAnswer, CritRow, TurnAnswer, WorkloadAnswer
from warehouse.declared.formats import number, percent, quantity

# What a choice is made of, in the order of a sentence.
CHOICE = ("model", "accelerator", "link", "kv_dtype", "tensor_parallel")
# The first of these that most choices have an answer on is compared.
_BASES = ("physical", "measured", "paper")
_COST_MODELS = ("full", "attention", "2n", None)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The comparison of several answers.

    Attributes:
        sentence: It in words.
        best: The best answer by `column`.
        column: `kappa_crit` (the highest), `ttft_s` (the shortest of loading and recomputing), or `p50.ttft_s`.
    """

    sentence: str
    best: CritAnswer
    column: str


def verdict(answers: Sequence[CritAnswer]) -> Verdict | None:
    """Return the comparison of answers on one basis and under one cost model; None where there is nothing to compare.

    The basis and cost model are those on which most choices have an answer: of the bases physical before measured and
    paper, of the cost models the fullest. Choices without the compared figure are counted in the sentence.

    Args:
        answers: The answers to one question.
    """
    alike = _of_most(_of_most(answers, _BASES, lambda answer: answer.basis), _COST_MODELS, _cost_model)
    if len({_choice(answer) for answer in alike}) < 2:  # noqa: PLR2004 - a comparison takes two
        return None
    figures = [(value, answer) for answer in alike if (value := _figure(answer)) is not None]
    if len(figures) < 2:  # noqa: PLR2004
        return None
    is_least_best = not isinstance(alike[0], CritRow)
    ranked = sorted(figures, key=lambda pair: pair[0] if is_least_best else -pair[0])
    (best, of_best), (worst, of_worst) = ranked[0], ranked[-1]
    varying = [name for name in CHOICE if len({getattr(answer, name) for answer in alike}) > 1]
    column, words, cell = _about(of_best)
    place = f"basis {of_best.basis}" + (f", t_GPU by {_cost_model(of_best)}" if _cost_model(of_best) else "")
    lacking = len(alike) - len(figures)
    parts = [
        f"Best of {len(figures):,} ({place}): {_named(of_best, varying)}, {words} {cell(best)}{_way(of_best)}",
        f"last {_named(of_worst, varying)}, {cell(worst)}",
        *_shares(alike),
        *([f"{lacking:,} without it"] if lacking else []),
    ]
    return Verdict("; ".join(parts) + ".", of_best, column)


def _of_most(
    answers: Sequence[CritAnswer], order: Sequence[str | None], key: Callable[[CritAnswer], str | None]
) -> list[CritAnswer]:
    """Return the answers with the key that most choices have; the first in `order` of several."""
    groups = {name: [answer for answer in answers if key(answer) == name] for name in order}
    return max(groups.values(), key=lambda group: len({_choice(answer) for answer in group}))


def _choice(answer: CritAnswer) -> tuple[object, ...]:
    return tuple(getattr(answer, name) for name in CHOICE)


def _cost_model(answer: CritAnswer) -> str | None:
    return None if isinstance(answer, CritRow) else answer.cost_model


def _figure(answer: CritAnswer) -> float | None:
    if isinstance(answer, CritRow):
        return answer.kappa_crit
    if isinstance(answer, WorkloadAnswer):
        return answer.p50.ttft_s
    if answer.ttft_s is None or answer.recompute_s is None or answer.pool_requests == 0:
        return None
    return min(answer.ttft_s, answer.recompute_s)


def _about(answer: CritAnswer) -> tuple[str, str, Callable[[float], str]]:
    if isinstance(answer, CritRow):
        return "kappa_crit", "kappa_crit", number
    if isinstance(answer, TurnAnswer):
        return "ttft_s", "TTFT", lambda value: quantity(value, "s")
    return "p50.ttft_s", "TTFT p50", lambda value: quantity(value, "s")


def _way(answer: CritAnswer) -> str:
    if not isinstance(answer, TurnAnswer):
        return ""
    return {"load": " by loading", "recompute": " by recomputing"}.get(answer.faster or "", "")


def _named(answer: CritAnswer, varying: Sequence[str]) -> str:
    """Return what tells an answer from the others.

    The model always names it; `on` and `over` go before accelerator and link.
    """
    before = {"accelerator": "on ", "link": "over "}
    parts = [f"{before.get(name, '')}{getattr(answer, name)}" for name in varying if name != "tensor_parallel"]
    if "tensor_parallel" in varying:
        gpus = answer.tensor_parallel
        parts.append(f"on {gpus:,} GPU{'s' * (gpus > 1)}")
    return " ".join(parts)


def _shares(alike: Sequence[CritAnswer]) -> list[str]:
    """Return how many turns, or which shares of a workload, wait for the link."""
    turns = [answer for answer in alike if isinstance(answer, TurnAnswer)]
    if turns:
        return [f"memory bound: {sum(bool(turn.is_memory_bound) for turn in turns):,} of {len(turns):,}"]
    workloads = [answer for answer in alike if isinstance(answer, WorkloadAnswer)]
    shares = [of.memory_bound_turn_share for of in workloads if of.memory_bound_turn_share is not None]
    return [f"memory-bound turns {percent(min(shares))} to {percent(max(shares))}"] if shares else []

"""The checks of a question: options that contradict each other or have no effect, and impossible numbers."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.hardware.deployment.fitting import MOST_GPUS
from pipelines.hardware.deployment.formats import COMPUTE_DTYPES, QUANTISED_BYTES
from pipelines.hardware.questions.question import OneQuestion
from warehouse.errors import ErrorCode, UsageError

# Beyond every context and every cluster, and far below where numbers stop being exact.
MOST = 10**12
# New tokens of an iteration: the default of engines.
TOKEN_BUDGET = 8192
WORDS: dict[str, tuple[str, ...]] = {
    "weight_dtype": (*QUANTISED_BYTES,),
    "compute_dtype": COMPUTE_DTYPES,
    "mla_attention": ("tensor", "broadcast", "data"),
    "block_layout": ("packed", "layer"),
    "cost_model": ("2n", "attention", "full"),
    "basis": ("paper", "physical", "measured"),
}
_OF_A_TURN = ("output_tokens", "pool_tokens", "idle_w", "busy_w")


def check_question(question: OneQuestion) -> None:
    """Raise UsageError where an option is impossible, or has no effect together with the others."""
    for is_broken, what, why in (*_words(question), *_numbers(question), *_together(question)):
        if is_broken:
            raise UsageError(what, why, "see `kappa crit --help`", code=ErrorCode.USAGE)
    if not question.is_about_turns:
        _check_alone(question)
    if question.workload:
        _refuse(question, _OF_A_TURN, "a turn", "it is not told of a workload", "give --cached-tokens and --new-tokens")


def _words(question: OneQuestion) -> Iterator[tuple[bool, str, str]]:
    """Yield each choice of one of a few words: whether it is none of them, what it is, and what there is."""
    for name, choices in WORDS.items():
        value = getattr(question, name)
        is_broken = value is not None and value not in choices
        yield is_broken, f"--{name.replace('_', '-')} {value} is not possible", f"there are {', '.join(choices)}"


def _numbers(question: OneQuestion) -> tuple[tuple[bool, str, str], ...]:
    return (
        (_below(question.new_tokens, 1), f"--new-tokens {question.new_tokens} is not possible", "a turn computes one"),
        (_below(question.cached_tokens, 0), f"--cached-tokens {question.cached_tokens} is not possible", "below 0"),
        (
            question.chunk_tokens < 1,
            f"--chunk {question.chunk_tokens} is not possible",
            "a chunk holds at least one token",
        ),
        (
            question.sustained_fraction is not None and not 0 < question.sustained_fraction <= 1,
            f"--sustained-fraction {question.sustained_fraction} is not possible",
            "it is a share of the dense peak, above 0 and at most 1",
        ),
        (not _is_share(question.tier_share), f"--tier-share {question.tier_share} is not possible", "not in 0 to 1"),
        (_below(question.output_tokens, 0), f"--output-tokens {question.output_tokens} is not possible", "below 0"),
        (
            _below(question.pool_tokens, 1),
            f"--pool-tokens {question.pool_tokens} is not possible",
            "no room for a token",
        ),
        (
            question.tensor_parallel is not None and not 1 <= question.tensor_parallel <= MOST_GPUS,
            f"--tensor-parallel {question.tensor_parallel} is not possible",
            f"it is a number of GPUs from 1 to {MOST_GPUS:,}",
        ),
        (
            not _are_watts(question.idle_w, question.busy_w),
            "--idle-w or --busy-w is not possible",
            "no power in watts",
        ),
        (
            _below(question.batch, 1),
            f"--batch {question.batch} is not possible",
            "an iteration has one request at least",
        ),
        (
            question.batch > 1 and (question.new_tokens or 0) * question.batch > TOKEN_BUDGET,
            f"--batch {question.batch} of {question.new_tokens} new tokens is not possible",
            f"an engine computes at most {TOKEN_BUDGET:,} new tokens in an iteration",
        ),
        (
            question.copy_latency_s is not None and not 0 < question.copy_latency_s <= 1,
            f"--copy-latency {question.copy_latency_s} is not possible",
            "it is seconds of one copy, such as 14e-6",
        ),
        (_is_huge(question), "a number of tokens or GPUs is not possible", f"it is above {MOST:,}"),
    )


def _together(question: OneQuestion) -> tuple[tuple[bool, str, str], ...]:
    turn = (question.cached_tokens, question.new_tokens)
    powers = (question.idle_w, question.busy_w)
    return (
        (None in turn and turn != (None, None), "--cached-tokens and --new-tokens go together", "one is missing"),
        (
            question.workload is not None and turn != (None, None),
            "a turn and a workload are two questions",
            "both were given",
        ),
        (None in powers and powers != (None, None), "--idle-w and --busy-w go together", "one is missing"),
        (
            question.idle_w is not None and question.busy_w is not None and question.idle_w > question.busy_w,
            f"--idle-w {question.idle_w} is not possible",
            "it is above --busy-w",
        ),
        (question.tier_share is not None and not question.tier, "--tier-share needs --tier", "no tier was named"),
        (
            question.sustained_fraction is not None and question.basis not in (None, "physical"),
            f"--sustained-fraction is not of the basis {question.basis}",
            "only the physical basis takes a share of the dense peak",
        ),
        (question.tokenizer is not None and not question.workload, "--tokenizer needs --workload", "there is none"),
        (question.counting is not None and not question.workload, "--counting needs --workload", "there is none"),
        (question.reuse is not None and not question.workload, "--reuse needs --workload", "there is none"),
    )


def _check_alone(question: OneQuestion) -> None:
    """Raise UsageError for an option about a turn or a workload where the question has neither."""
    alone = ("cost_model", "tier", *_OF_A_TURN)
    given = [*alone, *(["chunk_tokens"] if question.chunk_tokens != 1 else [])]
    why, remedy = "kappa_crit alone does not depend on it", "add --cached-tokens and --new-tokens, or --workload"
    _refuse(question, tuple(given), "a turn or a workload", why, remedy)


def _refuse(question: OneQuestion, names: tuple[str, ...], needs: str, why: str, remedy: str) -> None:
    given = [name for name in names if getattr(question, name) is not None]
    if given:
        named = " and ".join(f"--{name.replace('chunk_tokens', 'chunk').replace('_', '-')}" for name in given)
        raise UsageError(f"{named} need{'s' * (len(given) == 1)} {needs}", why, remedy, code=ErrorCode.USAGE)


def _is_share(value: float | None) -> bool:
    return value is None or 0 <= value <= 1


def _are_watts(*powers: float | None) -> bool:
    return all(power is None or 0 <= power < float("inf") for power in powers)


def _is_huge(question: OneQuestion) -> bool:
    names = ("cached_tokens", "new_tokens", "chunk_tokens", "output_tokens", "pool_tokens", "tensor_parallel", "batch")
    return any((getattr(question, name) or 0) > MOST for name in names)


def _below(value: int | None, least: int) -> bool:
    return value is not None and value < least

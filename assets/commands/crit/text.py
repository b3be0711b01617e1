"""The answers of `kappa crit` as text: cost models side by side for few platforms, one table for many."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from assets.commands.crit.lines import TURN, A, Line, confidence_words, rate, workload_lines
from assets.commands.crit.table import LOAD_ALONE, Column, table_text, wrapped
from assets.commands.crit.table import TURN as TURN_COLUMNS
from assets.commands.crit.table import WORKLOAD as WORKLOAD_COLUMNS
from pipelines.hardware import caveats
from pipelines.hardware.questions.answer import CritAnswer, TurnAnswer, WorkloadAnswer
from warehouse.declared.fields import HISTORY, LOGGED, PREFIX, REPORTED
from warehouse.declared.formats import number, percent
from warehouse.declared.formats import quantity as scaled

MOST_BLOCKS = 3
COST_MODELS = {
    "2n": "2 x active parameters a new token",
    "attention": "dense layers, experts, head, attention and adding over GPUs, each at its own rate",
    "full": "the same, each part no shorter than reading its weights; TTFT adds the engine's floor",
}
REUSE_WORDS = {
    HISTORY: "K is the upper bound of reuse: everything said before is in host memory and nothing in the GPU's.",
    PREFIX: "K is the leading blocks that an earlier request has left, in any session: the cache has no end.",
    REPORTED: "K is what the server reported as cached, wherever it lay.",
}


@dataclass(frozen=True, slots=True)
class View:
    """How answers are shown.

    Attributes:
        is_one_table: One table for any number of answers, since the question names several things.
        is_wide: All columns, and lines as long as they are; else within `table.WIDTH`.
        is_markdown: Markdown, always one table.
    """

    is_one_table: bool = False
    is_wide: bool = False
    is_markdown: bool = False


def answer_text(found: Sequence[CritAnswer], view: View) -> str:
    """Return the answers as text: a block for each model and platform, or one table; see `View`."""
    turns = [answer for answer in found if isinstance(answer, TurnAnswer)]
    if turns:
        return _text(turns, TURN_COLUMNS, lambda _: TURN, _turn_words, view)
    workloads = [answer for answer in found if isinstance(answer, WorkloadAnswer)]
    return _text(workloads, WORKLOAD_COLUMNS, workload_lines, _workload_words, view)


def _text(
    found: Sequence[A],
    columns: Sequence[Column[A]],
    lines: Callable[[A], list[Line[A]]],
    subject: Callable[[Sequence[A]], str],
    view: View,
) -> str:
    blocks: dict[tuple[str, ...], list[A]] = {}
    for answer in found:
        blocks.setdefault(_about(answer), []).append(answer)
    legend = "\n".join(_prose(line, view) for line in _legend(found))
    if view.is_one_table or view.is_markdown or len(blocks) > MOST_BLOCKS:
        table = table_text(found, columns, is_wide=view.is_wide, is_markdown=view.is_markdown)
        return f"{_prose(subject(found), view)}\n{table}\n\n{legend}"
    drawn = (_block(block, lines(block[0]), subject(block), view) for block in blocks.values())
    return "\n\n".join([*drawn, legend])


def _prose(line: str, view: View) -> str:
    return wrapped(line, is_wide=view.is_wide, is_markdown=view.is_markdown)


def _about(answer: A) -> tuple[str, ...]:
    return answer.model, answer.accelerator, answer.link, answer.basis, answer.kv_dtype


def _chunks(answer: A) -> str:
    return "" if answer.block_tokens == 1 else f", reuse in chunks of {answer.block_tokens:,} tokens"


def _workload_words(found: Sequence[WorkloadAnswer]) -> str:
    first, series = found[0], dict.fromkeys((answer.turns, answer.tokenizer) for answer in found)
    counted = [f"{turns:,} turns, {_counted_by(first.counting, tokenizer)}" for turns, tokenizer in series]
    return f"{first.workload}: {'; '.join(counted)}, reuse {first.reuse}{_chunks(first)}"


def _counted_by(counting: str, tokenizer: str) -> str:
    return "token counts of the log" if counting == LOGGED else f"{counting} counted by {tokenizer}"


def _turn_words(found: Sequence[TurnAnswer]) -> str:
    turn = found[0]
    of_turn = f"K = {turn.cached_tokens:,} cached, T = {turn.prefill_tokens:,} new tokens"
    asked = ""
    if turn.cached_tokens != turn.asked_cached_tokens:
        asked = f" (of K = {turn.asked_cached_tokens:,}, T = {turn.asked_new_tokens:,})"
    return f"{of_turn}: kappa_ratio {number(turn.kappa_ratio)}{_chunks(turn)}{asked}"


def _block(found: list[A], chosen: list[Line[A]], subject: str, view: View) -> str:
    first = found[0]
    head = [
        f"{first.model} on {first.accelerator} over {first.link}: basis {first.basis}, {first.kv_dtype} cache",
        _rates(first),
        *_served(first),
        _crit_words(first),
        subject,
        *_range(first),
        f"confidence: {confidence_words(first)}",
        *([f"measured: {first.bands}"] if first.bands and first.basis != "paper" else []),
        *_notes(first),
        "",
    ]
    lines = [line for line in chosen if any(line.value(answer) is not None for answer in found)]
    cells = [["", *(answer.cost_model or LOAD_ALONE for answer in found)]]
    for line in lines:
        # Several ranges stand below each other.
        stacked = [line.cell(answer).split(", ") if line.is_stacked else [line.cell(answer)] for answer in found]
        cells += [[*row] for row in itertools.zip_longest([line.label], *stacked, fillvalue="")]
    widths = [max(len(line[n]) for line in cells) for n in range(len(cells[0]))]
    rows = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in cells]
    return "\n".join([*(_prose(line, view) for line in head), *rows])


def _rates(answer: A) -> str:
    """Return the rates used for the seconds: the compute of all GPUs together, and the bandwidth of one link."""
    fraction, gpus = answer.sustained_fraction, answer.tensor_parallel
    of_peak = "" if fraction is None else f" (dense peak x {number(fraction)})"
    if gpus == 1:
        return f"{scaled(answer.flop_per_s, 'FLOP/s')}{of_peak}, {rate(answer.link_bytes_per_s)} one direction"
    compute = f"{scaled(answer.flop_per_s, 'FLOP/s')}{of_peak} of {gpus} GPUs together"
    each, together = answer.link_bytes_per_s, answer.bytes_per_s
    # A head on two GPUs is loaded twice, so the effective bandwidth is below the sum of the links.
    repeated = "" if together > each * gpus * 0.999 else f" of {rate(each * gpus)}: KV heads or latent are repeated"
    return f"{compute}, {rate(each)} one direction on each one's link, effectively {rate(together)}{repeated}"


def _served(answer: A) -> list[str]:
    """Return the deployment: GPUs, formats and the pool."""
    if answer.weight_bytes is None:
        return []
    gpus = f"{answer.tensor_parallel:,} GPU{'s' * (answer.tensor_parallel > 1)}"
    least = " (the least on which it fits)" if answer.least_gpus == answer.tensor_parallel else ""
    pool = "" if answer.deployed_pool_tokens is None else f", a pool of {answer.deployed_pool_tokens:,} tokens"
    held = ""
    if isinstance(answer, TurnAnswer) and answer.deployed_pool_requests is not None:
        held = f" for {answer.deployed_pool_requests:,} such requests"
    batch = "" if answer.batch == 1 else f", {answer.batch:,} requests in an iteration"
    weights = f"{answer.weight_dtype} weights of {scaled(answer.weight_bytes, 'B')}, computed in {answer.compute_dtype}"
    copies = "" if answer.copied_bytes is None else f", copies of {scaled(answer.copied_bytes, 'B')}"
    return [f"served on {gpus}{least}: {weights}{pool}{held}{batch}{copies}"]


def _range(answer: A) -> list[str]:
    """Return the range over cost models and blocks, and the verdict that it allows."""
    if answer.whatever is None:
        return []
    cell = number if isinstance(answer, TurnAnswer) else percent
    what = "load / t_GPU" if isinstance(answer, TurnAnswer) else "memory-bound turns"
    between = f"{what} {cell(answer.bound_least)} to {cell(answer.bound_most)}"
    return [f"{answer.whatever}; {between} over cost models and blocks of 1, 16 and 256 tokens"]


def _crit_words(answer: A) -> str:
    """Return kappa_crit in words; with a tier also that of the tier and of the link."""
    if answer.kappa_crit is None:
        tier = "" if answer.tier is None else f" (tier {answer.tier})"
        return f"no kappa_crit{tier}: {answer.why_no_kappa_crit}"
    if answer.tier is None:
        return f"kappa_crit {number(answer.kappa_crit)} (cost model 2n)"
    tier = f"behind tier {answer.tier} ({rate(answer.tier_bytes_per_s)} of one GPU)"
    alone = f"{number(answer.link_kappa_crit)} over {answer.link} alone (cost model 2n)"
    if answer.tier_share == 1:
        return f"kappa_crit {number(answer.kappa_crit)} with all of the cache {tier}; {alone}"
    part = f"{percent(answer.tier_share)} of the cache {tier}; {number(answer.tier_kappa_crit)} with all of it there"
    return f"kappa_crit {number(answer.kappa_crit)} with {part}, {alone}"


def _notes(answer: A) -> list[str]:
    """Return the notes on an answer: weights that do not fit, warnings, and values that cannot be computed."""
    warnings = [f"note: {text}" for text in caveats.apart(answer.warnings)]
    return [*_too_large(answer), *warnings, *([answer.missing] if answer.missing else [])]


def _too_large(answer: A) -> list[str]:
    """Return a note if the weights need more GPUs than the options name, so that no such machine exists."""
    least = answer.least_gpus
    if least is None or least <= answer.tensor_parallel:
        return []
    return [f"{answer.weight_dtype} weights and a pool need at least {least} GPUs (--tensor-parallel)"]


def _legend(found: Sequence[A]) -> list[str]:
    names = dict.fromkeys(answer.cost_model for answer in found)
    lines = [f"{name}: t_GPU counts {COST_MODELS[name]}." for name in names if name]
    if any(answer.is_as_printed for answer in found):
        lines.append(
            "paper: seconds follow from its inputs at the rates shown; kappa_crit, overhead, what is memory "
            "bound and the shares of a workload multiply kappa_M and kappa_HW as it rounded them."
        )
    if any(answer.is_tokenizer_proxy for answer in found):
        lines.append(_proxy_words(found))
    if any(isinstance(answer, WorkloadAnswer) for answer in found):
        lines.append("TTFT at p50 is that of one turn, which half of the turns do not exceed; p90 and p99 alike.")
        lines += [f"reuse {name}: {REUSE_WORDS[name]}" for name in dict.fromkeys(_reuses(found))]
    if any(isinstance(answer, WorkloadAnswer) and answer.is_sample for answer in found):
        lines.append("sample: generated text, not the data set")
    return lines


def _proxy_words(found: Sequence[A]) -> str:
    if any(isinstance(answer, WorkloadAnswer) and answer.tokenizer == LOGGED for answer in found):
        return "The tokens are those of the log, of whatever model it served; the model here may count others."
    return "The model has another vocabulary; workloads are counted by llama-3.1 in its place."


def _reuses(found: Sequence[A]) -> list[str]:
    return [answer.reuse for answer in found if isinstance(answer, WorkloadAnswer)]

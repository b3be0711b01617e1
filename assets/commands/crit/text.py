"""The answers of `kappa crit` as text: cost models side by side for few platforms, one table for many."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import pyarrow as pa

from assets.commands.crit.lines import (
    TURN,
    A,
    Line,
    confidence_cell,
    confidence_words,
    pays,
    rate,
    seconds,
    words,
    workload_lines,
)
from assets.commands.screen import text_table
from pipelines.hardware import caveats
from pipelines.hardware.questions.answer import CritAnswer, TurnAnswer, WorkloadAnswer
from warehouse.declared.fields import HISTORY, LOGGED, PREFIX, REPORTED
from warehouse.declared.formats import number, percent, yes_or_no
from warehouse.declared.formats import quantity as scaled

MOST_BLOCKS = 3
LOAD_ALONE = "load alone"
COST_MODELS = {
    "2n": "2 x active parameters a new token",
    "attention": "layers, one head, and attention over the cached context",
    "full": "the same, but never less than reading the weights once (batch of one)",
}
REUSE_WORDS = {
    HISTORY: "K is the upper bound of reuse: everything said before is in host memory and nothing in the GPU's.",
    PREFIX: "K is the leading blocks that an earlier request has left, in any session: the cache has no end.",
    REPORTED: "K is what the server reported as cached, wherever it lay.",
}


# The columns of the table of many answers: heading and cell.
_TURN: list[tuple[str, Callable[[TurnAnswer], str]]] = [
    ("kappa_crit here", lambda turn: number(turn.kappa_crit_here)),
    ("pcie overhead", lambda turn: number(turn.pcie_overhead)),
    ("memory bound", lambda turn: yes_or_no(turn.is_memory_bound)),
    ("load", lambda turn: seconds(turn.transfer_s)),
    ("compute", lambda turn: seconds(turn.compute_s)),
    ("TTFT", lambda turn: seconds(turn.ttft_s)),
    ("faster", lambda turn: words(turn.faster)),
    ("loading is faster", pays),
    ("link needed", lambda turn: rate(turn.link_needed_bytes_per_s)),
]
_WORKLOAD: list[tuple[str, Callable[[WorkloadAnswer], str]]] = [
    ("kappa_crit", lambda of: number(of.kappa_crit)),
    ("bound turns", lambda of: percent(of.memory_bound_turn_share)),
    ("bound tokens", lambda of: percent(of.memory_bound_token_share)),
    ("bound time", lambda of: percent(of.memory_bound_time_share)),
    ("overhead p50", lambda of: number(of.p50.pcie_overhead)),
    ("p99", lambda of: number(of.p99.pcie_overhead)),
    ("TTFT p50", lambda of: seconds(of.p50.ttft_s)),
    ("p99", lambda of: seconds(of.p99.ttft_s)),
    ("link needed p50", lambda of: rate(of.p50.link_needed_bytes_per_s)),
    ("p90", lambda of: rate(of.p90.link_needed_bytes_per_s)),
    ("p99", lambda of: rate(of.p99.link_needed_bytes_per_s)),
]


def answer_text(found: Sequence[CritAnswer]) -> str:
    """Return the answers as text: a block for each model and platform, or a table if there are more than three."""
    turns = [answer for answer in found if isinstance(answer, TurnAnswer)]
    if turns:
        return _text(turns, _TURN, lambda _: TURN, _turn_words)
    workloads = [answer for answer in found if isinstance(answer, WorkloadAnswer)]
    return _text(workloads, _WORKLOAD, workload_lines, _workload_words)


def _text(
    found: Sequence[A],
    columns: list[tuple[str, Callable[[A], str]]],
    lines: Callable[[A], list[Line[A]]],
    subject: Callable[[Sequence[A]], str],
) -> str:
    blocks: dict[tuple[str, ...], list[A]] = {}
    for answer in found:
        blocks.setdefault(_about(answer), []).append(answer)
    if len(blocks) > MOST_BLOCKS:
        return f"{subject(found)}\n\n{_table(found, columns)}\n\n{_legend(found)}"
    return "\n\n".join([*(_block(block, lines(block[0]), subject(block)) for block in blocks.values()), _legend(found)])


def _about(answer: A) -> tuple[str, ...]:
    return answer.model, answer.accelerator, answer.link, answer.basis, answer.kv_dtype


def _table(found: Sequence[A], chosen: list[tuple[str, Callable[[A], str]]]) -> str:
    names = ("model", "accelerator", "link", "basis", "kv_dtype")
    columns = [
        *((name, [_about(answer)[n] for answer in found]) for n, name in enumerate(names)),
        ("t_GPU", [answer.cost_model or LOAD_ALONE for answer in found]),
        *((heading, [cell(answer) for answer in found]) for heading, cell in chosen),
        ("confidence", [confidence_cell(answer) for answer in found]),
    ]
    cells = [pa.array(column, pa.string()) for _, column in columns]
    return text_table(pa.Table.from_arrays(cells, [heading for heading, _ in columns]), stream=sys.stdout)


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


def _block(found: list[A], chosen: list[Line[A]], subject: str) -> str:
    first = found[0]
    head = [
        f"{first.model} on {first.accelerator} over {first.link}: basis {first.basis}, {first.kv_dtype} cache",
        _rates(first),
        _crit_words(first),
        subject,
        f"confidence: {confidence_words(first)}",
        *_notes(first),
        "",
    ]
    lines = [line for line in chosen if any(line.value(answer) is not None for answer in found)]
    cells = [["", *(answer.cost_model or LOAD_ALONE for answer in found)]]
    cells += [[line.label, *(line.cell(answer) for answer in found)] for line in lines]
    widths = [max(len(line[n]) for line in cells) for n in range(len(cells[0]))]
    rows = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in cells]
    return "\n".join([*head, *rows])


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
    return [
        f"bf16 weights need at least {least} GPUs: ratios hold, seconds are as if one held them (--tensor-parallel)"
    ]


def _legend(found: Sequence[A]) -> str:
    names = dict.fromkeys(answer.cost_model for answer in found)
    lines = [f"{name}: t_GPU counts {COST_MODELS[name]}." for name in names if name]
    if any(answer.is_as_printed for answer in found):
        lines.append(
            "paper: seconds follow from its inputs at the rates shown; kappa_crit, pcie overhead, what is memory "
            "bound and the shares of a workload multiply kappa_M and kappa_HW as it rounded them."
        )
    if any(answer.is_tokenizer_proxy for answer in found):
        lines.append(_proxy_words(found))
    if any(isinstance(answer, WorkloadAnswer) for answer in found):
        lines.append("TTFT at p50 is that of one turn, which half of the turns do not exceed; p90 and p99 alike.")
        lines += [f"reuse {name}: {REUSE_WORDS[name]}" for name in dict.fromkeys(_reuses(found))]
    if any(isinstance(answer, WorkloadAnswer) and answer.is_sample for answer in found):
        lines.append("sample: generated text, not the data set")
    return "\n".join(lines)


def _proxy_words(found: Sequence[A]) -> str:
    if any(isinstance(answer, WorkloadAnswer) and answer.tokenizer == LOGGED for answer in found):
        return "The tokens are those of the log, of whatever model it served; the model here may count others."
    return "The model has another vocabulary; workloads are counted by llama-3.1 in its place."


def _reuses(found: Sequence[A]) -> list[str]:
    return [answer.reuse for answer in found if isinstance(answer, WorkloadAnswer)]

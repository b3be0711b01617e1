"""The answers of `kappa crit` as text for a person: cost models side by side for few platforms, one table for many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from assets.commands.crit.lines import (
    TURN,
    number,
    pays,
    percent,
    rate,
    scaled,
    seconds,
    words,
    workload_lines,
    yes_or_no,
)
from assets.commands.terminal import text_table
from pipelines.hardware import caveats
from pipelines.hardware.questions.answering import Answer
from pipelines.hardware.questions.origins import confidence_cell, confidence_words

Row = dict[str, Any]
MOST_BLOCKS = 3
ABOUT = ("model", "accelerator", "link", "basis", "kv_dtype")
LOAD_ALONE = "load alone"
COST_MODELS = {
    "2n": "2 x active parameters a new token",
    "attention": "layers, one head, and attention over the cached context",
    "full": "the same, but never less than reading the weights once (batch of one)",
}


# The columns of the table that many answers make: heading and cell.
_SHORT: dict[bool, list[tuple[str, Callable[[Row], str]]]] = {
    False: [
        ("kappa_crit here", lambda row: number(row["kappa_crit_here"])),
        ("pcie overhead", lambda row: number(row["pcie_overhead"])),
        ("memory bound", lambda row: yes_or_no(row["is_memory_bound"])),
        ("load", lambda row: seconds(row["transfer_s"])),
        ("compute", lambda row: seconds(row["compute_s"])),
        ("TTFT", lambda row: seconds(row["ttft_s"])),
        ("faster", lambda row: words(row["faster"])),
        ("loading is faster", pays),
        ("link needed", lambda row: rate(row["link_needed_bytes_per_s"])),
    ],
    True: [
        ("kappa_crit", lambda row: number(row["kappa_crit"])),
        ("bound turns", lambda row: percent(row["memory_bound_turn_share"])),
        ("bound tokens", lambda row: percent(row["memory_bound_token_share"])),
        ("bound time", lambda row: percent(row["memory_bound_time_share"])),
        ("overhead p50", lambda row: number(row["pcie_overhead_p50"])),
        ("p99", lambda row: number(row["pcie_overhead_p99"])),
        ("TTFT p50", lambda row: seconds(row["ttft_s_p50"])),
        ("p99", lambda row: seconds(row["ttft_s_p99"])),
        ("link needed p50", lambda row: rate(row["link_needed_bytes_per_s_p50"])),
        ("p90", lambda row: rate(row["link_needed_bytes_per_s_p90"])),
        ("p99", lambda row: rate(row["link_needed_bytes_per_s_p99"])),
    ],
}


def answer_text(found: list[Answer]) -> str:
    """Return the answers as text: a block for each model and platform, or a table where there are more than three."""
    blocks: dict[tuple[str, ...], list[Answer]] = {}
    for answer in found:
        blocks.setdefault(tuple(answer.row[name] for name in ABOUT), []).append(answer)
    if len(blocks) > MOST_BLOCKS:
        return f"{_subject(found)}\n\n{_table(found)}\n\n{_legend(found)}"
    return "\n\n".join([*map(_block, blocks.values()), _legend(found)])


def _table(found: list[Answer]) -> str:
    columns: list[tuple[str, Callable[[Row], str]]] = [
        *((name, lambda row, name=name: row[name]) for name in ABOUT),
        ("t_GPU", lambda row: row["cost_model"] or LOAD_ALONE),
        *_SHORT[found[0].is_workload],
        ("confidence", confidence_cell),
    ]
    cells = [[form(answer.row) for answer in found] for _, form in columns]
    return text_table(
        pa.Table.from_arrays([pa.array(column, pa.string()) for column in cells], [c for c, _ in columns])
    )


def _subject(found: list[Answer]) -> str:
    row = found[0].row
    chunk = "" if row["block_tokens"] == 1 else f", reuse in chunks of {row['block_tokens']:,} tokens"
    if found[0].is_workload:
        series = dict.fromkeys((answer.row["turns"], answer.row["tokenizer"]) for answer in found)
        counted = [f"{turns:,} turns, {row['counting']} counted by {tokenizer}" for turns, tokenizer in series]
        return f"{row['workload']}: {'; '.join(counted)}{chunk}"
    of_turn = f"K = {row['cached_tokens']:,} cached, T = {row['prefill_tokens']:,} new tokens"
    if row["cached_tokens"] != row["asked_cached_tokens"]:
        chunk += f" (of K = {row['asked_cached_tokens']:,}, T = {row['asked_new_tokens']:,})"
    return f"{of_turn}: kappa_ratio {number(row['kappa_ratio'])}{chunk}"


def _block(found: list[Answer]) -> str:
    row = found[0].row
    head = [
        f"{row['model']} on {row['accelerator']} over {row['link']}: basis {row['basis']}, {row['kv_dtype']} cache",
        _rates(row),
        _crit_words(row),
        _subject(found),
        f"confidence: {confidence_words(row)}",
        *_notes(row),
        "",
    ]
    chosen = workload_lines(row) if found[0].is_workload else TURN
    lines = [line for line in chosen if any(answer.row.get(line[1]) is not None for answer in found)]
    cells = [["", *(answer.row["cost_model"] or LOAD_ALONE for answer in found)]]
    cells += [[label, *(form(answer.row) for answer in found)] for label, _, form in lines]
    widths = [max(len(line[n]) for line in cells) for n in range(len(cells[0]))]
    rows = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in cells]
    return "\n".join([*head, *rows])


def _rates(row: Row) -> str:
    """Return the rates behind the seconds: of several GPUs all their compute, and what one link brings."""
    fraction, gpus = row["sustained_fraction"], row["tensor_parallel"]
    of_peak = "" if fraction is None else f" (dense peak x {number(fraction)})"
    if gpus == 1:
        return f"{scaled(row['flop_per_s'], 'FLOP/s')}{of_peak}, {rate(row['link_bytes_per_s'])} one direction"
    compute = f"{scaled(row['flop_per_s'], 'FLOP/s')}{of_peak} of {gpus} GPUs together"
    each, together = row["link_bytes_per_s"], row["bytes_per_s"]
    # A head that lies on two GPUs is loaded twice, so the links together bring less than they carry.
    repeated = "" if together > each * gpus * 0.999 else f" of {rate(each * gpus)}: KV heads or latent are repeated"
    return f"{compute}, {rate(each)} one direction on each one's link, effectively {rate(together)}{repeated}"


def _crit_words(row: Row) -> str:
    """Return kappa_crit, with a tier that of each way too."""
    if row["kappa_crit"] is None:
        tier = "" if row["tier"] is None else f" (tier {row['tier']})"
        return f"no kappa_crit{tier}: {row['why_no_kappa_crit']}"
    if row["tier"] is None:
        return f"kappa_crit {number(row['kappa_crit'])} (cost model 2n)"
    tier = f"behind tier {row['tier']} ({rate(row['tier_bytes_per_s'])} of one GPU)"
    alone = f"{number(row['link_kappa_crit'])} over {row['link']} alone (cost model 2n)"
    if row["tier_share"] == 1:
        return f"kappa_crit {number(row['kappa_crit'])} with all of the cache {tier}; {alone}"
    part = f"{percent(row['tier_share'])} of the cache {tier}; {number(row['tier_kappa_crit'])} with all of it there"
    return f"kappa_crit {number(row['kappa_crit'])} with {part}, {alone}"


def _notes(row: Row) -> list[str]:
    """Return a line for each thing to know: weights that do not fit, warnings, what cannot be told."""
    warnings = [f"note: {text}" for text in caveats.apart(row["warnings"])]
    return [*_too_large(row), *warnings, *([row["missing"]] if row["missing"] else [])]


def _too_large(row: Row) -> list[str]:
    """Return a line where the weights need more GPUs than were asked for: seconds are then those of no machine."""
    least = row["least_gpus"]
    if least is None or least <= row["tensor_parallel"]:
        return []
    return [
        f"bf16 weights need at least {least} GPUs: ratios hold, seconds are as if one held them (--tensor-parallel)"
    ]


def _legend(found: list[Answer]) -> str:
    names = dict.fromkeys(answer.row["cost_model"] for answer in found)
    lines = [f"{name}: t_GPU counts {COST_MODELS[name]}." for name in names if name]
    if any(answer.row["is_as_printed"] for answer in found):
        lines.append(
            "paper: seconds follow from its inputs at the rates shown; kappa_crit, pcie overhead, what is memory "
            "bound and the shares of a workload multiply kappa_M and kappa_HW as it rounded them."
        )
    if any(answer.row["is_tokenizer_proxy"] for answer in found):
        lines.append("The model has another vocabulary; workloads are counted by llama-3.1 in its place.")
    if any(answer.is_workload for answer in found):
        lines.append("TTFT at p50 is that of one turn, which half of the turns do not exceed; p90 and p99 alike.")
        lines.append(
            "K is the upper bound of reuse: everything said before is in host memory and nothing in the GPU's."
        )
    if any(answer.row.get("is_sample") for answer in found):
        lines.append("sample: generated text, not the data set")
    return "\n".join(lines)

"""The answers of `kappa crit` as text for a person: cost models side by side for few platforms, one table for many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from assets.crit_answers import Answer
from assets.terminal import text_table

Row = dict[str, Any]
Line = tuple[str, str, Callable[[Any], str]]
MOST_BLOCKS = 3
ABOUT = ("model", "accelerator", "link", "basis", "kv_dtype")
COST_MODELS = {
    "2n": "2 x active parameters a new token",
    "attention": "layers, one head, and attention over the cached context",
    "full": "the same, but never less than reading the weights once (batch of one)",
}
_SHORT = {
    False: ("kappa_crit_here", "pcie_overhead", "is_memory_bound", "ttft_s", "transfer_share", "faster",
            "load_from_cached_tokens", "needed_bytes_per_s"),
    True: ("kappa_crit", "memory_bound_turn_share", "memory_bound_time_share", "pcie_overhead_p50", "pcie_overhead_p99",
           "needed_bytes_per_s_p50", "needed_bytes_per_s_p99"),
}  # fmt: skip


def scaled(value: float | None, unit: str) -> str:
    """Return a quantity with a decimal prefix.

    >>> scaled(54.4e9, "B/s"), scaled(0.0166, "s"), scaled(None, "s")
    ('54.4 GB/s', '16.6 ms', '-')
    """
    if value is None:
        return "-"
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m")):
        if abs(value) >= factor and not (unit == "s" and factor > 1):
            return f"{value / factor:.4g} {prefix}{unit}"
    return "0 " + unit if value == 0 else f"{value * 1e6:.4g} u{unit}"


def number(value: float | None) -> str:
    """Return a number as a person reads it: four digits, or all of them with commas."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"  # noqa: PLR2004 - where commas begin


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.3g} %"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _tokens(value: int | None) -> str:
    return "never" if value is None else f"{value:,}"


def _seconds(value: float | None) -> str:
    return scaled(value, "s")


def _rate(value: float | None) -> str:
    return scaled(value, "B/s")


_TURN: list[Line] = [
    ("pcie overhead (t_PCIe / t_GPU)", "pcie_overhead", number),
    ("memory bound", "is_memory_bound", _yes),
    ("kappa_crit at this K and T", "kappa_crit_here", number),
    ("TTFT, load then compute", "ttft_s", _seconds),
    ("  load", "transfer_s", _seconds),
    ("  compute", "compute_s", _seconds),
    ("  share of loading", "transfer_share", _percent),
    ("TTFT, layer by layer", "layerwise_ttft_s", _seconds),
    ("computing K again instead", "recompute_s", _seconds),
    ("load or recompute", "faster", str),
    ("loading is faster from K =", "load_from_cached_tokens", _tokens),
    ("bandwidth to be compute bound", "needed_bytes_per_s", _rate),
    ("requests/s that the link carries", "requests_per_s", number),
    ("writing new KV back", "write_back_s", _seconds),
    ("T_sched, new tokens an iteration", "scheduled_tokens", number),
    ("energy", "energy_j", lambda value: scaled(value, "J")),
    ("average power", "average_power_w", lambda value: scaled(value, "W")),
]
_WORKLOAD: list[Line] = [
    ("memory-bound turns", "memory_bound_turn_share", _percent),
    ("memory-bound tokens", "memory_bound_token_share", _percent),
    ("memory-bound time", "memory_bound_time_share", _percent),
    ("share of time in transfer", "transfer_time_share", _percent),
    *((f"pcie overhead, {p}", f"pcie_overhead_{p}", number) for p in ("p50", "p90", "p99")),
    *((f"TTFT, {p}", f"ttft_s_{p}", _seconds) for p in ("p50", "p90", "p99")),
    *((f"compute bound from, {p}", f"needed_bytes_per_s_{p}", _rate) for p in ("p50", "p90", "p99")),
    ("loading is faster (turns that reuse)", "load_is_faster_share", _percent),
    ("requests/s that the link carries", "requests_per_s", number),
    ("turns beyond the model's context", "over_context_turn_share", _percent),
]


def answer_text(found: list[Answer]) -> str:
    """Return the answers as text: a block for each model and platform, or a table where there are more than three."""
    blocks: dict[tuple[str, ...], list[Answer]] = {}
    for answer in found:
        blocks.setdefault(tuple(answer.row[name] for name in ABOUT), []).append(answer)
    if len(blocks) > MOST_BLOCKS:
        columns = (*ABOUT, "cost_model", *_SHORT[found[0].is_workload])
        table = pa.Table.from_pylist([{name: answer.row[name] for name in columns} for answer in found])
        return f"{_subject(found[0])}\n\n{text_table(table)}\n\n{_legend(found)}"
    return "\n\n".join([*map(_block, blocks.values()), _legend(found)])


def _subject(answer: Answer) -> str:
    row = answer.row
    chunk = "" if row["block_tokens"] == 1 else f", reuse in chunks of {row['block_tokens']} tokens"
    if answer.is_workload:
        return f"{row['workload']}: {row['turns']:,} turns, {row['counting']} counted by {row['tokenizer']}{chunk}"
    of_turn = f"K = {row['cached_tokens']:,} cached, T = {row['prefill_tokens']:,} new tokens"
    return f"{of_turn}: kappa_ratio {number(row['kappa_ratio'])}{chunk}"


def _block(found: list[Answer]) -> str:
    row = found[0].row
    shared = "" if row["tensor_parallel"] == 1 else f", {row['tensor_parallel']} GPUs together"
    head = [
        f"{row['model']} on {row['accelerator']} over {row['link']}: basis {row['basis']}, {row['kv_dtype']} cache",
        f"{scaled(row['flop_per_s'], 'FLOP/s')}, {scaled(row['bytes_per_s'], 'B/s')} one direction{shared}",
        f"kappa_crit {number(row['kappa_crit'])} (cost model 2n)",
        _subject(found[0]),
        *_too_large(row),
        "",
    ]
    lines = [line for line in (_WORKLOAD if found[0].is_workload else _TURN) if line[1] in row]
    cells = [["", *(answer.row["cost_model"] for answer in found)]]
    cells += [[label, *(form(answer.row[name]) for answer in found)] for label, name, form in lines]
    widths = [max(len(line[n]) for line in cells) for n in range(len(cells[0]))]
    rows = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in cells]
    return "\n".join([*head, *rows])


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
    lines = [f"{name}: t_GPU counts {COST_MODELS[name]}." for name in names]
    if any(answer.row["is_tokenizer_proxy"] for answer in found):
        lines.append("The model has another vocabulary; workloads are counted by llama-3.1 in its place.")
    if any(answer.is_workload for answer in found):
        lines.append(
            "K is the upper bound of reuse: everything said before is in host memory and nothing in the GPU's."
        )
    if any(answer.row.get("is_sample") for answer in found):
        lines.append("sample: generated text, not the data set")
    return "\n".join(lines)

"""Many answers of `kappa crit` as one table of at most 100 columns; what all share is in a line above it."""

from __future__ import annotations

import itertools
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

import pyarrow as pa

from assets.commands.crit.lines import confidence_cell, pays, rate, seconds, words
from assets.commands.screen import text_table
from assets.commands.terminal import markdown_lines, markdown_text
from pipelines.hardware import caveats
from pipelines.hardware.questions.answer import CritAnswer, CritRow, TurnAnswer, WorkloadAnswer
from pipelines.hardware.questions.verdict import verdict
from warehouse.declared.formats import number, percent, yes_or_no

A = TypeVar("A", bound=CritAnswer)
WIDTH = 100
LOAD_ALONE = "load alone"
MOST_NOTES = 6
# The longest name that is shown whole where a table would be too wide.
_LONGEST, _SHORTEST = 24, 9
_BETWEEN = 2


class Column(NamedTuple, Generic[A]):
    """A column: heading, cell, and whether its cells are right-aligned numbers."""

    heading: str
    cell: Callable[[A], str]
    is_number: bool = True


NAMES: list[Column[CritAnswer]] = [
    Column("model", lambda of: of.model, is_number=False),
    Column("accelerator", lambda of: of.accelerator, is_number=False),
    Column("link", lambda of: of.link, is_number=False),
    Column("basis", lambda of: of.basis, is_number=False),
    Column("KV", lambda of: of.kv_dtype, is_number=False),
    Column("GPUs", lambda of: f"{of.tensor_parallel:,}"),
    Column("t_GPU", lambda of: "" if isinstance(of, CritRow) else of.cost_model or LOAD_ALONE, is_number=False),
]
# The columns of values, the most wanted first: the others are left out where the table would be too wide.
CRIT: list[Column[CritRow]] = [
    Column("kappa_crit", lambda row: number(row.kappa_crit)),
    Column("confidence", confidence_cell, is_number=False),
    Column("kappa_m_flop_per_byte", lambda row: number(row.kappa_m_flop_per_byte)),
    Column("kappa_hw_byte_per_flop", lambda row: number(row.kappa_hw_byte_per_flop)),
    Column("tokenizer", lambda row: row.tokenizer, is_number=False),
    Column("is_tokenizer_proxy", lambda row: yes_or_no(row.is_tokenizer_proxy), is_number=False),
]
TURN: list[Column[TurnAnswer]] = [
    Column("memory bound", lambda turn: yes_or_no(turn.is_memory_bound), is_number=False),
    Column("pool holds", lambda turn: number(turn.pool_requests)),
    Column("TTFT", lambda turn: seconds(turn.ttft_s)),
    Column("faster", lambda turn: words(turn.faster), is_number=False),
    Column("load", lambda turn: seconds(turn.transfer_s)),
    Column("compute", lambda turn: seconds(turn.compute_s)),
    Column("overhead", lambda turn: number(turn.pcie_overhead)),
    Column("kappa_crit here", lambda turn: number(turn.kappa_crit_here)),
    Column("requests/s", lambda turn: number(turn.requests_per_s)),
    Column("link needed", lambda turn: rate(turn.link_needed_bytes_per_s)),
    Column("recompute", lambda turn: seconds(turn.recompute_s)),
    Column("loading is faster", pays, is_number=False),
    Column("confidence", confidence_cell, is_number=False),
]
WORKLOAD: list[Column[WorkloadAnswer]] = [
    Column("bound turns", lambda of: percent(of.memory_bound_turn_share)),
    Column("TTFT p50", lambda of: seconds(of.p50.ttft_s)),
    Column("TTFT p99", lambda of: seconds(of.p99.ttft_s)),
    Column("load faster", lambda of: percent(of.load_is_faster_share)),
    Column("requests/s", lambda of: number(of.requests_per_s)),
    Column("kappa_crit", lambda of: number(of.kappa_crit)),
    Column("bound tokens", lambda of: percent(of.memory_bound_token_share)),
    Column("bound time", lambda of: percent(of.memory_bound_time_share)),
    Column("overhead p50", lambda of: number(of.p50.pcie_overhead)),
    Column("overhead p99", lambda of: number(of.p99.pcie_overhead)),
    Column("TTFT p90", lambda of: seconds(of.p90.ttft_s)),
    Column("link needed p50", lambda of: rate(of.p50.link_needed_bytes_per_s)),
    Column("link needed p90", lambda of: rate(of.p90.link_needed_bytes_per_s)),
    Column("link needed p99", lambda of: rate(of.p99.link_needed_bytes_per_s)),
    Column("confidence", confidence_cell, is_number=False),
]


def table_text(found: Sequence[A], columns: Sequence[Column[A]], *, is_wide: bool, is_markdown: bool = False) -> str:
    """Return answers as one table with what all share above it, the verdict and the notes below it.

    Args:
        found: At least one answer.
        columns: The columns of their values, the most wanted first.
        is_wide: Show all of them, and names whole; else as many as fit into `WIDTH`.
        is_markdown: Write Markdown.
    """
    names = [(column.heading, [column.cell(answer) for answer in found], column.is_number) for column in NAMES]
    shared = [f"{heading} {cells[0]}" for heading, cells, _ in names if len({*cells}) == 1 and cells[0]]
    varying = [column for column in names if len({*column[1]}) > 1]
    shown = [(column.heading, [column.cell(answer) for answer in found], column.is_number) for column in columns]
    shown = [column for column in shown if {*column[1]} != {"-"}]
    if not is_wide:
        varying = _shortened(varying, shown[0])
    kept = shown if is_wide else _fitting(varying, shown)
    left_out = [heading for heading, *_ in shown[len(kept) :]]
    above = f"all: {', '.join(shared)}" if shared and len(found) > 1 else ", ".join(shared)
    below = [*([f"--wide adds {', '.join(left_out)}"] if left_out else [])]
    answer = verdict(found)
    head = [wrapped(above, is_markdown=is_markdown, is_wide=is_wide)] if above else []
    prose = [*([answer.sentence] if answer else []), *below, *_notes(found)]
    drawn = _drawn([*varying, *kept], is_markdown=is_markdown)
    lines = [wrapped(line, is_markdown=is_markdown, is_wide=is_wide) for line in prose]
    return "\n".join([*head, *([] if is_markdown else [""]), drawn, "", *lines])


Cells = tuple[str, list[str], bool]


def _shortened(names: Sequence[Cells], value: Cells) -> list[Cells]:
    """Return the columns with their long names cut in the middle, as far as it takes for a value to fit beside them."""
    lengths = range(_LONGEST, _SHORTEST - 1, -1)
    cut = (
        [(heading, [_cut(cell, length) for cell in cells], kind) for heading, cells, kind in names]
        for length in lengths
    )
    tries = itertools.chain([list(names)], cut)
    return next((columns for columns in tries if _width([*columns, value]) <= WIDTH), list(names))


def _cut(name: str, length: int) -> str:
    """Return a name of at most `length` characters.

    >>> _cut("models/a-very-long-path/of/a/config.json", 24)
    'models/a-v...config.json'
    """
    half = (length - 3) // 2
    return name if len(name) <= length else f"{name[:half]}...{name[len(name) - (length - 3 - half) :]}"


def _fitting(names: Sequence[Cells], values: Sequence[Cells]) -> list[Cells]:
    """Return the first columns of values that fit beside the names; the first one in any case."""
    kept = list(values[:1])
    for column in values[1:]:
        if _width([*names, *kept, column]) > WIDTH:
            break
        kept.append(column)
    return kept


def _width(columns: Iterable[Cells]) -> int:
    return sum(max(map(len, [heading, *cells])) + _BETWEEN for heading, cells, _ in columns) - _BETWEEN


def _drawn(columns: Sequence[Cells], *, is_markdown: bool) -> str:
    if is_markdown:
        kinds = [pa.int64() if is_number else pa.string() for *_, is_number in columns]
        schema = pa.schema([(heading, kind) for (heading, *_), kind in zip(columns, kinds, strict=True)])
        head = list(markdown_lines([], schema))
        rows = zip(*(cells for _, cells, _ in columns), strict=True)
        return "\n".join([*head, *("| " + " | ".join(map(markdown_text, row)) + " |" for row in rows)])
    aligned = []
    for heading, cells, is_number in columns:
        width = max(map(len, [heading, *cells]))
        aligned.append([text.rjust(width) if is_number else text for text in (heading, *cells)])
    arrays = [pa.array(cells, pa.string()) for _, *cells in aligned]
    return text_table(pa.Table.from_arrays(arrays, [heading for heading, *_ in aligned]), stream=sys.stdout)


def _notes(found: Sequence[CritAnswer]) -> list[str]:
    notes = list(dict.fromkeys(note for answer in found for note in caveats.apart(answer.warnings)))
    more = [f"{len(notes) - MOST_NOTES:,} more notes: --format json"] if len(notes) > MOST_NOTES else []
    return [f"note: {note}" for note in notes[:MOST_NOTES]] + more


def wrapped(line: str, *, is_markdown: bool = False, is_wide: bool = False) -> str:
    """Return a line of prose within the width, its other lines indented; Markdown ends a paragraph instead."""
    if is_markdown:
        return f"{markdown_text(line)}\n" if line else ""
    if is_wide or len(line) <= WIDTH:
        return line
    return "\n".join(textwrap.wrap(line, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False))

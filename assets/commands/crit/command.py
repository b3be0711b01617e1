"""`kappa crit`: kappa_crit from the sourced tables, or costs of a turn or a workload for a model on a machine."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import fields

import pyarrow as pa

from assets.commands.crit.table import CRIT, table_text, wrapped
from assets.commands.crit.text import View, answer_text
from assets.commands.output import output_path
from assets.commands.terminal import chosen_format, write_rows, write_text
from kappa.asking import answers_of
from pipelines.hardware.bandwidth import parse_bytes_per_s
from pipelines.hardware.machines import SUSTAINED_FRACTION_DENSE, SUSTAINED_FRACTION_MOE
from pipelines.hardware.questions.answer import CritRow, arrow_schema, flat_row
from pipelines.hardware.questions.question import CritQuestion, one_by_one
from warehouse.declared.formats import cell
from warehouse.home.home import Home, home_path

COLUMNS = arrow_schema(CritRow)


def crit(options: argparse.Namespace) -> int:
    """Print kappa_crit for the chosen models and platforms, or the answer to a question about them.

    Raises:
        KappaError: the question cannot be answered; see `pipelines.hardware.questions.crit`.
    """
    home, output = home_path(options.home), output_path(options)
    question = question_of(options)
    chosen = chosen_format(options.format, output)
    found = answers_of(question, home, Home(home).database)
    rows = [answer for answer in found if isinstance(answer, CritRow)]
    if chosen == "markdown" or (chosen == "table" and output is None):
        view = View(len(one_by_one(question)) > 1, options.wide, chosen == "markdown")
        write_text(_crit_text(rows, question, view) if rows else answer_text(found, view), output)
        return 0
    table = pa.Table.from_pylist([flat_row(question, answer) for answer in found], schema=COLUMNS if rows else None)
    write_rows(table.to_batches(), table.schema, chosen, output, cell)
    return 0


def question_of(options: argparse.Namespace) -> CritQuestion:
    """Return the question that the options ask.

    Raises:
        UsageError: the bandwidth cannot be parsed.
    """
    named = {
        "bandwidth_bytes_per_s": "bandwidth",
        "chunk_tokens": "chunk",
        "node_bandwidth_bytes_per_s": "node_bandwidth",
        "copy_latency_s": "copy_latency",
        "whole_layers": "no_hybrid_manager",
    }
    given = {field.name: getattr(options, named.get(field.name, field.name)) for field in fields(CritQuestion)}
    given["bandwidth_bytes_per_s"] = parse_bytes_per_s(options.bandwidth) if options.bandwidth else None
    node = options.node_bandwidth
    given["node_bandwidth_bytes_per_s"] = parse_bytes_per_s(node) if node else None
    return CritQuestion(**{name: value for name, value in given.items() if value is not None})


def _crit_text(rows: Sequence[CritRow], question: CritQuestion, view: View) -> str:
    table = table_text(rows, CRIT, is_wide=view.is_wide, is_markdown=view.is_markdown)
    legend = _legend(rows, question.sustained_fraction)
    lines = (wrapped(line, is_wide=view.is_wide, is_markdown=view.is_markdown) for line in legend)
    return "\n".join([table, *lines])


def _legend(rows: Sequence[CritRow], fraction: float | None) -> list[str]:
    bases = {row.basis for row in rows}
    lines = [
        "kappa_crit: above this kappa_ratio (cached over new tokens) the accelerator waits for the link; cost model 2n."
    ]
    if "physical" in bases:
        share = f"{SUSTAINED_FRACTION_DENSE} (MoE {SUSTAINED_FRACTION_MOE})" if fraction is None else f"{fraction:g}"
        lines.append(
            f"physical: dense peak x {share}, one direction, "
            "measured bandwidth where there is one; paper: the paper's inputs."
        )
    if "paper" in bases:
        lines.append("paper: kappa_m and kappa_hw are unrounded; kappa_crit multiplies them as the paper printed them.")
    if "measured" in bases:
        lines.append("measured: what `kappa measure` found, an upper bound of what prefill sustains.")
    lines.append("confidence: of the rows of model/accelerator/link; secondary is second-hand. --format json: sources.")
    lines += _unknown(rows)
    if any(row.is_tokenizer_proxy for row in rows):
        lines.append("is_tokenizer_proxy: the model has another vocabulary; workloads are joined by llama-3.1 counts.")
    lines.append("`kappa sql 'FROM models'` lists all models; nothing named shows the headline ones.")
    lines.append("A turn: --cached-tokens K --new-tokens T; a workload of the home folder: --workload NAME.")
    return lines


def _unknown(rows: Sequence[CritRow]) -> list[str]:
    """Return a line for each model without kappa_crit: the reason, and the known figures of its cache."""
    whys = {row.model: row.why_no_kappa_crit for row in rows if row.kappa_crit is None}
    return [f"{name} has no kappa_crit: {why}" for name, why in whys.items()]

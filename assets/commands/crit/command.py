"""`kappa crit`: kappa_crit of the sourced tables, or what a turn or a workload makes of one model on one machine."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from assets.commands.cli import home_path
from assets.commands.crit.text import answer_text
from assets.commands.output import output_path
from assets.commands.terminal import chosen_format, write_rows
from pipelines.hardware import caveats
from pipelines.hardware.bandwidth import parse_bytes_per_s
from pipelines.hardware.machines import SUSTAINED_FRACTION_DENSE, SUSTAINED_FRACTION_MOE, Sources, read_sources
from pipelines.hardware.questions.answering import answers
from pipelines.hardware.questions.checks import check_question, is_question
from pipelines.hardware.questions.names import settle_names
from pipelines.hardware.questions.origins import CONFIDENCES, SOURCES, confidence_cell, origins, pair_notes
from pipelines.hardware.ratios import fitting_platforms, kappa_crit_rows
from warehouse.errors import KappaError
from warehouse.hardware_rows.rows import FOLDER, load_reference, user_folder

Row = dict[str, Any]
COLUMNS = pa.schema(
    [
        ("model", pa.string()), ("accelerator", pa.string()), ("link", pa.string()), ("basis", pa.string()),
        ("kv_dtype", pa.string()), ("kappa_m_flop_per_byte", pa.float64()), ("kappa_hw_byte_per_flop", pa.float64()),
        ("kappa_crit", pa.float64()), ("is_tokenizer_proxy", pa.bool_()),
        *((name, pa.string()) for name in CONFIDENCES if name != "tier_confidence"),
        *((f"{name}_source", pa.string()) for name in SOURCES if name != "tier_bytes_per_s"),
        ("why_no_kappa_crit", pa.string()), ("warnings", pa.string()),
    ]
)  # fmt: skip
# What a person sees of them; `confidence` stands for all rows that were used.
SHOWN = pa.schema([*[COLUMNS.field(n) for n in range(9)], pa.field("confidence", pa.string())])


def crit(options: argparse.Namespace) -> int:
    """Print kappa_crit for the chosen models and platforms, or the answer to a question about them.

    Without any choice these are the headline ones; a row known only second-hand is never chosen unless it is named.

    Raises:
        KappaError: a name is unknown (the nearest are named), or nothing fits the choice.
    """
    options.home = home_path(options.home)
    user, output = user_folder(options.home), output_path(options)
    check_question(options)
    sources = replace(read_sources(FOLDER, user), sustained_fraction=options.sustained_fraction)
    settle_names(options, sources)
    if options.sustained_fraction is not None:
        options.basis = "physical"
    rows = _rows(options, sources, user)
    if not rows:
        raise _nothing_fits(options, sources)
    options.format = chosen_format(options.format, output)
    if is_question(options):
        found = answers(options, sources, rows)
        if options.format == "table" and output is None:
            print(answer_text(found))
            return 0
        table = pa.Table.from_pylist([answer.row for answer in found])
        write_rows(table.to_batches(), table.schema, options.format, output)
        return 0
    is_read = options.format == "table" and output is None
    schema = SHOWN if is_read else COLUMNS
    table = pa.Table.from_pylist(rows, schema=schema)
    write_rows(table.to_batches(), schema, options.format, output)
    if is_read:
        print(_legend(rows, options.sustained_fraction))
    return 0


def _rows(options: argparse.Namespace, sources: Sources, user: Path) -> list[Row]:
    """Return the chosen rows, each with what tells how sure its platform is."""
    bandwidth = parse_bytes_per_s(options.bandwidth) if options.bandwidth else None
    is_free = not any((options.model, options.accelerator, options.link, options.basis, bandwidth))
    is_free |= is_question(options) and not any((options.accelerator, options.link, options.basis, bandwidth))
    headlines = load_reference("headlines", FOLDER, user).to_pylist()
    models = {row["model"] for row in headlines if row["model"]}
    shown = {(row["accelerator"], row["link"], row["basis"]) for row in headlines if row["accelerator"]}
    proxies = {row["model"]: row["is_tokenizer_proxy"] for row in sources.rows["models"]}
    rows = []
    is_given = bandwidth is not None
    for platform in fitting_platforms(sources, options.accelerator, options.link, is_bandwidth_given=is_given):
        name = (platform["accelerator"], platform["link"], platform["basis"])
        if (is_free and name not in shown) or _is_hidden(options, sources, platform):
            continue
        if options.basis not in (None, platform["basis"]):
            continue
        dtypes = (options.kv_dtype or "bf16",)
        shared = {"bytes_per_s": bandwidth, "kv_dtypes": dtypes, "tensor_parallel": options.tensor_parallel}
        rows += [
            row | {"is_tokenizer_proxy": proxies[row["model"]]}
            for row in kappa_crit_rows(sources, platform, **shared)
            if row["model"] == options.model or (options.model is None and row["model"] in models)
        ]
    if is_question(options):
        return rows
    return [row | _about_row(options, sources, row) for row in rows]


def _about_row(options: argparse.Namespace, sources: Sources, row: Row) -> Row:
    found = origins(sources, row, is_bandwidth_given=bool(options.bandwidth))
    model = sources.named("models", row["model"]) or {}
    warnings = pair_notes(row, found) + caveats.tensor_parallel_caveats(model, options.tensor_parallel)
    return found | {
        "confidence": confidence_cell(found),
        "why_no_kappa_crit": caveats.why_no_kappa_crit(model, row["kv_dtype"]),
        "warnings": caveats.together(warnings),
    }


def _is_hidden(options: argparse.Namespace, sources: Sources, platform: Row) -> bool:
    """Return whether what is second-hand was not asked for: its link, or a second-hand accelerator, by name.

    Second-hand is a platform with any of its three rows second-hand; the paper's own inputs are what it printed.
    """
    if options.link or platform["basis"] == "paper":
        return False
    of_link = sources.named("links", platform["link"]) or {}
    of_accelerator = sources.named("accelerators", platform["accelerator"]) or {}
    sure = [row.get("confidence") for row in (platform, of_link, of_accelerator)]
    is_named = options.accelerator and of_accelerator.get("confidence") == SECOND_HAND
    return SECOND_HAND in sure and not is_named


SECOND_HAND = "secondary"


def _nothing_fits(options: argparse.Namespace, sources: Sources) -> KappaError:
    paper = [row["model"] for row in sources.rows["paper_models"]]
    if options.basis == "paper" and options.model and options.model not in paper:
        return KappaError(
            f"nothing fits {options.model}", f"the paper has {', '.join(paper)} alone", "leave out --basis paper"
        )
    if options.basis == "measured" and not sources.rows["measured"]:
        return KappaError("nothing fits", "nothing was measured here", "run `kappa measure` on that machine first")
    there = {row[kind] for row in sources.rows["platforms"] if row["basis"] == options.basis for kind in _PAIR}
    lacking = [name for kind in _PAIR if (name := getattr(options, kind)) and name not in there]
    if options.basis == "paper" and lacking:
        return KappaError(
            f"nothing fits {' and '.join(lacking)}",
            f"the paper has {', '.join(sorted(there))} alone",
            "leave out --basis paper",
        )
    named = " and ".join(name for kind in _PAIR if (name := getattr(options, kind)))
    missing = {"accelerator": "--accelerator", "link": "--link, or give --bandwidth,"}
    unnamed = [words for kind, words in missing.items() if not getattr(options, kind)]
    return KappaError(
        f"nothing fits {named}".rstrip(),
        f"no sourced platform has {named or 'that'}"
        + (f" on the basis {options.basis}" if options.basis else ", or it is known only second-hand"),
        f"name {' and '.join(unnamed)} as well" if unnamed else "leave out --basis",
    )


_PAIR = ("accelerator", "link")


def _legend(rows: list[Row], fraction: float | None) -> str:
    bases = {row["basis"] for row in rows}
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
    if any(row["is_tokenizer_proxy"] for row in rows):
        lines.append("is_tokenizer_proxy: the model has another vocabulary; workloads are joined by llama-3.1 counts.")
    warnings = [text for row in rows for text in caveats.apart(row["warnings"])]
    lines += [f"note: {text}" for text in dict.fromkeys(warnings)]
    lines.append("`kappa sql 'FROM models'` lists all models; nothing named shows the headline ones.")
    lines.append("A turn: --cached-tokens K --new-tokens T; a workload of the home folder: --workload NAME.")
    return "\n".join(lines)


def _unknown(rows: list[Row]) -> list[str]:
    """Return a line for each model without kappa_crit: why, and what is known of its cache."""
    whys = {row["model"]: row["why_no_kappa_crit"] for row in rows if row["kappa_crit"] is None}
    return [f"{name} has no kappa_crit: {why}" for name, why in whys.items()]

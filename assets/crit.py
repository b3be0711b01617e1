"""`kappa crit`: kappa_crit of the sourced tables, or what a turn or a workload makes of one model on one machine."""

from __future__ import annotations

import argparse
import difflib
from pathlib import Path
from typing import Any

import pyarrow as pa

from assets.cli import home_path
from assets.crit_answers import answers, check_question, is_question
from assets.crit_text import answer_text
from assets.terminal import chosen_format, write_rows
from pipelines.cache import KV_ELEMENT_BYTES
from pipelines.hardware import fitting_platforms, kappa_crit_rows
from pipelines.machines import SUSTAINED_FRACTION_DENSE, SUSTAINED_FRACTION_MOE, Sources, read_sources
from pipelines.units import parse_bytes_per_s
from warehouse.errors import KappaError
from warehouse.reference_rows import FOLDER, load_reference, user_folder

Row = dict[str, Any]
COLUMNS = pa.schema(
    [
        ("model", pa.string()), ("accelerator", pa.string()), ("link", pa.string()), ("basis", pa.string()),
        ("kv_dtype", pa.string()), ("kappa_m_flop_per_byte", pa.float64()), ("kappa_hw_byte_per_flop", pa.float64()),
        ("kappa_crit", pa.float64()), ("is_tokenizer_proxy", pa.bool_()),
    ]
)  # fmt: skip


def crit(options: argparse.Namespace) -> int:
    """Print kappa_crit for the chosen models and platforms, or the answer to a question about them.

    Without any choice these are the headline ones; a row known only second-hand is never chosen unless it is named.

    Raises:
        KappaError: a name is unknown (the nearest are named), or nothing fits the choice.
    """
    user = user_folder(home_path(options.home))
    sources = read_sources(FOLDER, user)
    _check_names(options, sources)
    check_question(options)
    rows = _rows(options, sources, user)
    if not rows:
        raise _nothing_fits(options, sources)
    output = Path(options.output) if options.output else None
    options.format = chosen_format(options.format, output)
    if is_question(options):
        found = answers(options, sources, rows)
        if options.format == "table" and output is None:
            print(answer_text(found))
            return 0
        table = pa.Table.from_pylist([answer.row for answer in found])
        write_rows(table.to_batches(), table.schema, options.format, output)
        return 0
    table = pa.Table.from_pylist(rows, schema=COLUMNS)
    write_rows(table.to_batches(), COLUMNS, options.format, output)
    if options.format == "table" and output is None:
        print(_legend(rows))
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
    for platform in fitting_platforms(
        sources, options.accelerator, options.link, is_bandwidth_given=bandwidth is not None
    ):
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
    return rows


def _is_hidden(options: argparse.Namespace, sources: Sources, platform: Row) -> bool:
    """Return whether a second-hand platform was not asked for: its link, or a second-hand accelerator, by name."""
    if platform["confidence"] != "secondary" or options.link:
        return False
    accelerator = sources.named("accelerators", platform["accelerator"])
    return not (options.accelerator and accelerator and accelerator["confidence"] == "secondary")


def _nothing_fits(options: argparse.Namespace, sources: Sources) -> KappaError:
    paper = [row["model"] for row in sources.rows["paper_models"]]
    if options.basis == "paper" and options.model and options.model not in paper:
        return KappaError(
            f"nothing fits {options.model}", f"the paper has {', '.join(paper)} alone", "leave out --basis paper"
        )
    if options.basis == "measured" and not sources.rows["measured"]:
        return KappaError("nothing fits", "nothing was measured here", "run `kappa measure` on that machine first")
    return KappaError(
        "nothing fits",
        "no platform has that accelerator with that link"
        + (f" on the basis {options.basis}" if options.basis else ", or it is known only second-hand"),
        "name --accelerator and --link, or give --bandwidth as well",
    )


def _legend(rows: list[Row]) -> str:
    lines = [
        "kappa_crit: above this kappa_ratio (cached over new tokens) the accelerator waits for the link; cost model 2n."
    ]
    if any(row["basis"] == "physical" for row in rows):
        lines.append(
            f"physical: dense peak x {SUSTAINED_FRACTION_DENSE} (MoE {SUSTAINED_FRACTION_MOE}), one direction, "
            "measured bandwidth where there is one; paper: the paper's inputs."
        )
    if any(row["basis"] == "paper" for row in rows):
        lines.append("On the paper's basis kappa_crit is the product with kappa_m as the paper printed it.")
    if any(row["kappa_crit"] is None for row in rows):
        lines.append(
            "Empty: KV bytes per token are not constant, or the parameters are not known (docs/kappa-crit.md)."
        )
    if any(row["is_tokenizer_proxy"] for row in rows):
        lines.append("is_tokenizer_proxy: the model has another vocabulary; workloads are joined by llama-3.1 counts.")
    lines.append("Nothing named: the headline models and platforms; `kappa sql 'FROM models'` lists all models.")
    lines.append("A turn: --cached-tokens K --new-tokens T; a workload of the home folder: --workload NAME.")
    return "\n".join(lines)


def _check_names(options: argparse.Namespace, sources: Sources) -> None:
    platforms = sources.rows["platforms"]
    links = {row["link"] for row in (*sources.rows["links"], *platforms)}
    known = {
        "model": {row["model"] for row in sources.rows["models"]},
        "accelerator": {row["accelerator"] for row in (*sources.rows["accelerators"], *platforms)},
        "link": links,
        "tier": links,
        "kv_dtype": set(KV_ELEMENT_BYTES),
    }
    for kind, names in known.items():
        given = getattr(options, kind)
        if given is not None and given not in names:
            raise unknown_name(kind.replace("_", " "), given, names)
    if options.tensor_parallel < 1:
        raise KappaError(
            f"--tensor-parallel {options.tensor_parallel} is not possible", "it is a number of GPUs", "give 1 or more"
        )


def unknown_name(kind: str, given: str, names: set[str]) -> KappaError:
    """Return the error for a name that no table has, with the nearest that there are."""
    near = difflib.get_close_matches(given.lower(), sorted(names), 4, 0.4) or sorted(names)[:8]
    return KappaError(
        f"unknown {kind} {given!r}",
        f"nearest are {', '.join(near)}",
        f"`kappa sql 'FROM {kind}s'` lists those of the tables"
        if kind in ("model", "accelerator", "link")
        else "choose one",
    )

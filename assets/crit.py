"""`kappa crit`: kappa_crit of the sourced tables, filtered, or of one pair that is not in them."""

from __future__ import annotations

import argparse
import difflib
from pathlib import Path
from typing import Any

import pyarrow as pa

from assets.terminal import write_rows
from pipelines.hardware import SUSTAINED_FRACTION_DENSE, SUSTAINED_FRACTION_MOE, crit_rows, hardware_tables
from pipelines.kappa import ELEMENT_BYTES
from pipelines.units import parse_bytes_per_s
from warehouse.errors import KappaError
from warehouse.reference_rows import load_reference

COLUMNS = pa.schema(
    [
        ("model", pa.string()), ("accelerator", pa.string()), ("link", pa.string()), ("basis", pa.string()),
        ("kv_dtype", pa.string()), ("kappa_m_flop_per_byte", pa.float64()), ("kappa_hw_byte_per_flop", pa.float64()),
        ("kappa_crit", pa.float64()), ("is_tokenizer_proxy", pa.bool_()),
    ]
)  # fmt: skip


def crit(options: argparse.Namespace) -> int:
    """Print kappa_crit for the chosen models and platforms; without any choice, for the headline ones.

    Raises:
        KappaError: a name is unknown (the nearest are named), or nothing fits the choice.
    """
    tables = hardware_tables()
    _check_names(options, tables)
    if options.tensor_parallel < 1:
        raise KappaError(
            f"--tensor-parallel {options.tensor_parallel} is not possible", "it is a number of GPUs", "give 1 or more"
        )
    rows = _rows(options)
    if not rows:
        raise KappaError(
            "nothing fits",
            "no platform has that accelerator with that link",
            "leave out --link, or give --bandwidth as well",
        )
    proxies = dict(
        zip(tables["models"]["model"].to_pylist(), tables["models"]["is_tokenizer_proxy"].to_pylist(), strict=True)
    )
    table = pa.Table.from_pylist(
        [row | {"is_tokenizer_proxy": proxies.get(row["model"])} for row in rows], schema=COLUMNS
    )
    write_rows(table.to_batches(), COLUMNS, options.format, Path(options.output) if options.output else None)
    if options.format == "table" and not options.output:
        print(_legend(rows, proxies))
    return 0


def _rows(options: argparse.Namespace) -> list[dict[str, Any]]:
    bandwidth = parse_bytes_per_s(options.bandwidth) if options.bandwidth else None
    is_free = not any((options.model, options.accelerator, options.link, options.basis, bandwidth))
    headlines = load_reference("headlines").to_pylist()
    models = {row["model"] for row in headlines if row["model"]}
    platforms = {(row["accelerator"], row["link"], row["basis"]) for row in headlines if row["accelerator"]}
    rows = crit_rows(
        accelerator=options.accelerator,
        link=options.link,
        bandwidth_bytes_per_s=bandwidth,
        tensor_parallel=options.tensor_parallel,
    )
    return [
        row
        for row in rows
        if (options.model in (None, row["model"])) and (options.model or row["model"] in models)
        and options.basis in (None, row["basis"]) and (options.kv_dtype or "bf16") == row["kv_dtype"]
        and (not is_free or (row["accelerator"], row["link"], row["basis"]) in platforms)
    ]  # fmt: skip


def _legend(rows: list[dict[str, Any]], proxies: dict[str, bool]) -> str:
    lines = [
        "kappa_crit: above this kappa_ratio (cached over new tokens) the accelerator waits for the link; cost model 2n."
    ]
    if any(row["basis"] == "physical" for row in rows):
        lines.append(
            f"physical: dense peak x {SUSTAINED_FRACTION_DENSE} (MoE {SUSTAINED_FRACTION_MOE}), one direction, "
            "measured bandwidth where there is one; paper: the paper's inputs."
        )
    if any(proxies.get(row["model"]) for row in rows):
        lines.append("is_tokenizer_proxy: the model has another vocabulary; workloads are joined by llama-3.1 counts.")
    return "\n".join(lines)


def _check_names(options: argparse.Namespace, tables: dict[str, pa.Table]) -> None:
    known = {
        "model": set(tables["models"]["model"].to_pylist()),
        "accelerator": set(tables["accelerators"]["accelerator"].to_pylist()),
        "link": set(tables["links"]["link"].to_pylist()) | set(tables["platforms"]["link"].to_pylist()),
        "kv_dtype": set(ELEMENT_BYTES),
    }
    for kind, names in known.items():
        given = getattr(options, kind)
        if given is not None and given not in names:
            near = difflib.get_close_matches(given.lower(), sorted(names), 4, 0.4) or sorted(names)[:8]
            raise KappaError(
                f"unknown {kind.replace('_', ' ')} {given!r}",
                f"nearest are {', '.join(near)}",
                "`kappa sql` on the table lists all",
            )

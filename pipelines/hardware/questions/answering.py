"""What `kappa crit` is asked about a turn or a workload, and the rows that answer it."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.hardware import caveats, costs
from pipelines.hardware.bandwidth import parse_bytes_per_s
from pipelines.hardware.costs import Machine
from pipelines.hardware.machines import Sources, machine_of
from pipelines.hardware.questions.names import known_name
from pipelines.hardware.questions.origins import origins, pair_notes
from pipelines.hardware.ratios import paper_ratios, printed_kappa_hw
from pipelines.hardware.what_if import Setting, known_cost_models, turn_answer
from pipelines.hardware.workload_answers import workload_answer
from warehouse.database.engine import fetch, read_only
from warehouse.errors import KappaError
from warehouse.formulas import kappa, kv_bytes, serving, weights
from warehouse.home.home import Home

Row = dict[str, Any]
Ints = npt.NDArray[np.int64]
Series = tuple[Ints, Ints, bool]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: its row, and whether it is about a workload."""

    row: Row
    is_workload: bool


def answers(options: argparse.Namespace, sources: Sources, rows: list[Row]) -> list[Answer]:
    """Return one answer for each chosen row of kappa_crit and each cost model that is known for it.

    A model without parameters has one answer, of its load alone.

    Raises:
        KappaError: the workload is not in the home folder, or no chosen model can be asked that.
    """
    series: dict[str, Series] = {}
    found: list[Answer] = []
    for row in rows:
        case = _case(options, sources, row)
        names: list[str | None] = [*known_cost_models(case.model, case.machine, row["basis"])]
        if options.cost_model is not None:
            names = [name for name in names if name == options.cost_model]
        elif not names:
            names = [None]
        found += [_answer(options, sources, case, name, series) for name in names]
    if not found:
        raise KappaError(
            f"cost model {options.cost_model} cannot be told here",
            _why_not(sources, rows) or "the paper's basis is 2n",
            "leave out --cost-model, or choose --basis physical",
        )
    return found


def _why_not(sources: Sources, rows: list[Row]) -> str | None:
    gaps = [caveats.missing(sources.named("models", row["model"]) or {}, row["basis"]) for row in rows]
    return next((gap for gap in gaps if gap), None)


@dataclass(frozen=True, slots=True)
class Case:
    """A chosen row of kappa_crit with what was asked of it.

    Attributes:
        row: The row, its kappa_crit that of the rate with the tier in it.
        model: A row of `models`, on the paper's basis with the paper's figures in it.
        machine: Its rates, tier and tensor parallelism included.
        tier: Columns on the tier, all None without one.
        as_printed: See `what_if.Setting`.
    """

    row: Row
    model: Row
    machine: Machine
    tier: Row
    as_printed: float = 1.0


def _case(options: argparse.Namespace, sources: Sources, row: Row) -> Case:
    """Return the model, on the paper's basis with the paper's figures, and its machine with what was asked of it."""
    model = sources.named("models", row["model"]) or {}
    bandwidth = parse_bytes_per_s(options.bandwidth) if options.bandwidth else None
    machine, as_printed = machine_of(sources, row, model, bandwidth), 1.0
    if row["basis"] == "paper":
        paper = sources.named("paper_models", row["model"]) or {}
        as_printed = _as_printed(sources, row, paper, bandwidth)
        model = model | {
            "flops_per_token": kappa.flops_per_token(paper["active_params"]),
            "marginal_kv_bytes_per_token": paper["kv_bytes_per_token"],
        }
    crit, tier = row["kappa_crit"], dict.fromkeys(TIER)
    if options.tier:
        share = 1.0 if options.tier_share is None else options.tier_share
        there = min(tier_bytes_per_s(sources, row["basis"], options.tier), machine.bytes_per_s)
        rate = serving.tiered_bytes_per_s(machine.bytes_per_s, there, share)
        crits = [None if crit is None else crit * r / machine.bytes_per_s for r in (rate, there)]
        tier = dict(zip(TIER, (options.tier, share, there, crits[1], crit), strict=True))
        machine, crit = replace(machine, bytes_per_s=rate), crits[0]
    shared = costs.share_between(machine, options.tensor_parallel)
    return Case(row | {"kappa_crit": crit}, model, shared, tier, as_printed)


TIER = ("tier", "tier_share", "tier_bytes_per_s", "tier_kappa_crit", "link_kappa_crit")


def tier_bytes_per_s(sources: Sources, basis: str, tier: str) -> float:
    """Return the rate of a tier in bytes/s: of the paper's own link on its basis where it has one, else of `links`.

    Raises:
        KappaError: no row says what it brings.
    """
    paper = sources.named("paper_links", tier) if basis == "paper" else None
    if paper is not None:
        return float(paper["bytes_per_s"])
    link = sources.named("links", tier)
    if link is None:
        raise KappaError(f"--tier {tier} has no rate", "only `kappa measure` knows it", "name a link of `links`")
    return _rate(link)


def _as_printed(sources: Sources, row: Row, paper: Row, bandwidth: float | None) -> float:
    """Return kappa_crit of the paper's inputs over the one that it multiplied out of printed entries."""
    printed = printed_kappa_hw(sources, row) if bandwidth is None else None
    found = paper_ratios(paper, machine_of(sources, row, {}, bandwidth), "bf16", printed)
    assert found.kappa_crit is not None
    assert found.kappa_m is not None
    return kappa.kappa_crit(found.kappa_m, found.kappa_hw) / found.kappa_crit


def _rate(link: Row) -> float:
    return float(link["sustained_bytes_per_s"] or link["peak_bytes_per_s"])


_ABOUT = ("model", "accelerator", "link", "basis", "kv_dtype", "kappa_crit", "is_tokenizer_proxy")


def _answer(
    options: argparse.Namespace, sources: Sources, case: Case, cost_model: str | None, series: dict[str, Series]
) -> Answer:
    row, setting = case.row, Setting(case.model, case.machine, case.row["kv_dtype"], cost_model, case.as_printed)
    kv_share = kv_bytes.kv_share_of_gpu(options.tensor_parallel, case.model["kv_heads"])
    about = {name: row[name] for name in _ABOUT} | {
        "tensor_parallel": options.tensor_parallel,
        "block_tokens": options.chunk,
        "flop_per_s": setting.machine.flop_per_s,
        "bytes_per_s": setting.machine.bytes_per_s / kv_share,
        "link_bytes_per_s": setting.machine.bytes_per_s,
        "sustained_fraction": sources.fraction(case.model) if row["basis"] == "physical" else None,
        "is_as_printed": case.as_printed != 1.0,
        "least_gpus": _least_gpus(sources, row["accelerator"], setting.model),
        "why_no_kappa_crit": caveats.why_no_kappa_crit(case.model, row["kv_dtype"]),
        "missing": caveats.missing(case.model, row["basis"]),
    }
    rests_on = case.tier | origins(sources, row, is_bandwidth_given=bool(options.bandwidth), tier=options.tier)
    warnings = pair_notes(row, rests_on) + caveats.tensor_parallel_caveats(case.model, options.tensor_parallel)
    warnings += caveats.format_caveats(case.model, row["kv_dtype"])
    if options.workload is None:
        turn = turn_answer(setting, options.cached_tokens, options.new_tokens, options.chunk)
        turn = {"asked_cached_tokens": options.cached_tokens, "asked_new_tokens": options.new_tokens} | turn
        warnings += caveats.context_caveats(case.model, options.cached_tokens + options.new_tokens)
        more = _more(options, sources, setting, turn, row)
        return Answer(about | turn | more | rests_on | {"warnings": caveats.together(warnings)}, is_workload=False)
    tokenizer = setting.model["tokenizer"]
    if tokenizer not in series:
        series[tokenizer] = read_turns(options, tokenizer)
    cached, prefill, is_sample = series[tokenizer]
    about |= {"workload": options.workload, "tokenizer": tokenizer, "counting": options.counting or "text"}
    answer = workload_answer(setting, cached, prefill, options.chunk)
    last = {"warnings": caveats.together(warnings), "is_sample": is_sample}
    return Answer(about | answer | rests_on | last, is_workload=True)


def _least_gpus(sources: Sources, accelerator: str, model: Row) -> int | None:
    """Return how many accelerators hold the model's bf16 weights; None where either size is not known."""
    row = sources.named("accelerators", accelerator)
    if row is None or model["total_params"] is None:
        return None
    gpus: float = model["total_params"] * weights.WEIGHT_BYTES / row["hbm_bytes"]
    return math.ceil(gpus)


def _more(options: argparse.Namespace, sources: Sources, setting: Setting, turn: Row, row: Row) -> Row:
    """Return what was asked for beyond the answer: write-back, T_sched, energy."""
    more: Row = {}
    if options.output_tokens is not None:
        to_host = _to_host(options, sources, setting, row)
        tokens = turn["prefill_tokens"] + options.output_tokens
        more["write_back_s"] = serving.write_back_s(tokens, turn["kv_bytes_per_token"], to_host)
    if options.pool_tokens is not None:
        more["scheduled_tokens"] = kappa.scheduled_tokens(options.pool_tokens, turn["kappa_ratio"])
    if options.idle_w is not None:
        idle, busy, gpus = options.idle_w, options.busy_w, options.tensor_parallel
        load, compute, share = turn["transfer_s"], turn["compute_s"], turn["transfer_share"]
        is_known = compute is not None
        more["energy_j"] = serving.energy_j(idle, busy, load, compute, gpus) if is_known else None
        more["average_power_w"] = serving.average_power_w(idle, busy, share, gpus) if is_known else None
    return more


def _to_host(options: argparse.Namespace, sources: Sources, setting: Setting, row: Row) -> float:
    """Return the rate of the way back to host memory, as fast as the way there where nothing else is known."""
    measured = [
        r for r in sources.rows["measured"] if (r["accelerator"], r["link"]) == (row["accelerator"], row["link"])
    ]
    if options.bandwidth:
        rate = parse_bytes_per_s(options.bandwidth)
    elif row["basis"] == "measured":
        rate = measured[0]["pinned_to_host_bytes_per_s"]
    else:
        link = sources.named("links", row["link"]) or {}
        rate = link["to_host_bytes_per_s"] or _rate(link)
    return float(rate) / kv_bytes.kv_share_of_gpu(options.tensor_parallel, setting.model["kv_heads"])


def read_turns(options: argparse.Namespace, tokenizer: str) -> Series:
    """Return K and T of every turn of the workload in the home folder, and whether its text was generated.

    Raises:
        KappaError: there is no warehouse, or no such workload, counting or tokenizer in it.
    """
    counting = options.counting or "text"
    with read_only(Home(options.home).database()) as connection:
        samples = {row["workload"]: row["is_sample"] for row in fetch(connection, "FROM summary").to_pylist()}
        options.workload = known_name("workload", options.workload, samples)
        query = (
            "SELECT cached_tokens, prefill_tokens FROM turns WHERE workload = $w AND tokenizer = $t AND counting = $c"
        )
        table = fetch(connection, query, {"w": options.workload, "t": tokenizer, "c": counting})
    if not table.num_rows:
        raise KappaError(
            f"{options.workload} has no turns counted as {counting} by {tokenizer}",
            "the home folder does not hold them",
            f"run `kappa run --workload {options.workload} --tokenizer {tokenizer}`",
        )
    return table["cached_tokens"].to_numpy(), table["prefill_tokens"].to_numpy(), samples[options.workload]

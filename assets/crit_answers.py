"""What `kappa crit` is asked about a turn or a workload, and the rows that answer it."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from assets.cli import home_path
from pipelines import cache, costs, kappa, serving, weights
from pipelines.costs import Machine
from pipelines.hardware import paper_ratios, printed_kappa_hw
from pipelines.machines import Sources, machine_of
from pipelines.units import parse_bytes_per_s
from pipelines.what_if import Setting, known_cost_models, turn_answer, workload_answer
from warehouse.engine import fetch, read_only
from warehouse.errors import KappaError
from warehouse.home import Home

Row = dict[str, Any]
Ints = npt.NDArray[np.int64]
Series = tuple[Ints, Ints, bool]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: its row, and whether it is about a workload."""

    row: Row
    is_workload: bool


def is_question(options: argparse.Namespace) -> bool:
    """Return whether a turn or a workload was asked for."""
    return any(value is not None for value in (options.cached_tokens, options.new_tokens, options.workload))


# Beyond every context and every cluster, and far from where numbers stop being exact.
MOST = 10**12


def check_question(options: argparse.Namespace) -> None:
    """Raise KappaError where K, T, chunk or share cannot be."""
    turn = (options.cached_tokens, options.new_tokens)
    rules = (
        (None in turn and turn != (None, None), "--cached-tokens and --new-tokens go together", "one is missing"),
        (options.workload and turn != (None, None), "a turn and a workload are two questions", "both were given"),
        (_below(options.new_tokens, 1), f"--new-tokens {options.new_tokens} is not possible", "a turn computes one"),
        (_below(options.cached_tokens, 0), f"--cached-tokens {options.cached_tokens} is not possible", "below 0"),
        (options.chunk < 1, f"--chunk {options.chunk} is not possible", "a chunk holds at least one token"),
        (not 0 <= options.tier_share <= 1, f"--tier-share {options.tier_share} is not possible", "not in 0 to 1"),
        (_below(options.output_tokens, 0), f"--output-tokens {options.output_tokens} is not possible", "below 0"),
        (
            _below(options.pool_tokens, 1),
            f"--pool-tokens {options.pool_tokens} is not possible",
            "a pool holds a token",
        ),
        (not _are_watts(options.idle_w, options.busy_w), "--idle-w or --busy-w is not possible", "no power in watts"),
        (_is_huge(options), "a number of tokens or GPUs is not possible", f"it is above {MOST:,}"),
        ((options.idle_w is None) != (options.busy_w is None), "--idle-w and --busy-w go together", "one is missing"),
    )
    for is_broken, what, why in rules:
        if is_broken:
            raise KappaError(what, why, "see `kappa crit --help`")
    if not is_question(options):
        _check_alone(options)


def _check_alone(options: argparse.Namespace) -> None:
    """Raise KappaError for an option that says something of a turn or a workload where there is none."""
    alone = ("cost_model", "tier", "output_tokens", "pool_tokens", "idle_w", "busy_w")
    given = [name for name in alone if getattr(options, name) is not None]
    given += [name for name, usual in (("chunk", 1), ("tier_share", 1.0)) if getattr(options, name) != usual]
    if given:
        named = " and ".join(f"--{name.replace('_', '-')}" for name in given)
        why, remedy = "kappa_crit alone does not depend on it", "add --cached-tokens and --new-tokens, or --workload"
        raise KappaError(f"{named} needs a turn or a workload", why, remedy)


def _are_watts(*powers: float | None) -> bool:
    return all(power is None or 0 <= power < float("inf") for power in powers)


def _is_huge(options: argparse.Namespace) -> bool:
    names = ("cached_tokens", "new_tokens", "chunk", "output_tokens", "pool_tokens", "tensor_parallel")
    return any((getattr(options, name) or 0) > MOST for name in names)


def _below(value: int | None, least: int) -> bool:
    return value is not None and value < least


def answers(options: argparse.Namespace, sources: Sources, rows: list[Row]) -> list[Answer]:
    """Return one answer for each chosen row of kappa_crit and each cost model that is known for it.

    Raises:
        KappaError: the workload is not in the home folder, or no chosen model can be asked that.
    """
    series: dict[str, Series] = {}
    found: list[Answer] = []
    for row in rows:
        model, machine = _model_and_machine(options, sources, row)
        names = known_cost_models(model, machine, row["basis"])
        for name in names if options.cost_model is None else [n for n in names if n == options.cost_model]:
            setting = Setting(model, machine, row["kv_dtype"], name)
            found.append(_answer(options, sources, row, setting, series))
    if not found:
        raise _no_answer(options)
    return found


def _no_answer(options: argparse.Namespace) -> KappaError:
    if options.cost_model is None:
        why = "the sourced tables have no parameters of it (docs/kappa-crit.md)"
        return KappaError(f"no turn of {options.model or 'these models'} can be told", why, "choose another --model")
    return KappaError(
        f"cost model {options.cost_model} cannot be told here",
        "the paper's basis is 2n, and some models have no figures for their attention or parameters",
        "leave out --cost-model, or choose --basis physical",
    )


def _model_and_machine(options: argparse.Namespace, sources: Sources, row: Row) -> tuple[Row, Machine]:
    """Return the model, on the paper's basis with the paper's figures, and its machine with what was asked of it."""
    model = sources.named("models", row["model"]) or {}
    bandwidth = parse_bytes_per_s(options.bandwidth) if options.bandwidth else None
    machine = machine_of(sources, row, model, bandwidth)
    if options.tier:
        tier = _rate(sources.named("links", options.tier) or {})
        rate = serving.tiered_bytes_per_s(machine.bytes_per_s, tier, options.tier_share)
        machine = replace(machine, bytes_per_s=rate)
    if row["basis"] == "paper":
        paper = sources.named("paper_models", row["model"]) or {}
        model = model | {
            "flops_per_token": _printed_flops(sources, row, paper, bandwidth),
            "marginal_kv_bytes_per_token": paper["kv_bytes_per_token"],
        }
    return model, costs.share_between(machine, model, options.tensor_parallel)


def _printed_flops(sources: Sources, row: Row, paper: Row, bandwidth: float | None) -> float:
    """Return FLOP a token with which pcie overhead is kappa_ratio / kappa_crit as the paper multiplied it."""
    printed = printed_kappa_hw(sources, row) if bandwidth is None else None
    found = paper_ratios(paper, machine_of(sources, row, {}, bandwidth), "bf16", printed)
    assert found.kappa_crit is not None
    return found.kappa_crit / found.kappa_hw * float(paper["kv_bytes_per_token"])


def _rate(link: Row) -> float:
    return float(link["sustained_bytes_per_s"] or link["peak_bytes_per_s"])


def _answer(
    options: argparse.Namespace, sources: Sources, row: Row, setting: Setting, series: dict[str, Series]
) -> Answer:
    names = ("model", "accelerator", "link", "basis", "kv_dtype", "kappa_crit", "is_tokenizer_proxy")
    about = {name: row[name] for name in names} | {
        "tensor_parallel": options.tensor_parallel,
        "block_tokens": options.chunk,
        "flop_per_s": setting.machine.flop_per_s,
        "bytes_per_s": setting.machine.bytes_per_s,
        "least_gpus": _least_gpus(sources, row["accelerator"], setting.model),
    }
    if options.workload is None:
        turn = turn_answer(setting, options.cached_tokens, options.new_tokens, options.chunk)
        return Answer(about | turn | _more(options, sources, setting, turn, row), is_workload=False)
    tokenizer = setting.model["tokenizer"]
    if tokenizer not in series:
        series[tokenizer] = read_turns(options, tokenizer)
    cached, prefill, is_sample = series[tokenizer]
    about |= {"workload": options.workload, "tokenizer": tokenizer, "counting": options.counting}
    answer = workload_answer(setting, cached, prefill, options.chunk)
    return Answer(about | answer | {"is_sample": is_sample}, is_workload=True)


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
        per_token = cache.quantised_kv_bytes(
            setting.model["marginal_kv_bytes_per_token"], cache.KV_ELEMENT_BYTES[setting.kv_dtype]
        )
        more["write_back_s"] = serving.write_back_s(turn["prefill_tokens"] + options.output_tokens, per_token, to_host)
    if options.pool_tokens is not None:
        more["scheduled_tokens"] = kappa.scheduled_tokens(options.pool_tokens, turn["kappa_ratio"])
    if options.idle_w is not None:
        powers = (options.idle_w, options.busy_w)
        more["energy_j"] = serving.energy_j(*powers, turn["transfer_s"], turn["compute_s"])
        more["average_power_w"] = serving.average_power_w(*powers, turn["transfer_share"])
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
    return float(rate) / cache.kv_share_of_gpu(options.tensor_parallel, setting.model["kv_heads"])


def read_turns(options: argparse.Namespace, tokenizer: str) -> Series:
    """Return K and T of every turn of the workload in the home folder, and whether its text was generated.

    Raises:
        KappaError: there is no warehouse, or no such workload, counting or tokenizer in it.
    """
    from assets.crit import unknown_name  # noqa: PLC0415 - that module imports this one

    with read_only(Home(home_path(options.home)).database()) as connection:
        samples = {row["workload"]: row["is_sample"] for row in fetch(connection, "FROM summary").to_pylist()}
        if options.workload not in samples:
            raise unknown_name("workload", options.workload, set(samples))
        query = (
            "SELECT cached_tokens, prefill_tokens FROM turns WHERE workload = $w AND tokenizer = $t AND counting = $c"
        )
        table = fetch(connection, query, {"w": options.workload, "t": tokenizer, "c": options.counting})
    if not table.num_rows:
        raise KappaError(
            f"{options.workload} has no turns counted as {options.counting} by {tokenizer}",
            "the home folder does not hold them",
            f"run `kappa run --workload {options.workload} --tokenizer {tokenizer}`",
        )
    return table["cached_tokens"].to_numpy(), table["prefill_tokens"].to_numpy(), samples[options.workload]

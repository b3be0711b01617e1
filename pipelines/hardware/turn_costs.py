"""Boundness where t_GPU depends on K and T: one pass over a workload's turns for each model and accelerator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pipelines.hardware import costs
from pipelines.hardware.costs import Machine
from pipelines.hardware.entities import Model
from warehouse.formulas import kappa

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Platform = tuple[str, str, str]

PLATFORM = ("accelerator", "link", "basis")
PERCENTILES = {"pcie_overhead_p50": 0.5, "pcie_overhead_p90": 0.9, "pcie_overhead_p99": 0.99}


@dataclass(frozen=True, slots=True)
class OrderedTurns:
    """The turns of one workload at one block size in a fixed order, so that sums do not depend on the input order.

    Attributes:
        cached: K in tokens, shape (turns,), float64; exact.
        prefill: T in tokens, shape (turns,), float64; exact.
        context: K + T in tokens, shape (turns,), float64; exact.
    """

    cached: Floats
    prefill: Floats
    context: Floats


def order_turns(cached_tokens: Ints, prefill_tokens: Ints, block: int = 1) -> OrderedTurns:
    """Return the turns by rising K, then T, after K is rounded down to whole blocks.

    Args:
        cached_tokens: K, shape (turns,).
        prefill_tokens: T, shape (turns,), at least 1 each.
        block: Tokens in a block.
    """
    order = np.lexsort((prefill_tokens, cached_tokens))
    reused, computed = kappa.block_tokens(cached_tokens[order], prefill_tokens[order], block)
    cached, prefill = reused.astype(np.float64), computed.astype(np.float64)
    return OrderedTurns(cached, prefill, cached + prefill)


def needed_shares(turns: OrderedTurns, kv_bytes: Floats, compute_s: Floats, bytes_per_s: Floats) -> dict[str, Floats]:
    """Return the columns of `boundness` for each bandwidth, each of the shape of `bytes_per_s`.

    A turn is memory bound where bytes / t_GPU, the bandwidth that it needs, strictly exceeds the link's.

    Args:
        turns: At least one turn.
        kv_bytes: Bytes loaded by each turn, shape (turns,).
        compute_s: t_GPU of each turn in seconds, shape (turns,), above zero.
        bytes_per_s: Bandwidths of one direction.
    """
    needed = kv_bytes / compute_s
    quantiles = np.quantile(needed, list(PERCENTILES.values()))
    totals = (float(kv_bytes.sum()), float(compute_s.sum()), float(turns.context.sum()))
    rows = []
    for rate in bytes_per_s:
        is_bound = needed > rate
        bound = [float((values * is_bound).sum()) for values in (kv_bytes, compute_s, turns.context)]
        rows.append({"memory_bound_turn_share": int(is_bound.sum()) / len(needed)} | _shares(bound, totals, rate))
    shares = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return shares | {name: quantile / bytes_per_s for name, quantile in zip(PERCENTILES, quantiles, strict=True)}


def _shares(bound: list[float], totals: tuple[float, float, float], rate: float) -> dict[str, float]:
    """Return the weighted shares; each argument holds bytes, seconds of compute and tokens."""
    loading, computing, tokens = totals
    seconds = loading / rate + computing
    return {
        "memory_bound_token_share": bound[2] / tokens,
        # A part's sum and the whole's round differently, by less than a share shows.
        "memory_bound_time_share": min((bound[0] / rate + bound[1]) / seconds, 1.0),
        "transfer_time_share": loading / rate / seconds,
    }


def turn_cost_rows(
    turns: OrderedTurns, model: Model, machines: Mapping[Platform, Machine]
) -> Iterator[dict[str, object]]:
    """Yield rows of `boundness` for one model: names, cost model, kv_dtype and shares, kappa_crit None.

    Cost models are `attention` and `full` where the tables have their inputs, and `2n` for a model without a
    kappa_crit, whose bytes per token are not constant.

    Args:
        turns: At least one turn.
        model: Its sourced row.
        machines: By accelerator, link and basis.
    """
    for kv_dtype in kappa.ELEMENT_BYTES:
        for platforms in _alike(machines):
            machine = machines[platforms[0]]
            loaded = costs.gpu_kv_bytes(model, turns.cached, kv_dtype, machine.tensor_parallel)
            rates = np.array([machines[platform].bytes_per_s for platform in platforms])
            for cost_model in _cost_models(model, machine):
                compute = costs.compute_s(model, machine, turns.cached, turns.prefill, cost_model, kv_dtype)
                shares = needed_shares(turns, loaded, compute, rates)
                for place, platform in enumerate(platforms):
                    names = {"model": model.model, "cost_model": cost_model, "kv_dtype": kv_dtype}
                    row = {name: float(values[place]) for name, values in shares.items()}
                    yield {**names, **dict(zip(PLATFORM, platform, strict=True)), "kappa_crit": None, **row}


def _cost_models(model: Model, machine: Machine) -> list[str]:
    first = ["2n"] if model.kv_bytes_per_token is None else []
    has_parts = machine.rates is not None and (machine.rates.reducing_gpus == 1 or model.hidden_size is not None)
    names = (*first, *(("attention", "full") if has_parts else ()))
    return [name for name in names if costs.is_known(model, name)]


def _alike(machines: Mapping[Platform, Machine]) -> list[list[Platform]]:
    """Return the platforms that differ in their links only: t_GPU is computed once for them."""
    kinds: dict[Machine, list[Platform]] = {}
    for platform, machine in machines.items():
        kinds.setdefault(replace(machine, bytes_per_s=1.0), []).append(platform)
    return list(kinds.values())

"""The answer for all turns of a workload on one machine: shares, percentiles, and the turns at the percentiles."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipelines.hardware import costs
from pipelines.hardware.turn_costs import OrderedTurns, needed_shares, order_turns
from pipelines.hardware.what_if import Pays, Setting, loading_pays
from warehouse.formulas import serving

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


@dataclass(frozen=True, slots=True)
class AtPercentile:
    """The needs of a workload at one percentile of its turns; values that depend on t_GPU are None where it is unknown.

    Attributes:
        pcie_overhead: Interpolated between turns, as are the two bandwidths.
        ttft_s: Of one turn, at the nearest rank of the percentile; K, T, load and compute are of the same turn. Without
            a known cost model the turn is chosen by its load.
        prefill_tokens: T at the percentile; the ranges in which loading pays are for that T.
    """

    pcie_overhead: float | None
    needed_bytes_per_s: float | None
    link_needed_bytes_per_s: float | None
    ttft_s: float | None
    ttft_cached_tokens: int
    ttft_prefill_tokens: int
    ttft_transfer_s: float
    ttft_compute_s: float | None
    prefill_tokens: int
    load_pays: str | None
    load_from_cached_tokens: int | None
    load_pays_ranges: str | None


@dataclass(frozen=True, kw_only=True)
class WorkloadCosts:
    """The costs of all turns of a workload; values that depend on t_GPU are None where it is unknown."""

    cost_model: str | None
    turns: int
    memory_bound_turn_share: float | None
    memory_bound_token_share: float | None
    memory_bound_time_share: float | None
    transfer_time_share: float | None
    p50: AtPercentile
    p90: AtPercentile
    p99: AtPercentile
    load_is_faster_share: float | None
    over_context_turn_share: float
    requests_per_s: float | None

    def percentiles(self) -> dict[str, AtPercentile]:
        """Return the three percentiles by name."""
        return {"p50": self.p50, "p90": self.p90, "p99": self.p99}


def workload_answer(setting: Setting, cached_tokens: Ints, prefill_tokens: Ints, block: int = 1) -> WorkloadCosts:
    """Return the answer for all turns of a workload.

    Args:
        setting: Model, machine and cost model.
        cached_tokens: K of each turn, shape (turns,), at least one turn.
        prefill_tokens: T of each turn, shape (turns,), at least 1 each.
        block: Tokens in a block.
    """
    turns = order_turns(cached_tokens, prefill_tokens, block)
    load = setting.transfer_s(turns.cached)
    compute = None if setting.cost_model is None else setting.compute_s(turns.cached, turns.prefill)
    of_gpu = setting.loaded_bytes(turns.cached)
    mean_bytes, over = float(of_gpu.mean()), turns.context > setting.model.max_context_tokens
    shares = {}
    if compute is not None:
        rate = np.array([setting.machine.bytes_per_s])
        found = needed_shares(turns, of_gpu * setting.loads, compute / setting.as_printed, rate)
        shares = {name: float(values[0]) for name, values in found.items()}
    at = {label: _at(setting, turns, label, load, compute, shares, block) for label in QUANTILES}
    return WorkloadCosts(
        cost_model=setting.cost_model,
        turns=len(load),
        memory_bound_turn_share=shares.get("memory_bound_turn_share"),
        memory_bound_token_share=shares.get("memory_bound_token_share"),
        memory_bound_time_share=shares.get("memory_bound_time_share"),
        transfer_time_share=shares.get("transfer_time_share"),
        p50=at["p50"],
        p90=at["p90"],
        p99=at["p99"],
        load_is_faster_share=_load_is_faster_share(setting, turns, load, compute),
        over_context_turn_share=float(over.mean()),
        requests_per_s=serving.requests_per_s(setting.machine.bytes_per_s, mean_bytes) if mean_bytes else None,
    )


def nearest_rank(values: Floats, share: float) -> int:
    """Return the index of the smallest value that at least this share of the values does not exceed.

    >>> nearest_rank(np.array([30.0, 10.0, 20.0, 40.0]), 0.5)
    2
    """
    return int(np.argsort(values, kind="stable")[max(math.ceil(share * len(values)) - 1, 0)])


def _at(  # noqa: PLR0913, PLR0917 - one percentile of everything
    setting: Setting,
    turns: OrderedTurns,
    label: str,
    load: Floats,
    compute: Floats | None,
    shares: dict[str, float],
    block: int,
) -> AtPercentile:
    share = QUANTILES[label]
    prefills = None if compute is None else setting.prefill_s(turns.cached, turns.prefill)
    place = nearest_rank(load if prefills is None else load + prefills, share)
    once, of_gpu = costs.kv_bytes(setting.kept, turns.cached, setting.kv_dtype), setting.loaded_bytes(turns.cached)
    needed = [None if compute is None else float(np.quantile(held / compute, share)) for held in (once, of_gpu)]
    prefill = int(turns.prefill[nearest_rank(turns.prefill, share)])
    pays = Pays() if compute is None else loading_pays(setting, prefill, block)
    return AtPercentile(
        pcie_overhead=shares.get(f"pcie_overhead_{label}"),
        needed_bytes_per_s=needed[0],
        link_needed_bytes_per_s=needed[1],
        ttft_s=None if prefills is None else float((load + prefills)[place]),
        ttft_cached_tokens=int(turns.cached[place]),
        ttft_prefill_tokens=int(turns.prefill[place]),
        ttft_transfer_s=float(load[place]),
        ttft_compute_s=None if compute is None else float(compute[place]),
        prefill_tokens=prefill,
        load_pays=pays.load_pays,
        load_from_cached_tokens=pays.load_from_cached_tokens,
        load_pays_ranges=pays.load_pays_ranges,
    )


def _load_is_faster_share(setting: Setting, turns: OrderedTurns, load: Floats, compute: Floats | None) -> float | None:
    """Return the share of the turns with reuse that load faster than they recompute."""
    is_reused = turns.cached > 0
    if compute is None or not is_reused.any():
        return None
    prefills = setting.prefill_s(turns.cached, turns.prefill)
    saves = load + prefills < setting.recompute_s(turns.cached, turns.prefill)
    return float(saves[is_reused].mean())

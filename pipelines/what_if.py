"""Answers for one model on one machine: a turn of K and T, or all turns of a workload, by cost model.

Each answer is a flat row, so that it prints, and goes to JSON, as it is. The formulae are in `costs` and `serving`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines import costs, kappa, serving
from pipelines.costs import Machine
from pipelines.turn_costs import needed_shares, order_turns

Row = dict[str, Any]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
_GRID = 4096


@dataclass(frozen=True, slots=True)
class Setting:
    """One model on one machine with one way of counting.

    Attributes:
        model: A row of `models`; on the paper's basis with the paper's figures in it.
        machine: Its rates, tensor parallelism included.
        kv_dtype: A key of `cache.KV_ELEMENT_BYTES`.
        cost_model: One that is known for the model, see `known_cost_models`.
    """

    model: Row
    machine: Machine
    kv_dtype: str
    cost_model: str

    def transfer_s(self, cached: Any) -> Any:  # noqa: ANN401 - numbers and arrays alike
        """Return t_PCIe in seconds."""
        return costs.transfer_s(self.model, self.machine, cached, self.kv_dtype)

    def compute_s(self, cached: Any, prefill: Any) -> Any:  # noqa: ANN401
        """Return t_GPU in seconds."""
        return costs.compute_s(self.model, self.machine, cached, prefill, self.cost_model)

    def recompute_s(self, cached: Any, prefill: Any) -> Any:  # noqa: ANN401
        """Return the seconds to compute K and T from nothing."""
        return costs.recompute_s(self.model, self.machine, cached, prefill, self.cost_model)


def known_cost_models(model: Row, machine: Machine, basis: str) -> list[str]:
    """Return the cost models that can be told: the paper's basis is 2N alone, `full` needs the memory's rate."""
    names = [name for name in ("2n", "attention", "full") if costs.is_known(model, name)]
    if basis == "paper":
        names = names[:1]
    return [name for name in names if name != "full" or machine.hbm_bytes_per_s is not None]


def turn_answer(setting: Setting, cached_tokens: int, prefill_tokens: int, block: int = 1) -> Row:
    """Return the answer for one turn.

    Args:
        setting: Model, machine and way of counting.
        cached_tokens: K as the workload has it.
        prefill_tokens: T, at least 1.
        block: Tokens in a block: what does not fill one is computed again.
    """
    cached, prefill = kappa.block_tokens(cached_tokens, prefill_tokens, block)
    load, compute = float(setting.transfer_s(float(cached))), float(setting.compute_s(float(cached), float(prefill)))
    again = float(setting.recompute_s(float(cached), float(prefill)))
    overhead = load / compute
    ratio = kappa.kappa_ratio(cached, prefill)
    loaded = float(costs.kv_bytes(setting.model, float(cached), setting.kv_dtype))
    return {
        "cost_model": setting.cost_model,
        "cached_tokens": cached,
        "prefill_tokens": prefill,
        "kappa_ratio": ratio,
        "kappa_crit_here": ratio / overhead if overhead else None,
        "pcie_overhead": overhead,
        "is_memory_bound": load > compute,
        "ttft_s": kappa.ttft_s(load, compute),
        "transfer_s": load,
        "compute_s": compute,
        "transfer_share": kappa.transfer_share(overhead),
        "layerwise_ttft_s": serving.layerwise_ttft_s(load, compute, setting.model["layers"]),
        "recompute_s": again,
        "faster": "load" if load + compute < again else "recompute",
        "load_from_cached_tokens": loading_pays_from(setting, prefill),
        "kv_bytes": loaded,
        "needed_bytes_per_s": serving.needed_bytes_per_s(loaded, compute),
        "requests_per_s": serving.requests_per_s(setting.machine.bytes_per_s, loaded) if loaded else None,
    }


def loading_pays_from(setting: Setting, prefill_tokens: int) -> int | None:
    """Return the K from which on loading is faster than computing again, up to the model's context; None for never.

    Found by halving between two places of a fine grid, since windows and floors leave no closed form; for full
    attention it is `serving.crossover_cached_tokens`, rounded up.
    """
    limit = int(setting.model["max_context_tokens"])
    grid = np.unique(np.geomspace(1, limit, _GRID).astype(np.int64)).astype(np.float64)
    losing = np.flatnonzero(~_pays(setting, grid, prefill_tokens))
    if not len(losing):
        return 1
    if losing[-1] == len(grid) - 1:
        return None
    low, high = int(grid[losing[-1]]), int(grid[losing[-1] + 1])
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _pays(setting, np.array([float(middle)]), prefill_tokens)[0] else (middle, high)
    return high


def _pays(setting: Setting, cached: Floats, prefill_tokens: int) -> npt.NDArray[np.bool_]:
    prefill = np.full_like(cached, prefill_tokens)
    loading = setting.transfer_s(cached) + setting.compute_s(cached, prefill)
    pays: npt.NDArray[np.bool_] = loading < setting.recompute_s(cached, prefill)
    return pays


def workload_answer(setting: Setting, cached_tokens: Ints, prefill_tokens: Ints, block: int = 1) -> Row:
    """Return the answer for all turns of a workload.

    Args:
        setting: Model, machine and way of counting.
        cached_tokens: K of each turn, shape (turns,), at least one turn.
        prefill_tokens: T of each turn, shape (turns,), at least 1 each.
        block: Tokens in a block.
    """
    turns = order_turns(cached_tokens, prefill_tokens, block)
    load, compute = setting.transfer_s(turns.cached), setting.compute_s(turns.cached, turns.prefill)
    loaded = costs.kv_bytes(setting.model, turns.cached, setting.kv_dtype)
    rate = setting.machine.bytes_per_s
    shares = needed_shares(turns, loaded, compute, np.array([rate]))
    is_reused = turns.cached > 0
    saves = (load + compute < setting.recompute_s(turns.cached, turns.prefill))[is_reused]
    over = turns.context > setting.model["max_context_tokens"]
    mean_bytes = float(loaded.mean())
    answer = {"cost_model": setting.cost_model, "turns": len(load)}
    answer |= {name: float(values[0]) for name, values in shares.items()}
    answer |= _quantiles("needed_bytes_per_s", loaded / compute)
    answer |= _quantiles("ttft_s", load + compute)
    return answer | {
        "over_context_turn_share": float(over.mean()),
        "load_is_faster_share": float(saves.mean()) if len(saves) else None,
        "requests_per_s": serving.requests_per_s(rate, mean_bytes) if mean_bytes else None,
    }


def _quantiles(name: str, values: Floats) -> Row:
    found = np.quantile(values, list(QUANTILES.values()))
    return {f"{name}_{label}": float(value) for label, value in zip(QUANTILES, found, strict=True)}

"""Answers for one model on one machine about a turn of K and T, by cost model. Workloads: `workload_answers`.

Each answer is a flat row, so that it prints, and goes to JSON, as it is. The formulae are in `costs` and `serving`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines import costs, kappa, serving
from pipelines.costs import Machine

Row = dict[str, Any]
Floats = npt.NDArray[np.float64]
_GRID = 4096


@dataclass(frozen=True, slots=True)
class Setting:
    """One model on one machine with one way of counting.

    Attributes:
        model: A row of `models`; on the paper's basis with the paper's figures in it.
        machine: Its rates, tensor parallelism included.
        kv_dtype: A key of `cache.KV_ELEMENT_BYTES`.
        cost_model: One that is known for the model, see `known_cost_models`; None where none is: then there is no
            t_GPU, and what depends on it is None in every answer.
    """

    model: Row
    machine: Machine
    kv_dtype: str
    cost_model: str | None

    def transfer_s(self, cached: Any) -> Any:  # noqa: ANN401 - numbers and arrays alike
        """Return t_PCIe in seconds."""
        return costs.transfer_s(self.model, self.machine, cached, self.kv_dtype)

    def compute_s(self, cached: Any, prefill: Any) -> Any:  # noqa: ANN401
        """Return t_GPU in seconds."""
        assert self.cost_model is not None
        return costs.compute_s(self.model, self.machine, cached, prefill, self.cost_model)

    def recompute_s(self, cached: Any, prefill: Any) -> Any:  # noqa: ANN401
        """Return the seconds to compute K and T from nothing."""
        assert self.cost_model is not None
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

    Returns:
        `cached_tokens` and `prefill_tokens` are K and T with that; `faster` is None where K is 0 then.
    """
    cached, prefill = kappa.block_tokens(cached_tokens, prefill_tokens, block)
    load = float(setting.transfer_s(float(cached)))
    loaded = float(costs.kv_bytes(setting.model, float(cached), setting.kv_dtype))
    per_token, state = costs.held_bytes(setting.model, setting.kv_dtype)
    compute = None if setting.cost_model is None else float(setting.compute_s(float(cached), float(prefill)))
    return {
        "cost_model": setting.cost_model,
        "cached_tokens": cached,
        "prefill_tokens": prefill,
        "kappa_ratio": kappa.kappa_ratio(cached, prefill),
        "kv_bytes": loaded,
        "kv_bytes_per_token": per_token,
        "fixed_kv_bytes": state,
        "transfer_s": load,
        "compute_s": compute,
        "ttft_floor_s": max(load, compute or 0.0),
        "requests_per_s": serving.requests_per_s(setting.machine.bytes_per_s, loaded) if loaded else None,
        **(dict.fromkeys(_OF_COMPUTE) if compute is None else _compared(setting, cached, prefill, (load, compute))),
    }


# What a turn's answer has only where t_GPU is known.
_OF_COMPUTE = (
    "kappa_crit_here", "pcie_overhead", "is_memory_bound", "ttft_s", "transfer_share", "layerwise_ttft_s",
    "recompute_s", "faster", "load_pays", "load_from_cached_tokens", "needed_bytes_per_s",
)  # fmt: skip


def _compared(setting: Setting, cached: int, prefill: int, seconds: tuple[float, float]) -> Row:
    load, compute = seconds
    again = float(setting.recompute_s(float(cached), float(prefill)))
    overhead = load / compute
    loaded = float(costs.kv_bytes(setting.model, float(cached), setting.kv_dtype))
    return {
        "kappa_crit_here": kappa.kappa_ratio(cached, prefill) / overhead if overhead else None,
        "pcie_overhead": overhead,
        "is_memory_bound": load > compute,
        "ttft_s": kappa.ttft_s(load, compute),
        "transfer_share": kappa.transfer_share(overhead),
        "layerwise_ttft_s": serving.layerwise_ttft_s(load, compute, setting.model["layers"]),
        "recompute_s": again,
        "faster": None if not cached else "load" if load + compute < again else "recompute",
        **loading_pays(setting, prefill),
        "needed_bytes_per_s": serving.needed_bytes_per_s(loaded, compute),
    }


def loading_pays(setting: Setting, prefill_tokens: int) -> Row:
    """Return when loading is faster than computing again: `load_pays` always, from, never; `load_from_cached_tokens`.

    The latter is 1 for always and None for never, that is for no K up to the model's context.

    Args:
        setting: Model, machine and way of counting.
        prefill_tokens: T, at least 1.
    """
    first = loading_pays_from(setting, prefill_tokens)
    word = "never" if first is None else "always" if first == 1 else "from"
    return {"load_pays": word, "load_from_cached_tokens": first}


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

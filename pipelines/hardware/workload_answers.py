"""The answer for all turns of a workload on one machine: shares, percentiles, and the turns that stand at them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.hardware import costs
from pipelines.hardware.turn_costs import OrderedTurns, needed_shares, order_turns
from pipelines.hardware.what_if import Setting, loading_pays
from warehouse.formulas import serving

Row = dict[str, Any]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
_SHARES = (
    "memory_bound_turn_share", "memory_bound_token_share", "memory_bound_time_share", "transfer_time_share",
    "pcie_overhead_p50", "pcie_overhead_p90", "pcie_overhead_p99",
)  # fmt: skip


def workload_answer(setting: Setting, cached_tokens: Ints, prefill_tokens: Ints, block: int = 1) -> Row:
    """Return the answer for all turns of a workload.

    `ttft_s_p50` is the TTFT of one turn, the one that half of the turns do not exceed (nearest rank), and the columns
    `ttft_p50_...` are that turn's: K, T, load, compute. Other percentiles are interpolated between turns. Where no
    cost model is known the turn is chosen by its load, and what depends on t_GPU is None.

    Args:
        setting: Model, machine and way of counting.
        cached_tokens: K of each turn, shape (turns,), at least one turn.
        prefill_tokens: T of each turn, shape (turns,), at least 1 each.
        block: Tokens in a block.
    """
    turns = order_turns(cached_tokens, prefill_tokens, block)
    load = setting.transfer_s(turns.cached)
    compute = None if setting.cost_model is None else setting.compute_s(turns.cached, turns.prefill)
    mean_bytes = float(setting.loaded_bytes(turns.cached).mean())
    over = turns.context > setting.model["max_context_tokens"]
    answer: Row = {"cost_model": setting.cost_model, "turns": len(load)}
    answer |= _shares(setting, turns, compute)
    answer |= _turns_at(turns, load, compute)
    answer |= _load_or_recompute(setting, turns, load, compute)
    return answer | {
        "over_context_turn_share": float(over.mean()),
        "requests_per_s": serving.requests_per_s(setting.machine.bytes_per_s, mean_bytes) if mean_bytes else None,
    }


def _shares(setting: Setting, turns: OrderedTurns, compute: Floats | None) -> Row:
    """Return the columns of `boundness`, on the paper's basis out of its printed kappa_crit, and the rates needed."""
    needed = {f"needed_bytes_per_s_{label}": share for label, share in QUANTILES.items()}
    if compute is None:
        return dict.fromkeys((*_SHARES, *needed, *(f"link_{name}" for name in needed)))
    once, of_gpu = costs.kv_bytes(setting.model, turns.cached, setting.kv_dtype), setting.loaded_bytes(turns.cached)
    shares = needed_shares(turns, of_gpu, compute / setting.as_printed, np.array([setting.machine.bytes_per_s]))
    rates = {name: float(np.quantile(once / compute, share)) for name, share in needed.items()}
    rates |= {f"link_{name}": float(np.quantile(of_gpu / compute, share)) for name, share in needed.items()}
    return {name: float(shares[name][0]) for name in _SHARES} | rates


def nearest_rank(values: Floats, share: float) -> int:
    """Return the place of the smallest value that at least this share of the values does not exceed.

    >>> nearest_rank(np.array([30.0, 10.0, 20.0, 40.0]), 0.5)
    2
    """
    return int(np.argsort(values, kind="stable")[max(math.ceil(share * len(values)) - 1, 0)])


def _turns_at(turns: OrderedTurns, load: Floats, compute: Floats | None) -> Row:
    """Return the TTFT at each percentile with the K, T, load and compute of the turn that has it."""
    ttft = load if compute is None else load + compute
    found: Row = {}
    for label, share in QUANTILES.items():
        place = nearest_rank(ttft, share)
        found |= {
            f"ttft_s_{label}": None if compute is None else float(ttft[place]),
            f"ttft_{label}_cached_tokens": int(turns.cached[place]),
            f"ttft_{label}_prefill_tokens": int(turns.prefill[place]),
            f"ttft_{label}_transfer_s": float(load[place]),
            f"ttft_{label}_compute_s": None if compute is None else float(compute[place]),
        }
    return found


def _load_or_recompute(setting: Setting, turns: OrderedTurns, load: Floats, compute: Floats | None) -> Row:
    """Return the share of reusing turns that load faster, and from which K on, at the percentiles of T."""
    found: Row = {"load_is_faster_share": None}
    is_reused = turns.cached > 0
    if compute is not None and is_reused.any():
        saves = load + compute < setting.recompute_s(turns.cached, turns.prefill)
        found["load_is_faster_share"] = float(saves[is_reused].mean())
    for label, share in QUANTILES.items():
        prefill = int(turns.prefill[nearest_rank(turns.prefill, share)])
        pays: Row = dict.fromkeys(("load_pays", "load_from_cached_tokens", "load_pays_ranges"))
        if compute is not None:
            pays = loading_pays(setting, prefill)
        found[f"prefill_tokens_{label}"] = prefill
        found |= {f"{name}_{label}": value for name, value in pays.items()}
    return found

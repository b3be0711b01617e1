"""Answers for one model on one machine about a turn of K and T, by cost model. Workloads: `workload_answers`.

The formulae are in `costs` and `serving`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.hardware import costs
from pipelines.hardware.costs import Machine
from pipelines.hardware.entities import Model
from warehouse.formulas import kappa, serving

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_GRID = 4096


@dataclass(frozen=True, slots=True)
class Setting:
    """One model on one machine with one cost model.

    Attributes:
        model: Its sourced row; on the paper's basis with the paper's figures.
        machine: Its rates, tensor parallelism included.
        kv_dtype: A key of `cache.KV_ELEMENT_BYTES`.
        cost_model: One of `known_cost_models` for the model; None where there is none: t_GPU and everything that
            depends on it is then None in every answer.
        stored: The model as its cache is stored, where that is not by its own windows; None for itself.
        as_printed: Factor that turns pcie overhead into the paper's kappa_ratio / kappa_crit from rounded entries; 1
            except on the paper's basis. Seconds always follow from the rates.
    """

    model: Model
    machine: Machine
    kv_dtype: str
    cost_model: str | None
    as_printed: float = 1.0
    stored: Model | None = None

    @property
    def kept(self) -> Model:
        """The model as its cache is stored: itself, or with every layer whole."""
        return self.stored or self.model

    @property
    def loads(self) -> int:
        """Requests of an iteration whose caches cross each link."""
        return self.machine.rates.local_batch if self.machine.rates else 1

    def loaded_bytes(self, cached: Any) -> Any:  # noqa: ANN401 - numbers and arrays alike
        """Return the bytes that each GPU loads."""
        return costs.gpu_kv_bytes(self.kept, cached, self.kv_dtype, self.machine.tensor_parallel) / self.machine.stages

    def transfer_s(self, cached: Any) -> Any:  # noqa: ANN401
        """Return t_PCIe in seconds."""
        return costs.transfer_s(self.kept, self.machine, cached, self.kv_dtype)

    def compute_s(self, cached: Any, prefill: Any) -> Any:  # noqa: ANN401
        """Return t_GPU in seconds."""
        assert self.cost_model is not None
        return costs.compute_s(self.model, self.machine, cached, prefill, self.cost_model, self.kv_dtype)

    def recompute_s(self, cached: Any, prefill: Any) -> Any:  # noqa: ANN401
        """Return the seconds to compute K and T from scratch."""
        assert self.cost_model is not None
        return costs.recompute_s(self.model, self.machine, cached, prefill, self.cost_model, self.kv_dtype)

    def prefill_s(self, cached: Any, prefill: Any) -> Any:  # noqa: ANN401
        """Return the seconds from the loaded cache to the first token, the engine's floor included."""
        assert self.cost_model is not None
        return costs.prefill_s(self.model, self.machine, cached, prefill, self.cost_model, self.kv_dtype)


def known_cost_models(model: Model, machine: Machine, basis: str) -> list[str]:
    """Return the cost models that are known: the paper's basis is only 2N, `full` needs the memory's rate."""
    names = [name for name in ("2n", "attention", "full") if costs.is_known(model, name)]
    if basis == "paper":
        names = names[:1]
    return [name for name in names if name == "2n" or _has_parts(model, machine)]


def _has_parts(model: Model, machine: Machine) -> bool:
    """Return whether the parts of prefill are known: several GPUs add activations, whose width a row has to give."""
    return machine.rates is not None and (machine.rates.reducing_gpus == 1 or model.hidden_size is not None)


@dataclass(frozen=True, slots=True)
class Pays:
    """The K for which loading is faster than recomputing, up to the model's context.

    Attributes:
        load_pays: always, never, from, up to, or in ranges; None where t_GPU is unknown.
        load_from_cached_tokens: The K from which loading is always faster, None without one.
        load_pays_ranges: Every range of K, the last without its end where it reaches the context: `1-308, 757-`. There
            are two where the floor of reading weights grows with K (more experts are drawn), then is constant, and then
            is exceeded by the compute.
    """

    load_pays: str | None = None
    load_from_cached_tokens: int | None = None
    load_pays_ranges: str | None = None


@dataclass(frozen=True, kw_only=True)
class TurnCosts:
    """The costs of one turn; values that depend on t_GPU are None where it is unknown.

    Attributes:
        cached_tokens: K in whole blocks; `prefill_tokens` is T with the remainder.
        compute_s: t_GPU of an iteration, kernels only; `prefill_s` has the engine's floor and work too.
        kappa_crit_of_new_tokens: K / T at which loads take as long as t_GPU with that K; None where none does.
        faster: load or recompute; None where K in whole blocks is 0, neither where a KV pool does not hold the turn.
    """

    cost_model: str | None
    cached_tokens: int
    prefill_tokens: int
    kappa_ratio: float
    kv_bytes: float
    kv_bytes_per_token: float
    fixed_kv_bytes: float
    transfer_s: float
    compute_s: float | None
    ttft_floor_s: float
    requests_per_s: float | None
    kappa_crit_here: float | None = None
    pcie_overhead: float | None = None
    is_memory_bound: bool | None = None
    prefill_s: float | None = None
    kappa_crit_of_new_tokens: float | None = None
    ttft_s: float | None = None
    transfer_share: float | None = None
    layerwise_ttft_s: float | None = None
    recompute_s: float | None = None
    faster: str | None = None
    load_pays: str | None = None
    load_from_cached_tokens: int | None = None
    load_pays_ranges: str | None = None
    needed_bytes_per_s: float | None = None
    link_needed_bytes_per_s: float | None = None


def turn_answer(setting: Setting, cached_tokens: int, prefill_tokens: int, block: int = 1) -> TurnCosts:
    """Return the answer for one turn.

    Args:
        setting: Model, machine and cost model.
        cached_tokens: K of the workload.
        prefill_tokens: T, at least 1.
        block: Tokens in a block: an incomplete block is recomputed.
    """
    cached, prefill = kappa.block_tokens(cached_tokens, prefill_tokens, block)
    load = float(setting.transfer_s(float(cached)))
    loaded, of_gpu = float(costs.kv_bytes(setting.kept, float(cached), setting.kv_dtype)), setting.loaded_bytes(cached)
    per_token, state = costs.held_bytes(setting.kept, setting.kv_dtype)
    compute = None if setting.cost_model is None else float(setting.compute_s(float(cached), float(prefill)))
    turn = TurnCosts(
        cost_model=setting.cost_model,
        cached_tokens=cached,
        prefill_tokens=prefill,
        kappa_ratio=kappa.kappa_ratio(cached, prefill),
        kv_bytes=loaded,
        kv_bytes_per_token=per_token,
        fixed_kv_bytes=state,
        transfer_s=load,
        compute_s=compute,
        ttft_floor_s=max(load, compute or 0.0),
        requests_per_s=serving.requests_per_s(setting.machine.bytes_per_s, of_gpu) if loaded else None,
    )
    return turn if compute is None else _compared(setting, turn, compute, block)


def _compared(setting: Setting, turn: TurnCosts, compute: float, block: int) -> TurnCosts:
    cached, prefill, load = turn.cached_tokens, turn.prefill_tokens, turn.transfer_s
    again = float(setting.recompute_s(float(cached), float(prefill)))
    overhead = setting.loads * load / compute * setting.as_printed
    prefills = float(setting.prefill_s(float(cached), float(turn.prefill_tokens)))
    pays = loading_pays(setting, prefill, block)
    return replace(
        turn,
        kappa_crit_here=turn.kappa_ratio / overhead if overhead else None,
        pcie_overhead=overhead,
        is_memory_bound=overhead > 1,
        prefill_s=prefills,
        kappa_crit_of_new_tokens=kappa_crit_of(setting, prefill),
        ttft_s=kappa.ttft_s(load, prefills),
        transfer_share=kappa.transfer_share(setting.loads * load / compute),
        layerwise_ttft_s=serving.layerwise_ttft_s(load, prefills, setting.model.layers),
        recompute_s=again,
        faster=None if not cached else "load" if load + prefills < again else "recompute",
        load_pays=pays.load_pays,
        load_from_cached_tokens=pays.load_from_cached_tokens,
        load_pays_ranges=pays.load_pays_ranges,
        needed_bytes_per_s=serving.needed_bytes_per_s(turn.kv_bytes, compute),
        link_needed_bytes_per_s=serving.needed_bytes_per_s(float(setting.loaded_bytes(float(cached))), compute),
    )


# Beyond any context: no K up to it loads as long as it computes.
_MOST_CACHED = 1e12


def kappa_crit_of(setting: Setting, prefill_tokens: int) -> float | None:
    """Return K / T at which the loads of an iteration take as long as its t_GPU with that K; None where none does.

    Under `2n` it is the same for every T. t_GPU grows with K by its attention, so it is found by bisection.
    """

    def is_bound(cached: float) -> bool:
        needs = setting.loads * setting.transfer_s(cached)
        return bool(needs > setting.compute_s(cached, float(prefill_tokens)) / setting.as_printed)

    low, high = 0.0, float(prefill_tokens)
    while not is_bound(high):
        low, high = high, 2 * high
        if high > _MOST_CACHED:
            return None
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if is_bound(middle) else (middle, high)
    return high / prefill_tokens


def loading_pays(setting: Setting, prefill_tokens: int, block: int = 1) -> Pays:
    """Return the K in whole blocks for which loading is faster than recomputing, up to the model's context.

    Args:
        setting: Model, machine and cost model.
        prefill_tokens: T, at least 1; with the tokens of an incomplete block, which are recomputed anyway.
        block: Tokens in a block. A K below one block is never loaded, so that nothing is `always` faster above 1.
    """
    limit = setting.model.max_context_tokens // block * block
    ranges = paying_ranges(setting, prefill_tokens, block)
    on = ranges[-1][0] if ranges and ranges[-1][1] == limit else None
    told = [f"{first}-{'' if last == limit else last}" for first, last in ranges]
    return Pays(_word(ranges, limit), on, ", ".join(told) or None)


def _word(ranges: list[tuple[int, int]], limit: int) -> str:
    if not ranges:
        return "never"
    if len(ranges) > 1:
        return "in ranges"
    ((first, last),) = ranges
    if last == limit:
        return "always" if first == 1 else "from"
    return "up to" if first == 1 else "in ranges"


def paying_ranges(setting: Setting, prefill_tokens: int, block: int = 1) -> list[tuple[int, int]]:
    """Return the first and last K in whole blocks of each range where loading is faster, within the context.

    Ends are found by bisection between two points of a fine grid, since windows and floors have no closed form; for
    full attention there is one range, from `serving.crossover_cached_tokens`, rounded up. A range between two points
    of the grid, 0.3 % apart, is missed.
    """
    blocks = setting.model.max_context_tokens // block
    if not blocks:
        return []
    grid = np.unique(np.geomspace(1, blocks, _GRID).round().astype(np.int64))

    def is_faster(count: Ints) -> npt.NDArray[np.bool_]:
        return _pays(setting, (count * block).astype(np.float64), prefill_tokens)

    pays = is_faster(grid)
    firsts = [int(grid[0])] if pays[0] else []
    lasts = []
    for place in np.flatnonzero(pays[1:] != pays[:-1]):
        end = _end(is_faster, int(grid[place]), int(grid[place + 1]))
        if pays[place]:
            lasts.append(end)
        else:
            firsts.append(end + 1)
    return [(first * block, last * block) for first, last in zip(firsts, [*lasts, blocks], strict=False)]


def _end(is_faster: Callable[[Ints], npt.NDArray[np.bool_]], low: int, high: int) -> int:
    """Return the last number of blocks with the same answer as `low`, where `high` has the other answer."""
    (of_low,) = is_faster(np.array([low]))
    while high - low > 1:
        middle = (low + high) // 2
        is_alike = is_faster(np.array([middle]))[0] == of_low
        low, high = (middle, high) if is_alike else (low, middle)
    return low


def _pays(setting: Setting, cached: Floats, prefill_tokens: int) -> npt.NDArray[np.bool_]:
    prefill = np.full_like(cached, prefill_tokens)
    loading = setting.transfer_s(cached) + setting.prefill_s(cached, prefill)
    pays: npt.NDArray[np.bool_] = loading < setting.recompute_s(cached, prefill)
    return pays

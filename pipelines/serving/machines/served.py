"""Turns on one model and machine: seconds to load and compute each, the pool, and what an iteration costs.

This is the one module of the simulation that knows cost models; all others see seconds and tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from pipelines.hardware import costs
from pipelines.hardware.entities import Accelerator, Model, known
from pipelines.hardware.what_if import Setting
from pipelines.serving.engine.requests import Floats, Ints, Work
from warehouse.errors import ErrorCode, KappaError
from warehouse.formulas import weights
from warehouse.formulas.serving_load import capped_compute_share, pool_tokens

# Share of the accelerators' memory that an engine uses, and that has to be left for the cache.
MEMORY_SHARE, LEAST_POOL_SHARE = 0.9, 0.09
# Assumed: an accelerator that waits draws this share of its thermal design power, one that computes all of it.
IDLE_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Served:
    """The times of turns on one model and machine.

    Attributes:
        setting: Model, machine and cost model.
        load_s: x, shape (turns,).
        compute_s: c alone, shape (turns,).
        work: What an iteration costs.
    """

    setting: Setting
    load_s: Floats
    compute_s: Floats
    work: Work


def served(setting: Setting, cached_tokens: Ints, new_tokens: Ints) -> Served:
    """Return the times of turns; x and c are those of `kappa crit`.

    Args:
        setting: Model, machine and a cost model that is known for it.
        cached_tokens: K, shape (turns,).
        new_tokens: T, shape (turns,), at least 1.
    """
    cached, new = cached_tokens.astype(np.float64), new_tokens.astype(np.float64)
    load = np.asarray(setting.transfer_s(cached), dtype=np.float64)
    compute = np.asarray(setting.compute_s(cached, new), dtype=np.float64)
    return Served(setting, load, compute, _work(setting, cached, new))


def _work(setting: Setting, cached: Floats, new: Floats) -> Work:
    is_full = setting.cost_model == "full"
    flop = replace(setting, cost_model="attention") if is_full else setting
    return Work(
        np.asarray(flop.compute_s(cached, new), dtype=np.float64),
        lambda row, done, n: float(flop.compute_s(float(cached[row]) + done, float(n))),
        lambda contexts, iterations: _decode_s(flop, contexts, iterations, is_full=is_full),
        _weights_s(setting) if is_full else lambda _n: 0.0,
    )


def _decode_s(flop: Setting, contexts: Sequence[int], iterations: int, *, is_full: bool) -> tuple[Floats, Floats]:
    context = np.array(contexts, dtype=np.float64) + np.arange(iterations)[:, None]
    seconds: Floats = np.sum(flop.compute_s(context, np.ones_like(context)), axis=1)
    if not is_full:
        return seconds, np.zeros(iterations)
    of_gpu: Floats = np.sum(flop.loaded_bytes(context), axis=1)
    return seconds, of_gpu * flop.machine.tensor_parallel / known(flop.machine.hbm_bytes_per_s)


def _weights_s(setting: Setting) -> Callable[[int], float]:
    rate = known(setting.machine.hbm_bytes_per_s)

    @cache
    def seconds(tokens: int) -> float:
        params = costs.read_params(setting.model, float(tokens))
        return float(weights.weights_s(params, weights.WEIGHT_BYTES, rate))

    return seconds


def capped(setting: Setting, cap_w: float, accelerator: Accelerator) -> Setting:
    """Return the setting under a power cap: compute slows down, memory and link do not.

    Raises:
        KappaError: the accelerator has no thermal design power, or the cap is not above the idle power.
    """
    tdp = tdp_of(accelerator)
    if cap_w <= IDLE_SHARE * tdp:
        raise KappaError(
            f"a cap of {cap_w:g} W is not possible",
            f"{accelerator.accelerator} is assumed to draw {IDLE_SHARE * tdp:g} W where it only waits",
            "give more",
            code=ErrorCode.USAGE,
        )
    share = capped_compute_share(cap_w, IDLE_SHARE * tdp, tdp)
    return replace(setting, machine=replace(setting.machine, flop_per_s=setting.machine.flop_per_s * share))


def tdp_of(accelerator: Accelerator) -> float:
    """Return the thermal design power in watts.

    Raises:
        KappaError: it is in no table.
    """
    if accelerator.tdp_w is None:
        raise KappaError(
            f"{accelerator.accelerator} has no thermal design power",
            "its row leaves tdp_w empty",
            "add it in HOME/reference/accelerators.csv",
            code=ErrorCode.NOTHING_FITS,
        )
    return accelerator.tdp_w


def pool_of(setting: Setting, accelerator: Accelerator) -> int | None:
    """Return the tokens that the pool of each GPU holds: its memory less its share of the weights; None without end.

    Negative where the weights do not fit. A model whose cache does not grow with the context has a pool without end.
    """
    gpus = setting.machine.tensor_parallel
    a_token = float(setting.loaded_bytes(2.0)) - float(setting.loaded_bytes(1.0))
    total = setting.model.total_params
    if total is None or a_token <= 0:
        return None
    found = pool_tokens(accelerator.hbm_bytes, total * weights.WEIGHT_BYTES / gpus, a_token, MEMORY_SHARE)
    return math.floor(found)


def least_gpus(model: Model, accelerator: Accelerator) -> int:
    """Return the least of 1, 2, 4, ... GPUs that divides the heads and leaves LEAST_POOL_SHARE of memory for the cache.

    Without a known size it is 1; where no number does, the largest that divides the heads.
    """
    of_weights = 0.0 if model.total_params is None else float(model.total_params) * weights.WEIGHT_BYTES
    gpus = 1
    while (
        of_weights / gpus > (MEMORY_SHARE - LEAST_POOL_SHARE) * accelerator.hbm_bytes and model.heads % (2 * gpus) == 0
    ):
        gpus *= 2
    return gpus

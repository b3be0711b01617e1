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
from pipelines.hardware.deployment.fitting import fit
from pipelines.hardware.entities import Accelerator, known
from pipelines.hardware.served import weights_of
from pipelines.hardware.what_if import Setting
from pipelines.serving.engine.requests import Floats, Ints, Work
from warehouse.errors import ErrorCode, KappaError
from warehouse.formulas.serving_load import capped_compute_share

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


def served(setting: Setting, cached_tokens: Ints, new_tokens: Ints, loaded_tokens: Floats | None = None) -> Served:
    """Return the times of turns. x is that of `kappa crit`, c the iteration of a turn that is alone.

    c is max(FLOP seconds, weights read), as an iteration of the engine is; `kappa crit` adds the longer of both of each
    part of prefill, which is up to some per cent more.

    Args:
        setting: Model, machine and a cost model that is known for it.
        cached_tokens: K, shape (turns,).
        new_tokens: T, shape (turns,), at least 1.
        loaded_tokens: What of K crosses the link, shape (turns,); None for all of it.
    """
    cached, new = cached_tokens.astype(np.float64), new_tokens.astype(np.float64)
    loaded = cached if loaded_tokens is None else loaded_tokens
    load = np.asarray(setting.transfer_s(loaded), dtype=np.float64)
    work = _work(setting, cached, new)
    compute = work.whole_s
    if setting.cost_model == "full":
        compute = np.maximum(compute, _each(work.weights_s, new_tokens))
    return Served(setting, load, compute, work)


def _each(seconds: Callable[[int], float], tokens: Ints) -> Floats:
    """Return a time of each number of tokens, worked out once for equal ones."""
    numbers, places = np.unique(tokens, return_inverse=True)
    times: Floats = np.array([seconds(number) for number in numbers.tolist()])[places]
    return times


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
    return seconds, of_gpu * flop.machine.tensor_parallel / known(flop.machine.rates).hbm_bytes_per_s


def _weights_s(setting: Setting) -> Callable[[int], float]:
    @cache
    def seconds(tokens: int) -> float:
        return float(costs.read_s(setting.model, setting.machine, float(tokens)))

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
    machine = setting.machine
    rates = machine.rates.slowed(share) if machine.rates else None
    return replace(setting, machine=replace(machine, flop_per_s=machine.flop_per_s * share, rates=rates))


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
    held = weights_of(setting.model, setting.model.weight_dtype or "bf16")
    if held is None or a_token <= 0:
        return None
    return math.floor(fit(held, accelerator.hbm_bytes, gpus).pool_bytes / a_token)

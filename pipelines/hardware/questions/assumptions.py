"""An answer under every cost model and block: its range, and whether an assumption decides the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pipelines.hardware.turn_costs import needed_shares, order_turns
from pipelines.hardware.what_if import Setting, known_cost_models
from warehouse.declared.fields import BLOCK_TOKENS
from warehouse.declared.verdicts import whatever
from warehouse.formulas import kappa

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Assumptions:
    """The range of an answer over cost models and blocks of 1, 16 and 256 tokens; None where t_GPU is unknown.

    Attributes:
        bound_least: Least load / t_GPU of a turn, or least share of memory-bound turns of a workload.
        bound_most: The greatest.
        whatever: link bound or GPU bound whatever the assumptions, or the assumption that decides.
    """

    bound_least: float | None = None
    bound_most: float | None = None
    whatever: str | None = None


def of_turn(setting: Setting, basis: str, cached_tokens: int, prefill_tokens: int) -> Assumptions:
    """Return the range of load / t_GPU of a turn; above 1 the link is the limit."""
    found = {}
    for one, block in _cases(setting, basis):
        cached, prefill = (float(n) for n in kappa.block_tokens(cached_tokens, prefill_tokens, block))
        load = one.loads * one.transfer_s(cached) * one.as_printed
        found[str(one.cost_model), block] = float(load / one.compute_s(cached, prefill))
    return _summed(found, 1.0)


def of_workload(setting: Setting, basis: str, cached_tokens: Ints, prefill_tokens: Ints) -> Assumptions:
    """Return the range of the share of memory-bound turns; above one half the link is the limit."""
    found = {}
    rate = np.array([setting.machine.bytes_per_s])
    for one, block in _cases(setting, basis):
        turns = order_turns(cached_tokens, prefill_tokens, block)
        compute = one.compute_s(turns.cached, turns.prefill) / one.as_printed
        shares = needed_shares(turns, one.loaded_bytes(turns.cached) * one.loads, compute, rate)
        found[str(one.cost_model), block] = float(shares["memory_bound_turn_share"][0])
    return _summed(found, 0.5)


def _cases(setting: Setting, basis: str) -> Iterator[tuple[Setting, int]]:
    for name in known_cost_models(setting.model, setting.machine, basis):
        for block in BLOCK_TOKENS:
            yield replace(setting, cost_model=name), block


def _summed(found: Mapping[tuple[str, int], float], limit: float) -> Assumptions:
    if not found:
        return Assumptions()
    return Assumptions(bound_least=min(found.values()), bound_most=max(found.values()), whatever=whatever(found, limit))

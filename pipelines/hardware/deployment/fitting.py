"""The least number of GPUs on which the weights and a pool for keys and values fit."""

from __future__ import annotations

from dataclasses import dataclass

from warehouse.formulas import weights

# vLLM's gpu_memory_utilization, and what activations and graphs take of it: chosen on LMCache issue 1241, where two
# RTX 4090 have a pool of 18,144 tokens for Qwen2.5-32B and 87,584 for Qwen3-30B-A3B.
USED_SHARE, RESERVED_BYTES = 0.9, 3.5e9
# The least share of a GPU's memory that the pool takes.
POOL_SHARE = 0.09
# GPUs of a host; more of them span nodes.
NODE_GPUS = 8
# Beyond every machine that serves one model.
MOST_GPUS = 4096
# GPUs in one NVLink domain where that is a rack.
RACK_GPUS = {"gb200": 72, "gb300": 72}


@dataclass(frozen=True, slots=True)
class Weights:
    """The bytes of a model's weights in its served format.

    Attributes:
        total: W.
        experts: Those of the routed experts.
    """

    total: float
    experts: float

    def of_gpu(self, gpus: int, *, is_data: bool = False) -> float:
        """Return the bytes on each GPU; with data parallel attention the dense layers are whole on each."""
        return self.total - self.experts + self.experts / gpus if is_data else self.total / gpus


@dataclass(frozen=True, slots=True)
class Fit:
    """GPUs that serve a model, and what is left on each of them for keys and values.

    Attributes:
        gpus: Their number.
        weight_bytes: W.
        pool_bytes: Left for the pool on each GPU; below zero where the weights do not fit.
        fits: Whether the pool has at least `POOL_SHARE` of the memory.
    """

    gpus: int
    weight_bytes: float
    pool_bytes: float
    fits: bool


def fit(held: Weights, hbm_bytes: float, gpus: int, *, is_data: bool = False) -> Fit:
    """Return what is left on each of a number of GPUs."""
    of_all = held.of_gpu(gpus, is_data=is_data) * gpus
    pool = weights.pool_bytes(hbm_bytes, of_all, gpus, USED_SHARE, RESERVED_BYTES)
    return Fit(gpus, held.total, pool, pool >= POOL_SHARE * hbm_bytes)


def least_fit(held: Weights, hbm_bytes: float, heads: int, *, is_data: bool = False) -> Fit:
    """Return the fit on the least of 1, 2, 4, ... GPUs that divide the query heads; on the most where none fits.

    Args:
        held: The weights.
        hbm_bytes: Memory of one GPU.
        heads: Query heads.
        is_data: Data parallel attention, which any number of GPUs divides.
    """
    gpus, found = 1, fit(held, hbm_bytes, 1, is_data=is_data)
    while not found.fits and (heads % (2 * gpus) == 0 or (is_data and gpus < heads)):
        gpus *= 2
        found = fit(held, hbm_bytes, gpus, is_data=is_data)
    return found


def nodes(accelerator: str, gpus: int) -> int:
    """Return the number of nodes (or NVLink domains of a rack) that the GPUs fill.

    >>> nodes("h100-sxm", 16), nodes("gb200", 16)
    (2, 1)
    """
    return -(-gpus // RACK_GPUS.get(accelerator, NODE_GPUS))

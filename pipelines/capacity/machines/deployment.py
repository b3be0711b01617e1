"""The accelerators that a model needs, and the memory that they have left for its cache."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.hardware.costs import held_bytes
from pipelines.hardware.entities import Accelerator, Model
from warehouse.formulas.cache_size import blocks_in
from warehouse.formulas.kv_bytes import kv_share_of_gpu

# Share of its memory that an engine uses, and what it keeps there for activations and graphs; a pool below the least
# share serves no load. Source: LMCache issue 1241, two RTX 4090: 19,232 and 83,497 tokens where 18,144 and 87,584 were
# measured.
USED_SHARE, RESERVED_BYTES, LEAST_POOL_SHARE = 0.9, 3.5e9, 0.09
WEIGHT_BYTES = 2.0
MOST_GPUS = 1024


@dataclass(frozen=True, slots=True)
class Deployment:
    """A model on the fewest accelerators that hold it.

    Attributes:
        gpus: Accelerators that share each layer.
        pool_bytes: Memory of each that is left for keys and values.
        gpu_token_bytes: Bytes that one more cached token takes on each of them.
        host_token_bytes: Bytes that it takes once, in host memory.
    """

    gpus: int
    pool_bytes: float
    gpu_token_bytes: float
    host_token_bytes: float

    def gpu_blocks(self, block_tokens: int) -> int:
        """Return the whole blocks that the accelerators' own memory holds."""
        return int(blocks_in(self.pool_bytes, block_tokens, self.gpu_token_bytes))

    def host_blocks(self, size_bytes: float, block_tokens: int) -> int:
        """Return the whole blocks that so many bytes of host memory, or of a tier below it, hold."""
        return int(blocks_in(size_bytes, block_tokens, self.host_token_bytes))


def deployment(model: Model, accelerator: Accelerator, kv_dtype: str, gpus: int | None = None) -> Deployment | None:
    """Return a model on the fewest accelerators that hold its weights and a pool; None where its size is unknown.

    The fewest of 1, 2, 4, ... that divide the heads and leave a pool of at least 9 % of the memory, after weights in
    bf16, which are shared, and 3.5 GB for activations, of the 90 % that an engine uses.

    Args:
        model: Its sourced row.
        accelerator: Its sourced row.
        kv_dtype: A key of `KV_ELEMENT_BYTES`.
        gpus: Accelerators to take instead; the pool may then be 0.
    """
    per_token, _ = held_bytes(model, kv_dtype)
    if model.total_params is None or per_token <= 0:
        return None
    weights, memory = model.total_params * WEIGHT_BYTES, accelerator.hbm_bytes

    def pool(count: int) -> float:
        return USED_SHARE * memory - RESERVED_BYTES - weights / count

    fits = [2**power for power in range(MOST_GPUS.bit_length()) if model.heads % 2**power == 0]
    count = gpus or next((one for one in fits if pool(one) >= LEAST_POOL_SHARE * memory), None)
    if count is None:
        return None
    on_each = per_token * kv_share_of_gpu(count, model.kv_heads)
    return Deployment(count, max(pool(count), 0.0), on_each, per_token)

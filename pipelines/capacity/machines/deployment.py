"""The accelerators that a model needs, and the memory that they have left for its cache."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.hardware.costs import held_bytes
from pipelines.hardware.entities import Accelerator, Model
from pipelines.hardware.served import Serving, fitted
from warehouse.formulas.cache_size import blocks_in
from warehouse.formulas.kv_bytes import kv_share_of_gpu


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

    Weights are in the format that the model is served in; see `pipelines.hardware.deployment.fitting`.

    Args:
        model: Its sourced row.
        accelerator: Its sourced row.
        kv_dtype: A key of `KV_ELEMENT_BYTES`.
        gpus: Accelerators to take instead; the pool may then be 0.
    """
    per_token, _ = held_bytes(model, kv_dtype)
    found = fitted(accelerator, model, Serving(gpus=gpus))
    if found is None or per_token <= 0 or not (found.fits or gpus):
        return None
    on_each = per_token * kv_share_of_gpu(found.gpus, model.kv_heads)
    return Deployment(found.gpus, max(found.pool_bytes, 0.0), on_each, per_token)


def slowness(placed: Deployment, link_bytes_per_s: float, tier_bytes_per_s: float | None) -> float:
    """Return how many times as long as over the links a token of a tier takes, which feeds all accelerators.

    Args:
        placed: The model on its accelerators.
        link_bytes_per_s: Rate of the link of each.
        tier_bytes_per_s: What the tier gives to all of them together; None where only their links limit.
    """
    if tier_bytes_per_s is None:
        return 1.0
    over_links = placed.gpu_token_bytes / link_bytes_per_s
    return max(placed.host_token_bytes / tier_bytes_per_s / over_links, 1.0)

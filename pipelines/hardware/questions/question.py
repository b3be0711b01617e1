"""What is asked of models on hardware: kappa_crit, or what a turn or a workload makes of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CritQuestion:
    """A question; with K and T it is about a turn, with a workload about all of its turns, else kappa_crit alone.

    Attributes:
        model: Its name; None for the headline ones. Names are found whatever their case.
        accelerator: None for every one that fits, as are `link` and `basis`.
        link: See `accelerator`.
        basis: paper, physical or measured.
        bandwidth_bytes_per_s: One direction, in the place of the link's.
        sustained_fraction: Share of the dense peak that prefill sustains, above 0 and at most 1.
        kv_dtype: A key of `kv_bytes.KV_ELEMENT_BYTES`; None for bf16.
        tensor_parallel: GPUs that share each layer, each with its own link.
        cached_tokens: K of a turn, with `new_tokens`.
        new_tokens: T of a turn, at least 1.
        workload: All turns of a workload that a home folder holds.
        counting: Way of counting the workload; None for text.
        chunk_tokens: Tokens that are reused together.
        cost_model: What t_GPU counts; None for every one that is known.
        tier: Slower link that a part of the cache lies behind.
        tier_share: That part, 0 to 1; None for all of it.
        output_tokens: Tokens generated: adds the time to write back.
        pool_tokens: Tokens that the KV pool holds: adds T_sched.
        idle_w: Power of one GPU while loading; with `busy_w` adds the energy.
        busy_w: Power of one GPU while computing.
    """

    model: str | None = None
    accelerator: str | None = None
    link: str | None = None
    basis: str | None = None
    bandwidth_bytes_per_s: float | None = None
    sustained_fraction: float | None = None
    kv_dtype: str | None = None
    tensor_parallel: int = 1
    cached_tokens: int | None = None
    new_tokens: int | None = None
    workload: str | None = None
    counting: str | None = None
    chunk_tokens: int = 1
    cost_model: str | None = None
    tier: str | None = None
    tier_share: float | None = None
    output_tokens: int | None = None
    pool_tokens: int | None = None
    idle_w: float | None = None
    busy_w: float | None = None

    @property
    def is_about_turns(self) -> bool:
        """Whether a turn or a workload was asked for."""
        return any(value is not None for value in (self.cached_tokens, self.new_tokens, self.workload))

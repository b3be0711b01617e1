"""A question about models on hardware: kappa_crit, or its effect on a turn or a workload."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CritQuestion:
    """A question: about a turn with K and T, about all turns of a workload, else kappa_crit only.

    Attributes:
        model: Its name in any case; None for the headline ones.
        accelerator: None for every one that fits, as for `link` and `basis`.
        link: See `accelerator`.
        basis: paper, physical or measured.
        bandwidth_bytes_per_s: One direction, instead of the link's.
        sustained_fraction: Share of the dense peak that prefill sustains, above 0 and at most 1.
        kv_dtype: A key of `kv_bytes.KV_ELEMENT_BYTES`; None for bf16.
        tensor_parallel: GPUs that share each layer, each with its own link.
        cached_tokens: K of a turn, with `new_tokens`.
        new_tokens: T of a turn, at least 1.
        workload: A workload of the home folder, with all of its turns.
        counting: Way of counting the workload; None for the first of text, chat, logged that it has.
        reuse: What K is; None for the first of history, prefix, reported that the workload has.
        chunk_tokens: Reuse granularity in tokens.
        cost_model: The cost model of t_GPU; None for every known one.
        tier: Slower link to the part of the cache in `tier_share`.
        tier_share: That part, 0 to 1; None for all of it.
        output_tokens: Generated tokens: adds the time to write back.
        pool_tokens: Capacity of the KV pool in tokens: adds T_sched.
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
    reuse: str | None = None
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
        """Whether the question is about a turn or a workload."""
        return any(value is not None for value in (self.cached_tokens, self.new_tokens, self.workload))

"""The answer of `kappa cache` as types: a row for each cache, and what holds for all of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CacheRow:
    """What a cache of one size gives.

    Attributes:
        tiers: The tiers behind the accelerators' own memory, in words; empty for none.
        size_bytes: Their sizes added up.
        capacity_tokens: Tokens that all tiers hold, the accelerators' own memory included.
        hit_ratio: Hit tokens over the tokens of all prompts.
        share_of_endless: Hit tokens over those of an endless cache.
        best_hit_ratio: Of a policy that knows all later requests, in the same size.
        gpu_token_share: Of all prompt tokens, those that the accelerators' own memory holds: K_gpu.
        link_token_share: Those that cross the link: K_link.
        computed_token_share: Those that are computed: T_eff.
        kappa_link_p50: K_link / T_eff, median over all turns.
        kappa_link_p90: The same, 90th percentile.
        kappa_link_p99: The same, 99th percentile.
        link_bound_turn_share: Turns whose load takes longer than their computation; None where kappa_crit is.
        compute_bound_turn_share: Turns with a load that takes no longer; None where kappa_crit is.
        no_link_turn_share: Turns with nothing to load.
        link_bytes_per_request: Bytes that cross the links for a request, mean.
        link_bytes_per_s: Bytes over the links a second at the rate of requests; None without a rate.
        next_bytes: The next step in size.
        next_hit_ratio: What that step adds to the hit ratio.
    """

    tiers: str
    size_bytes: float
    capacity_tokens: int
    hit_ratio: float
    share_of_endless: float
    best_hit_ratio: float
    gpu_token_share: float
    link_token_share: float
    computed_token_share: float
    kappa_link_p50: float
    kappa_link_p90: float
    kappa_link_p99: float
    link_bound_turn_share: float | None
    compute_bound_turn_share: float | None
    no_link_turn_share: float
    link_bytes_per_request: float
    link_bytes_per_s: float | None
    next_bytes: float
    next_hit_ratio: float


@dataclass(frozen=True, slots=True)
class CacheAnswer:
    """How much of a workload caches keep, for a model on a machine.

    Attributes:
        workload: Its name; `tokenizer`, `counting` and `reuse` name the series.
        tokenizer: Whose counts they are.
        counting: Way of counting.
        reuse: What a block is: a place in a session (history) or a prefix that any session shares.
        interleaving: Sessions served at a time; 0 for the log's own order.
        block_tokens: Tokens of a block.
        is_sample: Whether the text is generated.
        is_tokenizer_proxy: Whether the counts are of another vocabulary than the model's.
        requests: How many there are.
        context_tokens: Tokens of all prompts.
        endless_hit_ratio: Of a cache without an end.
        across_share: Share of its hit tokens that another session touched last.
        model: Its name, with `accelerator`, `link` and `kv_dtype`.
        accelerator: See `model`.
        link: See `model`.
        kv_dtype: See `model`.
        gpus: Accelerators that share each layer.
        gpu_pool_bytes: Memory of all of them that is left for keys and values.
        kv_token_bytes: Bytes of one more cached token in host memory.
        kappa_crit: Of the model on these accelerators together; None where no single number is.
        knee_bytes: Size behind the accelerators' memory from which on the next 100 GB never bring 1 % of all tokens.
        is_best_exact: Whether a policy reaches `best_hit_ratio`; else it is an upper bound.
        notes: How the heads divide over the accelerators, where they do not evenly.
        rows: One for each cache asked for, by size.
        verdict_row: Which of them the verdict is about: the largest that was named, else the first beyond the knee.
    """

    workload: str
    tokenizer: str
    counting: str
    reuse: str
    interleaving: int
    block_tokens: int
    is_sample: bool
    is_tokenizer_proxy: bool
    requests: int
    context_tokens: int
    endless_hit_ratio: float
    across_share: float
    model: str
    accelerator: str
    link: str
    kv_dtype: str
    gpus: int
    gpu_pool_bytes: float
    kv_token_bytes: float
    kappa_crit: float | None
    knee_bytes: float
    is_best_exact: bool
    notes: tuple[str, ...]
    rows: tuple[CacheRow, ...]
    verdict_row: int

"""The typed answers of the simulation, and each as a flat row."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.hardware.questions.answer import Series


@dataclass(frozen=True, kw_only=True)
class ServedOn:
    """The subject of an answer.

    Attributes:
        tensor_parallel: GPUs that share each layer.
        block_tokens: Tokens that are reused together.
        is_sample: Whether the text of the turns is generated.
    """

    model: str
    accelerator: str
    link: str
    basis: str
    kv_dtype: str
    cost_model: str
    tensor_parallel: int
    block_tokens: int
    is_sample: bool


@dataclass(frozen=True, kw_only=True)
class ServeAnswer(ServedOn, Series):
    """One rate and policy on one model and machine. TTFT and its parts are means over seeds, in seconds.

    Attributes:
        policy: As users write it.
        arrivals: As in the question.
        pool_tokens: Tokens that the pool of each GPU holds; None without end.
        carried_per_s: Turns a second that link and accelerator carry, one turn an iteration.
        rate_per_s: Mean arrivals a second; None in a closed loop, for a backlog and for a log as it is.
        load_share: The rate over `carried_per_s`.
        seeds: Runs.
        ttft_p90_low_s: Lower end of the 99 % t-interval over seeds; None with one seed.
        ttft_p90_high_s: Its upper end.
        served_per_s: Turns served over the span.
        average_power_w: Mean power of a GPU; None where its thermal design power is unknown.
        energy_j: Energy of a run of all GPUs.
        knee_per_s: Largest rate with p90 TTFT within twice that of an idle machine; None where it has no rate,
            where no rate is within it, and where every rate is.
        goodput_per_s: Largest rate with p90 TTFT within the limit; None where not asked, and where it is above it at
            any rate.
        gpu_token_share: Share of the prompts' tokens that the GPUs' own memory holds; None without tiers, where all of
            K crosses the link.
        link_token_share: Share of them that come over the link.

    All others are those of `summary.RunAnswer`.
    """

    policy: str
    arrivals: str
    pool_tokens: int | None
    carried_per_s: float
    rate_per_s: float | None
    load_share: float | None
    seeds: int
    turns: int
    rejected_turns: int
    ttft_mean_s: float
    ttft_p50_s: float
    ttft_p90_s: float
    ttft_p90_low_s: float | None
    ttft_p90_high_s: float | None
    ttft_p99_s: float
    memory_s: float
    link_queue_s: float
    load_s: float
    accelerator_queue_s: float
    computing_s: float
    link_busy_share: float
    compute_busy_share: float
    flop_share: float
    pool_share: float | None
    limit: str
    iterations: int
    tokens_per_iteration: float
    budget_share: float
    longest_wait_s: float
    bound_ttft_p90_s: float | None
    other_ttft_p90_s: float | None
    jain_index: float
    served_per_s: float
    average_power_w: float | None
    energy_j: float | None
    knee_per_s: float | None = None
    goodput_per_s: float | None = None
    gpu_token_share: float | None = None
    link_token_share: float | None = None


@dataclass(frozen=True, kw_only=True)
class FleetAnswer(ServedOn, Series):
    """One class of turns on one machine of the cheapest fleet.

    Attributes:
        loading: Whether loads go beside computing.
        cached_from_tokens: Least K of the class.
        new_from_tokens: Least T of the class.
        turns: Turns of the class.
        turn_share: Share of the class that this machine serves.
        load_s: Mean x of the class here.
        compute_s: Mean c of the class here.
        usd_per_hour: Of the machine, all its accelerators.
        machine_hours: Its hours for all classes.
        shadow_usd_per_hour: What one more hour of it would save.
        usd_per_million_turns: Cost of the fleet.
        best_single: Accelerator and link of the machine that is cheapest alone; None where none has the hours.
        best_single_usd_per_million_turns: Cost with it.
        round_robin_usd_per_million_turns: Cost with equal shares on every machine; None where hours lack.
        routing_kappa: Two blocking machines under cost model 2n: turns above this kappa_ratio go to the one with the
            faster link for its price; None otherwise.
        price_source: Where the price is from.
        price_retrieved: The day of it; None for one of the command line.
    """

    loading: str
    cached_from_tokens: int
    new_from_tokens: int
    turns: int
    turn_share: float
    load_s: float
    compute_s: float
    usd_per_hour: float
    machine_hours: float
    shadow_usd_per_hour: float
    usd_per_million_turns: float
    best_single: str | None
    best_single_usd_per_million_turns: float | None
    round_robin_usd_per_million_turns: float | None
    routing_kappa: float | None
    price_source: str
    price_retrieved: str | None

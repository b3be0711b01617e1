"""The columns of turns that meet: load, schedule, fleet, and prices. Times are in seconds, prices in USD."""

from __future__ import annotations

import pyarrow as pa

from warehouse.declared import bounds as p
from warehouse.declared.hardware_fields import _count, _number, _text
from warehouse.declared.schema import Field

USD_PER_HOUR = _number("usd_per_hour", "USD/h", "price of one accelerator", p.HOURLY_PRICE)


def _share(name: str, description: str) -> Field:
    return Field(name, pa.float64(), "1", description, minimum=0.0, maximum=1.0)


def _seconds(name: str, description: str) -> Field:
    return _number(name, "s", description)


TENSOR_PARALLEL = _count("tensor_parallel", "1", "GPUs that share each layer: the least that hold weights and cache")
POOL_TOKENS = _count("pool_tokens", "tokens", "tokens that the pool of each GPU holds").or_null(
    "tokens that the pool of each GPU holds; NULL where the cache does not grow with the context"
)
CARRIED_PER_S = _number("carried_per_s", "1/s", "turns a second that link and accelerator carry, one turn an iteration")
KNEE_PER_S = _number(
    "knee_per_s", "1/s", "largest rate with p90 TTFT within twice that of an idle machine, to 1 %"
).or_null(
    "largest rate with p90 TTFT within twice that of an idle machine, to 1 %; NULL where no rate is, or every rate"
)
LOAD_SHARE = _number("load_share", "1", "the rate over carried_per_s; above 1 the queue only grows")
RATE_PER_S = _number("rate_per_s", "1/s", "mean arrivals a second, at random (Poisson)")
SERVED_TURNS = _count("served_turns", "1", "turns of the run, the first in the order of service")
REJECTED_TURNS = _count("rejected_turns", "1", "turns whose K + T + output are above the pool")
TTFT_MEAN = _seconds("ttft_mean_s", "mean TTFT after the first tenth of the run: the sum of its five parts")
TTFT_P50 = _seconds("ttft_p50_s", "median TTFT")
TTFT_P90 = _seconds("ttft_p90_s", "TTFT that one turn in ten exceeds")
TTFT_P99 = _seconds("ttft_p99_s", "TTFT that one turn in a hundred exceeds")
MEMORY_S = _seconds("memory_s", "mean wait for memory before admission")
LINK_QUEUE_S = _seconds("link_queue_s", "mean wait of a load for the link")
LOAD_S = _seconds("load_s", "mean time to load K")
ACCELERATOR_QUEUE_S = _seconds("accelerator_queue_s", "mean wait for the accelerator, before admission and once loaded")
COMPUTING_S = _seconds("computing_s", "mean time from the beginning of the first iteration that computes a turn")
LINK_BUSY = _share("link_busy_share", "share of the run in which the link loads")
COMPUTE_BUSY = _share("compute_busy_share", "share of the run in which an iteration computes")
FLOP_SHARE = _share("flop_share", "FLOP over those that the run could hold at the sustained rate")
POOL_SHARE = _share("pool_share", "mean share of the pool that is held").or_null(
    "mean share of the pool that is held; NULL for a pool without end"
)
LIMIT = _text(
    "limit",
    "what limits: link or compute where busy for 95 % of the run (the busier), else memory where something waits for "
    "it half of the run",
    ("link", "compute", "memory", "none"),
)
TOKENS_PER_ITERATION = _number("tokens_per_iteration", "tokens", "mean new tokens of an iteration")
AVERAGE_POWER = _number(
    "average_power_w", "W", "mean power of a GPU: 0.2 of its TDP, all of it while computing"
).or_null("mean power of a GPU, assumed 0.2 of its TDP, and all of it while computing; NULL where the TDP is unknown")
POLICY = _text("policy", "which waiting turn is admitted next")
ITERATIONS = _count("iterations", "1", "iterations of the run")
BUDGET_SHARE = _share("budget_share", "mean new tokens of an iteration over the token budget of 8,192")
LONGEST_WAIT = _seconds("longest_wait_s", "longest TTFT")
BOUND_TTFT_P90 = _seconds("bound_ttft_p90_s", "p90 of turns that load longer than they compute").or_null(
    "p90 of turns that load longer than they compute; NULL without one"
)
OTHER_TTFT_P90 = _seconds("other_ttft_p90_s", "p90 of the other turns").or_null(
    "p90 of the other turns; NULL without one"
)
JAIN_INDEX = _share("jain_index", "Jain's index of (load + compute) / TTFT: 1 where all wait alike")

LOADING = _text("loading", "whether loads go beside computing", ("async", "blocking"))
CACHED_FROM = _count("cached_from_tokens", "tokens", "least K of the class")
NEW_FROM = _count("new_from_tokens", "tokens", "least T of the class")
CLASS_TURNS = _count("class_turns", "1", "turns of the class")
TURN_SHARE = _share("routed_turn_share", "share of the class that this machine serves in the cheapest fleet")
CLASS_COMPUTE_S = _seconds("class_compute_s", "mean time to compute a turn of the class here")
CLASS_LOAD_S = _seconds("class_load_s", "mean time to load K of a turn of the class here")
MACHINE_USD = _number("machine_usd_per_hour", "USD/h", "price of the machine, all its accelerators")
MACHINE_HOURS = _number("machine_hours", "h", "its hours for all classes, at 0.7 planned use")
FLEET_USD = _number("usd_per_million_turns", "USD", "cost of the cheapest fleet")
BEST_SINGLE = _text("best_single", "the machine that is cheapest where it serves all")
BEST_SINGLE_USD = _number("best_single_usd_per_million_turns", "USD", "cost with it")
ROUND_ROBIN_USD = _number("round_robin_usd_per_million_turns", "USD", "cost with equal shares on every machine")

"""Tables of turns that meet on a machine or a fleet, for the models and platforms of the headlines."""

from __future__ import annotations

from warehouse.declared import hardware_fields as h
from warehouse.declared.schema import Table
from warehouse.declared.serving import fields as s
from warehouse.declared.turn_tables import SERIES, SERIES_FIELDS

_ON = (h.MODEL, h.ACCELERATOR, h.LINK, h.BASIS, h.COST_MODEL, s.TENSOR_PARALLEL)
_KEY = (*SERIES, "model", "accelerator", "link", "basis")
LOAD = Table(
    "load",
    "one request rate on one model and platform, first come first served",
    (*_KEY, "load_share"),
    (
        *SERIES_FIELDS, *_ON, s.POOL_TOKENS, s.CARRIED_PER_S, s.KNEE_PER_S, s.LOAD_SHARE, s.RATE_PER_S, s.SERVED_TURNS,
        s.REJECTED_TURNS, s.TTFT_MEAN, s.TTFT_P50, s.TTFT_P90, s.TTFT_P99, s.MEMORY_S, s.LINK_QUEUE_S, s.LOAD_S,
        s.ACCELERATOR_QUEUE_S, s.COMPUTING_S, s.LINK_BUSY, s.COMPUTE_BUSY, s.FLOP_SHARE, s.POOL_SHARE, s.LIMIT,
        s.TOKENS_PER_ITERATION, s.AVERAGE_POWER,
    ),
    partition_by=SERIES,
)  # fmt: skip
SCHEDULE = Table(
    "schedule",
    "one policy at one request rate on one model and platform",
    (*_KEY, "policy"),
    (
        *SERIES_FIELDS, *_ON, s.POLICY, s.RATE_PER_S, s.SERVED_TURNS, s.REJECTED_TURNS, s.TTFT_MEAN, s.TTFT_P50,
        s.TTFT_P90, s.TTFT_P99, s.BOUND_TTFT_P90, s.OTHER_TTFT_P90, s.LONGEST_WAIT, s.JAIN_INDEX, s.ITERATIONS,
        s.TOKENS_PER_ITERATION, s.BUDGET_SHARE, s.LINK_BUSY, s.COMPUTE_BUSY, s.POOL_SHARE, s.LIMIT,
    ),
    partition_by=SERIES,
)  # fmt: skip
FLEET = Table(
    "fleet",
    "one class of turns on one machine of the cheapest fleet; empty without prices",
    (*_KEY, "loading", "cached_from_tokens", "new_from_tokens"),
    (
        *SERIES_FIELDS, *_ON, s.LOADING, s.CACHED_FROM, s.NEW_FROM, s.CLASS_TURNS, s.TURN_SHARE, s.CLASS_LOAD_S,
        s.CLASS_COMPUTE_S, s.MACHINE_USD, s.MACHINE_HOURS, s.FLEET_USD, s.BEST_SINGLE, s.BEST_SINGLE_USD,
        s.ROUND_ROBIN_USD,
    ),
    partition_by=SERIES,
)  # fmt: skip

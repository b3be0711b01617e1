"""Tables of what a cache of a given size gives: hits by capacity, policies, reuse times, tiers on machines."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from warehouse.declared import fields as f
from warehouse.declared import hardware_fields as h
from warehouse.declared.schema import Field, Table, Unit
from warehouse.declared.turn_tables import SERIES, SERIES_FIELDS

LOG_ORDER = 0
REUSE_KINDS = {
    "within": "a block's wait from its last touch to the next hit, both in one session",
    "across": "the same where the last touch was by another session",
    "session": "a session's time from its first arrival to its last",
}
POLICIES = {
    "lru": "evicts the least recently used block",
    "lru_request": "evicts all blocks that the least recently used request touched last",
    "fifo": "evicts what entered first; for comparison, no bound",
    "optimum": "knows all later requests and keeps the blocks with the nearest next use; no policy finds more blocks",
}


def _count(name: str, unit: Unit, description: str, minimum: int = 0) -> Field:
    return Field(name, pa.int64(), unit, description, minimum=minimum)


def _share(name: str, description: str) -> Field:
    return Field(name, pa.float64(), "1", description, minimum=0.0, maximum=1.0)


def _figure(name: str, unit: Unit, description: str) -> Field:
    return Field(name, pa.float64(), unit, description, minimum=0.0)


CACHE_BLOCK = replace(f.BLOCK, description="tokens of a block, the unit in which a cache keeps and evicts")
INTERLEAVING = Field(
    "interleaving", pa.int32(), "1",
    "sessions that are served at a time, a turn each in turn, where there are no times; 0: the log's own order",
    minimum=LOG_ORDER,
)  # fmt: skip
CAPACITY_BLOCKS = _count("capacity_blocks", "blocks", "blocks that the cache holds")
WITHIN_TOKENS = _count("within_hit_tokens", "tokens", "hit tokens whose last touch was by the same session")
ACROSS_TOKENS = _count("across_hit_tokens", "tokens", "hit tokens whose last touch was by another session")
CONTEXT_SUM = _count("context_tokens_sum", "tokens", "sum of K + T over the requests", 0)
HIT_RATIO = _share("hit_ratio", "hit tokens over the tokens of all prompts")
POLICY = Field(
    "policy", pa.string(), "", "which blocks leave a full cache",
    values=tuple(POLICIES), meanings=tuple(POLICIES.values()),
)  # fmt: skip
HIT_BLOCKS = _count("hit_blocks", "blocks", "leading blocks found, summed over the requests")
IS_EXACT = Field(
    "is_exact", pa.bool_(), "", "false where hit_blocks is only an upper bound: the optimum of identities without chain"
)
REUSE_KIND = Field(
    "kind", pa.string(), "", "what lasts", values=tuple(REUSE_KINDS), meanings=tuple(REUSE_KINDS.values())
)
WAIT_P50, WAIT_P90, WAIT_P99 = (
    _figure(f"seconds_p{level}", "s", f"{words}; a block weighs one, a session too")
    for level, words in ((50, "median"), (90, "90th percentile"), (99, "99th percentile"))
)
RANK = _count("rank", "1", "place among the prefixes of the series that bring most hit tokens", 1)
PREFIX_IDENTITY = Field(
    "prefix_identity", pa.int64(), "",
    "number of the prefix's last block in the log; NULL where a block is a place in a session", nullable=True,
)  # fmt: skip
PREFIX_SESSION = replace(f.SESSION_ID, description="session of the first request that found exactly this prefix")
PREFIX_TOKENS = _count("prefix_tokens", "tokens", "length of the prefix", 1)
REQUESTS = _count("requests", "1", "requests that found exactly this prefix in an endless cache", 1)
HIT_TOKENS = _count("hit_tokens", "tokens", "tokens that it brought them")

GPUS = _count("gpus", "1", "accelerators that share each layer: the fewest that hold weights and a pool", 1)
GPU_BLOCKS = _count(
    "gpu_capacity_blocks", "blocks", "blocks that the accelerators' own memory holds beside the weights"
)
HOST_BYTES = _figure("host_bytes", "bytes", "host memory of the cache, for all accelerators of the model together")
HOST_BLOCKS = _count("host_capacity_blocks", "blocks", "blocks that it holds, in addition to the accelerators'")
GPU_SUM = _count("gpu_tokens_sum", "tokens", "sum of K_gpu: found in the accelerators' own memory")
LINK_SUM = _count("link_tokens_sum", "tokens", "sum of K_link: found in host memory, crosses the link")
COMPUTED_SUM = _count("computed_tokens_sum", "tokens", "sum of T_eff: computed; with the other two the sum of K + T")
LINK_SHARE = _share("link_bound_turn_share", "share of turns with kappa_link > kappa_crit").or_null(
    "share of turns with kappa_link > kappa_crit; NULL where kappa_crit is"
)
COMPUTE_SHARE = _share("compute_bound_turn_share", "").or_null(
    "share of turns with something to load, but kappa_link <= kappa_crit; NULL where kappa_crit is"
)
NO_LINK_SHARE = _share("no_link_turn_share", "share of turns with K_link = 0, which wait for no link")
KAPPA_LINK_P50, KAPPA_LINK_P90, KAPPA_LINK_P99 = (
    _figure(f"kappa_link_p{level}", "1", f"K_link / T_eff, {words} over all turns")
    for level, words in ((50, "median"), (90, "90th percentile"), (99, "99th percentile"))
)
LINK_BYTES = _figure("link_bytes_per_request", "bytes", "bytes that cross the links for a request, mean")
LINK_RATE = _figure("link_bytes_per_s", "bytes/s", "").or_null(
    "bytes over the links a second at the log's own rate of requests; NULL without a clock"
)
GROUP_KAPPA_CRIT = replace(
    h.KAPPA_CRIT, description="kappa_crit of the model on these accelerators together; NULL where no single number is"
)
CAPACITY_BYTES = _figure("capacity_bytes", "bytes", "bytes of keys and values that the cache holds")
KV_TOKEN_BYTES = _figure("kv_token_bytes", "bytes/token", "bytes of one more cached token, in this format")

REQUEST = _count("request", "1", "number of the request in the order of service, from 0")
CONTEXT_TOKENS = _count("context_tokens", "tokens", "n, tokens of the prompt", 1)
LOOKUP_BLOCKS = _count("lookup_blocks", "blocks", "leading blocks that it looks up")
ARRIVAL = Field("arrival_s", pa.float64(), "s", "time of arrival; NULL without a clock", nullable=True)
START_BLOCK = _count("start_block", "blocks", "position of the first block of the piece in the request")
LENGTH_BLOCKS = _count("length_blocks", "blocks", "blocks of the piece", 1)
DISTANCE_BLOCKS = _count("distance_blocks", "blocks", "reuse distance of the first of them")
STEP = _count("step", "1", "growth of the distance from block to block, 0 or 1")
LAST_REQUEST = _count("last_request", "1", "request that touched the blocks last before")
IS_CHAINED = Field("is_chained", pa.bool_(), "", "an identity stands for the whole prompt up to it, in all of the log")
IS_WITHIN = Field("is_within", pa.bool_(), "", "that request is of the same session")

_CURVE = (*SERIES, "block_tokens", "interleaving")
_CURVE_FIELDS = (*SERIES_FIELDS, CACHE_BLOCK, INTERLEAVING)
CAPACITY = Table(
    "capacity",
    "one capacity at which the hits of a series bend; between two rows of a curve they lie on a line",
    (*_CURVE, "capacity_blocks"),
    (*_CURVE_FIELDS, CAPACITY_BLOCKS, WITHIN_TOKENS, ACROSS_TOKENS, CONTEXT_SUM, HIT_RATIO),
    partition_by=SERIES,
)
CACHE_POLICIES = Table(
    "cache_policies",
    "one policy at one capacity",
    (*_CURVE, "policy", "capacity_blocks"),
    (*_CURVE_FIELDS, POLICY, CAPACITY_BLOCKS, HIT_BLOCKS, HIT_RATIO, IS_EXACT),
    partition_by=SERIES,
)
REUSE_TIMES = Table(
    "reuse_times",
    "how long one kind of thing lasts in a log with times",
    (*SERIES, "block_tokens", "kind"),
    (*SERIES_FIELDS, CACHE_BLOCK, REUSE_KIND, WAIT_P50, WAIT_P90, WAIT_P99),
    partition_by=SERIES,
)
TOP_PREFIXES = Table(
    "top_prefixes",
    "one of the ten prefixes of a series that bring most",
    (*SERIES, "block_tokens", "rank"),
    (*SERIES_FIELDS, CACHE_BLOCK, RANK, PREFIX_IDENTITY, PREFIX_SESSION, PREFIX_TOKENS, REQUESTS, HIT_TOKENS),
    partition_by=SERIES,
)
LOG_REQUESTS = Table(
    "log_requests",
    "one request of a log whose blocks have identities, in order of service",
    (*SERIES, "request"),
    (*SERIES_FIELDS, CACHE_BLOCK, REQUEST, CONTEXT_TOKENS, LOOKUP_BLOCKS, ARRIVAL, IS_CHAINED),
    partition_by=SERIES,
)
REUSE_DISTANCES = Table(
    "reuse_distances",
    "one piece of the leading blocks that a request of such a log finds in an endless cache",
    (*SERIES, "request", "start_block"),
    (*SERIES_FIELDS, REQUEST, START_BLOCK, LENGTH_BLOCKS, DISTANCE_BLOCKS, STEP, LAST_REQUEST, IS_WITHIN),
    partition_by=SERIES,
)
CACHE_TIERS = Table(
    "cache_tiers",
    "one model on one platform with one size of host memory, under one series",
    (*_CURVE, "model", "accelerator", "link", "basis", "kv_dtype", "host_bytes"),
    (
        *_CURVE_FIELDS, h.MODEL, h.ACCELERATOR, h.LINK, h.BASIS, h.KV_DTYPE, HOST_BYTES, GPUS, GPU_BLOCKS, HOST_BLOCKS,
        GPU_SUM, LINK_SUM, COMPUTED_SUM, GROUP_KAPPA_CRIT, LINK_SHARE, COMPUTE_SHARE, NO_LINK_SHARE,
        KAPPA_LINK_P50, KAPPA_LINK_P90, KAPPA_LINK_P99, LINK_BYTES, LINK_RATE,
    ),
    partition_by=SERIES,
)  # fmt: skip
CAPACITY_BY_MODEL = Table(
    "capacity_by_model",
    "one row of capacity in bytes of one model and kv_dtype",
    (*_CURVE, "model", "kv_dtype", "capacity_blocks"),
    (*_CURVE_FIELDS, h.MODEL, h.KV_DTYPE, CAPACITY_BLOCKS, CAPACITY_BYTES, HIT_RATIO),
    is_view=True,
)

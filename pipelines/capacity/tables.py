"""Rows of the tables `capacity`, `cache_policies`, `reuse_times` and `top_prefixes` of one series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from pipelines.capacity.curve import Curve, curve_of
from pipelines.capacity.distances import Hits, hits_of
from pipelines.capacity.interleaving import SESSIONS_AT_A_TIME, interleaved
from pipelines.capacity.policies import fifo, is_chained, optimum
from pipelines.capacity.requests import Ints, Requests, in_order, with_identities
from pipelines.capacity.reuse_times import reuse_times, session_lifetimes, top_prefixes
from warehouse.declared.capacity_tables import (
    CACHE_POLICIES,
    CAPACITY,
    LOG_ORDER,
    LOG_REQUESTS,
    REUSE_DISTANCES,
    REUSE_TIMES,
    TOP_PREFIXES,
)
from warehouse.declared.schema import Table

Names = Mapping[str, object]
# A curve with more bends is thinned, off by at most the tolerance in hit ratio; one of a log of hours has fewer.
MOST_BENDS, TOLERANCE = 50_000, 2e-6
# Policies are simulated one capacity at a time: at these shares of all blocks, and in this one interleaving.
POLICY_SHARES = tuple(2.0**-power for power in range(9, -1, -1))
SHOWN_SESSIONS = 256
MOST_FIFO_BLOCKS = 20_000_000


def orders(requests: Requests) -> dict[int, Requests]:
    """Return the requests in each order of service, by the sessions that are served at a time.

    Requests of a log, with identities or times, have its own order alone, which is 0.
    """
    if requests.ids is not None or requests.arrival_s is not None:
        return {LOG_ORDER: requests}
    return {at_a_time: in_order(requests, interleaved(requests.session, at_a_time)) for at_a_time in SESSIONS_AT_A_TIME}


def capacity_rows(names: Names, served: Mapping[int, tuple[Requests, Hits]]) -> pa.Table:
    """Return the rows of `capacity` of a series at one block size, by order of service."""
    parts = []
    for interleaving, (requests, hits) in served.items():
        curve = curve_of(requests, hits).thinned(MOST_BENDS, TOLERANCE)
        of_curve = {**names, "block_tokens": curve.block_tokens, "interleaving": interleaving}
        parts.append(_rows(CAPACITY, of_curve, _curve_columns(curve)))
    return pa.concat_tables([CAPACITY.rows([]), *parts])


def policy_rows(names: Names, served: Mapping[int, tuple[Requests, Hits]]) -> pa.Table:
    """Return the rows of `cache_policies` of a series at one block size: in its own order, else 256 at a time."""
    interleaving = LOG_ORDER if LOG_ORDER in served else SHOWN_SESSIONS
    requests, hits = served[interleaving]
    by_request = hits_of(requests, "request")
    named = with_identities(requests) if requests.left_blocks.sum() <= MOST_FIFO_BLOCKS else None
    of_curve = {**names, "block_tokens": requests.block_tokens, "interleaving": interleaving}
    rows: list[dict[str, object]] = []
    for capacity in _policy_capacities(requests, hits):
        best = optimum(requests, hits, capacity)
        found = {
            "lru": hits.blocks_at(capacity, len(requests)),
            "lru_request": by_request.blocks_at(capacity, len(requests)),
            "optimum": best.blocks,
            **({"fifo": fifo(named, capacity)} if named else {}),
        }
        rows += [
            {**of_curve, "policy": policy, "capacity_blocks": capacity, "hit_blocks": int(blocks.sum()),
             "hit_ratio": _ratio(requests, blocks), "is_exact": policy != "optimum" or best.is_exact}
            for policy, blocks in found.items()
        ]  # fmt: skip
    return CACHE_POLICIES.rows(rows)


def reuse_time_rows(names: Names, requests: Requests, hits: Hits) -> pa.Table:
    """Return the rows of `reuse_times` of a series at one block size; none without a clock."""
    found = {
        "within": reuse_times(requests, hits, hits.is_within),
        "across": reuse_times(requests, hits, ~hits.is_within),
        "session": session_lifetimes(requests),
    }
    levels = ("seconds_p50", "seconds_p90", "seconds_p99")
    of_series = {**names, "block_tokens": requests.block_tokens}
    rows = [
        {**of_series, "kind": kind, **dict(zip(levels, times, strict=True))} for kind, times in found.items() if times
    ]
    return REUSE_TIMES.rows(rows)


def prefix_rows(names: Names, requests: Requests, hits: Hits, session_names: Sequence[str]) -> pa.Table:
    """Return the rows of `top_prefixes` of a series at one block size; `session_names` by number of the session."""
    of_series = {**names, "block_tokens": requests.block_tokens}
    rows: list[dict[str, object]] = [
        {**of_series, "rank": rank, "prefix_identity": one.identity, "session_id": session_names[one.session],
         "prefix_tokens": one.tokens, "requests": one.requests, "hit_tokens": one.hit_tokens}
        for rank, one in enumerate(top_prefixes(requests, hits), start=1)
    ]  # fmt: skip
    return TOP_PREFIXES.rows(rows)


def log_rows(names: Names, requests: Requests, hits: Hits) -> tuple[pa.Table, pa.Table]:
    """Return the rows of `log_requests` and `reuse_distances` of a series: all that a question about it needs."""
    count = len(requests)
    arrival = np.full(count, np.nan) if requests.arrival_s is None else requests.arrival_s
    of_requests = {
        "request": np.arange(count), "context_tokens": requests.context_tokens,
        "lookup_blocks": requests.lookup_blocks, "arrival_s": pa.array(arrival, from_pandas=True),
        "is_chained": np.full(count, is_chained(requests)),
    }  # fmt: skip
    of_pieces = {
        "request": hits.request, "start_block": hits.start, "length_blocks": hits.length,
        "distance_blocks": hits.distance, "step": hits.step, "last_request": hits.last_request,
        "is_within": hits.is_within,
    }  # fmt: skip
    sized = {**names, "block_tokens": requests.block_tokens}
    return _rows(LOG_REQUESTS, sized, of_requests), _rows(REUSE_DISTANCES, names, of_pieces)


def of_log(requests: pa.Table, pieces: pa.Table) -> tuple[Requests, Hits]:
    """Return the requests and hits of rows that `log_rows` made, of one series, in order of service.

    Left blocks and sessions are not known any more; `Hits` has all that follows from them.
    """
    column = {name: requests[name].to_numpy() for name in ("context_tokens", "lookup_blocks")}
    nothing = np.zeros(requests.num_rows, np.int64)
    arrival = None if requests["arrival_s"].null_count else requests["arrival_s"].to_numpy()
    block = int(requests["block_tokens"][0].as_py())
    names = ("request", "start_block", "length_blocks", "distance_blocks", "step", "last_request", "is_within")
    hits = Hits(*(np.asarray(pieces[name].to_numpy(zero_copy_only=False)) for name in names))
    return Requests(block, **column, left_blocks=nothing, session=nothing, arrival_s=arrival), hits


def _curve_columns(curve: Curve) -> dict[str, object]:
    return {
        "capacity_blocks": curve.capacity_blocks,
        "within_hit_tokens": curve.within_tokens,
        "across_hit_tokens": curve.across_tokens,
        "context_tokens_sum": np.full(len(curve.capacity_blocks), curve.context_tokens),
        "hit_ratio": curve.hit_tokens / max(curve.context_tokens, 1),
    }


def _rows(table: Table, names: Names, columns: Mapping[str, object]) -> pa.Table:
    count = len(next(iter(columns.values())))  # type: ignore[arg-type]
    constants = {name: pa.repeat(pa.scalar(value, table.field(name).type), count) for name, value in names.items()}
    return table.conform(pa.table({**constants, **{name: pa.array(values) for name, values in columns.items()}}))


def _policy_capacities(requests: Requests, hits: Hits) -> list[int]:
    again = int(np.bincount(hits.request, hits.length, len(requests)).sum()) if len(hits.request) else 0
    all_blocks = int(requests.left_blocks.sum()) - again
    return sorted({max(int(share * all_blocks), 1) for share in POLICY_SHARES})


def _ratio(requests: Requests, blocks: Ints) -> float:
    return float(requests.cached_tokens(blocks).sum() / max(int(requests.context_tokens.sum()), 1))

"""How long blocks wait for their next use, how long sessions last, and which prefixes bring most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipelines.capacity.distances import Hits
from pipelines.capacity.requests import Floats, Ints, Requests

QUANTILES = (0.5, 0.9, 0.99)


@dataclass(frozen=True)
class Prefix:
    """A prefix at which requests stopped finding blocks.

    Attributes:
        identity: Identity of its last block; None where blocks have none.
        session: Session of the first request that ended on it.
        tokens: Its length.
        requests: Requests that found exactly this prefix.
        hit_tokens: Tokens that it brought them.
    """

    identity: int | None
    session: int
    tokens: int
    requests: int
    hit_tokens: int


def reuse_times(requests: Requests, hits: Hits, chosen: np.ndarray) -> tuple[float, ...] | None:
    """Return p50, p90, p99 of the seconds from a block's last touch to the hit, each block once a hit.

    A percentile is the least time within which that share of the hit blocks were used again.

    Args:
        requests: In order of service.
        hits: Their hits.
        chosen: Which pieces of hits count; shape (pieces,).

    Returns:
        None where there is no clock or no hit.
    """
    if requests.arrival_s is None or not chosen.any():
        return None
    waited = (requests.arrival_s[hits.request] - requests.arrival_s[hits.last_request])[chosen]
    order = np.argsort(waited, kind="stable")
    blocks = np.cumsum(hits.length[chosen][order])
    places = np.searchsorted(blocks, np.ceil(np.array(QUANTILES) * blocks[-1]))
    return tuple(waited[order][places].tolist())


def session_lifetimes(requests: Requests) -> tuple[float, ...] | None:
    """Return p50, p90, p99 of the seconds from a session's first arrival to its last; None without a clock."""
    if requests.arrival_s is None or not len(requests):
        return None
    order = np.argsort(requests.session, kind="stable")
    opens = np.flatnonzero(np.diff(requests.session[order], prepend=-1))
    arrival: Floats = requests.arrival_s[order]
    lived = np.maximum.reduceat(arrival, opens) - np.minimum.reduceat(arrival, opens)
    return tuple(np.quantile(lived, QUANTILES, method="inverted_cdf").tolist())


def top_prefixes(requests: Requests, hits: Hits, most: int = 10) -> list[Prefix]:
    """Return the prefixes that bring most in an endless cache: what each request found counts for where it ended."""
    found: Ints = np.bincount(hits.request, hits.length, len(requests)).astype(np.int64)
    hit = np.flatnonzero(found)
    last = found[hit] - 1
    if requests.ids is None:
        key = np.stack((requests.session[hit], last), axis=1)
    else:
        key = np.stack((requests.ids[requests.offsets[hit] + last], np.zeros_like(last)), axis=1)
    _, first, which, counts = np.unique(key, axis=0, return_index=True, return_inverse=True, return_counts=True)
    brought = np.bincount(which.ravel(), requests.cached_tokens(found)[hit], len(first)).astype(np.int64)
    best = np.lexsort((first, -brought))[:most]
    return [
        Prefix(
            None if requests.ids is None else int(key[first[number], 0]),
            int(requests.session[hit[first[number]]]),
            int(requests.block_tokens * found[hit[first[number]]]),
            int(counts[number]),
            int(brought[number]),
        )
        for number in best.tolist()
    ]

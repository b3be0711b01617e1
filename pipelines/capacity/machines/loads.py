"""What the cache tiers of a model on a machine give a workload: tokens by origin, and which turns wait for what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from pipelines.capacity.distances import Hits
from pipelines.capacity.requests import Bools, Floats, Requests
from pipelines.capacity.tiers import TierTokens, tier_tokens

QUANTILES = (0.5, 0.9, 0.99)
# From the tokens that cross the link, each as many times as its tier is slower, and all tokens by origin: who waits.
Waits: TypeAlias = Callable[[Floats, TierTokens], Bools]


@dataclass(frozen=True, slots=True)
class Load:
    """The tokens of a workload by origin, and the shares of its turns by what they wait for.

    Attributes:
        tokens: Of each request.
        link_bound_turn_share: Turns whose load takes longer than their computation; None where that is unknown.
        compute_bound_turn_share: Turns with a load that takes no longer.
        no_link_turn_share: Turns with nothing to load.
        kappa_link: Percentiles 50, 90, 99 of K_link / T_eff over all turns.
        tokens_per_request: Mean of K_link.
    """

    tokens: TierTokens
    link_bound_turn_share: float | None
    compute_bound_turn_share: float | None
    no_link_turn_share: float
    kappa_link: tuple[float, ...]
    tokens_per_request: float


def load(
    requests: Requests,
    hits: Hits,
    tiers_blocks: Sequence[int],
    waits: Waits | None,
    slowness: Sequence[float] = (1.0,),
) -> Load:
    """Return the load of tiers on the link.

    Args:
        requests: In order of service, at least one.
        hits: Their hits.
        tiers_blocks: Blocks of each tier, the accelerators' own memory first.
        waits: Which turns wait for the link; None where no cost model of the model is known.
        slowness: For each tier behind the link, how many times as long as over the link a token takes; at least 1.
    """
    tokens = tier_tokens(requests, hits, tiers_blocks)
    loaded: Floats = np.asarray(slowness, np.float64) @ tokens.link_tokens
    has_load = tokens.k_link > 0
    is_bound = None if waits is None else waits(loaded, tokens)
    return Load(
        tokens,
        None if is_bound is None else float(is_bound.mean()),
        None if is_bound is None else float((has_load & ~is_bound).mean()),
        float(1 - has_load.mean()),
        tuple(np.quantile(tokens.kappa_link, QUANTILES).tolist()),
        float(tokens.k_link.mean()),
    )

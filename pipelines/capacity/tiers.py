"""Where each prompt token comes from: memory of the accelerators, tiers that need a link, or computation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.capacity.distances import Hits
from pipelines.capacity.requests import Floats, Ints, Requests


@dataclass(frozen=True)
class TierTokens:
    """Tokens of each request by where they come from, exclusive tiers, the nearest first.

    Attributes:
        gpu_tokens: K_gpu, held by the accelerators' own memory; shape (R,).
        link_tokens: Held by each further tier; shape (tiers, R).
        computed_tokens: T_eff, at least 1; K_gpu, all of link_tokens and T_eff add up to n; shape (R,).
    """

    gpu_tokens: Ints
    link_tokens: Ints
    computed_tokens: Ints

    @property
    def k_link(self) -> Ints:
        """K_link: tokens that cross a link; shape (R,)."""
        total: Ints = self.link_tokens.sum(axis=0)
        return total

    @property
    def kappa_link(self) -> Floats:
        """K_link / T_eff; shape (R,)."""
        return self.k_link / self.computed_tokens


def tier_tokens(requests: Requests, hits: Hits, tiers_blocks: Sequence[int]) -> TierTokens:
    """Return where the tokens of each request come from.

    With h_i leading blocks below the capacity of the first i tiers together, tier i gives min(B h_i, n - 1) less what
    the tiers before it give; the first tier is the accelerators' own memory. The rest is computed.

    Args:
        requests: In order of service.
        hits: Their hits.
        tiers_blocks: Capacity of each tier in blocks, the accelerators' own memory first.
    """
    capacities = np.cumsum(np.asarray(tiers_blocks, np.int64)).tolist()
    held = np.stack([requests.cached_tokens(hits.blocks_at(capacity, len(requests))) for capacity in capacities])
    return TierTokens(held[0], held[1:] - held[:-1], requests.context_tokens - held[-1])

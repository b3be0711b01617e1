"""What the report shows of caches: curves of hits, tiers of models on machines, and the optimum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
SHOWN_SESSIONS, TEXT_BLOCK = 256, 16
# A row in thirty to a factor of ten: a curve of a figure has no more points than it can show.
_CURVES = """
SELECT workload, tokenizer, counting, reuse, block_tokens, interleaving,
       max(capacity_blocks) AS capacity_blocks, max(hit_ratio) AS hit_ratio
FROM capacity
WHERE interleaving = 0 OR (interleaving = $sessions AND block_tokens = $block)
GROUP BY workload, tokenizer, counting, reuse, block_tokens, interleaving,
         floor(30 * log10(greatest(capacity_blocks, 1)))
ORDER BY ALL
"""
_OPTIMUM = """
SELECT workload, tokenizer, counting, reuse, block_tokens, interleaving, capacity_blocks, hit_ratio
FROM cache_policies
WHERE policy = 'optimum' AND (interleaving = 0 OR block_tokens = $block)
ORDER BY ALL
"""
_TIERS = "SELECT * FROM cache_tiers WHERE list_contains($models, model) ORDER BY ALL"


@dataclass(frozen=True)
class CacheData:
    """Rows of the shown series, by the sessions and blocks that the report shows.

    Attributes:
        curves: points of each curve, by rising capacity.
        optimum: hit ratios of the clairvoyant optimum at some capacities.
        tiers: rows of `cache_tiers` of the headline models.
    """

    curves: list[Row] = field(default_factory=list)
    optimum: list[Row] = field(default_factory=list)
    tiers: list[Row] = field(default_factory=list)


def read_cache(rows: Callable[..., list[Row]], models: Mapping[str, Row], is_shown: Callable[[Row], bool]) -> CacheData:
    """Return the rows; `rows` runs a query, `is_shown` says whether a row is of a series that figures show."""
    sizes = {"block": TEXT_BLOCK}
    curves, optimum = rows(_CURVES, sessions=SHOWN_SESSIONS, **sizes), rows(_OPTIMUM, **sizes)
    found = (curves, optimum, rows(_TIERS, models=list(models)))
    return CacheData(*([row for row in some if is_shown(row)] for some in found))

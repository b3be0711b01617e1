"""Turns by logarithmic bin, for histograms and cumulative curves; its size does not grow with the number of turns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

BINS_PER_DECADE = 20
METRICS = ("prefill_tokens", "cached_tokens", "kappa_ratio")
# Turns with value 0 are in the bin NULL: 0 has no logarithm.
SQL = """
WITH long AS (
    SELECT workload, is_first_turn,
           unnest(['prefill_tokens', 'cached_tokens', 'kappa_ratio']) AS metric,
           unnest([prefill_tokens::DOUBLE, cached_tokens::DOUBLE, kappa_ratio]) AS value
    FROM turns SEMI JOIN (
        SELECT unnest($workloads) AS workload, unnest($counting) AS counting, unnest($reuse) AS reuse
    ) USING (workload, counting, reuse)
    WHERE list_contains($tokenizers, tokenizer)
)
SELECT workload, metric, is_first_turn,
       CASE WHEN value > 0 THEN floor(log10(value) * $bins_per_decade)::INTEGER END AS bin,
       count(*) AS turns
FROM long GROUP BY ALL ORDER BY ALL
"""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Histogram:
    """Turns of one kind by bin; bin b holds values from 10^(b / per_decade) to below 10^((b + 1) / per_decade).

    Attributes:
        bins: numbers of the non-empty bins, ascending; shape (n,).
        turns: number of turns in each bin; shape (n,).
        zeros: number of turns whose value is 0.
        per_decade: bins per factor of ten.
    """

    bins: npt.NDArray[np.int64]
    turns: npt.NDArray[np.int64]
    zeros: int
    per_decade: int = BINS_PER_DECADE

    @property
    def total(self) -> int:
        """Number of turns, zeros included."""
        return int(self.turns.sum()) + self.zeros

    def coarser(self, factor: int) -> Histogram:
        """Return the same turns in bins `factor` times as wide; `factor` divides `per_decade`."""
        bins, inverse = np.unique(self.bins // factor, return_inverse=True)
        turns = np.bincount(inverse, weights=self.turns, minlength=len(bins)).astype(np.int64)
        return Histogram(bins, turns, self.zeros, self.per_decade // factor)

    def edges(self, low: int, high: int) -> Floats:
        """Return log10 of the edges of bins low to high - 1; shape (high - low + 1,)."""
        return np.arange(low, high + 1) / self.per_decade

    def dense(self, low: int, high: int) -> npt.NDArray[np.int64]:
        """Return the number of turns in bins low to high - 1, empty bins included; shape (high - low,)."""
        counts = np.zeros(high - low, np.int64)
        inside = (self.bins >= low) & (self.bins < high)
        counts[self.bins[inside] - low] = self.turns[inside]
        return counts

    def share_below(self, low: int, high: int) -> Floats:
        """Return the share of turns below each edge of bins low to high - 1; shape (high - low + 1,), 0 to 1."""
        before = self.zeros + int(self.turns[self.bins < low].sum())
        running = before + np.concatenate(([0], np.cumsum(self.dense(low, high))))
        return running / max(self.total, 1)

    def __add__(self, other: Histogram) -> Histogram:
        """Return the turns of both; their bins have the same width."""
        bins, inverse = np.unique(np.concatenate((self.bins, other.bins)), return_inverse=True)
        weights = np.concatenate((self.turns, other.turns))
        turns = np.bincount(inverse, weights=weights, minlength=len(bins)).astype(np.int64)
        return Histogram(bins, turns, self.zeros + other.zeros, self.per_decade)


Key = tuple[str, str, bool]


def histograms(rows: Iterable[dict[str, Any]]) -> dict[Key, Histogram]:
    """Return a histogram for each workload, metric and kind of turn (True: first turns) from the rows of `SQL`.

    Every workload and metric has both kinds; one of them may be empty.
    """
    filled: dict[Key, list[tuple[int, int]]] = {}
    zeros: dict[Key, int] = {}
    for row in rows:
        for kind in (False, True):
            filled.setdefault((row["workload"], row["metric"], kind), [])
        key = (row["workload"], row["metric"], row["is_first_turn"])
        if row["bin"] is None:
            zeros[key] = row["turns"]
        else:
            filled[key].append((row["bin"], row["turns"]))
    return {key: _histogram(sorted(pairs), zeros.get(key, 0)) for key, pairs in filled.items()}


def _histogram(pairs: list[tuple[int, int]], zeros: int) -> Histogram:
    array = np.array(pairs, np.int64).reshape(-1, 2)
    return Histogram(array[:, 0], array[:, 1], zeros)


def span(parts: Iterable[Histogram], *, per_decade: int) -> tuple[int, int]:
    """Return the whole decades that cover every bin, as bin numbers (low, high); one decade if there are no bins."""
    decades = [bin_ // part.per_decade for part in parts for bin_ in part.bins.tolist()]
    low, high = (min(decades), max(decades) + 1) if decades else (0, 1)
    return low * per_decade, high * per_decade

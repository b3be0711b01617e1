"""Lengths in the sample: published percentiles, and draws from them. No text here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from random import Random

Quantiles = tuple[tuple[float, float], ...]

# Points (share, value) of a distribution. Source of the chat figures: paper.md section 5, the independent count of the
# 90k edition with the Llama-3.1 vocabulary, bare message text. The ends (shares 0 and 1) are ours, to keep it small.
USER_TURNS: Quantiles = ((0, 1), (0.32, 1), (0.33, 2), (0.50, 3), (0.75, 8), (0.90, 17), (0.99, 78), (1, 100))
USER_TOKENS: Quantiles = (
    (0, 1), (0.10, 5), (0.25, 10), (0.50, 19), (0.75, 43), (0.90, 134), (0.95, 335), (0.99, 1371), (1, 3500),
)  # fmt: skip
REPLY_TOKENS: Quantiles = ((0, 12), (0.10, 70), (0.50, 303), (0.90, 981), (0.99, 2621), (1, 4000))
# Replies of the V3 edition have no markup: a mean of 293 tokens instead of 457, the same shape.
V3_REPLY_TOKENS: Quantiles = tuple((share, tokens * 293 / 457) for share, tokens in REPLY_TOKENS)

# Source: the paper (paper.md section 2), Llama-3.1 vocabulary. NarrativeQA: documents of 15k to 190k tokens, median
# 57k, questions of 12 on average, the middle half of kappa_ratio from 2400 to 11,000. DocFinQA: 60k to 450k, median
# 167k, questions of 23, from 5000 to 17,000. The points between are fitted to these.
STORY_TOKENS: Quantiles = ((0, 15_000), (0.25, 30_000), (0.50, 57_000), (0.75, 110_000), (1, 190_000))
STORY_QUESTION_TOKENS: Quantiles = ((0, 5), (0.50, 11), (0.90, 18), (1, 30))
FILING_TOKENS: Quantiles = ((0, 60_000), (0.25, 105_000), (0.50, 167_000), (0.75, 240_000), (1, 450_000))
FILING_QUESTION_TOKENS: Quantiles = ((0, 8), (0.25, 13), (0.50, 17), (0.90, 40), (1, 80))


def quantile(points: Quantiles, share: float) -> float:
    """Return the value below which `share` (0 to 1) of the values lie; its logarithm is linear between points."""
    for (left, low), (right, high) in pairwise(points):
        if share <= right:
            return math.exp(math.log(low) + (share - left) / (right - left) * (math.log(high) - math.log(low)))
    return points[-1][1]


def rank_lengths(points: Quantiles, scores: Sequence[float]) -> list[int]:
    """Return one length a score: the percentiles are those of `points`, and lengths rise with the score.

    One value is taken from the middle of each of `n` equal shares: (i + 1/2) / n. A small sample then has the published
    median by construction, whatever the seed. Scores 0.3, 0.9, 0.1 over ((0, 1), (1, 100)) give 100 to the power of
    3/6, 5/6, 1/6: 10, 46, 2.
    """
    order = sorted(range(len(scores)), key=scores.__getitem__)
    lengths = [0] * len(scores)
    for rank, place in enumerate(order):
        lengths[place] = round(quantile(points, (rank + 0.5) / len(scores)))
    return lengths


def draw_lengths(rng: Random, points: Quantiles, count: int) -> list[int]:
    """Return `count` lengths in random order whose percentiles are those of `points`."""
    return rank_lengths(points, [rng.random() for _ in range(count)])

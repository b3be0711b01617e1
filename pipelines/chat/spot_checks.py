"""Which turns are compared with their real prompts: chosen by a hash of their row, within a budget of tokens."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipelines.chat.layout import Bools, Ints

# The budget's shares for turns with short prompts, any turns, and turns whose pieces were tokenised directly. A short
# prompt costs at most this share of the budget.
_SHARES, _SHORT = (2, 4, 4), 64
# Where no prompt fits the budget, the cheapest one is compared up to this multiple of the budget.
_STRETCH = 3
# Turns are chosen from a few runs of this many messages, so that few row groups are read again.
_RUN_MESSAGES = 1 << 13


def choose_turns(cost: Ints, rows: Ints, is_direct: Bools, budget: int) -> list[int]:
    """Return the chosen turns, sorted.

    Args:
        cost: Tokens that comparing each turn takes, shape (turns,); turns above the budget are left out. Where all are,
            the cheapest is taken, up to three times the budget.
        rows: Row of its last message in the file.
        is_direct: Its last messages were tokenised as pieces of a prompt, the rarer way.
        budget: Tokens in total; at least one turn of each kind is taken.
    """
    order = np.lexsort((_mixed(np.arange(len(rows))), _mixed(rows // _RUN_MESSAGES)))
    cheapest = int(cost.min()) if len(cost) else 0
    order = order[cost[order] <= (budget if cheapest <= budget else min(cheapest, _STRETCH * budget))]
    kinds = (cost <= budget // _SHORT, np.ones(len(rows), np.bool_), is_direct)
    chosen: set[int] = set()
    for share, kind in zip(_SHARES, kinds, strict=True):
        some = order[kind[order]]
        fits = max(1, int(np.searchsorted(np.cumsum(cost[some]), budget // share, side="right")))
        chosen.update(some[:fits].tolist())
    return sorted(chosen)


def _mixed(numbers: Ints) -> npt.NDArray[np.uint64]:
    """Return a hash of each number (the last steps of splitmix64)."""
    mixed = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.asarray(mixed ^ (mixed >> np.uint64(27)), np.uint64)

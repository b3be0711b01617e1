"""Which turns are compared with their real prompts: chosen by a hash of their place, within a budget of tokens."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipelines.chat.layout import Bools, Ints

# Turns with short prompts, any turns, turns whose pieces were counted from their own text: each kind's part of the
# budget. A short prompt costs at most so small a part of it.
_SHARES, _SHORT = (2, 4, 4), 64
# Where no prompt is within the budget, the shortest one is compared up to so many times the budget.
_STRETCH = 3
# Turns are chosen from few runs of so many messages, so that few row groups are read again.
_RUN_MESSAGES = 1 << 13


def choose_turns(cost: Ints, rows: Ints, is_direct: Bools, budget: int) -> list[int]:
    """Return the chosen turns, sorted.

    Args:
        cost: Tokens that comparing each turn takes, shape (turns,); one that costs more than the budget is left out,
            unless all do: then the cheapest is taken, up to three times the budget.
        rows: Row of its last message in the file.
        is_direct: Its last messages were counted as pieces of a prompt, the rarer way.
        budget: Tokens in all; of each kind at least one turn is taken.
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

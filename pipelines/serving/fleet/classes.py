"""Classes of turns by K and T, and their mean times on each machine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipelines.serving.engine.requests import Floats, Ints

# The least K and T of each bin.
CACHED_BINS = (0, 1, 256, 1024, 4096, 16384, 65536)
NEW_BINS = (1, 16, 64, 256, 1024, 4096)


@dataclass(frozen=True, slots=True)
class TurnClasses:
    """Classes that hold turns, in order of K, then T; each array of shape (classes,).

    Attributes:
        cached_from: Least K of the bin.
        new_from: Least T of the bin.
        turns: n.
        class_of: Class of each turn, shape (turns,).
    """

    cached_from: Ints
    new_from: Ints
    turns: Ints
    class_of: Ints

    def means(self, seconds: Floats) -> Floats:
        """Return the mean of a time over each class, shape (classes,).

        Args:
            seconds: Of each turn, shape (turns,).
        """
        means: Floats = np.bincount(self.class_of, seconds, len(self.turns)).astype(np.float64) / self.turns
        return means


def classes_of(cached_tokens: Ints, new_tokens: Ints) -> TurnClasses:
    """Return the classes of turns.

    Args:
        cached_tokens: K, shape (turns,).
        new_tokens: T, shape (turns,), at least 1.

    >>> found = classes_of(np.array([0, 300, 5]), np.array([2000, 20, 1]))
    >>> list(zip(found.cached_from.tolist(), found.new_from.tolist(), found.turns.tolist()))
    [(0, 1024, 1), (1, 1, 1), (256, 16, 1)]
    """
    cached, new = np.array(CACHED_BINS), np.array(NEW_BINS)
    bins = (
        (np.searchsorted(cached, cached_tokens, "right") - 1) * len(new) + np.searchsorted(new, new_tokens, "right") - 1
    )
    there, class_of, turns = np.unique(bins, return_inverse=True, return_counts=True)
    return TurnClasses(cached[there // len(new)], new[there % len(new)], turns.astype(np.int64), class_of)

"""The identities of the blocks of a trace as they are read: columns that grow, then codes in order of service."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pipelines.reuse.given import chained_codes, dense_codes
from pipelines.reuse.requests import Ints
from pipelines.workloads.formats.logged import Unusable

# Identities that are no such numbers get numbers below all of these, each its own.
_LEAST, _MOST, _FIRST_NAME = -(2**62), 2**63 - 1, -(2**63)


@dataclass
class BlockColumns:
    """Identities of the requests in the order of the file.

    Attributes:
        ids: Identities as int64, request after request.
        counts: Number of identities that each request leaves: those of its prompt, then those of its reply.
        lookups: Number of those of its prompt.
        scopes: What tells equal identities apart; 0 where they are the trace's.
        sizes: Sizes of blocks that were seen, in tokens.
        is_chained: Whether an identity means a block with all before it, since the log has hashes of single blocks.
    """

    ids: array[int] = field(default_factory=lambda: array("q"))
    counts: array[int] = field(default_factory=lambda: array("q"))
    lookups: array[int] = field(default_factory=lambda: array("q"))
    scopes: array[int] = field(default_factory=lambda: array("q"))
    sizes: set[int] = field(default_factory=set)
    is_chained: bool = False
    _names: dict[object, int] = field(default_factory=dict)

    def add(self, numbers: list[int], scope: int, block_tokens: int, lookup: int) -> None:
        """Append the identities of a request, as `numbers` returned them; the first `lookup` are of its prompt."""
        self.ids.extend(numbers)
        self.counts.append(len(numbers))
        self.lookups.append(lookup)
        self.scopes.append(scope)
        self.sizes.add(block_tokens)

    def numbers(self, ids: list[Any]) -> list[int]:
        """Return identities as int64: numbers as they are, text and what does not fit by a number of its own.

        Raises:
            Unusable: one is neither a whole number nor text.
        """
        if set(map(type, ids)) <= {int} and (not ids or (min(ids) >= _LEAST and max(ids) <= _MOST)):
            return ids
        if not all(type(one) in (int, str) for one in ids):
            raise Unusable("hash_mismatch", "an identity is neither a whole number nor text")
        return [
            one
            if isinstance(one, int) and _LEAST <= one <= _MOST
            else self._names.setdefault(one, _FIRST_NAME + len(self._names))
            for one in ids
        ]

    def in_order(self, order: Ints) -> tuple[Ints, Ints, Ints]:
        """Return offsets, dense codes and the first place of each code, of the requests in that order."""
        counts = np.array(self.counts, np.int64)
        starts = np.cumsum(counts) - counts
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts[order])))
        place = np.repeat(starts[order] - offsets[:-1], counts[order]) + np.arange(offsets[-1])
        ids = np.array(self.ids, np.int64)[place]
        scopes = np.array(self.scopes, np.int64)[order]
        codes, first = dense_codes(ids, np.repeat(scopes, counts[order]) if scopes.any() else None)
        if self.is_chained:
            codes, first = dense_codes(chained_codes(codes, offsets))
        return offsets, codes, first

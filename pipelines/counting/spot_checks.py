"""Which texts of a stream are counted a second time, chosen by their content within a budget of bytes.

A text that is not cut is compared whole; of a longer one two consecutive pieces are compared, with the cut between
them. `verified` compares them.
"""

from __future__ import annotations

import hashlib
import heapq
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.counting.engines import PIECE_BYTES, WHOLE_BYTES
from pipelines.io.arrow_text import Ints, bytes_of, cuts

TEXT_COST = 16
_HASH_BITS, _WORD = 64, 8
_FIRST_BEYOND_ASCII = 0x80
# The budget's shares for any texts, texts with special tokens' strings, and unusual texts. A sixth of the smallest
# budget fits a text that is compared whole.
SHARES = (2, 6, 6)
_LONGEST_SHARE = 4
# Characters on which Unicode tables disagree: marks, format, private and unassigned characters.
_UNUSUAL = r"[^\p{L}\p{N}\p{P}\p{S}\p{Z}\p{Cc}]"


class Part(NamedTuple):
    """The part of a text to compare; `key` is a quick hash of the whole text, then one of the part."""

    key: int
    text: bytes
    row: int
    is_whole: bool


class _Batch:
    """The candidate parts of the texts of a batch, as positions in its bytes."""

    def __init__(self, texts: pa.Array, first_row: int) -> None:
        places, self.data = bytes_of(texts)
        self.first_row, self.hashes = first_row, text_hashes(texts)
        self.starts, self.ends = places[:-1].copy(), places[1:].copy()
        self.is_whole = self.ends - self.starts <= WHOLE_BYTES
        for row in np.flatnonzero(~self.is_whole).tolist():
            start, end = places[row : row + 2].tolist()
            pieces = [start, *cuts(self.data, start, end, PIECE_BYTES), end]
            first = int(self.hashes[row]) % max(1, len(pieces) - 2)
            self.starts[row], self.ends[row] = pieces[first], pieces[first : first + 3][-1]
        self.sizes = self.ends - self.starts

    def part(self, row: int) -> Part:
        text = bytes(self.data[self.starts[row] : self.ends[row]])
        digest = hashlib.blake2b(text, digest_size=_HASH_BITS // 8).digest()
        key = int(self.hashes[row]) << _HASH_BITS | int.from_bytes(digest, "little")
        return Part(key, text, self.first_row + row, bool(self.is_whole[row]))

    def unusual(self, rows: Ints) -> Ints:
        """Return which of the rows contain text that NFC changes, or characters on which Unicode tables disagree."""
        begin, letters = self.starts[0], np.frombuffer(self.data, np.uint8)[self.starts[0] : self.ends[-1]]
        # The search is slow, so it gets only the characters beyond ASCII, which are few.
        places = np.flatnonzero(letters >= _FIRST_BEYOND_ASCII)
        first, last = (np.searchsorted(places, some[rows] - begin) for some in (self.starts, self.ends))
        rows, first, last = (some[first < last] for some in (rows, first, last))
        letters = letters[places]
        pairs = zip(first.tolist(), last.tolist(), strict=True)
        texts = pa.array([letters[a:b].tobytes() for a, b in pairs], pa.large_string())
        is_changed = pc.not_equal(pc.utf8_normalize(texts, form="NFC"), texts)
        is_unusual = pc.or_(pc.match_substring_regex(texts, _UNUSUAL), is_changed)
        return rows[np.asarray(is_unusual.to_numpy(zero_copy_only=False), np.bool_)]


class _Smallest:
    """The texts with the smallest hashes that fit a budget, whatever their order; equal ones are taken once."""

    def __init__(self, budget_bytes: int) -> None:
        self.budget = self.left = budget_bytes
        self.ceiling = (1 << 2 * _HASH_BITS) - 1
        self.parts: dict[int, Part] = {}
        self.heap: list[int] = []

    def may_hold(self, batch: _Batch, rows: Ints) -> Ints:
        return rows[batch.hashes[rows] <= np.uint64(self.ceiling >> _HASH_BITS)]

    def offer(self, batch: _Batch, rows: Ints) -> None:
        rows = self.may_hold(batch, rows[batch.sizes[rows] + TEXT_COST <= self.budget])
        for row in rows[np.argsort(batch.hashes[rows], kind="stable")].tolist():
            if int(batch.hashes[row]) > self.ceiling >> _HASH_BITS:
                break
            part = batch.part(row)
            if part.key < self.ceiling and part.key not in self.parts:
                self._take(part)

    def _take(self, part: Part) -> None:
        self.parts[part.key] = part
        heapq.heappush(self.heap, -part.key)
        self.left -= len(part.text) + TEXT_COST
        while self.left < 0:
            # A key at or above a dropped one is never taken, else the result would depend on the order of the texts.
            self.ceiling = -heapq.heappop(self.heap)
            self.left += len(self.parts.pop(self.ceiling).text) + TEXT_COST


class Samples:
    """The parts chosen of a stream: samples of each kind of text within a budget, and a part of the longest text."""

    def __init__(self, budget_bytes: int) -> None:
        """Start with no parts and `budget_bytes`."""
        self._kinds = [_Smallest(budget_bytes // share) for share in SHARES]
        self._limit = budget_bytes // _LONGEST_SHARE - TEXT_COST
        self._longest = Part(0, b"", 0, is_whole=True)

    def offer(self, texts: pa.Array, first_row: int, special: npt.NDArray[np.bool_]) -> None:
        """Consider the texts of a batch.

        Args:
            texts: large_string without nulls.
            first_row: Row of its first text in the stream.
            special: Which texts contain a special token's string.
        """
        if len(texts) == 0:
            return
        batch, rows = _Batch(texts, first_row), np.arange(len(texts))
        unusual = batch.unusual(self._kinds[-1].may_hold(batch, rows))
        for kind, some in zip(self._kinds, (rows, rows[special], unusual), strict=True):
            kind.offer(batch, some)
        sizes = np.where(batch.sizes <= self._limit, batch.sizes, 0)
        if sizes.max() > len(self._longest.text):
            self._longest = batch.part(int(sizes.argmax()))

    def chosen(self) -> list[Part]:
        """Return the parts of all samples and the longest, in the order of the rows."""
        parts = {key: part for kind in self._kinds for key, part in kind.parts.items()}
        if self._longest.text:
            parts.setdefault(self._longest.key, self._longest)
        return sorted(parts.values(), key=lambda part: part.row)


def text_hashes(texts: pa.Array) -> npt.NDArray[np.uint64]:
    """Return a 64-bit hash of each text from its length and 8 bytes at three positions (mixing steps of splitmix64)."""
    ends, data = bytes_of(texts)
    lengths = np.diff(ends)
    letters = np.append(np.frombuffer(data[ends[0] : ends[-1]], np.uint8), np.zeros(_WORD, np.uint8))
    # Eight bytes at every position, as one number each.
    words = np.ndarray(len(letters) - _WORD + 1, "<u8", letters, strides=(1,))
    within = np.array([(1 << 8 * size) - 1 for size in range(_WORD + 1)], np.uint64)[np.minimum(lengths, _WORD)]
    mixed = lengths.astype(np.uint64)
    for half in range(3):
        places = ends[:-1] - ends[0] + np.maximum(lengths - _WORD, 0) * half // 2
        mixed = (mixed ^ (words[places] & within)) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed

"""Which texts of a stream are counted a second time: chosen by a hash of the text, within a budget of bytes.

A text that is not cut is compared whole, of a longer one two pieces that follow each other, with their joint. How they
are compared is in `checked_counts`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import heapq

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.counting.engines import PIECE_BYTES, WHOLE_BYTES
from pipelines.io.arrow_text import SAFE_CUT, Ints, byte_lengths, bytes_of, cuts

_TEXT_COST = 16
_WORD = 8
_HASH_BITS, _KEY_BITS = 64, 128
_FIRST_BEYOND_ASCII = 0x80
_LONG_BYTES = 1 << 12
# All texts, each batch's longest, those with special tokens' strings, unusual ones: each kind's part of the budget.
# The least budget's sixth holds a text that is compared whole.
SHARES = (2, 6, 6, 6)
# What NFC may change: marks, jamo, characters that it replaces. What Unicode tables disagree about: format, private and
# unassigned characters.
_UNUSUAL = (
    r"[\p{M}\p{Cf}\p{Co}\x{1100}-\x{11FF}\x{A960}-\x{A97C}\x{D7B0}-\x{D7FB}"
    r"\x{374}\x{37E}\x{387}\x{958}-\x{95F}\x{9DC}-\x{9DF}\x{A33}\x{A36}\x{A59}-\x{A5E}\x{B5C}\x{B5D}"
    r"\x{F43}\x{F4D}\x{F52}\x{F57}\x{F5C}\x{F69}\x{1F71}-\x{1FFD}\x{2000}\x{2001}\x{2126}\x{212A}\x{212B}"
    r"\x{2329}\x{232A}\x{2ADC}\x{F900}-\x{FAFF}\x{FB1D}-\x{FB4E}\x{1D15E}-\x{1D1C0}\x{2F800}-\x{2FA1F}]"
    r"|[^\p{L}\p{M}\p{N}\p{P}\p{S}\p{Z}\p{C}]"
)


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """A text to compare, or a part of a long one; `hash` is a quick one of the whole, then one of what is compared."""

    hash: int
    row: int
    text: str
    is_whole: bool


class Sample:
    """The texts with the smallest hashes that fit a budget: chosen by what they are, in whatever order they come."""

    def __init__(self, budget_bytes: int) -> None:
        """Begin with nothing of `budget_bytes`."""
        self.budget = self.left = budget_bytes
        self.ceiling = (1 << _KEY_BITS) - 1
        self.parts: dict[int, Part] = {}
        self.heap: list[int] = []

    @property
    def may_hold(self) -> np.uint64:
        """No text with a larger `text_hashes` comes into the sample any more."""
        return np.uint64(self.ceiling >> _HASH_BITS)

    def offer(
        self, texts: pa.Array, hashes: npt.NDArray[np.uint64], rows: npt.NDArray[np.int64], first_row: int
    ) -> None:
        """Take what is below the ceiling from the given rows of a batch; equal texts are taken once."""
        rows = rows[hashes[rows] <= self.may_hold]
        for row in rows[np.argsort(hashes[rows], kind="stable")].tolist():
            if hashes[row] > self.may_hold:
                break
            part = _part_of(texts, row, hashes, first_row, self.budget)
            if part is not None and part.hash < self.ceiling and part.hash not in self.parts:
                self._take(part)

    def _take(self, part: Part) -> None:
        self.parts[part.hash] = part
        heapq.heappush(self.heap, -part.hash)
        self.left -= _cost(part)
        while self.left < 0:
            # Nothing at or above a dropped hash comes back, else the order of the texts would decide.
            self.ceiling = -heapq.heappop(self.heap)
            self.left += _cost(self.parts.pop(self.ceiling))


class Samples:
    """What is chosen of a stream: a sample of each kind of text within its share of a budget, and the longest part."""

    def __init__(self, budget_bytes: int) -> None:
        """Begin with nothing of `budget_bytes`."""
        self._samples = [Sample(budget_bytes // share) for share in SHARES]
        self._longest_bytes = budget_bytes // 4
        self._longest: Part | None = None

    def offer(self, texts: pa.Array, first_row: int, special: npt.NDArray[np.bool_]) -> None:
        """Offer a batch.

        Args:
            texts: large_string without nulls.
            first_row: Row of its first text in the stream.
            special: Which texts hold the string of a special token.
        """
        if len(texts) == 0:
            return
        hashes, lengths = text_hashes(texts), byte_lengths(texts)
        rows = np.arange(len(texts))
        longest = _longest_row(lengths, hashes, int(lengths.max()))
        unusual = _unusual_rows(texts, rows[hashes <= self._samples[-1].may_hold], hashes)
        for sample, kind in zip(self._samples, (rows, longest, rows[special], unusual), strict=True):
            sample.offer(texts, hashes, kind, first_row)
        limit = self._longest_bytes - _TEXT_COST
        whole = _longest_row(lengths, hashes, min(WHOLE_BYTES, limit))
        # How long the parts of the others are decides how long their lines are.
        for row in [*whole, *longest, *rows[(lengths > WHOLE_BYTES) & (lengths <= limit)]]:
            if self._longest is None or lengths[row] + _TEXT_COST >= _cost(self._longest):
                self._keep_longest(_part_of(texts, int(row), hashes, first_row, self._longest_bytes))

    def _keep_longest(self, part: Part | None) -> None:
        """Keep the longest part up to a quarter of the budget: what the engine is given at once and is rarely met."""
        best = self._longest
        if part is not None and (best is None or (_cost(best), part.hash) < (_cost(part), best.hash)):
            self._longest = part

    def chosen(self) -> list[Part]:
        """Return the parts of all samples and the longest, in the order of the rows."""
        parts = {key: part for sample in self._samples for key, part in sample.parts.items()}
        if self._longest is not None:
            parts[self._longest.hash] = self._longest
        return sorted(parts.values(), key=lambda part: part.row)


def _longest_row(lengths: npt.NDArray[np.int64], hashes: npt.NDArray[np.uint64], limit: int) -> npt.NDArray[np.int64]:
    """Return the row of the longest text up to a limit, of equal ones the one with the smallest hash; none or one."""
    rows = np.flatnonzero(lengths <= limit)
    rows = rows[lengths[rows] == lengths[rows].max(initial=0)]
    return np.asarray(rows[np.argsort(hashes[rows], kind="stable")][:1], np.int64)


def _cost(part: Part) -> int:
    return len(part.text.encode()) + _TEXT_COST


def _part_of(texts: pa.Array, row: int, hashes: npt.NDArray[np.uint64], first_row: int, budget: int) -> Part | None:
    """Return the text, or of a long one two of its pieces, at a place that the hash decides; None beyond the budget."""
    ends, data = bytes_of(texts)
    start, end = ends[row : row + 2].tolist()
    text = _compared(data, start, end, int(hashes[row]))
    if len(text) + _TEXT_COST > budget:
        return None
    digest = hashlib.blake2b(text, digest_size=_HASH_BITS // 8).digest()
    key = int(hashes[row]) << _HASH_BITS | int.from_bytes(digest, "little")
    return Part(key, first_row + row, str(text, "utf8"), end - start <= WHOLE_BYTES)


def _compared(data: memoryview, start: int, end: int, key: int) -> memoryview:
    """Return of a text what is compared: two pieces as the engine is given them are cut again at their joint."""
    room = end - start - WHOLE_BYTES
    if room <= 0:
        return data[start:end]
    place = start + key % room
    found = SAFE_CUT.search(data, place, place + PIECE_BYTES)
    pieces = cuts(data, found.end(), place + WHOLE_BYTES, PIECE_BYTES) if found else []
    if found and len(pieces) > 1:
        return data[found.end() : pieces[1]]
    # Lines are long here: the pieces are what they are.
    places = [start, *cuts(data, start, end, PIECE_BYTES), end]
    first = key % max(1, len(places) - 2)
    return data[places[first] : places[min(first + 2, len(places) - 1)]]


def _unusual_rows(
    texts: pa.Array, rows: npt.NDArray[np.int64], hashes: npt.NDArray[np.uint64]
) -> npt.NDArray[np.int64]:
    """Return which of the rows have unusual characters in what would be compared of them."""
    ends, data = bytes_of(texts)
    # The search is slow: it is for what is not plain ASCII, of long texts for those characters alone.
    rows = rows[~_are_ascii(ends, data)[rows]]
    is_long = np.diff(ends)[rows] > _LONG_BYTES
    rows = np.concatenate((rows[~is_long], rows[is_long]))
    short = texts.take(rows[: len(rows) - int(is_long.sum())])
    parts = [_compared(data, int(ends[row]), int(ends[row + 1]), int(hashes[row])) for row in rows[len(short) :]]
    long = pa.array([_beyond_ascii(part) for part in parts], texts.type)
    is_unusual = pc.match_substring_regex(pa.concat_arrays([short, long]), _UNUSUAL).to_numpy(zero_copy_only=False)
    return np.asarray(rows[np.asarray(is_unusual, np.bool_)], np.int64)


def _beyond_ascii(text: memoryview) -> str:
    letters = np.frombuffer(text, np.uint8)
    return letters[letters >= _FIRST_BEYOND_ASCII].tobytes().decode()


def _are_ascii(ends: Ints, data: memoryview) -> npt.NDArray[np.bool_]:
    """Return which texts are plain ASCII, shape (len(ends) - 1,); four times as fast as Arrow's function."""
    has_bytes = np.diff(ends) > 0
    are_ascii = np.ones(len(has_bytes), np.bool_)
    letters = np.frombuffer(data, np.uint8)[: ends[-1]]
    are_ascii[has_bytes] = np.bitwise_or.reduceat(letters, ends[:-1][has_bytes]) < _FIRST_BEYOND_ASCII
    return are_ascii


def text_hashes(texts: pa.Array) -> npt.NDArray[np.uint64]:
    """Return a 64-bit hash of each text from its length and 8 bytes at three places (mixing steps of splitmix64)."""
    ends, letters = bytes_of(texts)
    lengths = np.diff(ends)
    # Eight bytes at every place, as one number each; behind the last whole one a shift makes up for it.
    data = np.frombuffer(letters if len(letters) >= _WORD else bytes(letters).ljust(_WORD, b"\0"), np.uint8)
    words = np.ndarray(len(data) - _WORD + 1, "<u8", data, strides=(1,))
    mixed = lengths.astype(np.uint64)
    for half in range(3):
        places = ends[:-1] + np.maximum(lengths - _WORD, 0) * half // 2
        within = np.minimum(places, len(words) - 1)
        word = words[within] >> (8 * np.minimum(places - within, _WORD - 1)).astype(np.uint64)
        unused = 8 * np.clip(_WORD - lengths, 0, _WORD - 1).astype(np.uint64)
        word = np.where(lengths > 0, word << unused >> unused, np.uint64(0))
        mixed = (mixed ^ word) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed

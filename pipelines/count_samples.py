"""Which texts of a stream are counted a second time: chosen by a hash of the text, within a budget of bytes.

What the engines are and how they are compared is in `counting`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import heapq
import re

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

# Behind a line break and before a visible character no match of either pattern goes on, see `counting.cut_text`.
SAFE_CUT = re.compile(r"\n(?=\S)")
PART_CHARS = 1 << 15
# All texts, each batch's longest, those with special tokens' strings, unusual ones: each kind's part of the budget.
SHARES = (2, 4, 8, 8)
# What NFC may change and what Unicode tables disagree about: marks, format and private characters, compatibility signs.
_UNUSUAL = r"[\p{M}\p{Cf}\p{Co}\x{1100}-\x{11FF}\x{2126}\x{212A}\x{212B}\x{F900}-\x{FAFF}\x{2F800}-\x{2FA1F}]"


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """A text to compare, or a part of a long one."""

    hash: int
    row: int
    text: str
    is_whole: bool
    sha256: str


class Sample:
    """The texts with the smallest hashes that fit a budget: chosen by what they are, in whatever order they come."""

    def __init__(self, budget_bytes: int) -> None:
        """Begin with nothing of `budget_bytes`."""
        self.left = budget_bytes
        self.ceiling = (1 << 64) - 1
        self.parts: dict[int, Part] = {}
        self.heap: list[int] = []

    def offer(
        self, texts: pa.Array, hashes: npt.NDArray[np.uint64], rows: npt.NDArray[np.int64], first_row: int
    ) -> None:
        """Take what is below the ceiling from the given rows of a batch; equal texts are taken once."""
        rows = rows[hashes[rows] < np.uint64(self.ceiling)]
        for row in rows[np.argsort(hashes[rows], kind="stable")].tolist():
            key = int(hashes[row])
            if key >= self.ceiling:
                break
            if key not in self.parts:
                self._take(_part_of(texts[row].as_py(), key, first_row + row))

    def _take(self, part: Part) -> None:
        self.parts[part.hash] = part
        heapq.heappush(self.heap, -part.hash)
        self.left -= _cost(part)
        while self.left < 0:
            # Nothing at or above a dropped hash comes back, else the order of the texts would decide.
            self.ceiling = -heapq.heappop(self.heap)
            self.left += _cost(self.parts.pop(self.ceiling))


def _cost(part: Part) -> int:
    return len(part.text.encode()) + 64


def _part_of(text: str, key: int, row: int) -> Part:
    """Return the text, or of a long one a part between two safe cuts, at a place that the hash decides."""
    whole = text
    if len(text) > 2 * PART_CHARS:
        start = key % (len(text) - 2 * PART_CHARS)
        window = text[start : start + 2 * PART_CHARS]
        cuts = [found.end() for found in SAFE_CUT.finditer(window)]
        begin = cuts[0] if cuts and cuts[0] < PART_CHARS else 0
        text = window[begin : next((cut for cut in cuts if cut >= begin + PART_CHARS), begin + PART_CHARS)]
    return Part(key, row, text, text is whole, hashlib.sha256(whole.encode()).hexdigest())


def offer_batch(samples: list[Sample], texts: pa.Array, first_row: int, special: npt.NDArray[np.bool_]) -> None:
    """Offer a batch: all of it, its longest text, those with special tokens' strings, those with unusual characters."""
    if len(texts) == 0:
        return
    hashes, lengths = text_hashes(texts), byte_lengths(texts)
    rows = np.arange(len(texts))
    # The search for unusual characters is slow: it is for texts that would be taken and are not plain ASCII.
    eager = rows[hashes < np.uint64(samples[-1].ceiling)]
    eager = eager[~pc.string_is_ascii(texts.take(eager)).to_numpy(zero_copy_only=False).astype(np.bool_)]
    is_unusual = pc.match_substring_regex(texts.take(eager), _UNUSUAL).to_numpy(zero_copy_only=False)
    longest = rows[lengths == lengths.max()]
    kinds = [rows, longest[[hashes[longest].argmin()]], rows[special], eager[is_unusual.astype(np.bool_)]]
    for sample, kind in zip(samples, kinds, strict=True):
        sample.offer(texts, hashes, kind, first_row)


def byte_lengths(texts: pa.Array) -> npt.NDArray[np.int64]:
    """Return the bytes of each text."""
    return np.asarray(pc.binary_length(texts).to_numpy(zero_copy_only=False), np.int64)


def text_hashes(texts: pa.Array) -> npt.NDArray[np.uint64]:
    """Return a 64-bit hash of each text from its length and 8 bytes at three places (mixing steps of splitmix64)."""
    lengths = byte_lengths(texts)
    _, offsets, letters = texts.buffers()
    starts = np.frombuffer(memoryview(offsets or bytes(8)), np.int64)[texts.offset : texts.offset + len(texts)]
    data = np.frombuffer(memoryview(letters or b"\0"), np.uint8)
    mixed = lengths.astype(np.uint64)
    for half in range(3):
        places = (np.maximum(lengths - 8, 0) * half // 2)[:, None] + np.arange(8)
        word = data[np.minimum(starts[:, None] + places, len(data) - 1)]
        word[places >= lengths[:, None]] = 0
        mixed = (mixed ^ word.view("<u8")[:, 0]) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed

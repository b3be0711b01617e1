r"""Cuts long texts in place in Arrow, without a copy, into pieces whose token counts add up to those of the text.

A cut is after a line break and before a line that is not blank. Both patterns end a match there: a run of spaces up
to its last line break is one match of `\s*[\r\n]+`, a run of signs includes its line breaks, and no other branch
ends in one; the next line's indentation begins a new match. No special token holds a line break, and NFC joins
nothing across it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]

# In UTF-8: a line break, blanks and tabs, then no control character and none of the spaces of Unicode (U+0085, U+00A0,
# U+1680, U+2000 to U+200A, U+2028, U+2029, U+202F, U+205F, U+3000).
SAFE_CUT = re.compile(
    rb"\n(?=[ \t]*(?:[!-~\xc3-\xe0\xe4-\xf4]|\xc2[\xa1-\xbf]|\xe1(?!\x9a\x80)"
    rb"|\xe2(?!\x80[\x80-\x8a\xa8\xa9\xaf]|\x81\x9f)|\xe3(?!\x80\x80)))"
)


def as_large(texts: pa.Array) -> pa.Array:
    """Return the texts as large_string.

    Raises:
        ValueError: There are nulls.
    """
    if texts.null_count:
        raise ValueError(f"{texts.null_count} texts are null")
    return texts.cast(pa.large_string())


def byte_lengths(texts: pa.Array) -> Ints:
    """Return the UTF-8 length of each text in bytes, shape (len(texts),)."""
    return np.asarray(pc.binary_length(texts).to_numpy(zero_copy_only=False), np.int64)


def bytes_of(texts: pa.Array) -> tuple[Ints, memoryview]:
    """Return the start of each large_string and the end of the last, shape (len(texts) + 1,), and all their bytes."""
    _, offsets, data = texts.buffers()
    starts = np.frombuffer(memoryview(offsets or bytes(8)), np.int64)
    return starts[texts.offset : texts.offset + len(texts) + 1], memoryview(data or b"")


def cut(texts: pa.Array, piece_bytes: int, whole_bytes: int = 0) -> tuple[pa.Array, Ints]:
    """Return the texts with the long ones in pieces.

    Args:
        texts: large_string without nulls.
        piece_bytes: A long text is cut into pieces of at least this many bytes, as far as there are safe cuts.
        whole_bytes: A text of up to this many bytes stays whole, as does one of up to `piece_bytes`.

    Returns:
        The pieces in order, over the same bytes, and the index of each text's first piece, shape (len(texts),).
    """
    is_long = byte_lengths(texts) > max(piece_bytes, whole_bytes)
    if not is_long.any():
        return texts, np.arange(len(texts))
    ends, data = bytes_of(texts)
    inner = [cuts(data, int(ends[row]), int(ends[row + 1]), piece_bytes) for row in np.flatnonzero(is_long)]
    more = np.zeros(len(texts), np.int64)
    more[is_long] = [len(places) for places in inner]
    ends = np.insert(ends, np.repeat(np.arange(len(texts)) + 1, more), [place for places in inner for place in places])
    pieces = pa.LargeStringArray.from_buffers(len(ends) - 1, pa.py_buffer(ends), texts.buffers()[2])
    return pieces, np.arange(len(texts)) + np.cumsum(more) - more


def cuts(data: memoryview, start: int, end: int, piece_bytes: int) -> list[int]:
    """Return the positions that cut the text from `start` to `end` into pieces of `piece_bytes` or more."""
    places: list[int] = []
    while end - start > piece_bytes:
        # The search ends with the text: its last line break is no cut, so no piece is empty.
        found = SAFE_CUT.search(data, start + piece_bytes - 1, end)
        if found is None:
            break
        start = found.end()
        places.append(start)
    return places


def runs(texts: pa.Array, run_bytes: int) -> tuple[pa.Array, Ints]:
    """Join consecutive texts into runs of about `run_bytes`, over the same bytes.

    Args:
        texts: large_string without nulls.
        run_bytes: A run ends with the text that reaches the next multiple of this size.

    Returns:
        The runs in order, and the index of each one's first text, shape (runs,).
    """
    ends, _ = bytes_of(texts)
    first = np.unique(np.searchsorted(ends, np.arange(ends[0], ends[-1], run_bytes)))
    first = first[first < len(texts)]
    places = np.append(ends[first], ends[-1:])
    return pa.LargeStringArray.from_buffers(len(first), pa.py_buffer(places), texts.buffers()[2]), first


def slices(texts: pa.Array, slice_bytes: int) -> Iterator[pa.Array]:
    """Cut an array into runs of texts of at most the given bytes, at least one text each."""
    ends, row, start = np.cumsum(byte_lengths(texts)), 0, 0
    while row < len(texts):
        after = max(row + 1, int(np.searchsorted(ends, start + slice_bytes, side="right")))
        yield texts[row:after]
        row, start = after, int(ends[after - 1])

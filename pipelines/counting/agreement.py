"""A sample of every script and of what pre-tokenizers treat apart, on which two engines have to agree."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

_ROW, _SAMPLES = 256, 8
_SHOWN = 20
_EDGES = (
    "", " ", "  ", "\n", "\r\n", "\n\n\n", "\t\t", " \n x", "x \n", "a  b   c", "I'll we've 'S it's", "1 12 123 1234",
    "3.14159e-10", "http://a.b/c?d=e&f", "def f(x):\n    return {x: [1, 2]}\n", "!!!??..,,;;",
    "</think>", "<s>", "<pad>",
    "\u3000x\u00a0y\u200bz", "e\u0301 \u00e9", "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "A" * 300, " " * 300,
    "ab" * 5000, "word " * 5000,
)  # fmt: skip


class Encoder(Protocol):
    """What an engine does with a text."""

    def encode(self, text: str) -> npt.NDArray[np.uint32]:
        """Return its token ids."""
        ...


@cache
def texts() -> tuple[str, ...]:
    """Return the texts: of each row of 256 code points, which holds every script, eight characters in three forms."""
    return (*_EDGES, *_scripts())


def _scripts() -> Iterator[str]:
    for row in range(0, sys.maxunicode + 1, _ROW):
        known = [chr(point) for point in range(row, row + _ROW) if unicodedata.category(chr(point))[0] != "C"]
        if known:
            some = known[:: max(1, len(known) // _SAMPLES)]
            yield from ("".join(some), " ".join(some), f"a {''.join(some)}1.{some[0]}\n{some[-1]}")


def first_difference(fast: Encoder, exact: Encoder) -> str | None:
    """Return the start of the first text that the engines encode differently, None where there is none."""
    for text in texts():
        try:
            is_same = np.array_equal(fast.encode(text), exact.encode(text))
        except RuntimeError:
            is_same = False
        if not is_same:
            return text[:_SHOWN]
    return None

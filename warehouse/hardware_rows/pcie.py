"""Rates of PCIe by generation and lanes, one direction, and the slot that a link's name tells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

# Transfers of one lane in 1e9 a second, by generation.
_GT_PER_S = {1: 2.5, 2: 5, 3: 8, 4: 16, 5: 32, 6: 64, 7: 128}
# What coding leaves: 8b/10b, 128b/130b, and from generation 6 on flits of 236 bytes in 256.
_CODED = {1: 0.8, 2: 0.8, 3: 128 / 130, 4: 128 / 130, 5: 128 / 130, 6: 236 / 256, 7: 236 / 256}
# What accelerators are built with.
_LANES, _GENERATIONS = (16, 8, 4), (3, 4, 5, 6, 7)
_NAME = re.compile(r"pcie-?([1-7])(?:\.0)?-?x([0-9]+)")


class Slot(NamedTuple):
    """A generation and its lanes; rates in bytes/s of one direction, before coding and after it."""

    name: str
    raw: float
    coded: float


def slot(generation: int, lanes: int) -> Slot:
    """Return a slot with its rates: transfers x lanes / 8, and the share of it that coding leaves.

    Source: PCI-SIG, base specifications 1.0 to 7.0.

    >>> slot(4, 16).raw, round(slot(4, 16).coded)
    (32000000000.0, 31507692308)
    """
    raw = _GT_PER_S[generation] * 1e9 * lanes / 8
    return Slot(f"pcie{generation}-x{lanes}", raw, raw * _CODED[generation])


def named_slot(link: str) -> Slot | None:
    """Return the slot that a link's name tells, under the words that tell it; None where it tells none.

    >>> named_slot("PCIe-5.0-x16 of ours").raw, named_slot("our-link")
    (64000000000.0, None)
    """
    told = _NAME.search(link.lower())
    return told and slot(int(told[1]), int(told[2]))._replace(name=told[0])


def slots() -> Iterator[Slot]:
    """Yield every slot that accelerators are built with, the widest first and among these the older."""
    yield from (slot(generation, lanes) for lanes in _LANES for generation in _GENERATIONS)

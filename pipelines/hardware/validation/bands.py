"""How far an answer is to be trusted: the worst held-out factor of the measurements of its class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from warehouse.declared.formats import number
from warehouse.hardware_rows.rows import load_reference

WORDS = {
    "load": "load",
    "c2c-blackwell": "load over NVLink-C2C of Blackwell",
    "small-copies": "small copies",
    "dense-prefill": "dense prefill",
    "moe-prefill": "prefill of a mixture of experts",
    "short-prefill-two-nodes": "short prefill over two nodes",
    "ttft-hit": "TTFT with a hit",
    "gain": "gain of a hit",
    "paper": "the paper's own measurements",
}


@dataclass(frozen=True, slots=True)
class ClassBand:
    """The points of a class, and the worst factor between prediction and measurement without their origin."""

    points: int
    worst: float


@dataclass(frozen=True, slots=True)
class Bands:
    """Factors within which measurements like load, t_GPU and TTFT of an answer were, and the same in words."""

    load: float | None
    compute: float | None
    ttft: float | None
    words: str | None


def factor(predicted: float, measured: float) -> float:
    """Return how many times a prediction is off, either way: at least 1.

    >>> factor(2.0, 4.0), factor(4.0, 2.0)
    (2.0, 2.0)
    """
    return math.exp(abs(math.log(predicted / measured)))


@cache
def class_bands() -> dict[str, ClassBand]:
    """Return the band of each class that has scored points."""
    held_out = {row["point"]: row["held_out"] for row in load_reference("held_out").to_pylist()}
    factors: dict[str, list[float]] = {}
    for row in load_reference("validation").to_pylist():
        if row["is_scored"] and row["point"] in held_out:
            factors.setdefault(row["error_class"], []).append(factor(held_out[row["point"]], row["measured"]))
    return {name: ClassBand(len(values), max(values)) for name, values in factors.items()}


def bands_of(*, is_moe: bool, is_c2c: bool, is_small: bool, is_over_nodes: bool) -> Bands:
    """Return the bands of an answer by what it is about."""
    load = "small-copies" if is_small else "c2c-blackwell" if is_c2c else "load"
    compute = "short-prefill-two-nodes" if is_over_nodes else "moe-prefill" if is_moe else "dense-prefill"
    known = class_bands()
    names = [name for name in (load, compute, "ttft-hit") if name in known]
    words = "; ".join(_words(name, known[name]) for name in names)
    at = {name: known[name].worst for name in names}
    return Bands(at.get(load), at.get(compute), at.get("ttft-hit"), words or None)


def _words(name: str, band: ClassBand) -> str:
    return f"{WORDS[name]}: within {number(math.ceil(band.worst * 10 - 1e-9) / 10)} in {band.points} points"

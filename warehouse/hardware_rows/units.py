"""Quantities as people write them: 64 GB/s, 400 Gb/s, 80 GiB, 989.5 TFLOP/s, 700 W; and what a bare number may mean.

GB is 10^9 bytes, GiB 2^30 bytes, Gb 10^9 bits. No table and no file is known here.
"""

from __future__ import annotations

import re

_NUMBER = r"\s*((?:[0-9]{1,3}(?:[_,][0-9]{3})+|[0-9]+)(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)\s*"
_PREFIXES = {
    "": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40,
}  # fmt: skip
_BYTES = r"(Ki|Mi|Gi|Ti|[kKMGT]?)(B|b)"
_PATTERNS = {
    "bytes/s": re.compile(_NUMBER + _BYTES + r"(?:/s|ps)\s*"),
    "bytes": re.compile(_NUMBER + _BYTES + r"\s*"),
    "bytes/token": re.compile(_NUMBER + _BYTES + r"(?:/token)?\s*"),
    "FLOP/s": re.compile(_NUMBER + r"([kKMGTP]?)(?:FLOP/s|FLOPs/s|FLOPS)()\s*"),
    "W": re.compile(_NUMBER + r"([kM]?)W()\s*"),
}
EXAMPLES = {
    "bytes/s": "64GB/s, 60GiB/s or 400Gb/s",
    "bytes": "80GB or 80GiB",
    "bytes/token": "320KiB/token",
    "FLOP/s": "989.5TFLOP/s",
    "W": "700W",
}
# What a bare number is given in where it should be in the unit itself, the likeliest first.
_SCALES = {
    "bytes/s": ((1e9, "GB/s"), (1e12, "TB/s"), (1e6, "MB/s")),
    "bytes": ((1e9, "GB"), (1e12, "TB"), (1e6, "MB")),
    "bytes/token": ((1e3, "KB/token"),),
    "FLOP/s": ((1e12, "TFLOP/s"), (1e15, "PFLOP/s"), (1e9, "GFLOP/s")),
    "W": ((1e3, "kW"),),
    "1": ((1e9, "billions"), (1e6, "millions")),
    "tokens": ((1e3, "thousands"),),
}
GIBI = 2**30 / 1e9


def parse_quantity(text: str, unit: str) -> float:
    """Return a number with its unit in the declared unit.

    Args:
        text: A number, a prefix and a unit. A capital B is bytes, a small b bits.
        unit: A key of `EXAMPLES`.

    Raises:
        ValueError: The text is not plain, or its unit is another one.

    >>> parse_quantity("400 Gb/s", "bytes/s"), parse_quantity("989.5 TFLOP/s", "FLOP/s")
    (50000000000.0, 989500000000000.0)
    """
    match = _PATTERNS[unit].fullmatch(text)
    if match is None:
        raise ValueError(text)
    number = float(re.sub("[_,]", "", match[1])) * _PREFIXES[match[2]]
    return number / (8 if match[3] == "b" else 1)


def mistaken_for(value: float, unit: str, low: float, high: float) -> str:
    """Return what a number outside its bounds looks like, as a clause; empty where nothing fits.

    >>> mistaken_for(989.5, "FLOP/s", 1e12, 2e17)
    'it looks like 989.5 TFLOP/s, which is 9.895e+14'
    >>> mistaken_for(3.2e12, "bytes/s", 1e8, 4e11)
    'it looks like bits for bytes, which are 4e+11'
    """
    for factor, name in _SCALES.get(unit, ()):
        if value < low <= value * factor <= high:
            return f"it looks like {value:g} {name}, which is {value * factor:g}"
    if unit.startswith("bytes") and value > high >= value / 8 >= low:
        return f"it looks like bits for bytes, which are {value / 8:g}"
    for power in (3, 6, 9, 12):
        if value > high >= value / 10**power >= low:
            return f"it looks like a prefix counted twice, which leaves {value / 10**power:g}"
    return ""


def mix_up(value: float, known: float, unit: str, *, is_doubled: bool = True, near: float = 0.005) -> str:
    """Return which mix-up makes `known` into `value`, as a clause; empty where none does.

    Args:
        value: What was given.
        known: What it ought to be near, in the same unit.
        unit: Of both.
        is_doubled: Whether twice or half of `known` counts: the sum of both directions, or sparsity.
        near: How exactly the factor has to be met.

    >>> mix_up(900e9, 450e9, "bytes/s")
    'twice 4.5e+11: the sum of both directions for one'
    >>> mix_up(64 * 2**30, 64e9, "bytes/s")
    '1.0737 x 6.4e+10: GiB for GB'
    """
    doubled = "the sum of both directions for one" if unit == "bytes/s" else "the peak with sparsity for the dense one"
    factors: list[tuple[float, str]] = [(2.0, f"twice {known:g}: {doubled}"), (0.5, f"half of {known:g}")]
    factors = factors if is_doubled else []
    if unit.startswith("bytes"):
        factors += [
            (8.0, f"8 x {known:g}: bits for bytes"),
            (1 / 8, f"an eighth of {known:g}: bits taken for bytes twice"),
            (GIBI, f"1.0737 x {known:g}: GiB for GB"),
            (1 / GIBI, f"{known:g} / 1.0737: GB for GiB"),
        ]
    factors += [(10.0**power, f"10^{power} x {known:g}: another prefix") for power in (-12, -9, -6, -3, 3, 6, 9, 12)]
    return next((why for factor, why in factors if abs(value / known / factor - 1) < near), "")


def is_whole_gibi(value: float) -> bool:
    """Return whether a bare number is a multiple of 2^30 and no round decimal one: GiB where GB are meant.

    >>> is_whole_gibi(80 * 2**30), is_whole_gibi(80e9), is_whole_gibi(0)
    (True, False, False)
    """
    return value > 0 and value % 2**30 == 0 and value % 10**6 != 0

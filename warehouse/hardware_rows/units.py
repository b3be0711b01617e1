"""Parses quantities such as 64 GB/s, 400 Gb/s, 80 GiB, 989.5 TFLOP/s, 700 W. GB is 10^9, GiB 2^30 bytes."""

from __future__ import annotations

import re

from warehouse.declared.schema import Unit

_NUMBER = r"\s*((?:[0-9]{1,3}(?:[_,][0-9]{3})+|[0-9]+)(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)\s*"
_DECIMAL = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_PREFIXES = _DECIMAL | {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_BYTES = r"((?:Ki|Mi|Gi|Ti|[kKMGTP])?)(B|b)"
_PATTERNS: dict[Unit, str] = {
    "bytes/s": _BYTES + r"(?:/s|ps)",
    "bytes": _BYTES,
    "bytes/token": _BYTES + r"(?:/token)?",
    "FLOP/s": r"([kKMGTP]?)(?:FLOP/s|FLOPs/s|FLOPS)()",
    "W": r"([kM]?)W()",
}
EXAMPLES: dict[Unit, str] = {
    "bytes/s": "64GB/s, 60GiB/s or 400Gb/s",
    "bytes": "80GB or 80GiB",
    "bytes/token": "320KiB/token",
    "FLOP/s": "989.5TFLOP/s",
    "W": "700W",
}


def parse_quantity(text: str, unit: Unit) -> float:
    """Return a quantity as a number in the declared unit.

    Args:
        text: A number, a prefix and a unit. A capital B is bytes, a small b bits.
        unit: A key of `EXAMPLES`.

    Raises:
        ValueError: the text is not a number with a unit, or the unit is of another quantity.

    >>> parse_quantity("400 Gb/s", "bytes/s"), parse_quantity("989.5 TFLOP/s", "FLOP/s")
    (50000000000.0, 989500000000000.0)
    """
    match = re.fullmatch(rf"{_NUMBER}{_PATTERNS[unit]}\s*", text)
    if match is None:
        raise ValueError(text)
    number = float(re.sub("[_,]", "", match[1])) * _PREFIXES[match[2]]
    return number / (8 if match[3] == "b" else 1)

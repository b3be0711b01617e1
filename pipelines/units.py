"""Bandwidths as people write them: 15GB/s, 12 GiB/s, 400Gb/s. GB is 10^9 bytes, GiB 2^30 bytes, Gb 10^9 bits."""

from __future__ import annotations

import re

from warehouse.errors import KappaError

# Above any link, and far from where numbers become infinite.
MOST_BYTES_PER_S = 1e18
_PREFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_PATTERN = re.compile(
    r"\s*((?:[0-9]{1,3}(?:[_,][0-9]{3})+|[0-9]+)(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)\s*([kKMGT]i?|)(B|b)(?:/s|ps)\s*"
)


def parse_bytes_per_s(text: str) -> float:
    """Return a bandwidth in bytes per second.

    A capital B is bytes, a small b is bits. The unit must be written: GB/s and Gb/s differ eight times.

    Raises:
        KappaError: the text is not a positive number with such a unit.

    >>> parse_bytes_per_s("15GB/s"), parse_bytes_per_s("12 GiB/s"), parse_bytes_per_s("400Gb/s")
    (15000000000.0, 12884901888.0, 50000000000.0)
    """
    match = _PATTERN.fullmatch(text)
    prefix = "" if match is None else match[2]
    prefix = "k" if prefix == "K" else prefix
    number = 0.0 if match is None else float(re.sub("[_,]", "", match[1])) * _PREFIXES.get(prefix, 0)
    if match is None or not 1 <= number < MOST_BYTES_PER_S:
        raise KappaError(
            f"bandwidth {text!r} is not understood",
            "it needs a unit and a number of at least one byte per second",
            "write it like 15GB/s, 12GiB/s or 400Gb/s",
        )
    return number / (8 if match[3] == "b" else 1)

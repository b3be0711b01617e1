"""Bandwidths as people write them: 15GB/s, 12 GiB/s, 400Gb/s. GB is 10^9 bytes, GiB 2^30 bytes, Gb 10^9 bits."""

from __future__ import annotations

from warehouse.errors import ErrorCode, UsageError
from warehouse.hardware_rows.units import parse_quantity

# Above any link, and far below infinity in floating point. The least is one bit.
MOST_BYTES_PER_S = 1e18


def parse_bytes_per_s(text: str) -> float:
    """Return a bandwidth in bytes per second.

    A capital B is bytes, a small b is bits. The unit must be written: GB/s and Gb/s differ eight times.

    Raises:
        UsageError: the text is not a positive number with such a unit.

    >>> parse_bytes_per_s("15GB/s"), parse_bytes_per_s("12 GiB/s"), parse_bytes_per_s("400Gb/s")
    (15000000000.0, 12884901888.0, 50000000000.0)
    """
    try:
        rate = parse_quantity(text, "bytes/s")
    except ValueError:
        rate = 0.0
    if not 1 / 8 <= rate < MOST_BYTES_PER_S:
        raise UsageError(
            f"bandwidth {text!r} is not understood",
            "it needs a unit and a number of at least one bit per second",
            "write it like 15GB/s, 12GiB/s or 400Gb/s",
            code=ErrorCode.USAGE,
        )
    return rate

"""Bandwidths as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from pipelines.hardware.bandwidth import parse_bytes_per_s
from warehouse.errors import ErrorCode


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("15GB/s", 15e9),
        (" 15 GB/s ", 15e9),
        ("15GBps", 15e9),
        ("1.5TB/s", 1.5e12),
        ("2.5e3 MB/s", 2.5e9),
        ("1e-3TB/s", 1e9),
        ("7kB/s", 7e3),
        ("7KB/s", 7e3),
        ("900B/s", 900.0),
        # GiB is 2^30 bytes: 12 x 1,073,741,824
        ("12GiB/s", 12_884_901_888.0),
        ("1KiB/s", 1024.0),
        ("1TiB/s", 2.0**40),
        # a small b is a bit: 400e9 / 8
        ("400Gb/s", 50e9),
        ("400Gbps", 50e9),
        ("8b/s", 1.0),
        ("1,000,000 MB/s", 1e12),
        ("1_000MB/s", 1e9),
    ],
)
def test_understood(text: str, expected: float) -> None:
    """A number, a prefix, bytes or bits, per second."""
    assert parse_bytes_per_s(text) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    "text",
    ["", "15", "GB/s", "15GB", "15 gb/s", "15GB/S", "15kiB/s", "15XB/s", "0GB/s", "-1GB/s", "0.0B/s", "nanGB/s",
     "infGB/s", "1e999GB/s", "0x10GB/s", "\u0661GB/s", "15GB/s/s", "15GB/min", "1..5GB/s", "fast"],
)  # fmt: skip
def test_refused(text: str) -> None:
    """What is not plain is refused with an example, never guessed."""
    with refused(ErrorCode.USAGE, repr(text)):
        parse_bytes_per_s(text)


def test_no_infinite_bandwidth() -> None:
    """A number that becomes infinite by its unit is no bandwidth."""
    # 1e308 x 1e12 is beyond a double
    with refused(ErrorCode.USAGE, "1e308TB/s"):
        parse_bytes_per_s("1e308TB/s")


@pytest.mark.parametrize("text", ["1,5GB/s", "1,50GB/s", "15,GB/s"])
def test_a_decimal_comma_is_refused(text: str) -> None:
    """A comma that separates no thousands may be a decimal one: ten times too much is worse than an error."""
    with refused(ErrorCode.USAGE, text):
        parse_bytes_per_s(text)


@given(st.floats(1, 1e5), st.sampled_from(["B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"]))
def test_bits_are_an_eighth(number: float, unit: str) -> None:
    """The same number of bits is an eighth of the bytes, whatever the prefix."""
    in_bytes, in_bits = (parse_bytes_per_s(f"{number!r}{name}/s") for name in (unit, unit[:-1] + "b"))
    assert in_bytes == pytest.approx(8 * in_bits)

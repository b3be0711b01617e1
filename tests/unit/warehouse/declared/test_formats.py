"""One way to write a number: what is larger never reads as smaller, and a share is 0 % or 100 % where it is 0 or 1."""

from __future__ import annotations

import ast
import math
import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from warehouse.declared.formats import cell, exact, number, percent, points, quantity, raw

ROOT = Path(__file__).parents[4]
# Beyond 1e300 four digits may round past the largest double.
FLOATS = st.floats(-1e300, 1e300)
SHARES = st.floats(0, 1) | st.sampled_from([0.001, 0.999, 0.01, 0.99, 1 - 2**-53, 5e-324])
UNITS = st.sampled_from(["B", "B/s", "FLOP/s", "s", "J", "W", ""])
PREFIXES = {"P": 1e15, "T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3, "": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
# Half a unit of the fourth digit.
DIGITS = 0.5e-3 * (1 + 1e-9)


def read(text: str) -> float:
    """Return the number that a text states."""
    return float(text.replace(",", ""))


def read_quantity(text: str, unit: str) -> float:
    """Return the quantity that a text states in its unit."""
    value, prefix = text.removesuffix(unit).split(" ")
    return read(value) * PREFIXES[prefix]


def read_percent(text: str) -> float:
    """Return the percent that a text states; one that is below or above a limit lies half a digit beyond it."""
    value = float(re.sub("[<>% ]", "", text))
    return value + {"<": -0.05, ">": 0.05}.get(text[0], 0)


@given(FLOATS, FLOATS)
def test_a_larger_number_never_reads_as_a_smaller_one(one: float, other: float) -> None:
    """Rounding keeps the order, also where the way of writing changes."""
    low, high = sorted((one, other))
    assert read(number(low)) <= read(number(high))


@given(FLOATS)
def test_a_number_is_read_back_to_four_digits(value: float) -> None:
    """What is written is within half a unit of the fourth digit."""
    assume(abs(value) > 1e-300 or value == 0)
    assert read(number(value)) == pytest.approx(value, rel=DIGITS, abs=0)


@given(st.integers())
def test_an_integer_keeps_all_digits(value: int) -> None:
    """A count is exact, as an int and as the DECIMAL that DuckDB sums to."""
    assert int(number(value).replace(",", "")) == value
    assert number(Decimal(value)) == number(value) == f"{value:,}"


@given(FLOATS, FLOATS, UNITS)
def test_a_larger_quantity_never_reads_as_a_smaller_one(one: float, other: float, unit: str) -> None:
    """Prefixes keep the order."""
    low, high = (read_quantity(quantity(value, unit), unit) for value in sorted((one, other)))
    assert low <= high * (1 + math.copysign(1e-12, high))


@given(FLOATS, UNITS)
def test_a_quantity_is_read_back_to_four_digits(value: float, unit: str) -> None:
    """The number with its prefix is the quantity, to four digits."""
    assume(abs(value) > 1e-290 or value == 0)
    assert read_quantity(quantity(value, unit), unit) == pytest.approx(value, rel=DIGITS, abs=0)


@given(SHARES, SHARES, st.sampled_from([0, 1]))
def test_a_larger_share_never_reads_as_a_smaller_one(one: float, other: float, decimals: int) -> None:
    """Below and above their limits too."""
    low, high = sorted((one, other))
    assert read_percent(percent(low, decimals)) <= read_percent(percent(high, decimals))


@given(SHARES, st.sampled_from([0, 1]))
def test_only_nothing_and_all_read_as_such(share: float, decimals: int) -> None:
    """`0 %` is 0 and `100 %` is 1; all else is read back to the stated digits."""
    text = percent(share, decimals)
    assert (text in ("0 %", "0.0 %")) == (share == 0)
    assert (text in ("100 %", "100.0 %")) == (share == 1)
    # half of the last digit, or all of it below and above a limit
    assert abs(read_percent(text) - 100 * share) <= 10.0**-decimals * (0.5 + 0.5 * (text[0] in "<>")) + 0.05 + 1e-9


@given(st.floats(-1, 1))
def test_only_no_difference_reads_as_none(gained: float) -> None:
    """A difference that is there is never `0`, and keeps its sign."""
    text = points(gained)
    assert (text == "0") == (gained == 0)
    assert gained == 0 or ("+" in text) == (gained > 0)


@given(FLOATS)
def test_a_raw_value_is_the_value(value: float) -> None:
    """What SQL gives comes back to the last bit."""
    assert float(raw(value)) == value


@pytest.mark.parametrize(
    ("value", "seen", "of_sql"),
    [
        (None, "-", ""), (True, "yes", "true"), (False, "no", "false"), (0, "0", "0"), (9999, "9,999", "9999"),
        (-12_345, "-12,345", "-12345"), (10**15, "1,000,000,000,000,000", "1000000000000000"), (0.0, "0", "0.0"),
        (-0.0, "0", "-0.0"), (156.6754, "156.7", "156.6754"), (999.96, "1,000", "999.96"),
        (12_345.6, "12,346", "12345.6"), (1e-7, "1e-07", "1e-07"), (-0.5, "-0.5", "-0.5"), (0.9999, "0.9999", "0.9999"),
        (float("nan"), "nan", "nan"), (float("inf"), "inf", "inf"), (-float("inf"), "-inf", "-inf"),
        (Decimal("1.50"), "1.5", "1.50"), (Decimal("0E-9"), "0", "0.000000000"), ([1, 2], "[1, 2]", "[1, 2]"),
        ("a\x1b[1m", "a\ufffd[1m", "a\ufffd[1m"),
    ],
)  # fmt: skip
def test_values(value: object, seen: str, of_sql: str) -> None:
    """A quantity is written for a reader, a value of SQL as it is."""
    # 999.96 to four digits is 1000
    assert (cell(value), raw(value)) == (seen, of_sql)


def test_not_finite() -> None:
    """What is no number says so with any unit, and a share outside of 0 to 1 too."""
    for text in ("nan", "inf", "-inf"):
        assert (number(float(text)), quantity(float(text), "B")) == (text, f"{text} B")
    assert [percent(float(text)) for text in ("nan", "inf", "-inf")] == ["nan", "> 100 %", "< 0 %"]
    assert exact(1234567.25) == "1,234,567.25"


# Text of data sets; figures in the words of the file that they stand in; the bench, which is outside.
OTHER_FORMATS = (
    "pipelines/generated",
    "pipelines/hardware",
    "warehouse/hardware_rows",
    "assets/commands/crit/command.py",
)


def test_no_other_module_formats_a_float() -> None:
    """A format with digits or a type stands in `formats` alone; `{n:,}` of an integer is what `number` gives."""
    found = []
    for package in ("assets", "pipelines", "reports", "warehouse"):
        for path in sorted((ROOT / package).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            if name == "warehouse/declared/formats.py" or name.startswith(OTHER_FORMATS):
                continue
            for node in ast.walk(ast.parse(path.read_text("utf8"))):
                if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
                    spec = ast.unparse(node.format_spec)
                    found += [f"{name}: {spec}"] * (re.search(r"[0-9.][efg%]|%", spec) is not None)
    assert found == []

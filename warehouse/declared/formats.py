"""Formats of quantities, the same in the report, the figures and on the terminal; and of raw SQL values.

A larger value is never written as a smaller number. Values that are not finite are `nan`, `inf`, `-inf`; an unknown
value is `-`. An integer within a sentence may be `f"{n:,}"`, which equals `number`.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

MISSING = "-"
WHOLE_FROM, POWERS_FROM = 1000, 1e15
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SMALL = ((1e-3, "m"), (1e-6, "u"), (1e-9, "n"))


def number(value: float | Decimal | None) -> str:
    """Return a number: an integer with all digits, a fraction with four significant digits or all before the point.

    Commas group the digits before the point; a fraction from 10^15 up or below 10^-4 is a power of ten.

    >>> [number(v) for v in (None, 0.0, 5129, 29495.8, 156.675, 7.5, 999.96, -12345, 0.000034, 2e15)]
    ['-', '0', '5,129', '29,496', '156.7', '7.5', '1,000', '-12,345', '3.4e-05', '2e+15']
    """
    if value is None:
        return MISSING
    if isinstance(value, int) or (isinstance(value, Decimal) and value == value.to_integral_value()):
        return f"{int(value):,}"
    value = float(value)
    short = f"{value:.4g}"
    if abs(float(short)) >= WHOLE_FROM and abs(value) < POWERS_FROM:
        return f"{value:,.0f}"
    return "0" if value == 0 else short


def exact(value: float) -> str:
    """Return a number with all its digits, for a published figure.

    >>> [exact(v) for v in (14.3, 1_060_000.0, 3.4e-05, 82)]
    ['14.3', '1,060,000', '3.4e-05', '82']
    """
    return f"{value:,}".removesuffix(".0")


def percent(share: float | None, decimals: int = 1) -> str:
    """Return a share as percent. Only 0 is `0 %` and only 1 is `100 %`; a share out of range is `< 0 %` or `> 100 %`.

    >>> [percent(v) for v in (None, 0, 0.0001, 0.6576, 0.9999, 1, 1.5, -0.1)]
    ['-', '0 %', '< 0.1 %', '65.8 %', '> 99.9 %', '100 %', '> 100 %', '< 0 %']
    >>> [percent(v, 0) for v in (0.004, 0.657, 0.996)]
    ['< 1 %', '66 %', '> 99 %']
    """
    if share is None or math.isnan(share):
        return MISSING if share is None else "nan"
    least = 10.0**-decimals
    if not 0 <= share <= 1:
        return "> 100 %" if share > 1 else "< 0 %"
    if share in (0, 1):
        return f"{share * 100:.0f} %"
    if share < least / 100:
        return f"< {least:.{decimals}f} %"
    if share > 1 - least / 100:
        return f"> {100 - least:.{decimals}f} %"
    return f"{share * 100:.{decimals}f} %"


def points(gained: float) -> str:
    """Return a difference of two shares in percentage points, signed, with one decimal; only 0 is `0`.

    >>> [points(v) for v in (0.2532, -0.004, 0.0, 0.00001, -0.0002)]
    ['+25.3', '-0.4', '0', '< +0.1', '> -0.1']
    """
    if gained == 0:
        return "0"
    if abs(gained) < 0.001:  # noqa: PLR2004 - a tenth of a point
        return "< +0.1" if gained > 0 else "> -0.1"
    return f"{gained * 100:+,.1f}"


def quantity(value: float | None, unit: str) -> str:
    """Return a quantity with four digits and a decimal prefix; seconds from 1 up and bytes and FLOP below 1 have none.

    >>> quantity(54.4e9, "B/s"), quantity(999_960_000, "B"), quantity(812, "B"), quantity(None, "s")
    ('54.4 GB/s', '1 GB', '812 B', '-')
    >>> quantity(0.0166, "s"), quantity(12345.6, "s"), quantity(700.0, "W"), quantity(0, "s")
    ('16.6 ms', '12,346 s', '700 W', '0 s')
    """
    if value is None:
        return MISSING
    large = _PREFIXES[-1:] if unit == "s" else _PREFIXES
    prefixes = (*large, *(_SMALL if unit in ("s", "W", "J") else ()))
    # The rounded value decides, so that 999.96 MB is 1 GB.
    rounded = float(f"{value:.4g}")
    factor, prefix = next((pair for pair in prefixes if abs(rounded) >= pair[0]), prefixes[-1])
    if rounded == 0 or not math.isfinite(rounded):
        factor, prefix = 1.0, ""
    return f"{number(value if factor == 1 else rounded / factor)} {prefix}{unit}"


def yes_or_no(value: bool | None) -> str:
    """Return yes, no, or - if it is not known."""
    return MISSING if value is None else "yes" if value else "no"


def moment(value: dt.datetime) -> str:
    """Return a time to the second.

    >>> moment(dt.datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=dt.UTC))
    '2026-01-02 03:04:05'
    """
    return value.strftime("%Y-%m-%d %H:%M:%S")


def cell(value: object) -> str:
    """Return a value of a table as a reader sees it, formatted by its type.

    >>> [cell(v) for v in (None, True, 1234, 0.5, "a", dt.date(2026, 1, 2))]
    ['-', 'yes', '1,234', '0.5', 'a', '2026-01-02']
    """
    if value is None or isinstance(value, bool):
        return yes_or_no(value)
    if isinstance(value, (int, float, Decimal)):
        return number(value)
    return printable(moment(value) if isinstance(value, dt.datetime) else str(value))


def raw(value: object) -> str:
    """Return a value of a query with all its digits, fit to be typed into the next query; NULL is empty.

    >>> [raw(v) for v in (None, True, 12345, 1 / 3, Decimal("1.50"), "a")]
    ['', 'true', '12345', '0.3333333333333333', '1.50', 'a']
    """
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value).lower()
    return printable(f"{value:f}" if isinstance(value, Decimal) else str(value))


def printable(text: str) -> str:
    r"""Return text that cannot control a terminal: unprintable characters become U+FFFD.

    >>> printable("a\nb\x1b[1m") == "a\ufffdb\ufffd[1m"
    True
    """
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)

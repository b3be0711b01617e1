"""Numbers and names as the report writes them. Sentences that say something stand with their sections."""

from __future__ import annotations

from collections.abc import Sequence

MISSING = "-"
PERCENT = "\N{NO-BREAK SPACE}%"
HYPOTHETICAL_ABOVE = 0.01


def number(value: float | None) -> str:
    """Return a number with thousands separators and four significant digits below a thousand.

    >>> [number(v) for v in (None, 0.0, 5129, 29495.8, 156.675, 0.000034)]
    ['-', '0', '5,129', '29,496', '156.7', '3.400e-05']
    """
    if value is None:
        return MISSING
    if value == int(value) or abs(value) >= 1000:  # noqa: PLR2004 - four digits before the point
        return f"{value:,.0f}"
    return f"{value:#.4g}"


def percent(share: float | None) -> str:
    """Return a share as percent with one decimal; what is not all or nothing is never rounded to it.

    >>> [percent(v).replace(PERCENT[0], " ") for v in (None, 0, 0.0001, 0.6576, 0.9999, 1)]
    ['-', '0 %', '< 0.1 %', '65.8 %', '> 99.9 %', '100 %']
    """
    if share is None:
        return MISSING
    if share in (0, 1):
        return f"{share * 100:.0f}{PERCENT}"
    if share < 0.001:  # noqa: PLR2004
        return f"<{PERCENT[0]}0.1{PERCENT}"
    return f">{PERCENT[0]}99.9{PERCENT}" if share > 0.999 else f"{share * 100:.1f}{PERCENT}"  # noqa: PLR2004


def whole_percent(share: float) -> str:
    """Return a share as a whole number of percent for narrow cells, without the sign.

    >>> [whole_percent(v) for v in (0, 0.004, 0.657, 0.996, 1)]
    ['0', '<1', '66', '>99', '100']
    """
    if 0 < share < 0.01:  # noqa: PLR2004
        return "<1"
    return ">99" if 0.99 < share < 1 else f"{share * 100:.0f}"  # noqa: PLR2004


def points(gained: float) -> str:
    """Return a difference of two shares in percentage points, signed, with one decimal.

    >>> [points(v) for v in (0.2532, -0.004, 0.0, 0.00001)]
    ['+25.3', '-0.4', '0', '0']
    """
    text = f"{gained * 100:+.1f}"
    return "0" if float(text) == 0 else text


def value_range(values: Sequence[float]) -> str:
    """Return the smallest and largest of values.

    >>> value_range([5.94, 93.03]), value_range([7.5]), value_range([])
    ('5.940 to 93.03', '7.500', '-')
    """
    if not values:
        return MISSING
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def percent_range(shares: Sequence[float]) -> str:
    """Return the smallest and largest of shares in whole percent.

    >>> [percent_range(shares).replace(PERCENT, " %") for shares in ([0.36, 0.82], [1.0, 1.0], [])]
    ['36 to 82 %', '100 %', '-']
    """
    if not shares:
        return MISSING
    low, high = whole_percent(min(shares)), whole_percent(max(shares))
    return f"{low}{PERCENT}" if low == high else f"{low} to {high}{PERCENT}"


def listing(parts: Sequence[str]) -> str:
    """Return parts as a list within a sentence.

    >>> listing(["a"]), listing(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def shown(text: object, limit: int = 120) -> str:
    r"""Return text from outside on one line: what cannot be printed replaced, cut to `limit` characters.

    >>> shown("a\nb"), shown(None)
    ('a\ufffdb', '-')
    """
    if text is None:
        return MISSING
    line = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in str(text))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def is_hypothetical(over_context_turn_share: float) -> bool:
    """Return whether more than 1 % of the turns are longer than the model's context: no server could run them."""
    return over_context_turn_share > HYPOTHETICAL_ABOVE

"""Formats of ranges, lists and names in the report; numbers are formatted by `warehouse.declared.formats`."""

from __future__ import annotations

from collections.abc import Sequence

from warehouse.declared import formats
from warehouse.declared.formats import MISSING, number, printable

SPACE = "\N{NO-BREAK SPACE}"
PERCENT = f"{SPACE}%"
HYPOTHETICAL_ABOVE = 0.01


def percent(share: float | None) -> str:
    """Return a share as percent, with a non-breaking space."""
    return formats.percent(share).replace(" ", SPACE)


def whole_percent(share: float) -> str:
    """Return a share in whole percent for narrow cells, without the percent sign.

    >>> [whole_percent(v) for v in (0, 0.004, 0.657, 0.996, 1)]
    ['0', '<1', '66', '>99', '100']
    """
    return formats.percent(share, 0).removesuffix("%").replace(" ", "")


def value_range(values: Sequence[float]) -> str:
    """Return the range of values, smallest to largest.

    >>> value_range([5.94, 93.03]), value_range([7.5]), value_range([])
    ('5.94 to 93.03', '7.5', '-')
    """
    if not values:
        return MISSING
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def percent_range(shares: Sequence[float]) -> str:
    """Return the range of shares, smallest to largest, in whole percent.

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
    r"""Return text from outside on one line, unprintable characters replaced, cut to `limit` characters.

    >>> shown("a\nb"), shown(None)
    ('a\ufffdb', '-')
    """
    if text is None:
        return MISSING
    line = printable(str(text))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def is_hypothetical(over_context_turn_share: float) -> bool:
    """Return whether more than 1 % of the turns exceed the model's context, so that no server could run them."""
    return over_context_turn_share > HYPOTHETICAL_ABOVE

"""Prices of accelerators: a user's own, from prices.csv or the command line, each with its source."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from warehouse.errors import ErrorCode, KappaError, UsageError
from warehouse.hardware_rows.names import find_name, nearest_names
from warehouse.hardware_rows.rows import FOLDER, load_reference

GIVEN = "given with --price"
# Dollars an hour and hours: no price and no month of a fleet is outside.
LEAST, MOST = 1e-6, 1e9


@dataclass(frozen=True, slots=True)
class Price:
    """A row of `prices`; `retrieved` is None for a price of the command line."""

    accelerator: str
    usd_per_hour: float
    source: str
    retrieved: str | None


def prices(given: Sequence[str], accelerators: Sequence[str], user: Path | None = None) -> dict[str, Price]:
    """Return the prices by accelerator, see `prices_of`.

    Raises:
        UsageError: a given price is none.
        KappaError: a name is unknown, a row is invalid, or there is no price at all.
    """
    found = prices_of(given, accelerators, user)
    if not found:
        raise KappaError(
            "no accelerator has a price",
            "prices change by the day and by the contract, so kappa has none of its own",
            "add --price h100-sxm=USD, or rows in HOME/reference/prices.csv",
            code=ErrorCode.NOTHING_FITS,
        )
    return found


def prices_of(given: Sequence[str], accelerators: Sequence[str], user: Path | None = None) -> dict[str, Price]:
    """Return the prices by accelerator: those of prices.csv, replaced by those given; empty without any.

    Args:
        given: `ACCELERATOR=USD`, an hour of one accelerator.
        accelerators: Their names.
        user: Folder of the user's own rows.

    Raises:
        UsageError: a given price is none.
        KappaError: a name is unknown, or a row is invalid.
    """
    found = {row["accelerator"]: Price(**row) for row in load_reference("prices", FOLDER, user).to_pylist()}
    for name, usd in pairs(given, "--price", accelerators).items():
        found[name] = Price(name, usd, GIVEN, None)
    return found


def pairs(given: Sequence[str], option: str, names: Sequence[str]) -> Mapping[str, float]:
    """Return the numbers of `NAME=NUMBER` texts, each above 0 and at most `MOST`.

    Raises:
        UsageError: a text is not of that form.
        KappaError: a name is unknown.
    """
    found = {}
    for text in given:
        name, _, number = text.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not LEAST <= value <= MOST:
            raise UsageError(
                f"{option} {text} is not possible", f"it is ACCELERATOR=NUMBER, from {LEAST:g} to {MOST:g}",
                "give such a pair",
                code=ErrorCode.USAGE,
            )  # fmt: skip
        known = find_name(name, names)
        if known is None:
            near = ", ".join(nearest_names(name, [*names]))
            raise KappaError(
                f"unknown accelerator {name!r}", f"nearest are {near}", "`kappa sql 'FROM accelerators'` lists them",
                code=ErrorCode.UNKNOWN_NAME,
            )  # fmt: skip
        found[known] = value
    return found

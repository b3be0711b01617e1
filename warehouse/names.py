"""Names of models, accelerators and links: found whatever their case, and the nearest where there is none."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def find_name(given: str, names: Iterable[str]) -> str | None:
    """Return the name that is meant, in its own spelling, or None.

    Case, blanks around it, and blanks or underscores for hyphens do not matter. A name that is spelled exactly so wins;
    where none is and two are alike, nothing is guessed.

    >>> find_name("H100 SXM", ["h100-sxm", "h200-sxm"])
    'h100-sxm'
    """
    listed = list(names)
    if given in listed:
        return given
    alike = {name for name in listed if folded(name) == folded(given)}
    return alike.pop() if len(alike) == 1 else None


def folded(name: str) -> str:
    """Return what of a name is compared.

    >>> folded(" Llama_3.1 70B ")
    'llama-3.1-70b'
    """
    return "-".join(name.casefold().replace("_", " ").replace("-", " ").split())


def nearest_names(given: str, names: Iterable[str], count: int = 4) -> list[str]:
    """Return up to `count` names that look like the one given, the nearest first, or the first eight of all.

    >>> nearest_names("h10-sxm", ["a100-sxm", "h100-sxm", "l4"], 1)
    ['h100-sxm']
    """
    by_fold = {folded(name): name for name in sorted(names)}
    near = difflib.get_close_matches(folded(given), list(by_fold), count, 0.4)
    return [by_fold[name] for name in near] or list(by_fold.values())[:8]

"""Looks up names of models, accelerators and links, ignoring case; suggests the nearest if there is no match."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable

# Control, format, surrogate and private characters, and breaks of lines and paragraphs.
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
# Letters and marks without width: joiners, fillers, variation selectors.
_WITHOUT_WIDTH = {
    0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, *range(0x180B, 0x1810), *range(0xFE00, 0xFE10),
    *range(0xE0100, 0xE01F0),
}  # fmt: skip


def unseen_character(text: str) -> str:
    r"""Return the first invisible character as code point and name, with its position; empty if there is none.

    Such a character controls a terminal, or makes two names look alike.

    >>> unseen_character("h100\u200b"), unseen_character("a\x1b"), unseen_character("H100 SXM")
    ('U+200B ZERO WIDTH SPACE in position 5', 'U+001B in position 2', '')
    """
    for place, character in enumerate(text, 1):
        code = ord(character)
        is_blank = character.isspace() and character != " "
        if is_blank or unicodedata.category(character) in _UNSEEN or code in _WITHOUT_WIDTH:
            return " ".join(f"U+{code:04X} {unicodedata.name(character, '')}".split()) + f" in position {place}"
    return ""


def find_name(given: str, names: Iterable[str]) -> str | None:
    """Return the name that matches `given`, in its own spelling, or None.

    Case, surrounding blanks, and blanks or underscores for hyphens do not matter. An exact match wins; without one, two
    names that match give None.

    >>> find_name("H100 SXM", ["h100-sxm", "h200-sxm"])
    'h100-sxm'
    """
    listed = list(names)
    if given in listed:
        return given
    alike = {name for name in listed if folded(name) == folded(given)}
    return alike.pop() if len(alike) == 1 else None


def folded(name: str) -> str:
    """Return the normalised form of a name, for comparison.

    >>> folded(" Llama_3.1 70B ")
    'llama-3.1-70b'
    """
    return "-".join(name.casefold().replace("_", " ").replace("-", " ").split())


def nearest_names(given: str, names: Iterable[str], count: int = 4) -> list[str]:
    """Return up to `count` names that start with `given`, then similar ones; the first eight names if there are none.

    >>> nearest_names("h10-sxm", ["a100-sxm", "h100-sxm", "l4"], 1)
    ['h100-sxm']
    >>> nearest_names("a100", ["a10", "a100-pcie-40gb", "a100-sxm-80gb"], 3)
    ['a100-sxm-80gb', 'a100-pcie-40gb', 'a10']
    """
    by_fold = {folded(name): name for name in sorted(names)}
    start = folded(given)
    close = difflib.get_close_matches(start, list(by_fold), count, 0.4)
    begun = [name for name in by_fold if start and name.startswith(start)]
    near = list(dict.fromkeys([*sorted(begun, key=len), *close]))
    return [by_fold[name] for name in near[:count]] or list(by_fold.values())[:8]


def listed_names(given: str, names: Iterable[str]) -> str:
    """Return all names in words, and before them the nearest to `given` if one is close.

    >>> listed_names("shargpt", ["sharegpt", "finqa"]), listed_names("x", ["sharegpt", "finqa"])
    ('nearest is sharegpt of sharegpt, finqa', 'there are sharegpt, finqa')
    """
    listed = list(names)
    near = difflib.get_close_matches(folded(given), [folded(name) for name in listed], 1)
    words = f"nearest is {next(name for name in listed if folded(name) == near[0])} of" if near else "there are"
    return f"{words} {', '.join(listed)}"

"""Names of models, accelerators, links and tokenizers: found in any case, and the nearest where there is none."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
# In a wheel, and in a checkout.
_TOKENIZERS = (_ROOT / "pipelines" / "_tokenizers", _ROOT / "tokenizers")


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
    """Return up to `count` names that the one given begins, then those that look like it, or the first eight of all.

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


def tokenizer_names() -> list[str]:
    """Return the name of every tokenizer, which is that of its TOML file."""
    return sorted(path.stem for folder in _TOKENIZERS for path in folder.glob("*.toml"))

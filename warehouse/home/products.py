"""One finished product, one under construction, and the inputs that name it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warehouse.home.contents import differences

CONTENTS, INPUTS = "contents", "inputs"
Inputs = dict[str, Any]


def identity_of(**inputs: object) -> str:
    """Return a hash of named inputs: 32 hex digits of the sha256 over their canonical JSON."""
    return hashlib.sha256(_canonical(inputs).encode()).hexdigest()[:32]


def _canonical(inputs: Mapping[str, object]) -> str:
    return json.dumps(inputs, sort_keys=True, default=str, ensure_ascii=True)


def changes(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """Return the names of the inputs that differ, with those of their parts in brackets where they have some.

    >>> changes({"code": {"a": "1", "b": "1"}, "files": ["x"]}, {"code": {"a": "2", "b": "1"}, "files": ["x"]})
    ['code (a)']
    """
    return list(_changes(json.loads(_canonical(before)), json.loads(_canonical(now))))


def _changes(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    for name in sorted(before.keys() | now.keys()):
        old, new = before.get(name), now.get(name)
        if isinstance(old, dict) and isinstance(new, dict) and old != new:
            yield f"{name} ({', '.join(_changes(old, new))})"
        elif old != new:
            yield name


@dataclass(frozen=True)
class Product:
    """One finished product: its folder, its identity and what the step noted about it."""

    name: str
    folder: Path
    identity: str
    meta: dict[str, Any]

    def file(self, name: str) -> Path:
        """Return the path of one of its files."""
        return self.folder / name

    def is_whole(self) -> bool:
        """Return whether every byte is as it was built; reads all of them."""
        return not differences(self.folder, self.meta.get(CONTENTS, {}), is_deep=True)


@dataclass
class Draft:
    """A product under construction: write files into `folder`, notes into `meta`."""

    folder: Path
    meta: dict[str, Any] = field(default_factory=dict)

"""One table of a TOML file that is read key by key, each checked, none left over. What the keys mean is elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NoReturn

from warehouse.errors import KappaError

_HEX_SHA256 = re.compile(r"[0-9a-f]{64}")


class TomlTable:
    """One TOML table that hands out each key once, checked, and at the end refuses what nobody asked for."""

    def __init__(self, path: Path, values: dict[str, object], prefix: str = "") -> None:
        """Begin with the values of a table of the file; `prefix` is its name with a dot behind it."""
        self.path, self.values, self.prefix = path, dict(values), prefix

    def fail(self, key: str, why: str) -> NoReturn:
        """Raise the error that names file and key."""
        raise KappaError(f"{self.path} is not usable", f"key '{self.prefix}{key}' {why}", "correct the file")

    def take(self, key: str) -> object:
        """Return a value and forget it."""
        if key not in self.values:
            self.fail(key, "is missing")
        return self.values.pop(key)

    def text(self, key: str) -> str:
        """Return a string that is not empty."""
        value = self.take(key)
        return value if isinstance(value, str) and value else self.fail(key, "is not a text")

    def any_text(self, key: str) -> str:
        """Return a string that may be empty."""
        value = self.take(key)
        return value if isinstance(value, str) else self.fail(key, "is not a text")

    def boolean(self, key: str) -> bool:
        """Return true or false."""
        value = self.take(key)
        return value if isinstance(value, bool) else self.fail(key, "is not true or false")

    def texts(self, key: str, least: int = 1) -> tuple[str, ...]:
        """Return a list of strings with at least so many of them, none twice."""
        value = self.take(key)
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            self.fail(key, "is not a list of texts")
        if len(value) < least or len(set(value)) < len(value):
            self.fail(key, f"needs {least} or more texts, none twice")
        return tuple(value)

    def sha256(self, key: str) -> str:
        """Return a SHA-256 as 64 hex digits."""
        value = self.text(key)
        return value if _HEX_SHA256.fullmatch(value) else self.fail(key, "is not a sha256 in lower-case hex digits")

    def positive(self, key: str) -> int:
        """Return a whole number above 0."""
        value = self.take(key)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            self.fail(key, "is not a whole number above 0")
        return value

    def table(self, key: str) -> TomlTable:
        """Return a table inside this one."""
        value = self.take(key)
        return (
            TomlTable(self.path, value, f"{self.prefix}{key}.")
            if isinstance(value, dict)
            else self.fail(key, "is not a table")
        )

    def close(self) -> None:
        """Refuse keys that nobody asked for: most are misspelt."""
        for key in self.values:
            self.fail(key, "is not known")

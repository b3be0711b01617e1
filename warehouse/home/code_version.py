"""Which code made a product: version and a hash of the sources. Changed code never reuses an old product."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

DISTRIBUTION = "kappa-offload"
_ROOT = Path(__file__).resolve().parents[2]
_SUFFIXES = (".py", ".sql", ".csv", ".toml", ".jinja", ".html")


def package_version() -> str:
    """Return the installed version, or `0+unknown` in a bare checkout."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "0+unknown"


@cache
def code_version(*packages: str) -> str:
    """Return version and 12 hex digits over the sources of the packages (by default those that make the tables)."""
    digest = hashlib.sha256()
    for package in packages or ("pipelines", "tokenizers", "warehouse"):
        for path in sorted((_ROOT / package).rglob("*")):
            if path.suffix in _SUFFIXES and path.is_file():
                digest.update(str(path.relative_to(_ROOT)).encode() + b"\0" + path.read_bytes())
    return f"{package_version()}+{digest.hexdigest()[:12]}"

"""Versions of what makes a product: the package, its data files and the libraries. Code is in `reached_code`."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

DISTRIBUTION = "kappa-offload"
ROOT = Path(__file__).resolve().parents[2]


def package_version() -> str:
    """Return the installed version, or `0+unknown` in a bare checkout."""
    return library_version(DISTRIBUTION) or "0+unknown"


@cache
def library_version(distribution: str) -> str:
    """Return the version of an installed library, an empty text where it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


@cache
def data_of(pattern: str, root: Path = ROOT) -> dict[str, str]:
    """Return the `short_hash` of each data file that a pattern such as `warehouse/sql/*.sql` finds, by its path.

    Raises:
        FileNotFoundError: it finds none.
    """
    found = {str(path.relative_to(root)): short_hash(path.read_bytes()) for path in sorted(root.glob(pattern))}
    if not found:
        raise FileNotFoundError(root / pattern)
    return found


def short_hash(content: bytes) -> str:
    """Return 12 hex digits of the sha256."""
    return hashlib.sha256(content).hexdigest()[:12]

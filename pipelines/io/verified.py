"""Files whose bytes match a sha256: checked when fetched, and again when read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from warehouse.errors import ErrorCode, KappaError

_State = tuple[int, int, int, int, int]


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file's bytes as 64 hex digits."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


@contextmanager
def unchanged(files: Mapping[Path, str]) -> Iterator[None]:
    """Yield while files, each with its sha256, are read: hashed at the start, and checked for changes at the end.

    Raises:
        KappaError: a file is missing, has other bytes, or was written, replaced or renamed meanwhile.
    """
    states = {path: _verified_state(path, sha256) for path, sha256 in files.items()}
    yield
    for path, state in states.items():
        if _state(path) != state:
            raise _changed(path, "it was touched while it was read")


def _verified_state(path: Path, sha256: str) -> _State:
    state = _state(path)
    if state is None:
        raise _changed(path, "it is gone")
    if (found := sha256_of(path)) != sha256:
        raise _changed(path, f"its sha256 is {found[:12]}, not {sha256[:12]}")
    return state


def _state(path: Path) -> _State | None:
    """Return the file's identity and change time: every write or replacement alters it, and no program can reset it."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _changed(path: Path, why: str) -> KappaError:
    return KappaError(
        f"{path} is not the file that was fetched", why, "run again: it is then fetched anew", code=ErrorCode.CHANGED
    )

"""What a folder holds: size, and where it is asked for sha256, of every file, noted once and compared later."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

Contents = Mapping[str, Sequence[int | str]]


def contents_of(folder: Path, skip: str = "", *, is_deep: bool = True) -> dict[str, list[int | str]]:
    """Return size in bytes and sha256 of every file below a folder, by its path there.

    Args:
        folder: where the files are.
        skip: the path of one that is left out.
        is_deep: note the sha256 too, which reads every byte.
    """
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.relative_to(folder) != Path(skip))
    return {str(path.relative_to(folder)): [path.stat().st_size, *_deep(path, is_deep=is_deep)] for path in paths}


def differences(folder: Path, noted: Contents, *, is_deep: bool) -> list[str]:
    """Return what is not as it was noted, each as words that begin with the file's path in the folder.

    Args:
        folder: where the files are.
        noted: what `contents_of` returned.
        is_deep: compare the sha256 too, which reads every byte; one that was not noted counts as another.
    """
    told = {path: _difference(folder / path, noted[path], is_deep=is_deep) for path in noted}
    return [f"{path} {difference}" for path, difference in told.items() if difference is not None]


def _difference(path: Path, noted: Sequence[int | str], *, is_deep: bool) -> str | None:
    try:
        size = path.stat().st_size
        if size != noted[0]:
            return f"has {size} bytes, not {noted[0]}"
        return "has other content" if is_deep and [*noted[1:]] != _deep(path, is_deep=True) else None
    except FileNotFoundError:
        return "is missing"


def _deep(path: Path, *, is_deep: bool) -> list[str]:
    if not is_deep:
        return []
    with path.open("rb") as file:
        return [hashlib.file_digest(file, "sha256").hexdigest()]

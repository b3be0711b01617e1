"""The files that a source names: a file, a folder or a glob. Links that lead out of a folder are refused."""

from __future__ import annotations

import glob
import os
from pathlib import Path

from pipelines.records.names import is_data_file, is_hidden
from warehouse.errors import ErrorCode, KappaError


def files_of(source: str) -> dict[str, Path]:
    """Return the files of a source by their names below it, sorted; in a folder those that may hold records.

    Args:
        source: path of a file, of a folder, or a glob such as `logs/2026-*.jsonl`; `**` is any folders.

    Raises:
        KappaError: there is no such file, a folder holds none that may hold records, or a link leads out of it.
    """
    place = Path(source)
    if place.is_dir():
        found = _in_folder(place)
    elif os.path.lexists(place):
        found = {_shown(place.name): place}
    else:
        found = _by_glob(source)
    if not found:
        raise KappaError(f"{source} names no file of records", *_why_none(place, source), code=ErrorCode.NO_RECORD)
    for path in found.values():
        if not path.is_file():
            why = "it is no file" if os.path.lexists(path) else "it is not there"
            raise KappaError(f"{path} cannot be read", why, "name a file", code=ErrorCode.NOT_READABLE)
    return found


def _shown(name: str | Path) -> str:
    r"""Return a name as text: a byte that is none of UTF-8 by its number, as in `log-\xff.jsonl`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _why_none(place: Path, source: str) -> tuple[str, str]:
    if place.is_dir():
        return (
            "no file in it ends in .json, .jsonl, .csv or .parquet, packed or not",
            "name the files, as in 'DIR/*.log'",
        )
    return ("no file fits it" if glob.has_magic(source) else "there is no such file or folder"), "check the path"


def _in_folder(folder: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    root = folder.resolve()
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not is_hidden(name))
        for name in (*names, *(name for name in folders if Path(here, name).is_symlink())):
            path = Path(here, name)
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                what, why = f"{folder} is not read", f"{path.relative_to(folder)} is a link that leads out of it"
                raise KappaError(what, why, "name the file itself", code=ErrorCode.UNSAFE_NAME)
            if is_data_file(name) and path.is_file():
                found[_shown(path.relative_to(folder))] = path
    return dict(sorted(found.items()))


def _by_glob(source: str) -> dict[str, Path]:
    base = Path(glob.escape(source) if not glob.has_magic(source) else source)
    while glob.has_magic(str(base)):
        base = base.parent
    paths = sorted(path for path in glob.glob(source, recursive=True) if Path(path).is_file())  # noqa: PTH207 - absolute patterns
    return {_shown(os.path.relpath(path, base)): Path(path) for path in paths}

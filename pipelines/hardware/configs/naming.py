"""The models that a question names: rows by name or repository, and those of a config.json in a file or on the Hub."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from pipelines.fetch.small import small_file
from pipelines.hardware.configs.config import MOST_BYTES, parse_config
from pipelines.hardware.configs.shape import model_of
from pipelines.hardware.entities import Model
from pipelines.hardware.machines import Sources
from warehouse.errors import ErrorCode, KappaError
from warehouse.hardware_rows.names import find_name, folded, nearest_names

CONFIG_FILE = "config.json"
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[\w.-]{1,96}", re.ASCII)


def with_named(sources: Sources, given: Iterable[str | None]) -> Sources:
    """Return the sources with a row for each given name that has none but stands for a config.json.

    Args:
        sources: The sourced rows.
        given: Names of models: of a row, of a repository on the Hub, or paths of a config.json or of its folder.

    Raises:
        KappaError: a config.json cannot be read or understood, or the Hub has no such repository.
    """
    found = dict(sources.models)
    for name in dict.fromkeys(name for name in given if name is not None):
        if row_name(name, found) is None and (read := _read(name, found)) is not None:
            found[name] = read
    return replace(sources, models=found)


def row_name(given: str, models: Mapping[str, Model]) -> str | None:
    """Return the name of the row that matches: by its name, else by the repository on the Hub that it was read from."""
    by_name = find_name(given, models)
    if by_name is not None:
        return by_name
    return next((name for name, row in models.items() if folded(row.repo_id) == folded(given)), None)


def _read(name: str, models: Mapping[str, Model]) -> Model | None:
    """Return the row of a config.json; None for a text that is neither a path nor a repository."""
    path = Path(name)
    if path.name.lower().endswith(".json") or ("/" in name and path.is_file()):
        return _of_file(name, path)
    if "/" in name and path.is_dir():
        return _of_file(name, path / CONFIG_FILE)
    if _REPOSITORY.fullmatch(name) is None:
        return None
    try:
        found = small_file(name, CONFIG_FILE, MOST_BYTES)
    except KappaError as error:
        near = nearest_names(name, [row.repo_id for row in models.values()])
        remedy = f"{error.remedy}; the nearest with a row are {', '.join(near)}"
        raise KappaError(error.what, error.why, remedy, code=error.code) from error
    source = f"{CONFIG_FILE} of {name}@{found.commit[:12]}"
    return model_of(parse_config(found.data, f"{name}/{CONFIG_FILE}"), name, name, source)


def _of_file(name: str, path: Path) -> Model:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        why, remedy = error.strerror or str(error), "give the path of a config.json"
        raise KappaError(f"{path} cannot be read", why, remedy, code=ErrorCode.NOT_READABLE) from error
    source = f"{path}, sha256 {hashlib.sha256(data).hexdigest()[:12]}"
    return model_of(parse_config(data, str(path)), name, str(path), source)

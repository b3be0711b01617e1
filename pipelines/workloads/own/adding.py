"""Adds and removes a user's own workload: what a source holds becomes a declaration in the home folder."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pipelines.workloads.own.declared import (
    FOLDER,
    Declaration,
    declared_in,
    path_of,
    require_name,
    require_roles,
    write_declaration,
)
from pipelines.workloads.own.recognising import Recognised, recognise
from pipelines.workloads.own.sources import STDIN, files_to_look_at, kept_stdin, where
from warehouse.errors import ErrorCode, KappaError, UsageError
from warehouse.home.home import Home


@dataclass(frozen=True)
class Wish:
    """What a user says of a source: its name, where it is, and what overrules what would be recognised."""

    name: str
    source: str
    format: str | None = None
    fields: tuple[tuple[str, str], ...] = ()
    keep_text: bool = True
    salt: str | None = None


@dataclass(frozen=True)
class Added:
    """A workload that was understood: its declaration, its files, and what was recognised."""

    name: str
    declaration: Declaration
    files: dict[str, Path]
    recognised: Recognised


def understood(home: Home, wish: Wish, stdin: IO[bytes]) -> Added:
    """Return what a source holds, and its declaration; nothing is written but what comes over standard input.

    Raises:
        UsageError: two fields for one role, or a role that the format lacks.
        KappaError: the name cannot be used, or the source is not understood.
    """
    require_name(wish.name, wish.name)
    fields = dict(wish.fields)
    if len(fields) < len(wish.fields):
        raise UsageError("a role has two fields", "it takes one path", "give it once", code=ErrorCode.USAGE)
    if wish.source == STDIN and not wish.keep_text:
        what, why = "--no-keep-text does not fit standard input", "its text has to be kept, nobody else has it"
        raise UsageError(what, why, "save it to a file of your own first", code=ErrorCode.USAGE)
    source = str(kept_stdin(home.path, wish.name, stdin)) if wish.source == STDIN else wish.source
    found = where(source)
    files = files_to_look_at(home.path, wish.name, found)
    recognised = recognise(files, wish.format, fields)
    try:
        require_roles(recognised.form.name, fields)
    except ValueError as error:
        raise UsageError(f"{wish.name} {error}", "the role is unknown", "name another", code=ErrorCode.USAGE) from error
    if wish.salt is not None and (not wish.salt or recognised.form.kind != "prompts"):
        what, why = (
            f"{wish.name} takes no such salt",
            "only the format requests has identities of text, and it needs one",
        )
        raise UsageError(what, why, "leave out --salt", code=ErrorCode.USAGE)
    given: dict[str, Any] = {"format": recognised.form.name, **found, "keep_text": wish.keep_text}
    given |= {"salt": wish.salt, "fields": fields}
    return Added(wish.name, Declaration(**given), files, recognised)


def write(home: Home, added: Added) -> Path:
    """Write the declaration; return its path.

    Raises:
        KappaError: the home folder or the file cannot be written, or the name was given away.
    """
    home.prepare()
    before = declared_in(home.path).get(added.name)
    if before is not None and (before.path, before.repo) != (added.declaration.path, added.declaration.repo):
        what, why = f"{added.name} is declared already", f"it is {before.path or before.repo}"
        remedy = f"choose another name, or `kappa remove {added.name}` first"
        raise KappaError(what, why, remedy, code=ErrorCode.NAME_CLASH)
    return write_declaration(home.path, added.name, added.declaration)


def remove(home: Home, name: str) -> None:
    """Remove a declaration, what standard input left for it, and everything of it in staging.

    Raises:
        KappaError: no own workload has that name, or another process runs.
    """
    path = path_of(home.path, name)
    if not path.is_file():
        known = ", ".join(declared_in(home.path)) or "none"
        what, why = f"there is no own workload {name!r}", f"declared are: {known}"
        raise KappaError(what, why, "name one of them", code=ErrorCode.UNKNOWN_NAME)
    with home.lock("run"):
        path.unlink()
        (home.path / FOLDER / f"{name}.input").unlink(missing_ok=True)
        staging = home.staging(is_sample=False)
        for kind in ("raw", "conversations", "token_counts", "turns"):
            shutil.rmtree(staging.root / kind / name, ignore_errors=True)

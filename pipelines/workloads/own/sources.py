"""SOURCE as a user writes it: a file, a folder, a glob, `-`, or `hf://datasets/org/name[@revision][/path]`."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import IO, Any

from pipelines.records.places import files_of
from pipelines.workloads.formats import formats
from pipelines.workloads.own.declared import FOLDER, Declaration
from pipelines.workloads.own.workload import own_workload
from warehouse.errors import ErrorCode, KappaError, UsageError, write_code
from warehouse.home.atomic import whole

STDIN = "-"
_HUB = re.compile(r"hf://datasets/([\w.-]+/[\w.-]+)(?:@([^/\s]+))?(?:/(\S+))?/?")
_PACKED = (".gz", ".zst", ".zip")


def where(source: str) -> dict[str, Any]:
    """Return the keys of a declaration that say where a source is; one on this machine has an absolute path.

    Raises:
        UsageError: an address that is no data set on the Hub.
    """
    if "://" in source:
        match = _HUB.fullmatch(source)
        if match is None:
            what, why = f"{source} is no source", "an address is hf://datasets/org/name[@revision][/path]"
            raise UsageError(what, why, "write it so, or fetch the file first", code=ErrorCode.USAGE)
        repo, revision, path = match.groups()
        return {"repo": repo, "revision": revision, "files": (path.rstrip("/"),) if path else ()}
    return {"path": str(Path(source).expanduser().absolute())}


def name_of_source(source: str) -> str:
    """Return the name that a source gives its workload: the stem of a file, the name of a folder or repository.

    >>> [name_of_source(one) for one in ("a/my log.jsonl.gz", "logs/2026-*.csv", "-", "hf://datasets/o/n@v/data")]
    ['my-log', 'logs', 'stdin', 'n']
    """
    if source == STDIN:
        return "stdin"
    match = _HUB.fullmatch(source)
    name = match[1].partition("/")[2] if match else _plain(Path(source).expanduser().absolute()).name
    for suffix in _PACKED:
        name = name.removesuffix(suffix)
    stem = name.rpartition(".")[0] if "." in name.lstrip(".") and not match else name
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._")[:64] or "log"


def _plain(path: Path) -> Path:
    """Return the path up to its first part with a sign of a glob, so that a glob is named as its folder."""
    while set(path.name) & set("*?["):
        path = path.parent
    return path


def files_to_look_at(home: Path, name: str, found: dict[str, Any]) -> dict[str, Path]:
    """Return the files of a source on this machine; of a repository its first one, which is fetched.

    Raises:
        KappaError: there is none, or the Hub does not answer.
    """
    if "path" in found:
        return files_of(str(found["path"]))
    workload = own_workload(home, name, Declaration(format=next(iter(formats())), **found))
    hub = workload.hub
    assert hub is not None
    revision = hub.revision(workload.repo_id)
    first = workload.select(hub, workload.repo_id, revision)[0]
    return {first: hub.fetch(workload.repo_id, revision, hub.files(workload.repo_id, revision)[first]).local}


def kept_stdin(home: Path, name: str, stream: IO[bytes]) -> Path:
    """Copy standard input to HOME/workloads/NAME.input, where `refresh` finds it again; return the path.

    Raises:
        KappaError: it cannot be written.
    """
    path = home / FOLDER / f"{name}.input"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole(path) as file:
            shutil.copyfileobj(stream, file, 1 << 20)
    except OSError as error:
        why = error.strerror or str(error)
        raise KappaError(
            f"{path} could not be written", why, "choose another --home", code=write_code(error)
        ) from error
    return path

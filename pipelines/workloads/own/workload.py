"""A declaration as a workload of the graph, like the built-in ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path, PurePosixPath
from random import Random

from pipelines.fetch.hub import Hub, HuggingFaceHub
from pipelines.fetch.local import REPOSITORY, LocalFiles
from pipelines.records.names import is_data_file
from pipelines.records.places import files_of
from pipelines.workloads.declaration import Workload
from pipelines.workloads.formats import format_named, reader_of
from pipelines.workloads.own.declared import Declaration
from pipelines.workloads.own.reading import read_own
from warehouse.errors import ErrorCode, KappaError

ORDER = 100
OWN_LICENCE = "your own"


def own_workload(home: Path, name: str, declaration: Declaration) -> Workload:
    """Return the workload of a declaration in a home folder."""
    form = format_named(declaration.format)
    hub, repo_id = hub_of(home, name, declaration)
    return Workload(
        name=name,
        order=ORDER,
        title=declaration.title or name,
        repo_id=repo_id,
        licence=declaration.licence or (OWN_LICENCE if declaration.repo is None else "as on its page"),
        kind=form.kind,
        select=partial(_select, patterns=declaration.files),
        read=partial(read_own, form=form, fields=declaration.fields),
        sample=_no_sample,
        hub=hub,
        declared={"format": declaration.format, "fields": declaration.fields, "reader": reader_of(declaration.format)}
        | ({"salt": _mark_of(declaration.salt)} if declaration.salt else {}),
        keep_text=declaration.keep_text,
        reuse=form.reuse,
        salt=declaration.salt or "",
    )


def _mark_of(salt: str) -> str:
    """Return what tells two salts apart and neither itself."""
    return hashlib.scrypt(salt.encode(), salt=b"kappa", n=1024, r=8, p=1, dklen=8).hex()


def hub_of(home: Path, name: str, declaration: Declaration) -> tuple[Hub, str]:
    """Return where the files of a declaration are, and the name of that place in `sources`."""
    if declaration.repo is not None:
        return HuggingFaceHub(declaration.revision or "main"), declaration.repo
    source = str(home / str(declaration.path))
    return LocalFiles(partial(files_of, source)), REPOSITORY + name


def _select(hub: Hub, repo_id: str, revision: str, patterns: tuple[str, ...]) -> list[str]:
    """Return the files that a declaration names, all files of records where it names none.

    Raises:
        KappaError: there is none.
    """
    paths = sorted(hub.files(repo_id, revision))
    if repo_id.startswith(REPOSITORY):
        return paths
    chosen = [path for path in paths if _is_chosen(path, patterns)]
    if not chosen:
        why = f"none of its {len(paths)} files fits {', '.join(patterns) or 'as a file of records'}"
        raise KappaError(f"{repo_id} has no such file", why, "look at its page", code=ErrorCode.HUB_FILE_MISSING)
    return chosen


def _is_chosen(path: str, patterns: tuple[str, ...]) -> bool:
    if patterns:
        return any(fnmatchcase(path, pattern) or path.startswith(f"{pattern.rstrip('/')}/") for pattern in patterns)
    return is_data_file(PurePosixPath(path).name) and "." in PurePosixPath(path).name


def _no_sample(rng: Random) -> Iterator[tuple[str, bytes]]:
    """Generate nothing: an own workload has no sample."""
    del rng
    return iter(())

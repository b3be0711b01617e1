"""One small file of a repository, such as a model's config.json, at the commit that its `main` stands at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.fetch.cache import download, guard_client
from pipelines.fetch.hub import patiently
from warehouse.errors import ErrorCode, KappaError

if TYPE_CHECKING:
    from huggingface_hub.hf_api import RepoFile, RepoFolder

_BRANCH = "main"


@dataclass(frozen=True, slots=True)
class SmallFile:
    """The bytes of a file, and the commit that they are of."""

    commit: str
    data: bytes


def small_file(repo_id: str, path: str, most_bytes: int) -> SmallFile:
    """Return a file of a model's repository; with HF_HUB_OFFLINE the one in the Hub's cache.

    Args:
        repo_id: `owner/name`.
        path: The file in it.
        most_bytes: What is larger is not downloaded.

    Raises:
        KappaError: there is no such repository or file, it is gated or too large, or the Hub cannot be reached.
    """
    from huggingface_hub import HfApi, constants  # noqa: PLC0415 - slow to import

    what = f"{repo_id}/{path}"
    if constants.HF_HUB_OFFLINE:
        return _cached(repo_id, path, most_bytes)
    guard_client()
    found: list[RepoFile | RepoFolder] = patiently(
        what, lambda: HfApi().get_paths_info(repo_id, path, revision=_BRANCH, repo_type="model")
    )
    size = next((entry.size for entry in found if entry.path == path and hasattr(entry, "size")), None)
    if size is None:
        why, remedy = "its main branch has none", "look at its page on the Hub"
        raise KappaError(f"{what} is not in the repository", why, remedy, code=ErrorCode.HUB_FILE_MISSING)
    _check_size(what, size, most_bytes)
    local = patiently(what, partial(download, repo_id, path, revision=_BRANCH, repo_type="model"))
    return _read(local, path, what, most_bytes)


def _cached(repo_id: str, path: str, most_bytes: int) -> SmallFile:
    from huggingface_hub import errors  # noqa: PLC0415 - slow to import

    what = f"{repo_id}/{path}"
    try:
        local = download(repo_id, path, revision=_BRANCH, repo_type="model", local_only=True)
    except errors.LocalEntryNotFoundError as error:
        why, remedy = "HF_HUB_OFFLINE is set", "unset it and ask again"
        raise KappaError(f"{what} is not in the cache", why, remedy, code=ErrorCode.NOT_CACHED) from error
    return _read(local, path, what, most_bytes)


def _read(local: Path, path: str, what: str, most_bytes: int) -> SmallFile:
    _check_size(what, local.stat().st_size, most_bytes)
    # The cache keeps a file under snapshots/COMMIT/PATH.
    return SmallFile(local.parents[path.count("/")].name, local.read_bytes())


def _check_size(what: str, size: int, most_bytes: int) -> None:
    if size > most_bytes:
        why = f"it has {size:,} bytes, at most {most_bytes:,} are read"
        raise KappaError(f"{what} is too large", why, "name another one", code=ErrorCode.BAD_FILE)

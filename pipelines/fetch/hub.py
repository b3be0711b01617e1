"""Verified files of pinned repositories: from the Hugging Face Hub through its own client, or from a generated sample.

This module does not interpret files. `huggingface_hub` resumes and caches downloads; this module adds the back-off on
a busy server and the check of the sha256.
"""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from pipelines.fetch.cache import download, forget, guard_client, named_by_hash, require_commit
from pipelines.io.verified import sha256_of
from warehouse.errors import ErrorCode, KappaError, write_code
from warehouse.masking import masked

if TYPE_CHECKING:
    from huggingface_hub import CachedFileInfo

LOG = logging.getLogger("kappa")
ATTEMPTS = 6
FIRST_PAUSE_S = 0.5

_T = TypeVar("_T")


@dataclass(frozen=True)
class RemoteFile:
    """A repository's record of a file: size in bytes, and the sha256 if there is one."""

    path: str
    bytes: int
    sha256: str | None


@dataclass(frozen=True)
class FetchedFile:
    """A verified local copy of a repository's file at a commit."""

    repo_id: str
    revision: str
    path: str
    local: Path
    bytes: int
    sha256: str


class Hub(Protocol):
    """A source of repositories."""

    is_sample: bool

    @property
    def is_offline(self) -> bool:
        """True where no request is allowed and the newest commit is unknown."""

    def revision(self, repo_id: str) -> str:
        """Return the current commit sha of `main`."""

    def files(self, repo_id: str, revision: str) -> dict[str, RemoteFile]:
        """Return the repository's files at that commit by path."""

    def splits(self, repo_id: str, revision: str) -> dict[str, list[str]]:
        """Return the Parquet files of each split, in order."""

    def fetch(self, repo_id: str, revision: str, file: RemoteFile) -> FetchedFile:
        """Return a verified local copy."""


class SampleHub:
    """The generated sample, laid out as `root/OWNER/NAME/...`; all repositories have one revision."""

    is_sample = True
    is_offline = False

    def __init__(self, root: Path, revision: str) -> None:
        """Serve the files under `root`, all at `revision`."""
        self.root = root
        self._revision = revision

    def revision(self, repo_id: str) -> str:
        """Return the sample's revision."""
        del repo_id
        return self._revision

    def files(self, repo_id: str, revision: str) -> dict[str, RemoteFile]:
        """Return the files of one repository of the sample."""
        del revision
        folder = self.root / repo_id
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        found = [RemoteFile(str(path.relative_to(folder)), path.stat().st_size, None) for path in paths]
        return {file.path: file for file in found}

    def splits(self, repo_id: str, revision: str) -> dict[str, list[str]]:
        """Return the Parquet files by split, the first part of their names."""
        return _splits_by_name(list(self.files(repo_id, revision)))

    def fetch(self, repo_id: str, revision: str, file: RemoteFile) -> FetchedFile:
        """Return the file in the sample's folder."""
        local = self.root / repo_id / file.path
        return FetchedFile(f"sample:{repo_id}", revision, file.path, local, file.bytes, sha256_of(local))


class HuggingFaceHub:
    """Data set repositories on the Hub; the client reads HF_ENDPOINT, HF_TOKEN, HF_HOME and HF_HUB_OFFLINE."""

    is_sample = False

    def __init__(self, branch: str = "main") -> None:
        """Use the newest commit of a branch, a tag, or one commit."""
        self.branch = branch

    @property
    def is_offline(self) -> bool:
        """Whether HF_HUB_OFFLINE is set."""
        from huggingface_hub import constants  # noqa: PLC0415 - slow to import

        return bool(constants.HF_HUB_OFFLINE)

    def revision(self, repo_id: str) -> str:
        """Return the sha of the branch; offline, the newest commit in the cache."""
        from huggingface_hub import HfApi, constants  # noqa: PLC0415 - slow to import

        if constants.HF_HUB_OFFLINE:
            return _cached_revision(repo_id)
        guard_client()
        info = patiently(repo_id, lambda: HfApi().dataset_info(repo_id, revision=self.branch))
        return require_commit(repo_id, info.sha)

    def files(self, repo_id: str, revision: str) -> dict[str, RemoteFile]:
        """Return the files at that commit; offline, those in the cache."""
        from huggingface_hub import HfApi, constants  # noqa: PLC0415 - slow to import
        from huggingface_hub.hf_api import RepoFile  # noqa: PLC0415

        if constants.HF_HUB_OFFLINE:
            return _cached_files(repo_id, revision)

        def listing() -> list[RepoFile]:
            tree = HfApi().list_repo_tree(repo_id, revision=revision, repo_type="dataset", recursive=True)
            return [entry for entry in tree if isinstance(entry, RepoFile)]

        guard_client()
        entries = patiently(repo_id, listing)
        return {e.path: RemoteFile(e.path, e.size, e.lfs.sha256 if e.lfs else None) for e in entries}

    def splits(self, repo_id: str, revision: str) -> dict[str, list[str]]:
        """Return each split's files as the `datasets` library resolves them; offline, by cached names."""
        from datasets import load_dataset_builder  # noqa: PLC0415 - slow to import
        from huggingface_hub import constants  # noqa: PLC0415

        if constants.HF_HUB_OFFLINE:
            return _splits_by_name(list(_cached_files(repo_id, revision)))
        guard_client()
        builder = patiently(repo_id, lambda: load_dataset_builder(repo_id, revision=revision))
        prefix = f"hf://datasets/{repo_id}@{revision}/"
        return {
            str(split): [str(address).removeprefix(prefix) for address in addresses]
            for split, addresses in (builder.config.data_files or {}).items()
        }

    def fetch(self, repo_id: str, revision: str, file: RemoteFile) -> FetchedFile:
        """Download (or find in the cache) and verify size and sha256; discard one bad copy and fetch it again."""
        what = f"{repo_id}/{file.path}"
        for attempt in (1, 2):
            local = patiently(what, partial(_download, repo_id, revision, file, is_anew=attempt > 1))
            size, sha256 = local.stat().st_size, sha256_of(local)
            if size == file.bytes and sha256 == (file.sha256 or sha256):
                return FetchedFile(repo_id, revision, file.path, local, size, sha256)
            if self.is_offline:
                raise KappaError(f"{what} is damaged in the cache", *_OFFLINE, code=ErrorCode.CACHE_DAMAGED)
            patiently(what, partial(forget, local, file.path, file.sha256))
            LOG.warning("%s arrived damaged (try %d of 2)", what, attempt)
        raise KappaError(
            f"{what} arrived damaged twice",
            f"size {size:,} bytes or sha256 {sha256[:12]} is not what the Hub states",
            "check the connection or proxy and run again; nothing of it was used",
            code=ErrorCode.DOWNLOAD_DAMAGED,
        )


def _splits_by_name(paths: list[str]) -> dict[str, list[str]]:
    """Return Parquet files by the part of their names before the first hyphen."""
    splits: dict[str, list[str]] = {}
    for path in sorted(path for path in paths if path.endswith(".parquet")):
        splits.setdefault(Path(path).name.split("-")[0], []).append(path)
    return splits


def _download(repo_id: str, revision: str, file: RemoteFile, *, is_anew: bool) -> Path:
    return download(
        repo_id, file.path, revision=revision, repo_type="dataset", sha256=file.sha256, is_anew=is_anew
    )  # fmt: skip


def _cached_files(repo_id: str, revision: str) -> dict[str, RemoteFile]:
    from huggingface_hub import scan_cache_dir  # noqa: PLC0415 - slow to import

    for repo in scan_cache_dir().repos:
        if repo.repo_id == repo_id and repo.repo_type == "dataset":
            for cached in repo.revisions:
                if cached.commit_hash == revision:
                    found = [_cached_file(f, cached.snapshot_path) for f in _own_blobs(cached.files)]
                    return {file.path: file for file in found}
    raise _not_cached(repo_id)


def _own_blobs(files: Iterable[CachedFileInfo]) -> list[CachedFileInfo]:
    """Return the files without those that share a blob whose name is no sha256: its bytes could be of either file."""
    files = list(files)
    sharing = Counter(file.blob_path for file in files)
    return [file for file in files if sharing[file.blob_path] == 1 or named_by_hash(file.blob_path)]


def _cached_file(file: CachedFileInfo, root: Path) -> RemoteFile:
    return RemoteFile(str(file.file_path.relative_to(root)), file.size_on_disk, named_by_hash(file.blob_path))


def _cached_revision(repo_id: str) -> str:
    from huggingface_hub import CacheNotFound, scan_cache_dir  # noqa: PLC0415 - slow to import

    try:
        repos = scan_cache_dir().repos
    except CacheNotFound as error:
        raise _not_cached(repo_id) from error
    revisions = [r for repo in repos if repo.repo_id == repo_id and repo.repo_type == "dataset" for r in repo.revisions]
    if not revisions:
        raise _not_cached(repo_id)
    return str(max(revisions, key=lambda r: r.last_modified).commit_hash)


def _not_cached(repo_id: str) -> KappaError:
    return KappaError(f"{repo_id} is not in the cache", *_OFFLINE, code=ErrorCode.NOT_CACHED)


_OFFLINE = ("HF_HUB_OFFLINE is set", "unset it and run again, or use `kappa run --sample`")


def patiently(what: str, call: Callable[[], _T]) -> _T:
    """Call; on a busy or broken connection retry after doubling waits; raise other failures at once.

    Raises:
        KappaError: the repository, revision or file is gone or gated, the Hub stays unreachable, or the disk is full.
    """
    pause = FIRST_PAUSE_S
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return call()
        except Exception as error:
            failure = hub_failure(what, error)
            if failure is not None or attempt == ATTEMPTS:
                raise failure or unreachable(what, error) from error
            LOG.warning("%s: %s; try %d of %d in %.1f s", what, _brief(error), attempt + 1, ATTEMPTS, pause)
            time.sleep(pause)
            pause *= 2
    raise AssertionError


def hub_failure(what: str, error: Exception) -> KappaError | None:
    """Return the error to show for a permanent failure, None where a retry may work."""
    from huggingface_hub import errors as hub_errors  # noqa: PLC0415 - slow to import

    if isinstance(error, KappaError):
        return error
    if isinstance(error, hub_errors.GatedRepoError):
        return KappaError(
            f"{what} is gated",
            "the Hub asks for an account that accepted its licence",
            "accept the licence on its page and set HF_TOKEN",
            code=ErrorCode.HUB_GATED,
        )
    if isinstance(error, hub_errors.RepositoryNotFoundError | hub_errors.RevisionNotFoundError):
        return KappaError(
            f"{what} is not on the Hub",
            "it is gone, renamed or private",
            "check HF_ENDPOINT and HF_TOKEN",
            code=ErrorCode.HUB_MISSING,
        )
    if isinstance(error, hub_errors.EntryNotFoundError) and not isinstance(error, hub_errors.LocalEntryNotFoundError):
        return KappaError(
            f"{what} is not in the repository",
            "the file was moved or removed",
            "look at its page on the Hub",
            code=ErrorCode.HUB_FILE_MISSING,
        )
    if isinstance(error, OSError) and error.errno is not None and not isinstance(error, ConnectionError):
        return (
            KappaError(
                f"{what} could not be stored",
                error.strerror or str(error),
                "free some disk space, or set HF_HOME to another disk",
                code=write_code(error),
            )
            if error.errno in _DISK_ERRORS
            else None
        )
    return None


_DISK_ERRORS = (13, 28, 30, 122)  # EACCES, ENOSPC, EROFS, EDQUOT


def unreachable(what: str, error: Exception) -> KappaError:
    """Return the error to show where the Hub does not answer."""
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    return KappaError(
        f"{what} could not be fetched",
        f"the Hub at {masked(endpoint)} did not answer ({_brief(error)})",
        "check the connection or HF_ENDPOINT, or use `kappa run --sample`",
        code=ErrorCode.HUB_UNREACHABLE,
    )


def _brief(error: Exception) -> str:
    """Return the error's first line, short and without secrets."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return masked(lines[0])[:160]

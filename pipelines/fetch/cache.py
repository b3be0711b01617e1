"""Downloads into the Hub client's cache under names that no endpoint can choose.

The client builds paths from two headers, `ETag` (a blob's name) and `X-Repo-Commit` (a folder's name), for its own
requests and for those that `datasets` makes through it. `_named_by_us` checks every answer before the client does.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
from contextvars import ContextVar
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from warehouse.errors import ErrorCode, KappaError

if TYPE_CHECKING:
    import httpx2

OURS = "kappa-"
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_ETAG = re.compile(r"[\w.+=:,-]{1,200}", re.ASCII)
_expected: ContextVar[str | None] = ContextVar("sha256 that the next file should have", default=None)


def guard_client() -> None:
    """Check every answer to the Hub client of this process first."""
    _install()


@functools.cache
def _install() -> None:
    from huggingface_hub import set_client_factory  # noqa: PLC0415 - slow to import
    from huggingface_hub.utils._http import default_client_factory  # noqa: PLC0415 - no public name

    def factory() -> httpx2.Client:
        client = default_client_factory()
        hooks = client.event_hooks
        client.event_hooks = {**hooks, "response": [_named_by_us, *hooks["response"]]}
        return client

    set_client_factory(factory)


def download(  # noqa: PLR0913 - those of the client's function
    repo_id: str, path: str, *, revision: str, repo_type: str, sha256: str | None = None,
    local_only: bool = False, is_anew: bool = False,
) -> Path:  # fmt: skip
    """Return a file's path in the cache; download it if it is missing.

    Args:
        repo_id: the repository.
        path: the file in it.
        revision: commit or branch.
        repo_type: `dataset` or `model`.
        sha256: the expected hash; only a blob with exactly this ETag keeps it as its name.
        local_only: make no request.
        is_anew: download even if the cache has the file.

    Raises:
        KappaError: a path or a header could lead out of the cache; nothing was written.
        Exception: any error of the client.
    """
    from huggingface_hub import hf_hub_download  # noqa: PLC0415 - half a second

    guard_client()
    refuse_odd_path(repo_id, path)
    _refuse_odd_listing(f"{repo_type}s--{repo_id.replace('/', '--')}", revision, path, sha256)
    token = _expected.set(sha256)
    try:
        place = hf_hub_download(
            repo_id, path, revision=revision, repo_type=repo_type, local_files_only=local_only, force_download=is_anew
        )
    finally:
        _expected.reset(token)
    return Path(place)


def forget(local: Path, path: str, sha256: str | None) -> None:
    """Remove a copy of the file `path` from the cache, and its blob if we named it or its name is the expected hash.

    Any other link target stays: other files may share it, or it is outside the cache.
    """
    blobs = local.parents[len(PurePosixPath(path).parts) + 1] / "blobs"
    blob = Path(os.path.normpath(local.parent / local.readlink())) if local.is_symlink() else None
    local.unlink(missing_ok=True)
    if blob is not None and blob.parent == blobs and (blob.name == sha256 or blob.name.startswith(OURS)):
        blob.unlink(missing_ok=True)


def require_commit(repo_id: str, commit: str | None) -> str:
    """Return a commit sha from the Hub; KappaError if it is not one."""
    if commit is None or _COMMIT.fullmatch(commit) is None:
        raise _refused(repo_id, "commit", commit or "")
    return commit


def refuse_odd_path(repo_id: str, path: str) -> None:
    """Raise KappaError where a path could leave the folder that it is joined to."""
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\\" in path or not path.isprintable():
        raise _refused(repo_id, "path", path)


def _refuse_odd_listing(folder: str, revision: str, path: str, sha256: str | None) -> None:
    """Raise KappaError where another program's stored listing would name the blob: the client then makes no request."""
    from huggingface_hub import constants  # noqa: PLC0415 - slow to import

    kept = Path(constants.HF_HUB_CACHE, folder, "trees", f"{revision}.json")
    try:
        stated = json.loads(kept.read_bytes())["files"][path].get("lfs_sha256")
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return
    if stated is not None and (_SHA256.fullmatch(str(stated)) is None or stated != (sha256 or stated)):
        why = f"it states the sha256 {str(stated)[:12]!r} for {path}"
        raise KappaError(
            f"{kept} is not the Hub's listing", why, "remove it and run again", code=ErrorCode.CACHE_DAMAGED
        )


def named_by_hash(blob: Path) -> str | None:
    """Return the sha256 in a blob's name, None if it has none."""
    return blob.name if _SHA256.fullmatch(blob.name) else None


def _named_by_us(response: httpx2.Response) -> None:
    """Reject headers that could leave the cache, and replace an ETag that is not the expected hash.

    The new name is unique to this file at this commit, so two files share a blob only if their hashes are equal.
    """
    headers, url = response.headers, response.request.url
    commit = headers.get("X-Repo-Commit")
    if commit is not None:
        require_commit(url.host, commit)
    if response.request.method != "HEAD":  # the client names files only by answers to HEAD
        return
    for name in ("X-Linked-Etag", "ETag"):
        if (stated := headers.get(name)) is None:
            continue
        etag = stated.removeprefix("W/").strip('"')
        if _ETAG.fullmatch(etag) is None or not etag.strip("."):
            raise _refused(url.host, name, etag)
        if etag != _expected.get():
            place = f"{url.host}{url.path} {commit} {etag}"
            headers[name] = OURS + hashlib.sha256(place.encode()).hexdigest()[:40]


def _refused(where: str, what: str, value: str) -> KappaError:
    why = f"{value[:80]!r} could lead out of the Hub's cache; nothing was written"
    return KappaError(
        f"{where} answered with a {what} that is none", why, "check HF_ENDPOINT and proxies", code=ErrorCode.UNSAFE_NAME
    )

"""Files on this machine in the place of a repository: each is hashed, and the revision is a hash over all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from pipelines.fetch.hub import FetchedFile, RemoteFile
from pipelines.io.verified import sha256_of
from warehouse.errors import ErrorCode, KappaError

REPOSITORY = "local:"
_REVISION_DIGITS = 40


class LocalFiles:
    """The files of a user's own workload; a changed file is another revision."""

    is_sample = False
    is_offline = False

    def __init__(self, find: Callable[[], dict[str, Path]]) -> None:
        """Find the files, by their names, when they are first asked for."""
        self._find = find
        self._known: dict[str, RemoteFile] = {}

    def revision(self, repo_id: str) -> str:
        """Return 40 hex digits over names and contents; every call looks at the files anew."""
        self._known = {name: _hashed(name, path) for name, path in self._find().items()}
        lines = "".join(f"{file.sha256} {name}\n" for name, file in sorted(self._known.items()))
        return hashlib.sha256(f"{repo_id}\n{lines}".encode()).hexdigest()[:_REVISION_DIGITS]

    def files(self, repo_id: str, revision: str) -> dict[str, RemoteFile]:
        """Return the files that `revision` found."""
        del repo_id, revision
        return self._known

    def splits(self, repo_id: str, revision: str) -> dict[str, list[str]]:
        """Return all files as one split."""
        return {"all": sorted(self.files(repo_id, revision))}

    def fetch(self, repo_id: str, revision: str, file: RemoteFile) -> FetchedFile:
        """Return the file where it is; readers check that it is unchanged."""
        local = self._find()[file.path].absolute()
        return FetchedFile(repo_id, revision, file.path, local, file.bytes, file.sha256 or sha256_of(local))


def _hashed(name: str, path: Path) -> RemoteFile:
    try:
        return RemoteFile(name, path.stat().st_size, sha256_of(path))
    except OSError as error:
        raise KappaError(
            f"{path} cannot be read", error.strerror or str(error), "mend its permissions", code=ErrorCode.NOT_READABLE
        ) from error

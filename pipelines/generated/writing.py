"""The embedded sample: generated files in the four sets' own formats, laid out as a mirror of their repositories.

What is written how, and when it is written again, belongs here; the `sample_*` modules beside build what stands in the
files.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.generated.chats import build_pieces, build_whole
from pipelines.generated.documents import NARRATIVEQA_SCHEMA, Row, build_filings, build_stories
from warehouse.errors import KappaError

# Raised with every change of what is generated, so that old samples are written anew.
GENERATOR_VERSION = 1
DEFAULT_SEED = 20260119
MARKER = "SAMPLE.json"

_SHAREGPT = "RyokoAI/ShareGPT52K"
_SHAREGPT_V3 = "anon8231489123/ShareGPT_Vicuna_unfiltered"
_NARRATIVEQA = "deepmind/narrativeqa"
_FINQA = "kensho/DocFinQA"
# A story repeated in every row is stored once a row group if the dictionary may grow over the default of 1 MiB.
_DICTIONARY_BYTES = 1 << 26
_ROW_GROUP_ROWS = 64
# A folder of a killed run is dropped after this: long enough not to be one that is still being written.
_LEFTOVER_SECONDS = 3600


def write_sample(root: Path, seed: int = DEFAULT_SEED) -> Path:
    """Write the sample under `root` unless it lies there already, and return `root`.

    The files are `<root>/<owner>/<repository>/<path in the repository>`, below 60 MB; the same seed gives the same
    bytes (Parquet: with the same pyarrow). They are written beside `root` and renamed, so `root` never holds half a
    sample. An older sample, or one that was changed, is replaced.

    Raises:
        KappaError: `root` holds something else, or cannot be written.
    """
    if _is_current(root, seed):
        return root
    _refuse_foreign(root)
    partial = root.with_name(f".{root.name}.{secrets.token_hex(4)}.partial")
    try:
        _drop_leftovers(root)
        partial.mkdir(parents=True)
        _write_files(partial, seed)
        _write_marker(partial, seed)
        _put_in_place(partial, root, seed)
    except OSError as error:
        raise KappaError(
            "the sample cannot be written",
            f"{root}: {error.strerror or error}",
            "free space there or give another --home",
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return root


def sample_revision(root: Path) -> str:
    """Return 40 hex digits that follow from the paths and bytes of the sample's files, in the form of a commit id.

    Raises:
        KappaError: there is no sample under `root`.
    """
    digests = _hash_files(root)
    if not digests:
        raise KappaError("no sample found", f"{root} holds no files", "write it first with kappa run --sample")
    lines = "".join(f"{digest}  {path}\n" for path, digest in digests.items())
    return hashlib.sha256(lines.encode()).hexdigest()[:40]


def _write_files(root: Path, seed: int) -> None:
    """Write all files; every set has its own random stream, so that a change in one leaves the others as they were."""
    part1, part2 = build_whole(_stream(seed, _SHAREGPT))
    _write_array(root / _SHAREGPT / "sg_90k_part1.json", part1)
    _write_array(root / _SHAREGPT / "sg_90k_part2.json", part2)
    pieces = build_pieces(_stream(seed, _SHAREGPT_V3))
    _write_array(root / _SHAREGPT_V3 / "ShareGPT_V3_unfiltered_cleaned_split.json", pieces, indent=2)
    for stem, rows in build_stories(_stream(seed, _NARRATIVEQA)).items():
        _write_parquet(root / _NARRATIVEQA / "data" / f"{stem}.parquet", rows)
    filings = build_filings(_stream(seed, _FINQA))
    _write_array(root / _FINQA / "train.json", filings["train"], is_ascii=False)
    _write_array(root / _FINQA / "dev.json", filings["dev"], is_ascii=False)
    _write_lines(root / _FINQA / "test.json", filings["test"])


def _stream(seed: int, name: str) -> Random:
    return Random(f"{seed}/{name}")  # noqa: S311 -- reproducible text, no secret


def _write_array(path: Path, records: list[object], indent: int | None = None, *, is_ascii: bool = True) -> None:
    _write_text(path, [json.dumps(records, indent=indent, ensure_ascii=is_ascii)])


def _write_lines(path: Path, records: list[object]) -> None:
    _write_text(path, (json.dumps(record, ensure_ascii=False) + "\n" for record in records))


def _write_text(path: Path, parts: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(parts)


def _write_parquet(path: Path, rows: list[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        pa.Table.from_pylist(rows, schema=NARRATIVEQA_SCHEMA),
        path,
        compression="zstd",
        row_group_size=_ROW_GROUP_ROWS,
        dictionary_pagesize_limit=_DICTIONARY_BYTES,
        store_schema=False,
    )


def _hash_files(root: Path) -> dict[str, str]:
    """Return the sha256 of every file under `root` but the marker, by path, sorted."""
    paths = sorted(path for path in root.rglob("*") if path.is_file() and path != root / MARKER)
    return {path.relative_to(root).as_posix(): _hash_file(path) for path in paths}


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_marker(root: Path, seed: int) -> None:
    """Write what was made, last of all: a folder with it is a finished sample."""
    marker = {"generator_version": GENERATOR_VERSION, "seed": seed, "sha256": _hash_files(root)}
    (root / MARKER).write_text(json.dumps(marker, indent=2) + "\n", encoding="utf-8")


def _is_current(root: Path, seed: int) -> bool:
    """Tell whether `root` holds the sample of this seed and version, every file as it was written."""
    try:
        marker = json.loads((root / MARKER).read_text(encoding="utf-8"))
        wanted = {"generator_version": GENERATOR_VERSION, "seed": seed, "sha256": _hash_files(root)}
    except (OSError, ValueError):
        return False
    return bool(marker == wanted)


def _refuse_foreign(root: Path) -> None:
    is_ours = (root / MARKER).is_file() or not root.exists() or (root.is_dir() and not any(root.iterdir()))
    if not is_ours:
        raise KappaError(
            "the sample cannot be written", f"{root} holds other files", "move them or give another --home"
        )


def _drop_leftovers(root: Path) -> None:
    for kind in ("partial", "outdated"):
        for folder in root.parent.glob(f".{root.name}.*.{kind}"):
            if time.time() - folder.stat().st_mtime > _LEFTOVER_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def _put_in_place(partial: Path, root: Path, seed: int) -> None:
    """Rename the finished folder to `root`; another process may have been first, then its sample stays."""
    outdated = partial.with_suffix(".outdated")
    if root.exists() and not _is_current(root, seed):
        root.rename(outdated)
    try:
        partial.rename(root)
    except OSError:
        if not _is_current(root, seed):
            raise
    shutil.rmtree(outdated, ignore_errors=True)

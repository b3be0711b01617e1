"""Recognises a file of the wrong kind by its first bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from warehouse.errors import ErrorCode, KappaError

T = TypeVar("T")
JSON, PARQUET = "JSON as UTF-8 text", "Parquet"
_HEAD_BYTES = 512
_UNPACK, _OWNER = "unpack it, or tell its owner", "fetch the file itself, or tell its owner"
# The kind of file, its first bytes, and the advice; the first match counts.
_KINDS = tuple(
    (what, re.compile(begin, re.DOTALL | re.IGNORECASE), remedy)
    for what, begin, remedy in (
        ("is UTF-32 text", rb"\xff\xfe\0\0|\0\0\xfe\xff|[\[{]\0\0\0|\0\0\0[\[{]", "convert it to UTF-8"),
        ("is UTF-16 text", rb"\xff\xfe|\xfe\xff|[\[{]\0|\0[\[{]", "convert it to UTF-8"),
        ("is gzip-compressed", rb"\x1f\x8b", _UNPACK),
        ("is zstd-compressed", rb"\x28\xb5\x2f\xfd", _UNPACK),
        ("is bzip2-compressed", rb"BZh[1-9]1AY&SY", _UNPACK),
        ("is xz-compressed", rb"\xfd7zXZ\0", _UNPACK),
        ("is lz4-compressed", rb"\x04\x22\x4d\x18", _UNPACK),
        ("is a zip archive", rb"PK(\x03\x04|\x05\x06)", _UNPACK),
        ("is a 7z archive", rb"7z\xbc\xaf\x27\x1c", _UNPACK),
        ("is a tar archive", rb".{257}ustar", _UNPACK),
        ("is a Parquet file", rb"PAR[1E]", "name it where Parquet is read, or tell its owner"),
        ("is an Arrow file", rb"ARROW1", "write it as what is expected"),
        ("is a pointer of Git LFS", rb"version https://git-lfs", _OWNER),
        ("is a page of HTML or XML", rb"(\xef\xbb\xbf)?\s*<(!doctype|html|head|\?xml)", _OWNER),
        ("is JSON", rb"(\xef\xbb\xbf)?\s*[\[{]", "write it as what is expected"),
    )
)
# Errors that file readers raise on a damaged file or a faulty disk.
ERRORS = (OSError, ValueError, MemoryError, pa.ArrowException)


def kind_of_file(head: bytes) -> tuple[str, str] | None:
    r"""Return the kind of a file by its first bytes, with advice; None where it is unknown.

    >>> kind_of_file(b"\x1f\x8b\x08")
    ('is gzip-compressed', 'unpack it, or tell its owner')
    """
    return next(((what, remedy) for what, begin, remedy in _KINDS if begin.match(head)), None)


def require_kind(path: str, local: Path, expected: str) -> None:
    """Check a file's first bytes.

    Raises:
        KappaError: it is a known kind other than the expected one.
        OSError: it cannot be read.
    """
    with local.open("rb") as handle:
        found = kind_of_file(handle.read(_HEAD_BYTES))
    own = {JSON: "is JSON", PARQUET: "is a Parquet file"}[expected]
    if found and found[0] != own:
        raise KappaError(f"{path} {found[0]}", f"{expected} is expected", found[1], code=ErrorCode.WRONG_KIND)


def told(path: str, items: Iterable[T]) -> Iterator[T]:
    """Yield the items of a file.

    Raises:
        KappaError: the reader failed; the message has the file, the number of items before the failure, and the reason.
    """
    count = 0
    try:
        for item in items:
            yield item
            count += 1
    except ERRORS as error:
        place = f" behind {count:,} elements" if count else ""
        raise unreadable(path, error, f"cannot be read{place}") from error


def unreadable(path: str, error: BaseException, what: str) -> KappaError:
    """Return the error for an unreadable file."""
    why = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    return KappaError(f"{path} {what}", why, "fetch it again, or tell its owner", code=ErrorCode.BAD_FILE)

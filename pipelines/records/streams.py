"""Opens a file as streams of bytes: as it is, gz, zst, or each file in a zip. Nothing is written to disk by its name.

A file in a zip may be compressed once more, as `a.jsonl.gz` is; an archive in an archive is refused.
"""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader, RawIOBase
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, cast

import pyarrow as pa

from pipelines.io.file_kinds import kind_of_file
from pipelines.records.names import is_data_file, is_hidden
from warehouse.errors import ErrorCode, KappaError

HEAD_BYTES = 512
_GZIP, _ZSTD, _ZIP = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", (b"PK\x03\x04", b"PK\x05\x06")
_LINK = 0o120000
# What a damaged or encrypted stream raises that is no OSError or ValueError.
_DAMAGE = (EOFError, zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError, pa.ArrowException)


class Counted(RawIOBase):
    """A stream that knows its place whatever it reads from, and tells a function the bytes that it was given."""

    def __init__(self, stream: IO[bytes] | pa.NativeFile, on_bytes: Callable[[int], None] = lambda _: None) -> None:
        """Read from `stream`."""
        self._stream = stream
        self._on_bytes = on_bytes
        self._place = 0

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes.

        Raises:
            OSError: the compressed bytes are damaged.
        """
        try:
            block = bytes(self._stream.read(size))
        except _DAMAGE as error:
            raise OSError(f"it is damaged: {error or type(error).__name__}") from error
        self._place += len(block)
        self._on_bytes(len(block))
        return block

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any writable buffer
        """Fill the buffer; return the number of bytes."""
        block = self.read(len(buffer))
        buffer[: len(block)] = block
        return len(block)

    def readable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the number of bytes read."""
        return self._place


@contextmanager
def streams(path: Path, shown: str, on_bytes: Callable[[int], None]) -> Iterator[Iterator[BufferedReader[Any]]]:
    """Yield the streams of a file: one, or one for each file of data in a zip.

    Args:
        path: the file.
        shown: its name in errors.
        on_bytes: called with the number of bytes of each block read from the file itself.

    Raises:
        KappaError: an archive in an archive, compressed twice, or a name in a zip that leads out of it.
        OSError: it cannot be read.
    """
    with path.open("rb") as handle:
        is_zip = handle.read(4) in _ZIP
        handle.seek(0)
        if is_zip:
            yield _members(handle, shown, on_bytes)
        else:
            yield iter([unpacked(Counted(handle, on_bytes), shown)])


def unpacked(raw: RawIOBase, shown: str) -> BufferedReader[Any]:
    """Return the stream of what is inside a gz or zst, or of the bytes as they are.

    Raises:
        KappaError: what is inside is compressed or an archive itself.
    """
    outer = BufferedReader(raw, 1 << 20)
    head = outer.peek(HEAD_BYTES)[:HEAD_BYTES]
    if head.startswith(_GZIP):
        inner: IO[bytes] | pa.NativeFile = gzip.GzipFile(fileobj=cast("BinaryIO", outer))
    elif head.startswith(_ZSTD):
        inner = pa.CompressedInputStream(pa.PythonFile(outer, mode="r"), "zstd")
    else:
        return outer
    stream = BufferedReader(Counted(inner), 1 << 20)
    found = kind_of_file(stream.peek(HEAD_BYTES)[:HEAD_BYTES])
    if found is not None and ("compressed" in found[0] or "archive" in found[0]):
        raise _nested(shown, found[0])
    return stream


def _members(handle: BinaryIO, shown: str, on_bytes: Callable[[int], None]) -> Iterator[BufferedReader[Any]]:
    try:
        archive = zipfile.ZipFile(handle)
    except zipfile.BadZipFile as error:
        raise OSError(f"it is no whole zip archive ({error})") from error
    with archive:
        chosen = [entry for entry in archive.infolist() if not entry.is_dir() and _is_chosen(entry, shown)]
        if not chosen:
            what, why = f"{shown} holds no file of records", "none of its names ends in .json, .jsonl, .csv or .parquet"
            raise KappaError(what, why, "name a file of records", code=ErrorCode.NO_RECORD)
        for entry in chosen:
            try:
                member = archive.open(entry)
            except (RuntimeError, NotImplementedError) as error:
                raise OSError(f"{entry.filename!r} in it cannot be opened: {error}") from error
            with member:
                name = f"{shown}/{entry.filename}"
                stream = unpacked(Counted(member), name)
                if stream.peek(4)[:4] in _ZIP:
                    raise _nested(name, "is a zip archive")
                yield stream
            on_bytes(entry.compress_size)


def _is_chosen(entry: zipfile.ZipInfo, shown: str) -> bool:
    """Return whether an entry is a file of data.

    Raises:
        KappaError: its name leads out of the archive, it is a link, or it is an archive itself.
    """
    path = PurePosixPath(entry.filename.replace("\\", "/"))
    what = f"{shown} is not read: {entry.filename!r} in it"
    if path.is_absolute() or ".." in path.parts or (path.parts and path.parts[0].endswith(":")):
        raise KappaError(what, "the name leads out of the archive", "pack it anew", code=ErrorCode.UNSAFE_NAME)
    if (entry.external_attr >> 16) & 0o170000 == _LINK:
        raise KappaError(what, "it is a link", "pack the file itself", code=ErrorCode.UNSAFE_NAME)
    if path.suffix.lower() == ".zip":
        raise _nested(f"{shown}/{entry.filename}", "is a zip archive")
    return is_data_file(path.name) and not any(map(is_hidden, path.parts))


def _nested(shown: str, kind: str) -> KappaError:
    return KappaError(
        f"{shown} is not read", f"what is packed in it {kind}", "unpack it once", code=ErrorCode.WRONG_KIND
    )

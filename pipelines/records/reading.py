"""Reads the records of a file one at a time: a JSON array, JSON lines, CSV or Parquet, found out by its first bytes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

import pyarrow.parquet as pq

from pipelines.io.file_kinds import ERRORS, kind_of_file, unreadable
from pipelines.io.json_array import Cut, Element, read_stream
from pipelines.records.csv_rows import csv_rows, is_table
from pipelines.records.record import Record, Unread
from pipelines.records.streams import HEAD_BYTES, streams
from warehouse.errors import ErrorCode, KappaError

# Rows of a batch: one can hold a megabyte of text.
PARQUET_ROWS = 16
_SEEN = 60
_BOM, _PARQUET = b"\xef\xbb\xbf", b"PAR1"
Item = Record | Unread


def read_records(path: Path, shown: str, on_bytes: Callable[[int], None] = lambda _: None) -> Iterator[Item]:
    """Yield the records of a file in bounded memory; in a zip the numbers go on from one file to the next.

    Args:
        path: the file.
        shown: its name in rows and errors.
        on_bytes: called with the number of bytes of each block read.

    Raises:
        KappaError: it is of no kind that is read, or damaged; the error says what was seen.
    """
    index = 0
    try:
        for item in _file(path, shown, on_bytes):
            yield item
            index = item.index + 1
    except ERRORS as error:
        place = f" behind {index:,} records" if index else ""
        raise unreadable(shown, error, f"cannot be read{place}") from error


def _file(path: Path, shown: str, on_bytes: Callable[[int], None]) -> Iterator[Item]:
    with path.open("rb") as handle:
        is_parquet = handle.read(len(_PARQUET)) == _PARQUET
    if is_parquet:
        yield from _parquet(path, shown, 0)
        on_bytes(path.stat().st_size)
        return
    with streams(path, shown, on_bytes) as parts:
        first = 0
        for stream in parts:
            for item in _items(stream, shown, first):
                yield item
                first = item.index + 1


def _items(stream: BufferedReader[Any], shown: str, first: int) -> Iterator[Item]:
    head = stream.peek(HEAD_BYTES)[:HEAD_BYTES]
    found, text = kind_of_file(head), head.removeprefix(_BOM).lstrip()
    if head.startswith(_PARQUET):
        return _packed_parquet(stream, shown, first)
    if found is not None and found[0] != "is JSON":
        raise KappaError(f"{shown} {found[0]}", "JSON, CSV or Parquet is expected", found[1], code=ErrorCode.WRONG_KIND)
    if text[:1] in (b"{", b"["):
        return _json(stream, shown, first)
    if not text:
        return iter(())
    if is_table(head):
        return csv_rows(stream, shown, first)
    seen = text[:_SEEN].decode("utf-8", "replace").splitlines()[0]
    why = f"it begins with {seen!r}, which is neither JSON nor the header of a CSV file"
    raise KappaError(f"{shown} is not understood", why, "give JSON, CSV or Parquet", code=ErrorCode.WRONG_KIND)


def _json(stream: BufferedReader[Any], shown: str, first: int) -> Iterator[Item]:
    for one in read_stream(stream):
        yield _item(one, shown, first)


def _item(one: Element | Cut, shown: str, first: int) -> Item:
    if isinstance(one, Element):
        return Record(shown, first + one.index, one.value)
    return Unread(shown, first + one.index, one.reason, f"{one.why}, at byte {one.byte:,}", one.is_end)


def _packed_parquet(stream: BufferedReader[Any], shown: str, first: int) -> Iterator[Item]:
    """Yield the rows of a Parquet file that is packed: it is read from its end, so a nameless file holds it."""
    with tempfile.TemporaryFile() as whole:
        shutil.copyfileobj(stream, whole, 1 << 22)
        yield from _parquet(whole, shown, first)


def _parquet(source: Path | IO[bytes], shown: str, first: int) -> Iterator[Item]:
    file = pq.ParquetFile(source, pre_buffer=False, buffer_size=1 << 20)
    for batch in file.iter_batches(batch_size=PARQUET_ROWS, use_threads=False):
        # A damaged page can give texts that end before they begin.
        batch.validate()
        for row in batch.to_pylist(maps_as_pydicts="lossy"):
            yield Record(shown, first, row)
            first += 1

"""Reads the files of an own workload by its format: the records of all files, one after another, into a writer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pipelines.records.reading import read_records
from pipelines.records.record import Record, Unread
from pipelines.sessions.rejects import FILE_LEVEL, RECORD_LEVEL, Reject
from pipelines.sessions.writing import SessionsWriter
from pipelines.workloads.declaration import InputFile
from pipelines.workloads.formats.format import Fields, Format


def read_own(
    files: list[InputFile], writer: SessionsWriter, on_bytes: Callable[[int], None], form: Format, fields: Fields
) -> None:
    """Write the sessions of some files; what cannot be read is a reject."""
    form.read(_records(files, writer, on_bytes), fields, writer)


def _records(files: list[InputFile], writer: SessionsWriter, on_bytes: Callable[[int], None]) -> Iterator[Record]:
    for file in files:
        writer.records[file.path] += 0
        for item in read_records(file.local, file.path, on_bytes):
            if isinstance(item, Unread):
                writer.records[file.path] += not item.is_end
                level = FILE_LEVEL if item.is_end else RECORD_LEVEL
                writer.reject(Reject(item.path, item.index, item.reason, item.detail, level=level))
            else:
                writer.records[file.path] += 1
                yield item

"""Conversations with tools, calls or reasoning, whole as a chat template takes them, one row a session.

Only a template says what a prompt of theirs is; the other conversations are counted from their messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

STRUCTURES = "structures.parquet"
SCHEMA = pa.schema([("session", pa.int32()), ("conversation", pa.large_string())])
_FLUSH_CHARACTERS = 8 << 20


class StructuresWriter:
    """Writes them as they come; there is no file where there are none."""

    def __init__(self, folder: Path) -> None:
        """Use a folder."""
        self._path = folder / STRUCTURES
        self._writer: pq.ParquetWriter | None = None
        self._rows: list[tuple[int, str]] = []
        self._characters = 0

    def add(self, session: int, conversation: Mapping[str, Any]) -> None:
        """Append the conversation of a session; sessions come in the order of their numbers."""
        # In ASCII, so that a lone surrogate is kept as an escape; Parquet has values that JSON lacks.
        text = json.dumps(conversation, default=str)
        self._rows.append((session, text))
        self._characters += len(text)
        if self._characters >= _FLUSH_CHARACTERS:
            self._flush()

    def _flush(self) -> None:
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, SCHEMA, compression="zstd", use_dictionary=False)
        columns = [list(column) for column in zip(*self._rows, strict=True)]
        self._writer.write_table(pa.table(dict(zip(SCHEMA.names, columns, strict=True)), schema=SCHEMA))
        self._rows, self._characters = [], 0

    def close(self) -> None:
        """Finish the file."""
        if self._rows:
            self._flush()
        if self._writer is not None:
            self._writer.close()


def structures(folder: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of each session with its conversation, in the order of the numbers."""
    path = folder / STRUCTURES
    if not path.exists():
        return
    for batch in pq.ParquetFile(path).iter_batches(batch_size=64):
        for row in batch.to_pylist():
            yield row["session"], json.loads(row["conversation"])

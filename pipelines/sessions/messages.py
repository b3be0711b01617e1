"""The stored messages of a workload: sessions and roles in a Parquet file, texts in an uncompressed Arrow file.

Parquet would copy every text once more, so it would no longer be in a core's cache for the engine; a mapped Arrow
file would count as memory of the process; one Arrow file of both would be read into a buffer for all columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.io.arrow_text import bytes_of

OWNERS, TEXTS = "messages.parquet", "texts.arrow"
OWNERS_SCHEMA = pa.schema([("session", pa.int32()), ("position", pa.int32()), ("role", pa.int8())])
TEXTS_SCHEMA = pa.schema([("text", pa.large_string())])
MESSAGES_SCHEMA = pa.unify_schemas([OWNERS_SCHEMA, TEXTS_SCHEMA])


class MessagesWriter:
    """Writes the two files; each batch is one row group of the Parquet file."""

    def __init__(self, folder: Path) -> None:
        """Open new files in a folder."""
        self._owners = pq.ParquetWriter(folder / OWNERS, OWNERS_SCHEMA)
        self._file = pa.OSFile(str(folder / TEXTS), "wb")
        self._texts = pa.ipc.new_file(self._file, TEXTS_SCHEMA)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch with MESSAGES_SCHEMA unchanged; readers hold the text of one batch at a time."""
        self._texts.write_batch(batch.select(TEXTS_SCHEMA.names))
        self._owners.write_batch(batch.select(OWNERS_SCHEMA.names), row_group_size=max(1, len(batch)))

    def close(self) -> None:
        """Finish the files."""
        self._texts.close()
        self._file.close()
        self._owners.close()


def _sound(texts: pa.Array) -> pa.Array:
    """Return the texts; ArrowInvalid where a damaged file has a text that ends before it begins or after the bytes."""
    texts.validate()
    ends, data = bytes_of(texts)
    if (np.diff(ends) < 0).any() or ends[0] < 0 or ends[-1] > len(data):
        raise pa.ArrowInvalid("a text ends before it begins or behind the bytes of its batch")
    return texts


class Messages:
    """Reads the two files: sessions and roles whole, texts one batch at a time."""

    def __init__(self, folder: Path) -> None:
        """Open lazily: nothing is read yet."""
        self._folder = folder

    @cached_property
    def owners(self) -> pa.Table:
        """Session, position and role of every message, in the order of the texts."""
        return pq.read_table(self._folder / OWNERS)

    def texts(self) -> Iterator[pa.Array]:
        """Yield the texts as large_string, one stored batch at a time."""
        with pa.OSFile(str(self._folder / TEXTS)) as file:
            reader = pa.ipc.open_file(file)
            for batch in range(reader.num_record_batches):
                yield _sound(reader.get_batch(batch).column(0))

    def texts_at(self, rows: npt.NDArray[np.int64]) -> list[str]:
        """Return the texts at some rows; only batches that contain them are read."""
        batches = np.searchsorted(self._ends, rows, side="right") - 1
        texts = [""] * len(rows)
        with pa.OSFile(str(self._folder / TEXTS)) as file:
            reader = pa.ipc.open_file(file)
            for batch in np.unique(batches).tolist():
                column = _sound(reader.get_batch(batch).column(0))
                for at in np.flatnonzero(batches == batch).tolist():
                    texts[at] = column[int(rows[at] - self._ends[batch])].as_py()
        return texts

    @cached_property
    def _ends(self) -> npt.NDArray[np.int64]:
        """Start row of each batch, and the end of the last one."""
        metadata = pq.read_metadata(self._folder / OWNERS)
        return np.cumsum([0, *(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))])

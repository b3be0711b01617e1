"""Encodes records as a JSON array, JSON lines or Parquet. The same records give the same bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

# A story repeated in every row is stored once a row group if the dictionary may exceed the default of 1 MiB.
_DICTIONARY_BYTES = 1 << 26
_ROW_GROUP_ROWS = 64


def json_array(records: Sequence[object], indent: int | None = None, *, is_ascii: bool = True) -> bytes:
    """Return the records as one JSON array, by default with escapes for characters beyond ASCII."""
    return json.dumps(records, indent=indent, ensure_ascii=is_ascii).encode()


def json_lines(records: Sequence[object]) -> bytes:
    """Return one JSON record a line."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()


def parquet(rows: Sequence[dict[str, object]], schema: pa.Schema) -> bytes:
    """Return the rows as a Parquet file; the same pyarrow gives the same bytes."""
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.Table.from_pylist(list(rows), schema=schema), sink, compression="zstd", row_group_size=_ROW_GROUP_ROWS,
        dictionary_pagesize_limit=_DICTIONARY_BYTES, store_schema=False,
    )  # fmt: skip
    return bytes(sink.getvalue().to_pybytes())

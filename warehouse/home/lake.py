"""Tables at rest as Parquet: one file a table, or one a partition, side by side. Same rows, same bytes.

A reader of HOME/lake lists a folder, then opens by path what it found there; a publication may come at any moment
between. So all files of a table lie in one folder, which a reader lists at once, and each file's name carries the
number of the generation that it was written for: what was listed before a publication is missing after it, and a
reader finds an error, never the rows of another generation. DECISIONS.md has the proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warehouse.declared.schema import Table

ROW_GROUP_ROWS = 1 << 17


def write_table(data: pa.Table, path: Path) -> None:
    """Write one Parquet file with units and descriptions in its schema."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(data, path, compression="zstd", row_group_size=ROW_GROUP_ROWS, version="2.6")


def write_lake(table: Table, parts: Iterable[pa.Table], lake: Path, generation: int) -> list[Path]:
    """Write a table into the lake; every file has every column.

    Args:
        table: the declaration; its `partition_by` decides which rows share a file.
        parts: rows of the table, in any chunks; no two hold rows of the same partition.
        lake: the lake's folder; files go to `lake/TABLE/TABLE-gGENERATION[-value-...].parquet`.
        generation: the number of the generation, which no other one in the home ever has.

    Returns:
        The files written, at least one: a table without rows is a file without rows.
    """
    base = lake / table.name
    written = []
    for values, rows in (found for part in parts for found in _partitions(table, part)):
        written.append(base / f"{'-'.join([table.name, f'g{generation}', *values])}.parquet")
        write_table(rows, written[-1])
    if not written:
        written.append(base / f"{table.name}-g{generation}.parquet")
        write_table(table.rows([]), written[-1])
    return written


def _partitions(table: Table, data: pa.Table) -> Iterator[tuple[tuple[str, ...], pa.Table]]:
    """Yield rows that share a file with their values of `partition_by`, in the order of the values."""
    if not table.partition_by:
        yield (), data
        return
    distinct = data.group_by(list(table.partition_by)).aggregate([])
    for values in sorted(zip(*(distinct[name].to_pylist() for name in table.partition_by), strict=True)):
        rows = data
        for name, value in zip(table.partition_by, values, strict=True):
            rows = _where(rows, pc.equal(rows[name], value))
        yield values, rows


def _where(data: pa.Table, mask: pa.ChunkedArray) -> pa.Table:
    """Return the rows of a mask; not as a copy where they follow one another, as a partition's mostly do."""
    rows = pc.indices_nonzero(mask)
    first, count = rows[0].as_py(), len(rows)
    return data.slice(first, count) if rows[-1].as_py() - first + 1 == count else data.filter(mask)


def files_of(table: Table, lake: Path) -> list[Path]:
    """Return the files of a table in a lake, those of one that an older kappa wrote too."""
    return sorted((lake / table.name).glob(f"{table.name}*.parquet"))

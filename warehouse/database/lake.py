"""Tables at rest as Parquet: one file a table, or one a partition in Hive folders. Same rows, same bytes."""

from __future__ import annotations

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


def write_lake(table: Table, data: pa.Table, lake: Path) -> list[Path]:
    """Write a table into the lake; a partition's columns stand in its folder's name, as Hive has it, not in the file.

    Args:
        table: the declaration; its `partition_by` decides the folders.
        data: rows of the table, in any chunks.
        lake: the lake's folder; files go to `lake/TABLE/[column=value/...]TABLE.parquet`.

    Returns:
        The files written. An empty partitioned table has none.
    """
    base = lake / table.name
    if not table.partition_by:
        write_table(data, base / f"{table.name}.parquet")
        return [base / f"{table.name}.parquet"]
    written = []
    for values in sorted(set(zip(*(data[name].to_pylist() for name in table.partition_by), strict=True))):
        part = data
        for name, value in zip(table.partition_by, values, strict=True):
            part = part.filter(pc.equal(part[name], value))
        folders = [f"{name}={value}" for name, value in zip(table.partition_by, values, strict=True)]
        path = base.joinpath(*folders) / f"{table.name}.parquet"
        write_table(part.drop_columns(list(table.partition_by)), path)
        written.append(path)
    return written

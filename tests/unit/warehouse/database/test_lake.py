"""Parquet at rest: Hive folders, the same bytes for the same rows, and every row found again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from warehouse.database.lake import ROW_GROUP_ROWS, write_lake, write_table
from warehouse.declared.schema import Field, Table
from warehouse.declared.tables import SUMMARY, TURNS

SeriesOf = Callable[..., pa.Table]


def test_partitions(tmp_path: Path, turns_table: SeriesOf) -> None:
    """A partitioned table has a folder a value of each column, and the columns are not repeated in the file."""
    data = pa.concat_tables([turns_table([("a", 0, 0, 3, 2)], "w2"), turns_table([("b", 0, 0, 4, 1)], "w1")])
    written = write_lake(TURNS, data, tmp_path)
    series = "tokenizer=llama-3.1/counting=text/turns.parquet"
    # 2 workloads, in the order of their names
    assert written == [tmp_path / f"turns/workload={name}/{series}" for name in ("w1", "w2")]
    names = pq.read_schema(written[0]).names
    assert names == [name for name in TURNS.names if name not in TURNS.partition_by]
    # a dataset reader puts the columns back
    found = ds.dataset(tmp_path / "turns", partitioning="hive").to_table()
    assert set(found.column_names) == set(TURNS.names)
    assert sorted(found["workload"].to_pylist()) == ["w1", "w2"]


def test_adding_a_series_leaves_the_others(tmp_path: Path, turns_table: SeriesOf) -> None:
    """Series are written one after another into one lake."""
    for name in ("w1", "w2"):
        write_lake(TURNS, turns_table([("a", 0, 0, 3, 2)], name), tmp_path)
    # 1 + 1 files
    assert len(list(tmp_path.rglob("*.parquet"))) == 2


def test_no_partition(tmp_path: Path) -> None:
    """A table that is not partitioned is one file, also without rows."""
    written = write_lake(SUMMARY, SUMMARY.rows([]), tmp_path)
    assert written == [tmp_path / "summary/summary.parquet"]
    # 0 rows with the declared schema
    table = pq.read_table(written[0])
    assert (table.num_rows, table.schema.equals(SUMMARY.arrow_schema, check_metadata=True)) == (0, True)


def test_empty_partitioned_table(tmp_path: Path) -> None:
    """Without rows there is no partition and no file."""
    # 0 partitions
    assert write_lake(TURNS, TURNS.rows([]), tmp_path) == []


def test_same_rows_same_bytes(tmp_path: Path, turns_table: SeriesOf) -> None:
    """Chunks do not show in the file: the same rows give the same bytes."""
    rows = [(f"s{n}", m, n * m, m + 1, n) for n in range(50) for m in range(4)]
    whole = turns_table(rows)
    chunks = pa.concat_tables([turns_table(rows[:7]), turns_table(rows[7:])])
    one = write_lake(TURNS, whole, tmp_path / "a")[0].read_bytes()
    assert one == write_lake(TURNS, whole, tmp_path / "b")[0].read_bytes()
    assert one == write_lake(TURNS, chunks, tmp_path / "c")[0].read_bytes()


def test_units_travel_with_the_file(tmp_path: Path, turns_table: SeriesOf) -> None:
    """A reader of the Parquet alone finds unit and description of each column, and the grain."""
    path = write_lake(TURNS, turns_table([("a", 0, 0, 3, None)]), tmp_path)[0]
    field = pq.read_schema(path).field("cached_tokens")
    assert field.metadata[b"unit"] == b"tokens"
    assert field.metadata[b"description"].startswith(b"K: tokens")
    assert not field.nullable
    assert pq.read_schema(path).metadata[b"grain"] == b"one turn of one session, counted one way by one tokenizer"


@pytest.mark.parametrize("rows", [1, ROW_GROUP_ROWS, ROW_GROUP_ROWS + 1])
def test_row_groups(tmp_path: Path, rows: int) -> None:
    """A long table has row groups of one size, the last one the rest."""
    table = Table("t", "one number", ("n",), (Field("n", pa.int64(), "", ""),))
    write_table(pa.table({"n": range(rows)}, schema=table.arrow_schema), tmp_path / "t.parquet")
    # ceil(rows / 131,072)
    assert pq.ParquetFile(tmp_path / "t.parquet").num_row_groups == -(-rows // ROW_GROUP_ROWS)

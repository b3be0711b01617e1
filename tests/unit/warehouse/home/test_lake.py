"""Parquet at rest: one folder a table, the same bytes for the same rows, and every row found again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from warehouse.declared.schema import Field, Table
from warehouse.declared.tables import GENERATIONS, REJECTS, SUMMARY, TURNS
from warehouse.home.lake import ROW_GROUP_ROWS, files_of, write_lake, write_table

SeriesOf = Callable[..., pa.Table]


def test_partitions(tmp_path: Path, turns_table: SeriesOf) -> None:
    """A partitioned table has a file a value of each column, all in one folder, with every column in each."""
    data = pa.concat_tables([turns_table([("a", 0, 0, 3, 2)], "w2"), turns_table([("b", 0, 0, 4, 1)], "w1")])
    written = write_lake(TURNS, [data], tmp_path, 7)
    # 2 workloads, in the order of their names
    assert written == [tmp_path / f"turns/turns-g7-{name}-llama-3.1-text-history.parquet" for name in ("w1", "w2")]
    assert [pq.read_schema(path).names for path in written] == [list(TURNS.names)] * 2
    found = ds.dataset(tmp_path / "turns", partitioning="hive").to_table()
    assert TURNS.conform(found).sort_by("workload").equals(data.sort_by("workload"))


def test_series_are_written_one_after_another(tmp_path: Path, turns_table: SeriesOf) -> None:
    """Parts come one at a time, so that one is in memory; one without rows has no file where others have rows."""
    parts = (turns_table([("a", 0, 0, 3, 2)] * rows, name) for rows, name in ((1, "w1"), (0, "w2"), (1, "w3")))
    # 1 + 0 + 1 files
    assert len(write_lake(TURNS, parts, tmp_path, 1)) == 2


@pytest.mark.parametrize("table", [SUMMARY, TURNS, REJECTS], ids=lambda table: table.name)
@pytest.mark.parametrize("parts", [0, 1, 2])
def test_a_table_without_rows(tmp_path: Path, table: Table, parts: int) -> None:
    """It is one file with all columns, partitioned or not, and every reader of the folder finds them."""
    written = write_lake(table, [table.rows([])] * min(parts, 2 if table.partition_by else 1), tmp_path, 3)
    assert written == [tmp_path / f"{table.name}/{table.name}-g3.parquet"]
    # 0 rows with the declared schema
    found = pq.read_table(written[0])
    assert (found.num_rows, found.schema.equals(table.arrow_schema, check_metadata=True)) == (0, True)
    for data in (ds.dataset(tmp_path / table.name).to_table(), pq.read_table(tmp_path / table.name)):
        assert (data.num_rows, tuple(data.column_names)) == (0, table.names)
    query = f"FROM read_parquet('{tmp_path}/{table.name}/**/*.parquet', hive_partitioning = true)"
    with duckdb.connect() as connection:
        relation = connection.sql(query)
        assert (tuple(relation.columns), relation.fetchall()) == (table.names, [])
    frame = pd.read_parquet(tmp_path / table.name)
    assert (tuple(frame.columns), len(frame)) == (table.names, 0)


def test_files_of_an_older_kappa(tmp_path: Path) -> None:
    """The file of a table is found where its name carries no generation too."""
    for name in ("generations.parquet", "generations-g2.parquet"):
        (tmp_path / name / "generations").mkdir(parents=True)
        (tmp_path / name / "generations" / name).touch()
        assert files_of(GENERATIONS, tmp_path / name) == [tmp_path / name / "generations" / name]
    assert files_of(GENERATIONS, tmp_path / "none") == []


def test_same_rows_same_bytes(tmp_path: Path, turns_table: SeriesOf) -> None:
    """Chunks do not show in the file: the same rows give the same bytes."""
    rows = [(f"s{n}", m, n * m, m + 1, n) for n in range(50) for m in range(4)]
    whole = turns_table(rows)
    chunks = pa.concat_tables([turns_table(rows[:7]), turns_table(rows[7:])])
    one = write_lake(TURNS, [whole], tmp_path / "a", 1)[0].read_bytes()
    assert one == write_lake(TURNS, [whole], tmp_path / "b", 2)[0].read_bytes()
    assert one == write_lake(TURNS, [chunks], tmp_path / "c", 1)[0].read_bytes()


def test_units_travel_with_the_file(tmp_path: Path, turns_table: SeriesOf) -> None:
    """A reader of the Parquet alone finds unit and description of each column, and the grain."""
    path = write_lake(TURNS, [turns_table([("a", 0, 0, 3, None)])], tmp_path, 1)[0]
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

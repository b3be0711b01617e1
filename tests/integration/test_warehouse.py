"""What a run leaves for other programs: the lake as others read it, homes of another kappa, checks that warn."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from kappa_process import Kappa, errors_of
from test_graph import checks, made, materialize

from assets.graph import workloads as assets_of
from pipelines.steps.turn_products import TURNS_FILE
from warehouse.declared.schema import DUCKDB_TYPES, Table
from warehouse.declared.tables import TABLES
from warehouse.home.generation import NOTE
from warehouse.home.products import Product

SMALL = ("--workload", "finqa", "--tokenizer", "qwen3")
MACHINE = ("--model", "qwen3-235b-a22b", "--accelerator", "h100-sxm", "--link", "pcie5-x16")
TURNS = "turns/finqa/qwen3/text/history"
STORED = [table for table in TABLES.values() if not table.is_view]
PANDAS = {"string": "str", "bool": "bool", "int32": "int32", "int64": "int64", "double": "float64"}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Keep Dagster's log lines out of the test output."""
    level = logging.getLogger("dagster").level
    logging.getLogger("dagster").setLevel(logging.CRITICAL)
    yield
    logging.getLogger("dagster").setLevel(level)


def lake_files(kappa: Kappa, table: Table) -> list[Path]:
    """Return the Parquet files of a table."""
    return sorted((kappa.home / "lake" / table.name).rglob("*.parquet"))


def count_of(kappa: Kappa, table: Table) -> int:
    """Return the number of rows of a table in the database."""
    return int(kappa.rows(f'SELECT count(*) FROM "{table.name}"')[0][0])  # noqa: S608 - declared names


class TestLake:
    """DuckDB, pyarrow and pandas read the lake by themselves, with the declared types."""

    @pytest.mark.parametrize("table", STORED, ids=lambda table: table.name)
    def test_schema_metadata(self, full: Kappa, table: Table) -> None:
        """Each file tells type, NULL, unit and description of each column, and the grain and key of its table."""
        files = lake_files(full, table)
        assert files
        for path in files:
            schema = pq.read_schema(path)
            assert schema.metadata[b"grain"].decode() == table.grain
            assert schema.metadata[b"key"].decode() == ",".join(table.key)
            assert schema.names == list(table.names)
            for found, field in zip(schema, table.fields, strict=True):
                assert (found.type, found.nullable) == (field.type, field.nullable)
                assert found.metadata[b"unit"].decode() == field.unit
                assert found.metadata[b"description"].decode() == field.description

    @pytest.mark.parametrize("table", STORED, ids=lambda table: table.name)
    def test_duckdb(self, full: Kappa, table: Table) -> None:
        """DuckDB finds the declared types and the rows of the database, with partitions of Hive asked for too."""
        pattern = f"{full.home}/lake/{table.name}/**/*.parquet"
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            lake = connection.sql(f"FROM read_parquet('{pattern}', hive_partitioning = true)")
            types = dict(zip(lake.columns, map(str, lake.types), strict=True))
            columns = ", ".join(f'"{name}"' for name in table.names)
            rows = connection.sql(f"SELECT {columns} FROM lake ORDER BY ALL").fetchall()  # noqa: S608 - declared names
        expected = {field.name: DUCKDB_TYPES[field.type] for field in table.fields}
        assert {
            name: kind.replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ") for name, kind in types.items()
        } == expected
        assert rows == full.rows(
            f"SET TimeZone = 'UTC'; SELECT {columns} FROM \"{table.name}\" ORDER BY ALL"  # noqa: S608
        )

    @pytest.mark.parametrize("table", STORED, ids=lambda table: table.name)
    def test_pyarrow(self, full: Kappa, table: Table) -> None:
        """A dataset of pyarrow holds all rows and passes the declared types on."""
        data = ds.dataset(full.home / "lake" / table.name).to_table()
        assert {field.name: field.type for field in data.schema} == {f.name: f.type for f in table.fields}
        assert data.num_rows == count_of(full, table)
        # conform also refuses a NULL where none is declared
        assert table.conform(data).schema.equals(table.arrow_schema, check_metadata=True)

    @pytest.mark.parametrize("table", STORED, ids=lambda table: table.name)
    def test_pandas(self, full: Kappa, table: Table) -> None:
        """Pandas reads the folder; a column without NULL has the type of its own, and times have their zone."""
        frame = pd.read_parquet(full.home / "lake" / table.name)
        assert set(frame.columns) == set(table.names)
        assert len(frame) == count_of(full, table)
        for field in table.fields:
            if field.nullable:
                continue
            kind = str(frame[field.name].dtype)
            assert kind == PANDAS.get(str(field.type), "datetime64[us, UTC]"), field.name

    def test_the_same_numbers(self, full: Kappa) -> None:
        """All three give the same sums of K and T of a series, which are those of `summary`."""
        path = full.home / "lake" / "turns"
        (expected,) = full.rows(
            "SELECT cached_tokens_sum, prefill_tokens_sum FROM summary "
            "WHERE workload = 'finqa' AND tokenizer = 'qwen3' AND counting = 'text'"
        )
        (one,) = path.glob("turns-*-finqa-qwen3-text-history.parquet")
        frame = pd.read_parquet(one)
        assert (int(frame["cached_tokens"].sum()), int(frame["prefill_tokens"].sum())) == expected
        data = pq.read_table(one)
        assert tuple(int(np.sum(data[name].to_numpy())) for name in ("cached_tokens", "prefill_tokens")) == expected


def aged(kappa: Kappa, **changes: object) -> dict[str, Any]:
    """Make the current generation one of another kappa, by its note."""
    path = (kappa.home / "current").resolve() / NOTE
    note = {**kappa.note(), **changes}
    path.unlink()
    path.write_text(json.dumps(note), "utf8")
    return note


@pytest.mark.parametrize(
    "command", [("sql", "SELECT 1"), ("crit", "--workload", "finqa", *MACHINE), ("refresh",), ("report",)]
)
def test_older_tables_are_refused(copy: Kappa, command: tuple[str, ...]) -> None:
    """A warehouse whose tables are not the declared ones is not read by any command; the line says what builds it."""
    aged(copy, tables="older")
    before = copy.state()
    process = copy(*command)
    assert process.returncode == 1
    (line,) = errors_of(process)
    assert line.startswith("error: ")
    assert "tables of another kappa" in line
    assert "kappa run" in line
    assert copy.state() == before


def test_older_tables_are_rebuilt(copy: Kappa, changed_finqa: Callable[[], str]) -> None:
    """`kappa run` puts a generation with the declared tables in the place of older ones; history goes on."""
    aged(copy, tables="older")
    changed_finqa()
    process = copy("run", *SMALL)
    assert process.returncode == 0, process.stderr
    assert copy("sql", "SELECT count(DISTINCT generation) AS n FROM generations", "--format", "csv").stdout == "n\n2\n"


def test_doctor_tells_of_older_tables(copy: Kappa) -> None:
    """The line about the warehouse says that its tables are another kappa's."""
    aged(copy, tables="older")
    lines = copy("doctor").stdout.splitlines()
    assert [line[:3] for line in lines if "tables of another kappa" in line] == ["no "]


def test_a_set_of_another_size_only_warns(output: str) -> None:
    """The tiny sets are not of the published size: one line says so of each, and all is published."""
    for published in (90_665, 94_145, 46_765, 7_437):
        (line,) = [line for line in output.splitlines() if f"where the published set has {published:,}" in line]
        assert line.endswith("(only a part was counted)")


def shifted(product: Product) -> Product:
    """Spoil staged turns: K of the first one is one token too many, and kappa_ratio goes with it."""
    path = product.file(TURNS_FILE)
    turns = pq.read_table(path)
    cached = turns["cached_tokens"].to_numpy().copy()
    cached[0] += 1
    columns = {"cached_tokens": cached, "kappa_ratio": cached / turns["prefill_tokens"].to_numpy()}
    for name, values in columns.items():
        place = turns.schema.get_field_index(name)
        turns = turns.set_column(place, turns.schema.field(place), pa.array(values))
    path.unlink()
    pq.write_table(turns, path)
    return product


def test_turns_that_do_not_follow_are_not_published(copy: Kappa, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn that does not follow from its session stops the graph with its row; nothing is published."""
    before = copy.state()
    derive = assets_of.derive_turns
    monkeypatch.setattr(assets_of, "derive_turns", lambda *given: shifted(derive(*given)))
    result = materialize(copy, TURNS, "summary", "warehouse", "report", "generations")
    found = checks(result)
    assert not result.success
    assert not found[f"{TURNS}:document_cached"].passed
    # K x kappa_ratio still agrees: only the other question tells
    assert found[f"{TURNS}:kappa_times_t"].passed
    assert found[f"{TURNS}:fingerprint"].passed
    assert found[f"{TURNS}:document_cached"].severity == dg.AssetCheckSeverity.ERROR
    assert made(result) == {TURNS}
    assert copy.state() == before

"""The database file: every declared table with its rows and comments, the view, and nothing left beside it."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refused

from assets.docs import pages
from assets.graph.definitions import defs
from warehouse.database.build import STORAGE_VERSION, build_database
from warehouse.database.engine import fetch, first_line, in_memory, read_only, stream
from warehouse.declared.fields import REJECT_REASONS
from warehouse.declared.tables import TABLES
from warehouse.errors import ErrorCode, UsageError
from warehouse.hardware_rows.rows import load_reference

STORED = {name: table for name, table in TABLES.items() if not table.is_view}


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that builds a database out of some tables; the others are empty."""

    def building(**tables: pa.Table) -> Path:
        files: dict[str, list[Path]] = {name: [] for name in STORED}
        for name, table in tables.items():
            path = tmp_path / f"{name}.parquet"
            pq.write_table(table, path)
            files[name] = [path]
        path = tmp_path / "warehouse.duckdb"
        assert build_database(path, files) == {name: tables[name].num_rows if name in tables else 0 for name in STORED}
        return path

    return building


def rows(path: Path, query: str) -> list[dict[str, Any]]:
    """Return the rows of a query."""
    with read_only(path) as connection:
        return list(fetch(connection, query).to_pylist())


def test_every_table_is_there(build: Callable[..., Path]) -> None:
    """All tables with types and NOT NULL as declared, the view, and comments with units."""
    path = build()
    found = rows(path, "SELECT table_name, column_name, data_type, is_nullable, comment FROM duckdb_columns() "
                 "WHERE NOT internal ORDER BY table_name, column_index")  # fmt: skip
    for name, table in TABLES.items():
        mine = [row for row in found if row["table_name"] == name]
        assert [row["column_name"] for row in mine] == list(table.names)
        for row, field in zip(mine, table.fields, strict=True):
            assert row["comment"] == field.comment()
            assert field.description in row["comment"]
            assert field.unit in row["comment"]
            assert all(part in row["comment"] for part in (*field.values, *field.meanings))
            if not table.is_view:
                assert row["is_nullable"] == field.nullable
    # T is a count of tokens
    assert {"column_name": "prefill_tokens", "data_type": "BIGINT"}.items() <= next(
        row for row in found if row["column_name"] == "prefill_tokens").items()  # fmt: skip


def documented(page: str) -> dict[str, dict[str, list[str]]]:
    """Return the cells of each column's line by table and column out of a page like docs/tables.md."""
    found: dict[str, dict[str, list[str]]] = {}
    table = ""
    for line in page.splitlines():
        if line.startswith("## "):
            table = line[3:]
        if line.startswith("| `") and table in TABLES:
            name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
            found.setdefault(table, {})[name.strip("`")] = cells
    return found


def dagster_dictionary() -> dict[str, dict[str, list[str]]]:
    """Return the same out of the metadata of the graph's assets."""
    found: dict[str, dict[str, list[str]]] = {}
    for spec in defs.resolve_all_asset_specs():
        if "dictionary" in spec.metadata:
            found |= documented(str(getattr(spec.metadata["dictionary"], "value", spec.metadata["dictionary"])))
    return found


def test_database_dagster_and_page_say_the_same(build: Callable[..., Path]) -> None:
    """Each table, view, column, unit, bound and reason is told in all three places, in the same words."""
    page = (pages.FOLDER / "tables.md").read_text("utf8")
    comments = {
        (row["table_name"], row["column_name"]): row["comment"]
        for row in rows(build(), "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE NOT internal")
    }
    told = documented(page)
    assert told == dagster_dictionary()
    assert {(table, column) for table, columns in told.items() for column in columns} == set(comments)
    for (table, column), comment in comments.items():
        _, unit, null, bounds, description = told[table][column]
        assert comment.startswith(description)
        assert not unit or f"[{unit}]" in comment
        assert (null == "yes") == (comment.endswith(("(NULL)", " or NULL)")))
        assert all(part in comment for part in bounds.split(" / ")), (table, column)
    for reason, meaning in REJECT_REASONS.items():
        assert f"{reason}: {meaning}" in comments["rejects", "reason"]
        assert f"| `{reason}` | {meaning} |" in page


def test_a_changed_declaration_makes_the_page_stale(
    build: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page is current; where a bound, a unit or a word changes, `make docs-check` fails and the comment is new."""
    monkeypatch.setattr("sys.argv", ["docs", "--check"])
    assert pages.main() == 0
    first, *others = TABLES["turns"].fields
    for change in ({"description": "another word"}, {"unit": "tokens/s"}, {"values": ("a", "b")}, {"minimum": 7}):
        table = replace(TABLES["turns"], fields=(replace(first, **change), *others))  # type: ignore[arg-type]
        monkeypatch.setitem(TABLES, "turns", table)
        assert pages.main() == 1
        assert "docs/tables.md is stale" in capsys.readouterr().err
    # the last change: a bound of 7
    query = "SELECT comment FROM duckdb_columns() WHERE table_name = 'turns' AND column_name = 'workload'"
    assert rows(build(), query) == [{"comment": f"{first.description} (>= 7)"}]


def test_rows_and_nothing_beside(build: Callable[..., Path], turns_table: Callable[..., pa.Table]) -> None:
    """Rows come in the order of their files; no write-ahead log and no scratch file is left."""
    data = turns_table([("b", 0, 0, 3, None), ("a", 0, 0, 4, 1), ("a", 1, 5, 1, 0)])
    path = build(turns=data)
    # 3 rows
    assert rows(path, "FROM turns") == data.to_pylist()
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["turns.parquet", "warehouse.duckdb"]


def test_older_clients_can_read_it(build: Callable[..., Path]) -> None:
    """The storage format is that of 1.4, which people have: the file's own header says so."""
    path = build()
    header = path.read_bytes()[:20]
    # 8 bytes of checksum, "DUCK", then the version of the storage as 8 bytes: 67 is that of 1.4.0
    assert header[8:12] == b"DUCK"
    assert struct.unpack_from("<Q", header, 12) == (67,)
    assert STORAGE_VERSION == "v1.4.0"
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{path}' AS w (READ_ONLY)")
        (tags,) = connection.execute("SELECT tags FROM duckdb_databases() WHERE database_name = 'w'").fetchall()
    assert "v1.4" in str(tags)


def test_an_older_client_runs_every_view_and_macro(build: Callable[..., Path]) -> None:
    """DuckDB of the folder OLDER_DUCKDB (`pip install --target FOLDER duckdb==1.4.*`) reads and runs all of it."""
    folder = os.environ.get("OLDER_DUCKDB")
    if not folder:
        pytest.skip("OLDER_DUCKDB names no folder with an older DuckDB")
    path = build(published=load_reference("published"))
    process = subprocess.run(
        [sys.executable, "-c", OLDER_CLIENT, str(path)],
        env={**os.environ, "PYTHONPATH": folder}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    version, *names = process.stdout.split()
    assert version.startswith("1.")
    assert set(names) == {*TABLES, "percentiles_of_turns", "percentiles_at", "memory_bound_at", "heaviest_sessions",
                          "turns_in_blocks"}  # fmt: skip


OLDER_CLIENT = """
import sys, duckdb
print(duckdb.__version__)
connection = duckdb.connect(sys.argv[1], read_only=True)
tables = [name for name, in connection.sql("SELECT table_name FROM duckdb_tables() UNION ALL "
          "SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()]
macros = connection.sql("SELECT function_name, function_type, len(parameters) FROM duckdb_functions() "
                        "WHERE NOT internal").fetchall()
for name in tables:
    connection.sql(f'FROM "{name}"').fetchall()
    print(name)
for name, kind, count in macros:
    call = f"{name}({', '.join(['3'] * count)})"
    connection.sql(f"FROM {call}" if kind == "table_macro" else f"SELECT {call}").fetchall()
    if kind == "table_macro":
        print(name)
"""


def test_nulls_are_refused(build: Callable[..., Path], turns_table: Callable[..., pa.Table]) -> None:
    """NOT NULL is kept by the database too."""
    data = turns_table([("a", 0, 0, 3, None)])
    column = pa.array([None], pa.int64())
    with pytest.raises(duckdb.ConstraintException, match="prefill_tokens"):
        build(turns=data.set_column(7, pa.field("prefill_tokens", pa.int64()), column))


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    """It is told in words, with the file."""
    (tmp_path / "warehouse.duckdb").mkdir()
    with refused(ErrorCode.NOT_WRITABLE, tmp_path / "warehouse.duckdb"):
        build_database(tmp_path / "warehouse.duckdb", {name: [] for name in STORED})


def test_a_question_mark_in_the_path(tmp_path: Path) -> None:
    """DuckDB puts the log of a?b/w.duckdb into a folder a.wal?b, which is not there: that is told in words."""
    (tmp_path / "a?b").mkdir()
    with refused(ErrorCode.NOT_WRITABLE, tmp_path / "a?b/w.duckdb"):
        build_database(tmp_path / "a?b" / "w.duckdb", {name: [] for name in STORED})


def test_quotes_in_the_path(tmp_path: Path) -> None:
    """A quote in a folder's name is part of the name."""
    (tmp_path / "it's").mkdir()
    # 14 tables without rows
    assert set(build_database(tmp_path / "it's" / "w.duckdb", {name: [] for name in STORED}).values()) == {0}


class TestPaperComparison:
    """The view: each published figure with ours beside it, judged only where that is fair."""

    SUMMARY: ClassVar[dict[str, object]] = {
        "workload": "sharegpt", "tokenizer": "llama-3.1", "counting": "text", "reuse": "history",
        "sessions": 2, "turns": 4, "first_turns": 2, "cached_tokens_sum": 400, "prefill_tokens_sum": 40,
        "output_tokens_sum": None,
        "cached_tokens_mean": 100.0, "prefill_tokens_mean": 10.0, "kappa_ratio_mean": 9.0, "pooled_kappa_ratio": 10.0,
        "special_token_messages": 0, "uncounted_parts": 0, "is_sample": False,
    }  # fmt: skip

    def compared(self, build: Callable[..., Path], records: int, *, is_sample: bool) -> dict[str, dict[str, Any]]:
        """Return the rows of the view by quantity, with one published mean of 82 and a summary of 10."""
        source = {
            "workload": "sharegpt", "repo_id": "r", "revision": "c", "path": "p", "bytes": 1, "sha256": "0",
            "records": records, "licence": "l", "fetched_at": None, "is_sample": is_sample,
        }  # fmt: skip
        sources = pa.Table.from_pylist([source | {"fetched_at": 0}], schema=TABLES["sources"].arrow_schema)
        path = build(
            sources=sources, summary=TABLES["summary"].rows([self.SUMMARY]), published=load_reference("published")
        )
        return {row["quantity"]: row for row in rows(path, "FROM paper_comparison")}

    def test_every_figure_once(self, build: Callable[..., Path]) -> None:
        """The view has the rows of `published`, no more and no less."""
        found = self.compared(build, 10, is_sample=False)
        # one row a figure
        assert len(found) == load_reference("published").num_rows

    @pytest.mark.parametrize(
        ("records", "is_sample", "is_full_set"),
        # 90,665 records are the full set; a sample never is
        [(90_664, False, False), (90_665, False, True), (90_665, True, False)],
    )
    def test_full_set(self, build: Callable[..., Path], records: int, is_sample: bool, is_full_set: bool) -> None:
        """within_tolerance is NULL unless the full set was measured and the figure is asserted."""
        found = self.compared(build, records, is_sample=is_sample)
        mine = [row for row in found.values() if row["workload"] == "sharegpt"]
        assert {row["is_full_set"] for row in mine} == {is_full_set}
        for row in mine:
            is_judged = is_full_set and row["is_asserted"] and row["ours"] is not None
            assert (row["within_tolerance"] is not None) == is_judged
            assert row["ratio"] == (None if row["ours"] is None else pytest.approx(row["ours"] / row["value"]))
            if is_judged:
                assert row["within_tolerance"] == (abs(row["ours"] - row["value"]) <= row["tolerance"] * row["value"])
        means = [row["ours"] for row in mine if (row["metric"], row["statistic"]) == ("prefill_tokens", "mean")]
        # T mean is 10 in the summary above
        assert set(means) == {10.0}

    def test_extremes_of_turns(self, build: Callable[..., Path], turns_table: Callable[..., pa.Table]) -> None:
        """Largest and smallest numbers and shares come from the turns of the published series, and of no other one."""
        filings = turns_table([("a", 0, 70, 5, None), ("b", 0, 50, 5, None)], "finqa")
        chats = turns_table([("a", 0, 0, 9, 1), ("a", 1, 3000, 2, 1), ("a", 2, 3003, 7, 1)], "sharegpt")
        larger = turns_table([("c", 0, 10**6, 1, None), ("d", 0, 1, 10**6, None)], "finqa")
        place = larger.schema.get_field_index("tokenizer")
        other = larger.set_column(place, larger.schema.field(place), pa.array(["qwen3", "qwen3"]))
        path = build(turns=pa.concat_tables([filings, chats, other]), published=load_reference("published"))
        query = """SELECT workload, metric, statistic, ours FROM paper_comparison
                   WHERE ours IS NOT NULL AND workload IS NOT NULL ORDER BY ALL"""
        # finqa K 50 and 70; sharegpt K + T at most 3003 + 7; 3000 / 2 = 1500 is above 1000, one of 3 turns
        assert [tuple(row.values()) for row in rows(path, query)] == [
            ("finqa", "cached_tokens", "max", 70.0),
            ("finqa", "cached_tokens", "min", 50.0),
            ("sharegpt", "context_tokens", "max", 3010.0),
            ("sharegpt", "kappa_ratio", "share_above_1000", 1 / 3),
        ]


class TestConnections:
    """Read only means read only, and errors are told."""

    def test_nothing_can_be_written(self, build: Callable[..., Path], tmp_path: Path) -> None:
        """Neither the file, nor another file, nor a setting that would allow it."""
        path = build()
        before = path.read_bytes()
        for query in (
            "CREATE TABLE x (a INT)", "DROP TABLE turns", f"COPY turns TO '{tmp_path}/x.csv'",
            f"ATTACH '{tmp_path}/x.db'", "SET enable_external_access = true", "FROM read_text('/etc/hostname')",
            "INSTALL httpfs", "LOAD httpfs",
        ):  # fmt: skip
            with read_only(path) as connection, refused(ErrorCode.QUERY_FAILED):
                stream(connection, query, 10).read_all()
        assert (path.read_bytes(), list(tmp_path.glob("x.*"))) == (before, [])

    @pytest.mark.parametrize(
        "query",
        [
            "SET threads = 1000000", "PRAGMA threads=1000000", "SET GLOBAL threads TO 8", "RESET threads",
            "SET worker_threads = 8", "SET external_threads = 8", "SET async_threads = 8", "SET memory_limit = '900GB'",
            "PRAGMA memory_limit='900GB'", "SET max_memory = '900GB'", "SET operator_memory_limit = '900GB'",
            "SET max_temp_directory_size = '9TB'", "SET temp_directory = '/'", "SET secret_directory = '/'",
            "SET log_query_path = '/x'", "CALL enable_logging()", "CALL enable_profiling()", "PRAGMA enable_profiling",
            "PRAGMA disable_optimizer", "SET lock_configuration = false", "RESET lock_configuration",
            "SET allowed_configs = ['threads']", "SET TimeZone = 'UTC'; SET threads = 8; SELECT 1",
            "/* SELECT 1 */ SET -- TimeZone\n threads = 8", 'SET "threads" = 8', "sEt ThReAdS = 8",
        ],
    )  # fmt: skip
    def test_no_setting_of_the_machine(self, build: Callable[..., Path], query: str) -> None:
        """Memory, threads, files and the lock itself stay as they are, in every form and statement."""
        limits = "SELECT name, value FROM duckdb_settings() WHERE name SIMILAR TO '.*(threads|memory|temp|lock).*'"
        with read_only(build()) as connection:
            before = fetch(connection, limits)
            with refused(ErrorCode.QUERY_FAILED):
                stream(connection, query, 10).read_all()
            assert fetch(connection, limits) == before

    @pytest.mark.parametrize(
        ("query", "value"),
        [
            ("SET TimeZone = 'Asia/Tokyo'; SELECT current_setting('TimeZone')", "Asia/Tokyo"),
            ("SET VARIABLE k = 5; SELECT getvariable('k')", 5),
            ("PREPARE p AS SELECT $1 + 1; EXECUTE p(4)", 5),
            ("SET default_null_order = 'nulls_first'; SELECT * FROM (VALUES (1), (NULL)) ORDER BY ALL LIMIT 1", None),
            ("SET schema = 'main'; SELECT 5", 5),
        ],
    )
    def test_what_may_be_set(self, build: Callable[..., Path], query: str, value: object) -> None:
        """What changes an answer and not the machine: the zone of times, the order of NULLs, variables."""
        with read_only(build()) as connection:
            assert stream(connection, query, 10).read_all()[0].to_pylist() == [value]

    def test_not_a_database(self, tmp_path: Path) -> None:
        """A file that is none, and one that is not there, are told with what builds it."""
        (tmp_path / "no.duckdb").write_text("no database at all" * 500, "utf8")
        for name in ("no.duckdb", "none.duckdb"):
            with refused(ErrorCode.DAMAGED, tmp_path / name), read_only(tmp_path / name):
                pass

    @pytest.mark.parametrize(
        ("query", "told"),
        [
            ("SELECT kappa_ratio(1, 0)", "computes at least one token, correct the values that the query computes"),
            ("SELECT CAST('x' AS INT)", "correct the values that the query computes with"),
            ("SELECT kappa_ratio(1)", "FROM duckdb_functions()"),
            ("SELECT kapa_ratio(1, 1)", "FROM duckdb_functions()"),
            ("FROM turn", "'SHOW TABLES'` lists the tables, `DESCRIBE turns` its columns"),
            ("SELECT k FROM turns", "'SHOW TABLES'` lists the tables, `DESCRIBE turns` its columns"),
            ("SELEC 1", "correct the query there"),
            ("DROP TABLE turns", "the warehouse is read only; --output writes the rows of a query"),
            ("INSERT INTO turns FROM turns", "the warehouse is read only; --output writes the rows of a query"),
            ("FROM read_text('/etc/hostname')", "reads only the tables of the warehouse; --output writes rows"),
        ],
    )
    def test_what_to_do_fits_the_mistake(self, build: Callable[..., Path], query: str, told: str) -> None:
        """Values, functions, names, syntax and writing each have their own advice, and it comes last."""
        with read_only(build()) as connection, refused(ErrorCode.QUERY_FAILED) as caught:
            stream(connection, query, 10).read_all()
        assert told in str(caught.value)
        assert ("SHOW TABLES" in str(caught.value)) == ("SHOW TABLES" in told)

    def test_an_error_in_the_middle(self, build: Callable[..., Path]) -> None:
        """An error while rows are computed is told like one before."""
        query = "SELECT CASE WHEN range > 150000 THEN error('late') ELSE range END FROM range(200000)"
        with read_only(build()) as connection, refused(ErrorCode.QUERY_FAILED, "late"):
            for _ in stream(connection, query, 1000):
                pass

    def test_streamed_in_batches(self) -> None:
        """No batch is larger than asked for, and no row is lost."""
        with in_memory() as connection:
            sizes = [batch.num_rows for batch in stream(connection, "FROM range(10000)", 3000)]
        # 10,000 rows
        assert (sum(sizes), max(sizes) <= 3000) == (10_000, True)

    def test_comments_alone(self) -> None:
        """They hold no query."""
        with in_memory() as connection, refused(ErrorCode.NO_QUERY, kind=UsageError):
            stream(connection, "-- a comment\n; /* another */", 10)

    def test_rows_of_one_query(self) -> None:
        """What is set before it holds for it; rows of a query before the last are not dropped in silence."""
        with in_memory() as connection:
            batches = stream(connection, "SET VARIABLE a = 2; -- so\nSELECT getvariable('a') AS n;", 10)
            assert batches.read_all().to_pylist() == [{"n": 2}]
            for first in ("SELECT 1", "FROM range(3)", "SHOW TABLES", "EXPLAIN SELECT 1"):
                with refused(ErrorCode.SEVERAL_QUERIES, kind=UsageError):
                    stream(connection, f"{first}; SELECT 2", 10)

    def test_first_line(self) -> None:
        """The first line of an error, or its kind where it has none."""
        # 1 of 2 lines
        assert [first_line(ValueError("a\nb")), first_line(ValueError())] == ["a", "ValueError"]

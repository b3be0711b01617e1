"""DuckDB connections with their limits, and DuckDB's errors as KappaErrors. Every connection of kappa is made here."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from warehouse.database.shown_types import shown
from warehouse.database.spill import spilling
from warehouse.errors import ErrorCode, KappaError, UsageError

if TYPE_CHECKING:
    import duckdb

    Relation: TypeAlias = duckdb.DuckDBPyRelation

MEMORY_LIMIT = "1GB"
THREADS = 2
# What a query may set: how values are ordered, computed with and shown. DuckDB refuses every other setting in every
# form (SET, RESET, PRAGMA, CALL): those of memory, threads and files, and the lock itself.
_ALLOWED_SETTINGS = (
    "TimeZone", "Calendar", "default_order", "default_null_order", "null_order", "default_collation",
    "integer_division", "ieee_floating_point_ops", "order_by_non_integer_literal", "preserve_insertion_order",
    "scalar_subquery_error_on_multiple_rows", "pivot_limit", "explain_output", "errors_as_json",
)  # fmt: skip
# The remedy of an error, by a pattern of DuckDB's message; the first match wins.
_REMEDIES = tuple(
    (re.compile(words), remedy)
    for words, remedy in (
        (
            r"configuration (option|has been locked)",
            "memory, threads and files are fixed; TimeZone, default_order and their like, and variables, may be set",
        ),
        (r"read-only mode", "the warehouse is read only; --output writes the rows of a query"),
        (r"^Permission", "`kappa sql` reads only the tables of the warehouse; --output writes rows"),
        (
            r"^Catalog Error: \w+ Function|No function matches|^Binder Error: Macro|candidate function",
            '`kappa sql "SELECT function_name, parameters FROM duckdb_functions()"` lists the functions',
        ),
        (
            r"^Catalog|Referenced (column|table)",
            "`kappa sql 'SHOW TABLES'` lists the tables, `DESCRIBE turns` its columns",
        ),
        (r"^(Parser|Binder)", "correct the query there"),
        (r"^(Out of Memory|IO)", "ask for fewer rows, or group them"),
        (r"", "correct the values that the query computes with"),
    )
)


def _limits() -> dict[str, str | bool | int | float | list[str]]:
    return {"memory_limit": MEMORY_LIMIT, "threads": THREADS, "autoinstall_known_extensions": False}


@contextlib.contextmanager
def in_memory(scratch: Path | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield an in-memory connection for queries over Parquet; rows that do not fit in memory go to `scratch`."""
    import duckdb  # noqa: PLC0415 - half a second

    config = _limits() | ({"temp_directory": str(scratch)} if scratch else {})
    with duckdb.connect(":memory:", config=config) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


@contextlib.contextmanager
def read_only(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a read-only connection to a database file; it cannot change any other file either.

    Raises:
        KappaError: this DuckDB cannot read the file as a database.
    """
    import duckdb  # noqa: PLC0415 - half a second

    with spilling() as folder:
        config = _limits() | {
            "enable_external_access": False,
            "temp_directory": folder,
            "allowed_configs": [*_ALLOWED_SETTINGS],
            "lock_configuration": True,
        }
        try:
            connection = duckdb.connect(str(path), read_only=True, config=config)
        except duckdb.Error as error:
            is_held = "lock" in str(error).lower()
            remedy = (
                "close the program that has it open for writing" if is_held else "run `kappa run` to build it again"
            )
            raise KappaError(
                f"{path} cannot be opened",
                first_line(error),
                remedy,
                code=ErrorCode.IN_USE if is_held else ErrorCode.DAMAGED,
            ) from error
        with connection:
            connection.execute("SET TimeZone = 'UTC'")
            yield connection


def fetch(connection: duckdb.DuckDBPyConnection, query: str, parameters: dict[str, object] | None = None) -> pa.Table:
    """Return all rows of a query."""
    return connection.sql(query, params=parameters).to_arrow_table()


def matching(relation: Relation, values: Mapping[str, object]) -> Relation:
    """Return the rows in which each named column has its value; None means any value."""
    import duckdb  # noqa: PLC0415 - half a second

    for column, value in values.items():
        if value is not None:
            is_it = duckdb.ColumnExpression(column) == duckdb.ConstantExpression(value)
            relation = relation.filter(is_it)
    return relation


def checked(connection: duckdb.DuckDBPyConnection, query: str, parameters: dict[str, object] | None = None) -> Relation:
    """Return the relation of a query that a person wrote; its rows are not computed yet.

    Raises:
        UsageError: there is no statement, or one before the last gives rows.
        KappaError: DuckDB refuses the query; the message says where it is wrong.
    """
    import duckdb  # noqa: PLC0415 - half a second

    connection.execute("SET errors_as_json = true")
    try:
        _check_one_answer(connection.extract_statements(query))
        return connection.sql(query, params=parameters or None)
    except duckdb.Error as error:
        raise query_failure(_placed(connection, query, error), query) from error
    finally:
        connection.execute("RESET errors_as_json")


def stream(
    connection: duckdb.DuckDBPyConnection, query: str, batch_rows: int, form: str = "parquet"
) -> pa.RecordBatchReader:
    """Run a query that a person wrote; return its rows in batches, cast as far as the format `form` needs it.

    The query may have several statements if only the last one returns rows.

    Raises:
        UsageError: there is no statement, or one before the last gives rows.
        KappaError: DuckDB refuses the query; the message says where it is wrong.
    """
    import duckdb  # noqa: PLC0415 - half a second

    relation = checked(connection, query)
    try:
        connection.execute("SET errors_as_json = true")
        return _told(shown(relation, form).to_arrow_reader(batch_rows), query)
    except duckdb.Error as error:
        raise query_failure(error, query) from error


def _check_one_answer(statements: list[duckdb.Statement]) -> None:
    """Raise UsageError if there is no statement, or if a statement before the last one returns rows."""
    if not statements:
        raise UsageError(
            "there is no query",
            "the text holds only comments",
            "try `kappa sql 'SHOW TABLES'`",
            code=ErrorCode.NO_QUERY,
        )
    if any([kind.name for kind in one.expected_result_type] == ["QUERY_RESULT"] for one in statements[:-1]):
        raise UsageError(
            "the text holds more than one query",
            "only the rows of the last one would be shown",
            "give one at a time",
            code=ErrorCode.SEVERAL_QUERIES,
        )


def _placed(connection: duckdb.DuckDBPyConnection, query: str, error: duckdb.Error) -> duckdb.Error:
    """Return the error with its place in the query; for names and types only `execute` reports the place."""
    import duckdb  # noqa: PLC0415 - half a second

    if "{" not in str(error):
        try:
            connection.execute(query)
        except duckdb.Error as same:
            return same
    return error


def _told(reader: pa.RecordBatchReader, query: str) -> pa.RecordBatchReader:
    """Return the same rows; an error while they are computed becomes a KappaError."""

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from reader
        except (pa.ArrowInvalid, OSError) as error:
            raise query_failure(error, query) from error

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


def query_failure(error: Exception, query: str) -> KappaError:
    """Return DuckDB's error as a KappaError: its message, the line and words of the mistake, and a remedy."""
    told, place = str(error), ""
    kind, _, report = told.partition(": ")
    # With `errors_as_json` the kind of error comes first, then an object with message and place.
    with contextlib.suppress(ValueError, TypeError, KeyError):
        found = json.loads(report)
        told = f"{kind}: {found['exception_message']}"
        place = _place(query, *map(int, json.loads(found["location"])))
    remedy = next(remedy for words, remedy in _REMEDIES if words.search(told))
    return KappaError("the query failed", told + place, remedy, code=ErrorCode.QUERY_FAILED)


def _place(query: str, start: int, size: int) -> str:
    r"""Return the line, column and words of a place that is given in bytes of the query.

    >>> _place("SELECT 'ä',\n nope", 14, 4)
    '; line 2, column 2, at `nope`'
    """
    text = query.encode()
    before = text[:start].decode(errors="replace")
    words = text[start : start + size].decode(errors="replace")
    column = len(before) - before.rfind("\n")
    return f"; line {before.count(chr(10)) + 1}, column {column}, at `{words.strip().partition(chr(10))[0]}`"


def one_file(path: Path) -> str:
    """Return a path escaped for `read_parquet`, so that it matches only this file and not a pattern.

    >>> one_file(Path("/a*b/[c].parquet"))
    '/a[*]b/[[]c].parquet'
    """
    return re.sub(r"[*?\[]", r"[\g<0>]", str(path))


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or its type if the message is empty."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

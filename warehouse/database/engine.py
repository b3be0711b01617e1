"""DuckDB connections: their limits, and its errors in our words. Every connection of kappa is made here."""

from __future__ import annotations

import contextlib
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from warehouse.database.shown_types import shown
from warehouse.database.spill import spilling
from warehouse.errors import KappaError, UsageError

if TYPE_CHECKING:
    import duckdb

MEMORY_LIMIT = "1GB"
THREADS = 2
_PLACE = re.compile(r"\s+LINE (?P<line>\d+): (?P<text>.*)\n(?P<indent> *)(?P<marks>\^+)\s*$")
# What to do about an error, by DuckDB's own words; the first that fits.
_REMEDIES = tuple(
    (re.compile(words), remedy)
    for words, remedy in (
        (r"read-only mode", "the warehouse is read only; --output writes the rows of a query"),
        (r"^Permission", "`kappa sql` reads the tables of the warehouse alone; --output writes rows"),
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
    """Yield a connection without a file, for queries over Parquet; what does not fit in memory goes to `scratch`."""
    import duckdb  # noqa: PLC0415 - half a second

    config = _limits() | ({"temp_directory": str(scratch)} if scratch else {})
    with duckdb.connect(":memory:", config=config) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


@contextlib.contextmanager
def read_only(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection to a database file that can change nothing: not the file, not any other one.

    Raises:
        KappaError: the file is no database that this DuckDB reads.
    """
    import duckdb  # noqa: PLC0415 - half a second

    with spilling() as folder:
        config = _limits() | {"enable_external_access": False, "temp_directory": folder}
        try:
            connection = duckdb.connect(str(path), read_only=True, config=config)
        except duckdb.Error as error:
            is_held = "lock" in str(error).lower()
            remedy = (
                "close the program that has it open for writing" if is_held else "run `kappa run` to build it again"
            )
            raise KappaError(f"{path} cannot be opened", first_line(error), remedy) from error
        with connection:
            connection.execute("SET TimeZone = 'UTC'")
            yield connection


def fetch(connection: duckdb.DuckDBPyConnection, query: str, parameters: dict[str, object] | None = None) -> pa.Table:
    """Run one query and return all its rows."""
    return connection.sql(query, params=parameters).to_arrow_table()


def stream(
    connection: duckdb.DuckDBPyConnection, query: str, batch_rows: int, form: str = "parquet"
) -> pa.RecordBatchReader:
    """Run a query that a person wrote and return its rows batch by batch, with the values that `form` can show.

    Several statements may stand there where the last one alone gives rows.

    Raises:
        UsageError: there is no statement, or one before the last gives rows.
        KappaError: DuckDB refuses the query; the message says where it is wrong.
    """
    import duckdb  # noqa: PLC0415 - half a second

    try:
        _check_one_answer(connection.extract_statements(query))
        return _told(shown(connection.sql(query), form).to_arrow_reader(batch_rows))
    except duckdb.Error as error:
        raise query_failure(_placed(connection, query, error)) from error


def _check_one_answer(statements: list[duckdb.Statement]) -> None:
    """Raise UsageError where no statement stands there, or where rows of one before the last would be lost."""
    if not statements:
        raise UsageError("there is no query", "the text holds comments alone", "try `kappa sql 'SHOW TABLES'`")
    if any([kind.name for kind in one.expected_result_type] == ["QUERY_RESULT"] for one in statements[:-1]):
        raise UsageError(
            "the text holds more than one query", "the rows of the last one alone would be shown", "give one at a time"
        )


def _placed(connection: duckdb.DuckDBPyConnection, query: str, error: duckdb.Error) -> duckdb.Error:
    """Return the error that says in which line the mistake is.

    Only `execute` tells that of names and types, and only where one statement stands alone: blanks take the place of
    those before it.
    """
    import duckdb  # noqa: PLC0415 - half a second

    if _PLACE.search(str(error)) is not None:
        return error
    before = ""
    try:
        for statement in connection.extract_statements(query):
            connection.execute(before + statement.query)
            before += re.sub(r"\S", " ", statement.query)
    except duckdb.Error as same:
        return same
    return error


def _told(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Return the same rows; an error while they are computed is told in our words."""

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from reader
        except (pa.ArrowInvalid, OSError) as error:
            raise query_failure(error) from error

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


def query_failure(error: Exception) -> KappaError:
    """Return DuckDB's own words, with the line and the words of the mistake and what to do about it, as ours."""
    told = str(error)
    remedy = next(remedy for words, remedy in _REMEDIES if words.search(told))
    return KappaError("the query failed", _PLACE.sub(_place, told), remedy)


def _place(match: re.Match[str]) -> str:
    """Return a mark under a line as words, with its column where the line is shown from its begin.

    One sign stands for a whole word. The mark is where it is seen on a terminal.
    """
    line = match["text"]
    column = _seen(line, len(match["indent"]) - len(f"LINE {match['line']}: "))
    rest = line[column:]
    word = re.match(r"\w+|.|$", rest)
    marked = rest[: len(match["marks"])] if len(match["marks"]) > 1 or word is None else word[0]
    where = "" if line.startswith("...") else f", column {column + 1}"
    return f"; line {match['line']}{where}, at `{marked.strip()}`"


def _seen(line: str, cells: int) -> int:
    r"""Return how many characters of a line fill so many cells of a terminal: a tab none here, a wide one two.

    >>> _seen("ab日本c", 4), _seen("\t\tab", 1)
    (3, 3)
    """
    for n, character in enumerate(line):
        width = 0 if character == "\t" or unicodedata.combining(character) else 1
        width += unicodedata.east_asian_width(character) in "WF"
        if cells < width or (cells == 0 and width):
            return n
        cells -= width
    return len(line)


def one_file(path: Path) -> str:
    """Return a path as `read_parquet` takes it where it means this file alone: signs of patterns stand for themselves.

    >>> one_file(Path("/a*b/[c].parquet"))
    '/a[*]b/[[]c].parquet'
    """
    return re.sub(r"[*?\[]", r"[\g<0>]", str(path))


def first_line(error: Exception) -> str:
    """Return the first line of an error."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

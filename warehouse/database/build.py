"""Builds the DuckDB file: every declared table with its comments, the views and the macros."""

from __future__ import annotations

from pathlib import Path

from warehouse.database.engine import first_line, in_memory, one_file
from warehouse.declared.schema import Table, quoted
from warehouse.declared.tables import TABLES
from warehouse.errors import ErrorCode, KappaError
from warehouse.formulas.catalogue import formulas
from warehouse.formulas.macros import macro

# DuckDB 1.4 and 1.5, which people have, cannot read the file format of DuckDB 2; they read this one.
STORAGE_VERSION = "v1.4.0"
_SQL = Path(__file__).parents[1] / "sql"
MACROS = ("percentiles", "questions", "capacity")


def build_database(path: Path, files: dict[str, list[Path]]) -> dict[str, int]:
    """Write a new database file.

    Args:
        path: the new file; must not exist.
        files: the Parquet files of each table that is not a view, in the order of their rows.

    Returns:
        Number of rows of each table.

    Raises:
        KappaError: a table of `files` is not declared, or the file cannot be written.
    """
    import duckdb  # noqa: PLC0415 - half a second

    try:
        with in_memory(path.parent) as connection:
            connection.execute(f"ATTACH {quoted(str(path))} AS warehouse (STORAGE_VERSION '{STORAGE_VERSION}')")
            connection.execute("USE warehouse")
            # One transaction: otherwise each of the hundreds of comments is flushed to the disk separately.
            connection.execute("BEGIN")
            rows = {name: _fill(connection, table, files[name]) for name, table in _stored().items()}
            add_macros(connection)
            for name in _views():
                connection.execute((_SQL / f"{name}.sql").read_text("utf8"))
            for name in MACROS:
                connection.execute((_SQL / f"{name}.sql").read_text("utf8"))
            for table in TABLES.values():
                for comment in table.comments():
                    connection.execute(comment)
            connection.execute("COMMIT")
            connection.execute("CHECKPOINT warehouse")
            connection.execute("USE memory")
            connection.execute("DETACH warehouse")
    except (duckdb.IOException, duckdb.OutOfMemoryException, duckdb.TransactionException) as error:
        raise KappaError(
            f"{path} could not be written",
            first_line(error),
            "free some disk space and run again",
            code=ErrorCode.NOT_WRITABLE,
        ) from error
    path.with_name(path.name + ".wal").unlink(missing_ok=True)
    return rows


def add_macros(connection: object) -> None:
    """Create a macro for each formula in the current database of a connection."""
    import duckdb  # noqa: PLC0415

    assert isinstance(connection, duckdb.DuckDBPyConnection)
    connection.execute("\n".join(map(macro, formulas().values())))


def _stored() -> dict[str, Table]:
    return {name: table for name, table in TABLES.items() if not table.is_view}


def _views() -> list[str]:
    return [name for name, table in TABLES.items() if table.is_view]


def _fill(connection: object, table: Table, paths: list[Path]) -> int:
    import duckdb  # noqa: PLC0415

    assert isinstance(connection, duckdb.DuckDBPyConnection)
    connection.execute(table.ddl())
    columns = ", ".join(f'"{name}"' for name in table.names)
    for path in paths:
        source = f"read_parquet({quoted(one_file(path))}, hive_partitioning = false)"
        connection.execute(f'INSERT INTO "{table.name}" SELECT {columns} FROM {source}')  # noqa: S608 - declared names
    row = connection.execute(f'SELECT count(*) FROM "{table.name}"').fetchone()  # noqa: S608
    return int(row[0]) if row else 0

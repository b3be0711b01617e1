"""`kappa sql`: one read-only query over the current generation."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pyarrow as pa

from assets import interrupts
from assets.commands.output import output_path
from assets.commands.terminal import chosen_format, write_rows
from kappa.warehouse import open_warehouse
from warehouse.errors import ErrorCode, KappaError, UsageError

BATCH_ROWS = 1 << 16
# Time for DuckDB to stop at Ctrl-C, where no file is being written.
STOP_S = 1.0


def sql(options: argparse.Namespace) -> int:
    """Run the query and write its rows.

    Raises:
        KappaError: there is no query or no warehouse, or DuckDB refuses the query.
    """
    query, output = _query(options), output_path(options)
    form = chosen_format(options.format, output)
    with open_warehouse(options.home) as warehouse:
        interrupts.stop_too(warehouse.interrupt)
        if output is None:
            # DuckDB looks for its interrupt between vectors: one value of gigabytes is made to its end.
            interrupts.hurry(STOP_S)
        reader = warehouse.batches(query, BATCH_ROWS, form)
        try:
            write_rows(reader, reader.schema, form, output)
        except (OverflowError, pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
            why, remedy = str(error), "cast the column to VARCHAR, or choose another --format"
            raise KappaError(
                "a value of the result cannot be written", why, remedy, code=ErrorCode.UNWRITABLE_VALUE
            ) from error
    return 0


def _query(options: argparse.Namespace) -> str:
    if options.query and options.file:
        raise UsageError(
            "two queries are given", "one as text and one by --file", "give one of them", code=ErrorCode.SEVERAL_QUERIES
        )
    try:
        text = options.query or (Path(options.file).read_text("utf8") if options.file else _standard_input())
    except OSError as error:
        raise KappaError(
            f"{options.file} cannot be read",
            error.strerror or str(error),
            "check the path",
            code=ErrorCode.NOT_READABLE,
        ) from error
    except UnicodeDecodeError as error:
        raise KappaError(
            f"{options.file or 'standard input'} is no text", str(error), "give UTF-8", code=ErrorCode.NOT_TEXT
        ) from error
    if not text.strip("; \t\r\n"):
        raise UsageError(
            "there is no query",
            "neither text nor --file nor standard input holds one",
            "try `kappa sql 'SHOW TABLES'`",
            code=ErrorCode.NO_QUERY,
        )
    return _valid(str(text), options.file or ("the query" if options.query else "standard input"))


def _valid(text: str, source: str) -> str:
    """Return a text if it is valid UTF-8; Python passes invalid bytes on as surrogates."""
    try:
        text.encode("utf8")
    except UnicodeEncodeError as error:
        why = f"byte 0x{ord(text[error.start]) & 0xFF:02x} in position {error.start} is none of UTF-8"
        raise KappaError(f"{source} is no text", why, "give UTF-8", code=ErrorCode.NOT_TEXT) from error
    return text


def _standard_input() -> str:
    return "" if sys.stdin.isatty() else sys.stdin.read()

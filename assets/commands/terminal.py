"""Writes rows as an aligned table, CSV, JSON or Parquet. Large results are streamed."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import IO

import pyarrow as pa

from assets.commands.output import written
from assets.commands.screen import is_number, is_terminal, text_table
from warehouse.declared.formats import number, printable, raw
from warehouse.errors import ErrorCode, KappaError, UsageError

SHOWN_ROWS = 1000
FORMATS_BY_SUFFIX = {".txt": "table", ".md": "markdown", ".csv": "csv", ".json": "json", ".parquet": "parquet"}
# The columns of a query plan, whose values are drawings of many lines.
EXPLAINED = ["explain_key", "explain_value"]
_QUOTED = re.compile(r'[",\r\n]')
_encode = json.JSONEncoder(ensure_ascii=False, default=str).encode


def chosen_format(given: str | None, output: Path | None) -> str:
    """Return the given format, else the format of the file's suffix, else `table`.

    Raises:
        UsageError: no format is given, and the suffix is not that of a format.
    """
    suffix = "" if output is None else output.suffix.lower()
    if given or not suffix:
        return given or "table"
    if suffix not in FORMATS_BY_SUFFIX:
        known = ", ".join(f"{known} ({form})" for known, form in FORMATS_BY_SUFFIX.items())
        raise UsageError(
            f"{output} names no format",
            f"the suffixes are {known}",
            "choose one of them, or add --format",
            code=ErrorCode.USAGE,
        )
    return FORMATS_BY_SUFFIX[suffix]


def write_rows(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    form: str,
    output: Path | None,
    shown: Callable[[object], str] = raw,
) -> None:
    """Write rows in the format `table`, `markdown`, `csv`, `json` or `parquet` to a file or to standard output.

    No value controls a terminal: tables show U+FFFD for what would, JSON has it escaped, and CSV, which has no escapes,
    is as it is but on a terminal itself, where it is as in tables. A statement without columns, such as SET, writes
    nothing. `shown` formats a value of a table.

    Raises:
        KappaError: the format is Parquet and there is no file, or the file cannot be written.
    """
    if form == "parquet":
        _write_parquet(batches, schema, output)
        return
    with _text_output(output) as stream:
        if not schema.names and form != "json":
            return
        if form == "csv":
            _write_csv(batches, schema, stream)
        elif form == "json":
            _write_json(batches, schema, stream)
        elif form == "markdown":
            stream.writelines(f"{line}\n" for line in markdown_lines(batches, schema, shown))
        else:
            _write_table(batches, schema, stream, shown)


def write_text(text: str, output: Path | None) -> None:
    """Write a text and the end of its last line to a file or to standard output.

    Raises:
        KappaError: the file cannot be written, or standard output is closed.
    """
    with _text_output(output) as stream:
        stream.write(f"{text}\n")


def write_lines(lines: Iterable[str], output: Path | None) -> None:
    """Write lines as they come to a file or to standard output; a failure leaves an existing file unchanged.

    Raises:
        KappaError: the file cannot be written, or standard output is closed.
    """
    with _text_output(output) as stream:
        stream.writelines(f"{line}\n" for line in lines)


@contextlib.contextmanager
def _text_output(output: Path | None) -> Iterator[IO[str]]:
    if output is None:
        if sys.stdout is None:
            raise KappaError(
                "nothing can be shown", "standard output is closed", "add --output FILE", code=ErrorCode.NO_OUTPUT
            )
        yield sys.stdout
        sys.stdout.flush()
        return
    with written(output) as raw, io.TextIOWrapper(raw, encoding="utf8", newline="") as stream:
        yield stream


def _write_table(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, stream: IO[str], shown: Callable[[object], str]
) -> None:
    if schema.names == EXPLAINED:
        plans = (str(plan) for batch in batches for plan in batch.column(1))
        stream.writelines(f"{printable(line)}\n" for plan in plans for line in plan.split("\n"))
        return
    kept: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if rows < SHOWN_ROWS:
            kept.append(batch.slice(0, SHOWN_ROWS - rows))
        rows += batch.num_rows
    stream.write(text_table(pa.Table.from_batches(kept, schema), shown, stream) + "\n")
    if rows > SHOWN_ROWS:
        stream.write(f"... {number(rows - SHOWN_ROWS)} more rows; --format csv, json or parquet writes them all\n")


def _write_csv(batches: Iterable[pa.RecordBatch], schema: pa.Schema, stream: IO[str]) -> None:
    cell = _shown_csv_cell if is_terminal(stream) else _csv_cell
    stream.write(",".join(map(cell, schema.names)) + "\n")
    for batch in batches:
        columns = [map(cell, batch.column(n).to_pylist()) for n in range(batch.num_columns)]
        stream.writelines(",".join(row) + "\n" for row in zip(*columns, strict=True))


def markdown_lines(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, shown: Callable[[object], str] = raw
) -> Iterator[str]:
    r"""Yield the lines of a Markdown table, numbers right-aligned; a value cannot end its cell or begin markup.

    >>> table = pa.table({"name": ["a|b", "<i>"], "n": [1, 22]})
    >>> list(markdown_lines(table.to_batches(), table.schema))
    ['| name | n |', '| --- | ---: |', '| a\\|b | 1 |', '| &lt;i> | 22 |']
    """
    yield _markdown_row(schema.names)
    yield "| " + " | ".join("---:" if is_number(kind) else "---" for kind in schema.types) + " |"
    for batch in batches:
        columns = [map(shown, batch.column(n).to_pylist()) for n in range(batch.num_columns)]
        yield from map(_markdown_row, zip(*columns, strict=True))


def _markdown_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(markdown_text(cell) for cell in cells) + " |"


def markdown_text(text: str) -> str:
    """Return a text without markup of its own for Markdown, in one line."""
    line = printable(text).replace("\\", "\\\\").replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([|*\[\]])", r"\\\1", line)


def _csv_cell(value: object) -> str:
    """Return a cell in RFC 4180 format; NULL is empty, and an empty text is a pair of quotes."""
    if value is None:
        return ""
    text = str(value)
    return text if text and _QUOTED.search(text) is None else '"' + text.replace('"', '""') + '"'


def _shown_csv_cell(value: object) -> str:
    """Return a cell for a terminal, with its lines, and U+FFFD for what would control it."""
    return "\n".join(map(printable, _csv_cell(value).split("\n")))


def _write_json(batches: Iterable[pa.RecordBatch], schema: pa.Schema, stream: IO[str]) -> None:
    names, separator = [_json_text(name) for name in _distinct(schema.names)], "["
    for batch in batches:
        columns = [map(_json_text, batch.column(n).to_pylist()) for n in range(batch.num_columns)]
        for row in zip(*columns, strict=True):
            cells = ", ".join(f"{name}: {cell}" for name, cell in zip(names, row, strict=True))
            stream.write(f"{separator}\n{{{cells}}}")
            separator = ","
    stream.write("[]\n" if separator == "[" else "\n]\n")


def _distinct(names: list[str]) -> list[str]:
    """Return the names with `_2`, `_3`, ... appended to repeated ones: a JSON object keeps one value per name.

    >>> _distinct(["a", "b", "a"])
    ['a', 'b', 'a_2']
    """
    found: list[str] = []
    for name in names:
        numbered = (f"{name}_{n}" for n in itertools.count(2))
        found.append(name if name not in found else next(other for other in numbered if other not in names + found))
    return found


def _json_text(value: object) -> str:
    """Return a value as JSON: a decimal is a number with all its digits, a value that is not finite is null."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_json_text, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_json_text(str(name))}: {_json_text(part)}" for name, part in value.items()) + "}"
    if isinstance(value, bytes):
        return f'"{value.hex()}"'
    return _escaped(_encode(None if isinstance(value, float) and not math.isfinite(value) else value))


def _escaped(text: str) -> str:
    r"""Return JSON with what could control a terminal as \u escapes, which mean the same.

    >>> _escaped('"a\x9bé"')
    '"a\\u009bé"'
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in text)


def _write_parquet(batches: Iterable[pa.RecordBatch], schema: pa.Schema, output: Path | None) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415

    if output is None:
        raise KappaError(
            "Parquet needs a file", "it is not text for a terminal", "add --output FILE", code=ErrorCode.NEEDS_FILE
        )
    with written(output) as stream, pq.ParquetWriter(stream, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)

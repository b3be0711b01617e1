"""Rows of CSV as dicts: a byte order mark, commas, semicolons, tabs or bars, quoted cells with line breaks."""

from __future__ import annotations

import csv
import io
import sys
from collections import Counter
from collections.abc import Iterator
from io import BufferedReader
from typing import Any

from pipelines.io.json_bytes import SURROGATES
from pipelines.records.record import Record, Unread

DELIMITERS = ",;\t|"
BAD_ROW, TRUNCATED = "bad_row", "truncated"
# A quote that is never closed would otherwise take the rest of the file into memory.
MOST_CELL_CHARACTERS = 1 << 28


def delimiter_of(header: str) -> str | None:
    """Return the delimiter of a header line: the one that is most often outside quotes; None where there is none.

    >>> delimiter_of('"a;b",c'), delimiter_of("id;text"), delimiter_of("a sentence")
    (',', ';', None)
    """
    outside = "".join(header.split('"')[::2])
    found = Counter(letter for letter in outside if letter in DELIMITERS).most_common(1)
    return found[0][0] if found else None


def is_table(head: bytes) -> bool:
    """Return whether a file may begin as CSV: a first line of names with a delimiter between them."""
    line = _first_line(head)
    return bool(line) and line.isprintable() and delimiter_of(line) is not None


def _first_line(head: bytes) -> str:
    return head.decode("utf-8-sig", "replace").lstrip("\r\n").partition("\n")[0].rstrip("\r").replace("\t", ",")


def csv_rows(stream: BufferedReader[Any], shown: str, first: int) -> Iterator[Record | Unread]:
    """Yield each row as a dict by the header's names.

    A row with more or fewer cells than the header is `bad_row`; where quotes do not fit, the rest is not read.
    """
    csv.field_size_limit(min(MOST_CELL_CHARACTERS, sys.maxsize))
    text = io.TextIOWrapper(stream, "utf-8", errors=SURROGATES, newline="")
    rows = _lines(text)
    try:
        names = _names(rows)
        for cells in rows:
            if len(cells) == len(names):
                yield Record(shown, first, dict(zip(names, cells, strict=True)))
            elif cells:
                why = f"{len(cells)} cells where the header has {len(names)}"
                yield Unread(shown, first, BAD_ROW, why)
            first += bool(cells)
    except csv.Error as error:
        yield Unread(shown, first, TRUNCATED, f"no CSV from this row on: {error}", is_end=True)
    finally:
        # The file stays open for whoever opened it.
        text.detach()


def _lines(text: io.TextIOWrapper) -> Iterator[list[str]]:
    start = ""
    while not start.strip("\ufeff\r\n") and (line := text.readline()):
        start = line
    start = start.removeprefix("\ufeff")
    delimiter = delimiter_of(start) or ","

    def lines() -> Iterator[str]:
        yield start
        yield from text

    return csv.reader(lines(), delimiter=delimiter, strict=True)


def _names(rows: Iterator[list[str]]) -> list[str]:
    names = [name.strip() for name in next(rows, [])]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"its header names {twice[0]!r} twice")
    return names

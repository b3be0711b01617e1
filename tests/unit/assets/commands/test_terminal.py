"""Rows as text: aligned, harmless to a terminal, exact in the formats for scripts."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from assets.commands import terminal
from assets.commands.screen import text_table
from assets.commands.terminal import chosen_format, write_rows
from warehouse.errors import ErrorCode, KappaError, UsageError

DATA = pa.table(
    {
        "name": ["a", None, 'c,"d"\n'],
        "n": pa.array([1, -22, None], pa.int64()),
        "x": [0.1, None, 1 / 3],
        "is_x": [True, False, None],
    }
)


def written(data: pa.Table, form: str, batch: int = 2) -> str:
    """Return what write_rows gives, through a file."""
    path = Path.cwd() / "out"
    write_rows(data.to_batches(max_chunksize=batch), data.schema, form, path)
    return path.read_text("utf8")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_table() -> None:
    """Numbers stand to the right, NULL is an empty cell, a line break never breaks a row."""
    # widths: name 6, n 3, x 18, is_x 5; two spaces between
    assert text_table(DATA).splitlines() == [
        "name      n                   x  is_x",
        "a         1                 0.1  true",
        "        -22                      false",
        'c,"d"\ufffd       0.3333333333333333',
    ]


@pytest.mark.parametrize("bad", ["\x1b[31m", "\r", "\x07", "\u202e", "\u2028", "\x9b"])
def test_no_cell_steers_the_terminal(bad: str) -> None:
    """Escapes, carriage returns, bells and marks of direction are shown as U+FFFD."""
    table = text_table(pa.table({"x": [f"a{bad}b"]}))
    # the header and one row
    assert len(table.split("\n")) == 2
    assert all(letter.isprintable() for letter in table if letter != "\n")


def test_no_name_steers_the_terminal() -> None:
    """A query names its columns: those are shown as harmless as cells."""
    # the header and one row
    assert text_table(pa.table({"a\n\x1b[31mb": [1]})).count("\n") == 1


@pytest.mark.parametrize("bad", ["\x1b[31m", "\r", "\x07", "\u202e", "\u2028", "\x9b", "\x7f", "\U000e0001"])
def test_json_steers_no_terminal(bad: str) -> None:
    """What would control a terminal is escaped in values, names, lists and objects, and reads back as it was."""
    data = pa.table({f"n{bad}": [f"a{bad}b"], "list": [[bad]], "object": [{f"k{bad}": bad}], "é": ["é"]})
    text = written(data, "json")
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    assert json.loads(text) == data.to_pylist()
    assert '"é": "é"' in text


def test_csv_keeps_what_it_holds_but_on_a_terminal() -> None:
    """CSV has no escapes: a file has the bytes, a terminal U+FFFD in their place; lines are lines."""
    data = pa.table({"a": ["x\x1b[31my", "1\n2"]})
    assert list(csv.reader(io.StringIO(written(data, "csv")))) == [["a"], ["x\x1b[31my"], ["1\n2"]]
    shown = io.StringIO()
    shown.isatty = lambda: True  # type: ignore[method-assign]
    terminal._write_csv(data.to_batches(), data.schema, shown)
    assert shown.getvalue() == 'a\nx\ufffd[31my\n"1\n2"\n'


def test_a_plan_keeps_its_lines() -> None:
    """The drawing of EXPLAIN is shown as it is, line by line, and steers no terminal either."""
    data = pa.table({"explain_key": ["physical_plan"], "explain_value": ["top\n |\x1b[31m"]})
    # two lines
    assert written(data, "table") == "top\n |\ufffd[31m\n"


@pytest.mark.parametrize("form", ["table", "csv"])
def test_nothing_to_show(form: str) -> None:
    """A statement without columns leaves not even an empty line."""
    # 0 columns
    assert written(pa.table({}), form) == ""


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_standard_output_that_is_closed(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python has no stream where the shell closed it: that is told, with what to do."""
    monkeypatch.setattr("sys.stdout", None)
    with refused(ErrorCode.NO_OUTPUT):
        write_rows(DATA.to_batches(), DATA.schema, form, None)


def test_a_long_table_is_cut() -> None:
    """A thousand rows are shown, the rest is counted."""
    lines = written(pa.table({"n": list(range(1234))}), "table", 100).splitlines()
    # 1 header + 1000 rows + 1 line; 1234 - 1000 = 234
    assert (len(lines), lines[-1]) == (1002, "... 234 more rows; --format csv, json or parquet writes them all")


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_no_rows(form: str) -> None:
    """A result without rows is a header, or an empty array."""
    expected = {"table": "name  n  x  is_x\n", "csv": "name,n,x,is_x\n", "json": "[]\n"}
    # 0 rows
    assert written(DATA.slice(0, 0), form) == expected[form]


def test_csv() -> None:
    """Numbers are exact, NULL is empty, quotes and line breaks are quoted."""
    rows = list(csv.reader(io.StringIO(written(DATA, "csv"))))
    # 1/3 with all its digits
    assert rows == [["name", "n", "x", "is_x"], ["a", "1", "0.1", "True"], ["", "-22", "", "False"],
                    ['c,"d"\n', "", "0.3333333333333333", ""]]  # fmt: skip


def test_json() -> None:
    """An array of objects, NULL as null, text as it is."""
    # 3 rows
    assert json.loads(written(DATA, "json")) == DATA.to_pylist()
    assert "\u20ac" in written(pa.table({"x": ["\u20ac"]}), "json")


ANY_TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\r"))


@given(st.lists(st.tuples(ANY_TEXT, st.floats(allow_nan=False, allow_infinity=False))))
def test_json_and_csv_give_back_what_was_written(rows: list[tuple[str, float]]) -> None:
    """Any text and any finite number come back to the bit."""
    data = pa.table({"t": [t for t, _ in rows], "x": pa.array([x for _, x in rows], pa.float64())})
    data = data.cast(pa.schema([("t", pa.string()), ("x", pa.float64())]))
    assert json.loads(written(data, "json")) == [{"t": t, "x": x} for t, x in rows]
    stream = io.StringIO()
    terminal._write_csv(data.to_batches(), data.schema, stream)
    read = list(csv.reader(io.StringIO(stream.getvalue(), newline="")))
    assert [(t, float(x)) for t, x in read[1:]] == rows


def test_csv_tells_null_from_an_empty_text() -> None:
    """NULL is nothing between the commas, an empty text a pair of quotes, also where they stand alone in a row."""
    data = pa.table({"a": ["", None, "x"], "b": [None, "", "y"]})
    assert written(data, "csv") == 'a,b\n"",\n,""\nx,y\n'
    assert written(data.select(["a"]), "csv") == 'a\n""\n\nx\n'


def test_json_of_a_decimal() -> None:
    """All its digits, as a number: a double keeps 15 to 17 of them."""
    data = pa.table({"d": pa.array([Decimal("123456789012345678.123456789")], pa.decimal128(38, 9)),
                     "l": [[Decimal("0.10")]], "e": pa.array([Decimal("0E-9")], pa.decimal128(38, 9))})  # fmt: skip
    assert written(data, "json") == '[\n{"d": 123456789012345678.123456789, "l": [0.10], "e": 0.000000000}\n]\n'


def test_csv_of_a_carriage_return() -> None:
    """A carriage return in a text is quoted: a reader takes a bare one for the end of the row."""
    data = pa.table({"session_id": ["a\rb"], "n": [1]})
    stream = io.StringIO()
    terminal._write_csv(data.to_batches(), data.schema, stream)
    # a header and one row
    assert list(csv.reader(io.StringIO(stream.getvalue(), newline="")))[1:] == [["a\rb", "1"]]


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_json_of_what_json_has_no_number_for(value: float) -> None:
    """DuckDB's 1/0 is infinite; a script gets null and no traceback."""
    # JSON has no infinity
    assert json.loads(written(pa.table({"x": [value]}), "json")) == [{"x": None}]


def test_json_of_a_sum() -> None:
    """`sum(prefill_tokens)` is a number for a script."""
    data = pa.table({"s": pa.array([Decimal(389570)], pa.decimal128(38, 0))})
    # 389,570
    assert json.loads(written(data, "json")) == [{"s": 389570}]


def test_json_of_two_columns_of_one_name() -> None:
    """No column is lost in silence."""
    data = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    # 1 and 2
    assert "1" in written(data, "json")


def test_parquet() -> None:
    """Parquet holds the same table, and needs a file."""
    write_rows(DATA.to_batches(), DATA.schema, "parquet", Path("out.parquet"))
    # 3 rows
    assert pq.read_table("out.parquet").equals(DATA)
    with refused(ErrorCode.NEEDS_FILE, "Parquet"):
        write_rows([], DATA.schema, "parquet", None)


@pytest.mark.parametrize("form", ["table", "csv", "json", "parquet"])
def test_a_file_that_cannot_be_written(form: str) -> None:
    """A folder that is not there is told in words."""
    with refused(ErrorCode.NOT_WRITABLE, "none/out", "No such file or directory"):
        write_rows(DATA.to_batches(), DATA.schema, form, Path("none/out"))


def test_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a file the rows go to the terminal."""
    write_rows(DATA.slice(0, 1).to_batches(), DATA.schema, "csv", None)
    # 1 row
    assert capsys.readouterr().out == "name,n,x,is_x\na,1,0.1,True\n"


def test_a_failure_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """Rows that end in an error take nobody's file away."""
    target = tmp_path / "keep.csv"
    target.write_text("precious")

    def rows() -> Iterator[pa.RecordBatch]:
        yield from pa.table({"n": [1]}).to_batches()
        raise KappaError("late", "in the middle", "again", code=ErrorCode.QUERY_FAILED)

    for form in ("csv", "json", "table", "parquet"):
        with refused(ErrorCode.QUERY_FAILED, "late"):
            write_rows(rows(), pa.schema([("n", pa.int64())]), form, target)
    assert [path.name for path in tmp_path.iterdir()] == ["keep.csv"]
    assert target.read_text() == "precious"


def test_json_of_nested_values() -> None:
    """Inside lists and objects too there is no NaN, and bytes are hexadecimal digits."""
    data = pa.table({"l": [[float("nan"), 1.0]], "s": [{"a": float("inf")}], "b": [b"\xaa"]})
    # NaN and infinity are null, 0xaa is aa
    assert json.loads(written(data, "json")) == [{"l": [None, 1.0], "s": {"a": None}, "b": "aa"}]


def test_the_suffix_names_the_format() -> None:
    """What was asked for comes first, then the file's suffix, then a table."""
    assert chosen_format("json", Path("a.csv")) == "json"
    assert [chosen_format(None, Path(f"a.{kind}")) for kind in ("csv", "parquet", "txt")] == ["csv", "parquet", "table"]
    assert chosen_format(None, None) == chosen_format(None, Path("a")) == "table"
    assert [chosen_format(None, Path(name)) for name in ("a.CSV", "a.b.Json", "/dev/stdout")] == [
        "csv",
        "json",
        "table",
    ]


@pytest.mark.parametrize("name", ["a.xlsx", "a.xls", "a.csv.gz", "a.tsv", "a.jsonl", "a.csv~", "a.csv "])
def test_another_suffix_is_no_table(name: str) -> None:
    """A suffix of no format is refused with those there are, whatever the case; with --format any name will do."""
    for output in (Path(name), Path(name.upper())):
        with refused(
            ErrorCode.USAGE, output, ".txt (table)", ".csv (csv)", ".json (json)", ".parquet (parquet)", kind=UsageError
        ):
            chosen_format(None, output)
        assert chosen_format("table", output) == "table"

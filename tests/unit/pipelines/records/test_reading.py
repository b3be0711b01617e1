"""Files of records in every packing and layout, and every way in which one is none."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.records.places import files_of
from pipelines.records.reading import read_records
from pipelines.records.record import Record, Unread
from warehouse.errors import ErrorCode, KappaError

RECORDS = [{"id": n, "text": "é\n" * n, "deep": [{"a": n}]} for n in range(5)]


def values(path: Path) -> list[Any]:
    """Return the values of a file, whose records are numbered from 0."""
    items = list(read_records(path, path.name))
    assert [item.index for item in items] == list(range(len(items)))
    return [item.value if isinstance(item, Record) else item for item in items]


def zstd(data: bytes) -> bytes:
    """Return the bytes as one frame."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(data)
    return bytes(sink.getvalue())


LINES = "\n".join(map(json.dumps, RECORDS)).encode()
LAYOUTS = {
    "array": json.dumps(RECORDS).encode(),
    "printed array": b"\xef\xbb\xbf" + json.dumps(RECORDS, indent=2).encode(),
    "lines": LINES,
    "blank lines": b"\n\n" + LINES.replace(b"\n", b"\r\n\n"),
    "printed objects": "\n".join(json.dumps(record, indent=1) for record in RECORDS).encode(),
}
PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gz": gzip.compress,
    "two gz": lambda data: gzip.compress(data[:100], mtime=0) + gzip.compress(data[100:]),
    "zst": zstd,
    "two zst": lambda data: zstd(data[:100]) + zstd(data[100:]),
}


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_json_in_every_layout_and_packing(tmp_path: Path, layout: str, packing: str) -> None:
    """The same five records come out, whatever the file is called."""
    path = tmp_path / "any name"
    path.write_bytes(PACKINGS[packing](LAYOUTS[layout]))
    assert values(path) == RECORDS


@pytest.mark.parametrize("packing", ["plain", "gz", "zst"])
def test_parquet_in_every_packing(tmp_path: Path, packing: str) -> None:
    """Rows of Parquet are dicts."""
    pq.write_table(pa.Table.from_pylist(RECORDS), tmp_path / "plain", row_group_size=2)
    path = tmp_path / "packed"
    path.write_bytes(PACKINGS[packing]((tmp_path / "plain").read_bytes()))
    assert values(path) == RECORDS


def test_a_zip_goes_on_counting(tmp_path: Path) -> None:
    """Files of data in a zip are one file of records; others and hidden ones are not read."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("b/one.jsonl", LINES)
        archive.writestr("b/two.jsonl.gz", gzip.compress(LINES, mtime=0))
        archive.writestr("README.md", "# no records")
        archive.writestr("__MACOSX/one.jsonl", "no records")
    # 5 + 5
    assert values(path) == RECORDS + RECORDS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\ufeffid,text\n1,a\n", [{"id": "1", "text": "a"}]),
        ('id;text\r\n1;"a;""b""\r\nc"\r\n', [{"id": "1", "text": 'a;"b"\r\nc'}]),
        ("id\ttext\n1\ta,b\n", [{"id": "1", "text": "a,b"}]),
        ('"id"|"te,xt"\n1|\n\n2|z\n', [{"id": "1", "te,xt": ""}, {"id": "2", "te,xt": "z"}]),
    ],
)
def test_csv_as_people_write_it(tmp_path: Path, text: str, expected: list[dict[str, str]]) -> None:
    """A byte order mark, semicolons, tabs, bars, quotes in quotes and line breaks in cells."""
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode())
    assert values(path) == expected


def test_a_row_of_csv_with_other_cells_is_a_reject(tmp_path: Path) -> None:
    """A row that does not fit the header is left out; an open quote ends the file."""
    path = tmp_path / "a.csv"
    path.write_text('id,text\n1,a,b\n2,c\n3,"d', "utf8")
    first, second, last = values(path)
    assert (first.reason, first.detail, first.is_end) == ("bad_row", "3 cells where the header has 2", False)
    assert second == {"id": "2", "text": "c"}
    assert (last.reason, last.is_end) == ("truncated", True)


def test_fifty_megabytes_in_one_line(tmp_path: Path) -> None:
    """A record of 50 MB is a record."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "' + b"x" * 50_000_000 + b'"}\n{"text": "y"}\n')
    assert [len(value["text"]) for value in values(path)] == [50_000_000, 1]


def test_an_empty_file_holds_no_records(tmp_path: Path) -> None:
    """Neither an empty file nor blank lines are an error here: whoever reads says so."""
    path = tmp_path / "a.jsonl"
    for content in (b"", b" \n\n", b"\xef\xbb\xbf"):
        path.write_bytes(content)
        assert values(path) == []


def test_a_cut_file_keeps_its_whole_records(tmp_path: Path) -> None:
    """What is behind the last whole record of a cut file is one unread item of the file."""
    path = tmp_path / "a.json"
    path.write_bytes(LAYOUTS["array"][:-30])
    *whole, cut = values(path)
    assert whole == RECORDS[:4]
    assert isinstance(cut, Unread)
    assert (cut.reason, cut.is_end) == ("truncated", True)


def archive_with(path: Path, name: str, data: bytes, link: int = 0) -> Path:
    """Write a zip with one entry."""
    with zipfile.ZipFile(path, "w") as archive:
        entry = zipfile.ZipInfo(name)
        entry.external_attr = link << 16
        archive.writestr(entry, data)
    return path


@pytest.mark.parametrize(
    ("name", "data", "link", "code"),
    [
        ("inner.zip", b"PK\x05\x06" + bytes(18), 0, ErrorCode.WRONG_KIND),
        ("inner", b"PK\x05\x06" + bytes(18), 0, ErrorCode.WRONG_KIND),
        ("a.jsonl.gz", gzip.compress(b"PK\x03\x04" + bytes(18), mtime=0), 0, ErrorCode.WRONG_KIND),
        ("a.jsonl.gz", gzip.compress(gzip.compress(LINES), mtime=0), 0, ErrorCode.WRONG_KIND),
        ("../a.jsonl", LINES, 0, ErrorCode.UNSAFE_NAME),
        ("/a.jsonl", LINES, 0, ErrorCode.UNSAFE_NAME),
        ("b\\..\\..\\a.jsonl", LINES, 0, ErrorCode.UNSAFE_NAME),
        ("a.jsonl", b"/etc/passwd", 0o120777, ErrorCode.UNSAFE_NAME),
        ("notes.md", LINES, 0, ErrorCode.NO_RECORD),
    ],
)
def test_archives_that_are_refused(tmp_path: Path, name: str, data: bytes, link: int, code: ErrorCode) -> None:
    """An archive in an archive, packed twice, a name or a link that leads out, nothing to read."""
    with pytest.raises(KappaError) as error:
        values(archive_with(tmp_path / "a.zip", name, data, link))
    assert error.value.code == code


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ("[]".encode("utf-16"), ErrorCode.WRONG_KIND),
        (b"<!doctype html><p>Sign in</p>", ErrorCode.WRONG_KIND),
        (b"version https://git-lfs.github.com/spec/v1\n", ErrorCode.WRONG_KIND),
        (b"once upon a time\nthere was\n", ErrorCode.WRONG_KIND),
        (b"id,id\n1,2\n", ErrorCode.BAD_FILE),
        (gzip.compress(LINES, mtime=0)[:-9], ErrorCode.BAD_FILE),
        (zstd(LINES)[:-9], ErrorCode.BAD_FILE),
        (b"PK\x03\x04" + bytes(40), ErrorCode.BAD_FILE),
        (b"PAR1" + bytes(40), ErrorCode.BAD_FILE),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, data: bytes, code: ErrorCode) -> None:
    """The error names the file and what was seen."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(data)
    with pytest.raises(KappaError) as error:
        values(path)
    assert error.value.code == code
    assert "a.jsonl" in error.value.what


def test_the_files_of_a_source(tmp_path: Path) -> None:
    """A file, a folder without hidden files and others, a glob."""
    for name in ("logs/b.jsonl", "logs/in/a.csv.gz", "logs/README.md", "logs/.hidden.json", "logs/part-00000"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}", "utf8")
    assert list(files_of(str(tmp_path / "logs"))) == ["b.jsonl", "in/a.csv.gz", "part-00000"]
    assert list(files_of(str(tmp_path / "logs" / "README.md"))) == ["README.md"]
    assert list(files_of(str(tmp_path / "*" / "*.jsonl"))) == ["logs/b.jsonl"]
    assert list(files_of(str(tmp_path / "**" / "*.gz"))) == ["logs/in/a.csv.gz"]


def test_sources_that_are_refused(tmp_path: Path) -> None:
    """Nothing there, an empty folder, a link out of the folder."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "a.json").symlink_to(tmp_path / "secret.json")
    (tmp_path / "secret.json").write_text("[]", "utf8")
    (tmp_path / "folders").mkdir()
    (tmp_path / "folders" / "out").symlink_to(tmp_path)
    for source, code in {
        "nothing": ErrorCode.NO_RECORD, "*.csv": ErrorCode.NO_RECORD, "empty": ErrorCode.NO_RECORD,
        "linked": ErrorCode.UNSAFE_NAME, "folders": ErrorCode.UNSAFE_NAME,
    }.items():  # fmt: skip
        with pytest.raises(KappaError) as error:
            files_of(str(tmp_path / source))
        assert error.value.code == code, source

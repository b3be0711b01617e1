"""Files of every odd kind: what they are is one line, and nothing else but a result or a KappaError comes out."""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refused

from pipelines.io import json_array
from pipelines.io.file_kinds import told
from warehouse.errors import ErrorCode, KappaError

Read = Callable[..., Any]
CHATS = json.dumps([{"id": "a", "conversations": [{"from": "human", "value": "x"}]}])


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (CHATS.encode("utf-16"), "is UTF-16 text"),
        (CHATS.encode("utf-16-le"), "is UTF-16 text"),
        (CHATS.encode("utf-16-be"), "is UTF-16 text"),
        (CHATS.encode("utf-32"), "is UTF-32 text"),
        (CHATS.encode("utf-32-be"), "is UTF-32 text"),
        (gzip.compress(CHATS.encode(), mtime=0), "is gzip-compressed"),
        (b"\x28\xb5\x2f\xfd" + b"x" * 9, "is zstd-compressed"),
        (b"PK\x03\x04" + b"x" * 9, "is a zip archive"),
        (b"PAR1" + b"x" * 9, "is a Parquet file"),
        (b"\n<!DOCTYPE html>", "is a page of HTML"),
        (b"version https://git-lfs.github.com/spec/v1\n", "is a pointer of Git LFS"),
        (b"f" * 257 + b"ustar\x00", "is a tar archive"),
    ],
)
@pytest.mark.parametrize("name", ["sharegpt", "sharegpt-v3", "finqa"])
def test_what_a_file_is(read: Read, name: str, raw: bytes, words: str) -> None:
    """A file that is known to be no JSON is named for what it is, with what to do; it is not called cut."""
    with refused(ErrorCode.WRONG_KIND, f"file0 {words}", "JSON as UTF-8 text"):
        read(name, raw)


@pytest.mark.parametrize(
    ("raw", "words"),
    [(gzip.compress(b"x", mtime=0), "is gzip-compressed"), (b"[]", "is JSON"), (b"<html>", "is a page of HTML")],
)
def test_what_a_file_is_where_parquet_is_expected(read: Read, raw: bytes, words: str) -> None:
    """The same for Parquet."""
    with refused(ErrorCode.WRONG_KIND, f"file0 {words}", "Parquet"):
        read("narrativeqa", raw)


@pytest.mark.parametrize("raw", [b"\xef\xbb\xbf" + CHATS.encode(), b"  \n" + CHATS.encode(), CHATS.encode()])
def test_what_is_json_is_read(read: Read, raw: bytes) -> None:
    """A byte order mark and white space do not make another kind of file."""
    # 1 record
    assert read("sharegpt", raw).kept == 1


def test_a_disk_that_fails(read: Read) -> None:
    """An error of the disk is one line with the file and the place."""
    fill, calls = json_array._Buffer.fill, []

    def failing(buffer: json_array._Buffer) -> bool:
        calls.append(buffer)
        # the two records have 70 characters each: the first is whole after three blocks
        if len(calls) == 4:
            raise OSError(5, "Input/output error")
        return fill(buffer)

    raw = b"[" + b",".join([CHATS[1:-1].encode()] * 2) + b"]"
    with (
        mock.patch.object(json_array._Buffer, "fill", failing),
        mock.patch.object(json_array, "STEP_BYTES", 30),
        refused(ErrorCode.BAD_FILE, "file0", "1 elements", "Input/output error"),
    ):
        read("sharegpt", raw)


def test_what_is_done_with_an_item_is_not_the_readers_fault() -> None:
    """An error of the one who takes the items goes its own way."""

    def take() -> None:
        for _ in told("file", [1]):
            raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        take()


def stories(text: pa.DataType, name: pa.DataType | None = None) -> bytes:
    """Return three rows of NarrativeQA whose texts are stored as one type, and ids as another."""
    ids = pa.array(["1", "1", "2"]).cast(name or text)
    texts, questions = (pa.array(values).cast(text) for values in (["11", "11", "22"], ["5", "6", "7"]))
    table = pa.table(
        {
            "document": pa.StructArray.from_arrays([ids, texts], ["id", "text"]),
            "question": pa.StructArray.from_arrays([questions], ["text"]),
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())], ids=str
)
def test_text_of_every_type(read: Read, kind: pa.DataType) -> None:
    """Text is text, however its writer stored it."""
    out = read("narrativeqa", stories(kind))
    # 3 rows: 2 stories with 2 and 1 questions
    assert out.sessions == {
        "1": [("document", "11"), ("question", "5"), ("question", "6")],
        "2": [("document", "22"), ("question", "7")],
    }


@pytest.mark.parametrize("kind", [pa.int64(), pa.binary(), pa.float64(), pa.large_binary()], ids=str)
@pytest.mark.parametrize("is_id", [True, False])
def test_no_text(read: Read, kind: pa.DataType, is_id: bool) -> None:
    """A column of another type, ids as well, is an error with file, column and type."""
    raw = stories(pa.string(), kind) if is_id else stories(kind, pa.string())
    column = "document.id" if is_id else "document.text"
    with refused(ErrorCode.HUB_LAYOUT, "file0", f"column {column} ", kind):
        read("narrativeqa", raw)


def test_columns_of_other_shapes(read: Read) -> None:
    """A list, a flat column with a dot in its name, and no struct at all are a changed layout."""
    for table in (
        pa.table({"document": [[{"id": "a", "text": "A"}]], "question": [{"text": "q"}]}),
        pa.table({"document.id": ["a"], "document.text": ["A"], "question.text": ["q"]}),
        pa.table({"document": [{"id": "a", "text": ["A"]}], "question": [{"text": "q"}]}),
    ):
        sink = io.BytesIO()
        pq.write_table(table, sink)
        with refused(ErrorCode.HUB_LAYOUT, "file0"):
            read("narrativeqa", sink.getvalue())


def test_invalid_utf8_in_parquet(read: Read) -> None:
    """Bytes that are no UTF-8 become U+FFFD each, as in JSON."""
    raw = stories(pa.string())
    assert raw.count(b"\x02\x00\x00\x0011") > 0
    out = read("narrativeqa", raw.replace(b"\x02\x00\x00\x0011", b"\x02\x00\x00\x00\xff1"))
    # 1 byte, 1 character
    assert out.sessions["1"][0] == ("document", "\ufffd1")


def test_a_parquet_file_with_flipped_bytes(read: Read, tmp_path: Path) -> None:
    """Wherever a byte is another, a result or one line that names the file comes out."""
    rng, raw = random.Random(5), stories(pa.string())
    told_of: list[str] = []
    for n in range(300):
        damaged = bytearray(raw)
        for _ in range(rng.choice([1, 1, 1, 8])):
            damaged[rng.randrange(len(raw))] = rng.randrange(256)
        path = tmp_path / f"damaged-{n}"
        path.write_bytes(damaged)
        try:
            read("narrativeqa", path)
        except KappaError as error:
            told_of.append(str(error))
    assert [line for line in told_of if "file0" not in line or "\n" in line] == []
    # a footer is most of so small a file
    assert len(told_of) > 50

"""The stream of messages at rest: batches, ids, surrogates, the order of rejects."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.sessions import writing
from pipelines.sessions.messages import MESSAGES_SCHEMA, OWNERS, OWNERS_SCHEMA, Messages
from pipelines.sessions.writing import (
    REJECTED,
    SESSIONS,
    SESSIONS_SCHEMA,
    USER,
    MessageBuffer,
    Reject,
    SessionsWriter,
    without_surrogates,
)
from warehouse.declared.tables import REJECTS


@pytest.fixture
def writer(tmp_path: Path) -> SessionsWriter:
    """Return a writer into an empty folder."""
    return SessionsWriter(tmp_path, "w")


def test_nothing_written(writer: SessionsWriter) -> None:
    """Without any record there are files with their schemas and no rows."""
    writer.close()
    assert list(Messages(writer.folder).texts()) == []
    schemas = {OWNERS: OWNERS_SCHEMA, SESSIONS: SESSIONS_SCHEMA, REJECTED: REJECTS.arrow_schema}
    for name, schema in schemas.items():
        table = pq.read_table(writer.folder / name)
        # 0 rows
        assert (table.num_rows, table.schema.equals(schema)) == (0, True)


def test_totals(writer: SessionsWriter) -> None:
    """Messages and their UTF-8 bytes are counted."""
    session = writer.session("a", "f", 0)
    for position, text in enumerate(["ab", "\u20ac", ""]):
        writer.message(session, position, USER, text)
    writer.close()
    # 3 messages; 2 + 3 + 0 bytes
    assert (writer.messages, writer.text_bytes) == (3, 5)


def test_memory_is_bounded_by_a_batch(writer: SessionsWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    """The buffer is written when it has enough messages or enough characters."""
    monkeypatch.setattr(writing, "FLUSH_MESSAGES", 4)
    monkeypatch.setattr(writing, "FLUSH_CHARACTERS", 10)
    for position, text in enumerate(["a", "b", "c", "d", "x" * 11, "e"]):
        writer.message(0, position, USER, text)
        assert len(writer.buffer.text) < 4
    writer.close()
    # 4 messages are a batch, 11 characters are one, the last message is one
    assert [len(texts) for texts in Messages(writer.folder).texts()] == [4, 1, 1]


def test_take_begins_anew() -> None:
    """A taken buffer is empty and the batch has the schema of the file."""
    buffer = MessageBuffer()
    buffer.add(3, 1, USER, "x\udc00")
    batch = buffer.take()
    # one lone surrogate, one U+FFFD
    assert batch.to_pylist() == [{"session": 3, "position": 1, "role": USER, "text": "x\ufffd"}]
    assert batch.schema.equals(MESSAGES_SCHEMA)
    assert (buffer.text, buffer.characters, buffer.is_full) == ([], 0, False)


@given(st.text(st.characters(exclude_categories=())))
def test_without_surrogates(text: str) -> None:
    """Each surrogate becomes one U+FFFD, the length stays, and everything else is as it was."""
    clean = without_surrogates(text)
    assert len(clean) == len(text)
    for before, after in zip(text, clean, strict=True):
        assert after == ("\ufffd" if "\ud800" <= before <= "\udfff" else before)
    clean.encode()


@given(st.lists(st.sampled_from(["a", "a#2", "a#2#2", "", "#2", "\ud800", "\ufffd"]), max_size=12))
def test_ids_are_unique(names: list[str]) -> None:
    """Whatever the ids, every session has its own, and the first of a kind keeps it."""
    with tempfile.TemporaryDirectory() as folder:
        writer = SessionsWriter(Path(folder), "w")
        writer.close()
    numbers = [writer.session(name, "f", n) for n, name in enumerate(names)]
    assert numbers == list(range(len(names)))
    assert len(set(writer.session_ids)) == len(names)
    # 1 name, its number, or a number behind it
    assert all(
        found == clean or found.startswith(f"{clean}#")
        for found, clean in zip(writer.session_ids, map(without_surrogates, names), strict=True)
    )


class CountingDict(dict[str, int]):
    """A dictionary that counts how often it is asked whether a key is in it."""

    asked = 0

    def __contains__(self, key: object) -> bool:
        """Count and answer."""
        self.asked += 1
        return super().__contains__(key)


def test_many_sessions_of_one_id(writer: SessionsWriter) -> None:
    """A file whose records all have one id asks for each name once or twice, not for all those before."""
    writer._used = asked = CountingDict()
    for record in range(8_000):
        writer.session("same", "f", record)
    assert writer.session_ids[:3] == ["same", "same#2", "same#3"]
    # the first record asks once, each other one for `same` and for its own number: 1 + 7,999 x 2
    assert asked.asked == 15_999


def test_rejects_in_the_order_of_the_files(writer: SessionsWriter) -> None:
    """Rows follow files and records, whatever the order in which they were found, and details hold no surrogate."""
    for path in ("b", "a"):
        writer.records[path] += 2
    for path, record in (("a", 1), ("b", 1), ("a", 0), ("b", 0)):
        writer.reject(Reject(path, record, "unknown_role", "role '\ud800'", "id\udfff"))
    rows = writer.rejects_table().to_pylist()
    # b was read first
    assert [(row["path"], row["record"]) for row in rows] == [("b", 0), ("b", 1), ("a", 0), ("a", 1)]
    assert (rows[0]["workload"], rows[0]["level"], rows[0]["turn_index"]) == ("w", "record", None)
    assert (rows[0]["detail"], rows[0]["session_id"]) == ("role '\ufffd'", "id\ufffd")

"""A decoder that knows a long text again gives what the plain decoder gives, whatever stands around that text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.io.json_array import Element, read_elements
from pipelines.io.json_repeats import RepeatDecoder

LONG = "filing " * 1000
PLAIN = json.JSONDecoder(strict=False)


def decoded(*records: str) -> list[Any]:
    """Return the records, decoded one after the other by one decoder."""
    decoder = RepeatDecoder(PLAIN, "Context")
    found = []
    for record in records:
        value, end = decoder.raw_decode(f"  {record} tail", 2)
        assert end == 2 + len(record)
        found.append(value)
    return found


def test_a_repeated_text_is_the_same_object() -> None:
    """The text of the second record is not decoded: it is the first record's own."""
    first, second = decoded(*(json.dumps({"Context": LONG, "Question": q}) for q in ("a", "b")))
    assert second == {"Context": LONG, "Question": "b"}
    assert second["Context"] is first["Context"]


def test_a_huge_text_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a limit a text is decoded each time: to remember it would cost its size again."""
    monkeypatch.setattr("pipelines.io.json_repeats._LONGEST", len(LONG) - 1)
    first, second = decoded(*(json.dumps({"Context": LONG, "Question": q}) for q in ("a", "b")))
    assert second == {"Context": LONG, "Question": "b"}
    assert second["Context"] is not first["Context"]


@pytest.mark.parametrize(
    "second",
    [
        '{"Context": "%s"}',
        '{ "Context" : "%s" }',
        '{"Context": "%s", "Question": null, "Context": "other"}',
        '{"Context": "%s more", "Question": "b"}',
        '{"Question": "b", "Context": "%s"}',
        '{"Context": "%s", "Question": {"deep": [1, {"Context": "x"}]}}',
        '{"Context": "%s","Question":"b"}',
        '{"Context": "%s", "Question": "' + "b" * 200_000 + '"}',
    ],
)
def test_like_the_plain_decoder(second: str) -> None:
    """Whatever follows a known text, or stands in its place, comes out as the plain decoder has it."""
    records = [json.dumps({"Context": LONG, "Question": "a"}), second.replace("%s", LONG)]
    assert decoded(*records, *records) == [json.loads(record) for record in records * 2]


@pytest.mark.parametrize(
    "broken", ['{"Context": "%s",}', '{"Context": "%s" "Question": 1}', '{"Context": "%s", 1}', '{"Context": "%s", "Q']
)
def test_broken_behind_a_known_text(broken: str) -> None:
    """What is not JSON is refused as the plain decoder refuses it, at the same place."""
    decoder, record = RepeatDecoder(PLAIN, "Context"), broken.replace("%s", LONG)
    decoder.raw_decode(json.dumps({"Context": LONG, "Question": "a"}), 0)
    with pytest.raises(json.JSONDecodeError) as ours:
        decoder.raw_decode(record, 0)
    with pytest.raises(json.JSONDecodeError) as plain:
        PLAIN.raw_decode(record, 0)
    assert (ours.value.msg, ours.value.pos) == (plain.value.msg, plain.value.pos)


@given(st.lists(st.tuples(st.sampled_from(["x", LONG, LONG + '"\\\n', LONG + "\ud800"]), st.text()), max_size=6))
def test_any_records(rows: list[tuple[str, str]]) -> None:
    """Any mixture of long, short and odd texts is what was written."""
    records = [{"Context": context, "Question": question} for context, question in rows]
    assert decoded(*map(json.dumps, records)) == records


@pytest.mark.parametrize("is_lines", [False, True])
def test_over_the_edge_of_the_buffer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_lines: bool) -> None:
    """Records that the end of the buffer cuts are whole, in an array and in lines."""
    monkeypatch.setattr("pipelines.io.json_array.STEP_BYTES", 1000)
    records = [{"Context": LONG * (1 + n // 5), "Question": f"q{n}"} for n in range(15)]
    path = tmp_path / "records.json"
    path.write_text("\n".join(map(json.dumps, records)) if is_lines else json.dumps(records))
    found = list(read_elements(path, repeated="Context"))
    assert [element.value for element in found if isinstance(element, Element)] == records

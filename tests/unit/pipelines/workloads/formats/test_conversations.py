"""`sharegpt` and `messages`: every shape of a record, what each message gives, and every reason to leave one out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.records.record import Record
from pipelines.sessions.rejects import Reject
from pipelines.sessions.writing import ROLE_NAMES
from pipelines.workloads.formats import format_named, formats
from warehouse.errors import ErrorCode, KappaError

Said = list[tuple[str, str]]
HELLO: Said = [("user", "hello"), ("assistant", "hi")]


class Kept:
    """A sink that keeps everything."""

    def __init__(self) -> None:
        """Begin empty."""
        self.kept = 0
        self.uncounted_parts = 0
        self.sessions: dict[str, Said] = {}
        self.structures: list[Mapping[str, Any]] = []
        self.rejects: list[Reject] = []
        self._names: list[str] = []

    def session(self, session_id: str, path: str, record: int) -> int:
        """Begin a session."""
        del path, record
        self._names.append(session_id)
        self.sessions[session_id] = []
        return len(self._names) - 1

    def message(self, session: int, position: int, role: int, text: str) -> None:
        """Keep a message."""
        said = self.sessions[self._names[session]]
        assert position == len(said)
        said.append((ROLE_NAMES[role], text))

    def structure(self, session: int, conversation: Mapping[str, Any]) -> None:
        """Keep a structure."""
        del session
        self.structures.append(conversation)

    def reject(self, reject: Reject) -> None:
        """Keep a reject."""
        self.rejects.append(reject)


def read(form: str, *values: object, **fields: str) -> Kept:
    """Read records by a format; what is read is kept or rejected."""
    sink = Kept()
    format_named(form).read((Record("f", n, value) for n, value in enumerate(values)), fields, sink)
    assert sink.kept + len(sink.rejects) == len(values)
    return sink


LIST = [{"from": "human", "value": "hello"}, {"from": "gpt", "value": "hi"}]
COLUMNS = {"from": ["human", "gpt"], "value": ["hello", "hi"]}


@pytest.mark.parametrize(
    "shape", [LIST, COLUMNS, json.dumps(LIST), json.dumps(COLUMNS)], ids=["list", "dict", "s", "t"]
)
@pytest.mark.parametrize("key", ["conversations", "conversation", "messages"])
def test_every_shape_of_sharegpt(shape: object, key: str) -> None:
    """A list, a dict of lists, a string that is JSON; a top-level system prompt is the first message."""
    assert read("sharegpt", {"id": "a", key: shape}).sessions == {"a": HELLO}
    found = read("sharegpt", {"id": "a", "system": "Be brief.", key: shape})
    assert found.sessions == {"a": [("system", "Be brief."), *HELLO]}


def test_names_of_sessions() -> None:
    """The given name, a number too; else the number of the record."""
    found = read("sharegpt", *({"id": name, "conversations": LIST} for name in ("a", 7, None, " ", {"x": 1})))
    assert list(found.sessions) == ["a", "7", "2", "3", "4"]


def test_contents_of_messages() -> None:
    """Parts are joined by a newline, null is empty, parts without text are counted as such."""
    parts = [
        {"type": "text", "text": "a"},
        "b",
        {"type": "image_url", "image_url": {}},
        {"type": "output_text", "text": ""},
    ]
    record = {
        "messages": [
            {"role": "developer", "content": None},
            {"role": "user", "content": parts},
            {"role": "function", "name": "f", "content": "c"},
            {"role": "assistant", "content": [{"type": "input_audio", "input_audio": {}}]},
        ]
    }
    found = read("messages", record)
    # a, b and the empty text of the last part: 2 newlines
    assert found.sessions == {"0": [("system", ""), ("user", "a\nb\n"), ("tool", "c"), ("assistant", "")]}
    assert (found.uncounted_parts, found.structures) == (2, [])


def test_calls_and_reasoning() -> None:
    """`text` counts reasoning, content, name and arguments each by itself; templates get objects."""
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": "é"}'}}
    other = {"function": {"name": "g", "arguments": {"b": 1}}}
    record = {
        "messages": [
            {"role": "user", "content": "x"},
            {"role": "assistant", "reasoning": "hm", "tool_calls": [call, other]},
            {"role": "tool", "tool_call_id": "1", "content": "y"},
            {"role": "assistant", "content": "z", "function_call": {"name": "h", "arguments": "not JSON"}},
        ],
        "tools": [{"type": "function"}],
    }  # fmt: skip
    found = read("messages", record)
    assert found.sessions["0"] == [
        ("user", "x"),
        ("reasoning", "hm"), ("assistant", ""), ("assistant", "f"), ("assistant", '{"a": "é"}'),
        ("assistant", "g"), ("assistant", '{"b": 1}'),
        ("tool", "y"),
        ("assistant", "z"), ("assistant", "h"), ("assistant", "not JSON"),
    ]  # fmt: skip
    (structure,) = found.structures
    assert structure["tools"] == [{"type": "function"}]
    assert structure["messages"][1]["tool_calls"] == [
        {"id": "1", "type": "function", "function": {"name": "f", "arguments": {"a": "é"}}},
        {"type": "function", "function": {"name": "g", "arguments": {"b": 1}}},
    ]
    assert structure["messages"][1]["reasoning_content"] == "hm"
    assert structure["messages"][2] == {"role": "tool", "content": "y", "tool_call_id": "1"}
    assert structure["messages"][3]["tool_calls"][0]["function"] == {"name": "h", "arguments": "not JSON"}


USABLE = {"role": "user", "content": "x"}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "not_an_object"),
        ([USABLE], "not_an_object"),
        ({}, "missing_field"),
        ({"messages": None}, "missing_field"),
        ({"messages": "not JSON"}, "missing_field"),
        ({"messages": '"x"'}, "missing_field"),
        ({"messages": {"role": ["user"], "content": []}}, "missing_field"),
        ({"messages": []}, "no_messages"),
        ({"messages": ["x"]}, "missing_field"),
        ({"messages": [{"content": "x"}]}, "missing_field"),
        ({"messages": [{"role": "user"}]}, "missing_field"),
        ({"messages": [{"role": "user", "content": 7}]}, "missing_field"),
        ({"messages": [USABLE, {"role": "assistant"}]}, "missing_field"),
        ({"messages": [USABLE, {"role": "assistant", "tool_calls": [{}]}]}, "missing_field"),
        ({"messages": [USABLE, {"role": "assistant", "tool_calls": "f"}]}, "missing_field"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "unknown_role"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "no_request"),
        ({"messages": [USABLE], "tools": "f"}, "missing_field"),
        ({"messages": [USABLE], "system": {"a": 1}}, "missing_field"),
    ],
)
def test_why_a_record_is_left_out(value: object, reason: str) -> None:
    """Each reason, beside a record that is kept; no text of the record is in the detail."""
    found = read("messages", {"messages": [USABLE]}, value)
    assert [(reject.record, reject.reason) for reject in found.rejects] == [(1, reason)]


def test_fields_of_ones_own() -> None:
    """Dotted paths of the record and of its messages."""
    record = {"meta": {"chat": "c-1"}, "log": {"said": [{"who": "User", "what": "x"}]}}
    fields = {"session": "meta.chat", "messages": "log.said", "role": "who", "text": "what"}
    assert read("messages", record, **fields).sessions == {"c-1": [("user", "x")]}


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "system", "tool"]), st.text()), min_size=1))
def test_any_conversation_is_the_same_in_both_formats_and_all_shapes(said: Said) -> None:
    """A list, a dict of lists and JSON text give the same messages, by `sharegpt` and by `messages`."""
    listed = [{"role": role, "content": text} for role, text in said]
    sharegpt = [{"from": role, "value": text} for role, text in said]
    columns = {key: [one[key] for one in listed] for key in ("role", "content")}
    shapes = [("messages", listed), ("messages", columns), ("messages", json.dumps(listed)), ("sharegpt", sharegpt)]
    expected = {} if all(role == "assistant" for role, _ in said) else {"0": said}
    for form, shape in shapes:
        assert read(form, {"messages": shape}).sessions == expected


def test_documents() -> None:
    """A repeated document is one session, a list of questions several; the first name counts."""
    found = read(
        "documents",
        {"id": 1, "context": "long", "question": "a"},
        {"id": 2, "context": "other", "question": ["b", "c"]},
        {"id": 3, "context": "long", "question": "d"},
        {"context": "nameless", "question": ""},
        {"context": None, "question": "e"},
        {"context": "x", "question": []},
        {"context": "x", "question": [1]},
        7,
    )
    assert found.sessions["1"] == [("document", "long"), ("question", "a"), ("question", "d")]
    assert found.sessions["2"] == [("document", "other"), ("question", "b"), ("question", "c")]
    assert len(found.sessions) == 3
    assert [reject.reason for reject in found.rejects] == ["missing_field"] * 3 + ["not_an_object"]


def test_the_first_format_that_recognises_records_has_them() -> None:
    """Each format recognises its own records and no other's."""
    own = {
        "sharegpt": {"id": "a", "conversations": LIST},
        "messages": {"messages": [USABLE]},
        "documents": {"document": {"id": "d", "text": "long"}, "question": {"text": "q"}},
    }
    for name, record in own.items():
        fits = [form.name for form in formats().values() if form.looks_like([record], {}) is not None]
        assert fits == [name]
    understood = formats()["documents"].looks_like([own["documents"]], {})
    assert understood is not None
    assert understood.fields == {"document": "document.text", "question": "question.text", "session": "document.id"}


def test_an_unknown_format() -> None:
    """The known ones are named."""
    with pytest.raises(KappaError) as error:
        format_named("chatml")
    assert error.value.code == ErrorCode.UNKNOWN_NAME
    assert "sharegpt" in error.value.why

"""Chat records: every role that is known, and every way in which a record is unusable, with its reason."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.io.json_array import Cut
from pipelines.sessions.writing import ASSISTANT, SYSTEM, TOOL, USER
from pipelines.workloads.chat_records import (
    ROLES,
    UnusableError,
    cut_reject,
    kind_of,
    parse_chat,
    record_id,
    require_request,
)


def record(*messages: object, name: object = "a") -> dict[str, Any]:
    """Return a record with these messages."""
    return {"id": name, "conversations": list(messages)}


@pytest.mark.parametrize(
    ("names", "role"),
    [
        (("human", "user"), USER),
        (("gpt", "assistant", "chatgpt", "bing", "bard", "model"), ASSISTANT),
        (("system", "developer"), SYSTEM),
        (("tool", "function", "observation"), TOOL),
    ],
)
def test_roles(names: tuple[str, ...], role: int) -> None:
    """Every name of docs/turns.md has its role, and no other name is known."""
    parsed = parse_chat(record(*({"from": name, "value": "x"} for name in names)))
    assert parsed.roles == [role] * len(names)
    # 2 + 6 + 2 + 3
    assert len(ROLES) == 13


def test_other_keys_are_ignored() -> None:
    """Keys that are not needed do not matter, and text is taken as it is stored."""
    value = {"id": "a", "model": 4, "conversations": [{"from": "human", "value": " <b>x</b>\n", "markdown": None}]}
    parsed = parse_chat(value)
    # 1 message, not one character of it changed
    assert (parsed.id, parsed.roles, parsed.texts) == ("a", [USER], [" <b>x</b>\n"])


USABLE = {"from": "human", "value": "x"}


@pytest.mark.parametrize(
    ("value", "reason", "detail"),
    [
        (None, "not_an_object", "the element is absent or null"),
        ([], "not_an_object", "the element is an array"),
        ("x", "not_an_object", "the element is text"),
        (5.0, "not_an_object", "the element is a number"),
        (True, "not_an_object", "the element is a boolean"),
        ({"conversations": [USABLE]}, "missing_field", "id is absent or null"),
        (record(USABLE, name=None), "missing_field", "id is absent or null"),
        (record(USABLE, name=7.0), "missing_field", "id is a number"),
        ({"id": "a"}, "missing_field", "conversations is absent or null"),
        ({"id": "a", "conversations": None}, "missing_field", "conversations is absent or null"),
        ({"id": "a", "conversations": "x"}, "missing_field", "conversations is text"),
        ({"id": "a", "conversations": {}}, "missing_field", "conversations is an object"),
        (record(), "no_messages", "conversations is empty"),
        (record(USABLE, None), "missing_field", "message 1 is absent or null"),
        (record(USABLE, "x"), "missing_field", "message 1 is text"),
        (record({"value": "x"}), "missing_field", "from of message 0 is absent or null"),
        (record({"from": 1.0, "value": "x"}), "missing_field", "from of message 0 is a number"),
        (record({"from": "human"}), "missing_field", "value of message 0 is absent or null"),
        (record({"from": "human", "value": None}), "missing_field", "value of message 0 is absent or null"),
        (record({"from": "human", "value": ["x"]}), "missing_field", "value of message 0 is an array"),
        (record({"from": "narrator", "value": "x"}), "unknown_role", "message 0 has role 'narrator'"),
        (record({"from": "Human", "value": "x"}), "unknown_role", "message 0 has role 'Human'"),
        (record({"from": "", "value": "x"}), "unknown_role", "message 0 has role ''"),
    ],
)
def test_unusable(value: object, reason: str, detail: str) -> None:
    """Each defect has its reason, and a detail that says what was found and where."""
    with pytest.raises(UnusableError) as caught:
        parse_chat(value)
    assert (caught.value.reason, caught.value.detail) == (reason, detail)


def test_detail_holds_no_text() -> None:
    """A text that stands where something else belongs never reaches the detail; a long role is cut."""
    secret = "secret" * 20
    for value in (secret, record(secret), {"id": "a", "conversations": secret}, record({"from": secret, "value": ""})):
        with pytest.raises(UnusableError) as caught:
            parse_chat(value)
        # of a role at most 40 characters: 6 x 6 + 4
        assert caught.value.detail.count("secret") == (6 if caught.value.reason == "unknown_role" else 0)


def test_the_id_is_known_where_there_is_one() -> None:
    """The reject of a record with an id carries it; one without has none."""
    with pytest.raises(UnusableError) as caught:
        parse_chat(record(USABLE, {"from": "x", "value": ""}, name="abc_3"))
    reject = caught.value.at("f.json", 9)
    # record 9 of f.json
    assert (reject.path, reject.record, reject.session_id) == ("f.json", 9, "abc_3")
    with pytest.raises(UnusableError) as caught:
        record_id({"id": None})
    assert caught.value.session_id is None


def test_replies_alone_are_no_request() -> None:
    """A conversation needs one message that is not a reply; a system message is one."""
    with pytest.raises(UnusableError, match="no_request"):
        require_request([ASSISTANT, ASSISTANT], "a")
    # 1 message of another role is enough
    require_request([ASSISTANT, SYSTEM], "a")


def test_cuts_become_rejects() -> None:
    """An end of the file is `truncated` and no record, a broken line is `not_an_object`, both with the byte."""
    end = cut_reject("f", Cut(3, 1234567, "the file ends inside an element"))
    assert (end.record, end.level, end.reason, end.detail) == (
        3, "file", "truncated", "the file ends inside an element, at byte 1,234,567"
    )  # fmt: skip
    line = cut_reject("f", Cut(4, 12, "not JSON", "not_an_object"))
    # byte 12 needs no separator
    assert (line.record, line.level, line.reason, line.detail) == (4, "record", "not_an_object", "not JSON, at byte 12")


def test_kinds() -> None:
    """Every JSON value has a word; an integer is named too, should a reader yield one."""
    # 6 kinds of JSON values
    kinds = [kind_of(value) for value in ({}, [], "", True, 1.5, None)]
    assert kinds == ["an object", "an array", "text", "a boolean", "a number", "absent or null"]
    assert kind_of(1) == "int"

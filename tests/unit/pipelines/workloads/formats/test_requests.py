"""The format `requests`: what is recognised as one, how a record is read, and the sample of its page."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from pipelines.workloads.formats import formats
from pipelines.workloads.formats.requests import ROLES, GatewayLog, looks_like, unfolded
from pipelines.workloads.own.recognising import recognise

PAGE = (Path(__file__).parents[5] / "docs" / "workloads.md").read_text("utf8")
SECTION = PAGE.split("## Format `requests`")[1].split("\n## ")[0]
MESSAGES = [{"role": "user", "content": "Rome?"}]


def form_of(record: dict[str, Any]) -> str:
    """Return the format that has a record."""
    return next(name for name, form in formats().items() if form.looks_like([record], {}))


@pytest.mark.parametrize(
    ("record", "form"),
    [
        ({"messages": MESSAGES, "response": "A city."}, "requests"),
        ({"request": {"messages": MESSAGES}}, "requests"),
        ({"body": json.dumps({"messages": MESSAGES})}, "requests"),
        ({"prompt": "Rome?", "response": "A city."}, "requests"),
        ({"prompt": "Rome?", "model": "m", "usage": {"prompt_tokens": 9, "cached_tokens": 0}}, "requests"),
        # Whole conversations, whatever else they hold.
        ({"messages": MESSAGES, "id": "a"}, "messages"),
        (
            {"messages": [*MESSAGES, {"role": "assistant", "content": "A city."}], "model": "m", "prompt": "x"},
            "messages",
        ),
        ({"model": "m", "usage": {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 0}}}, "usage"),
    ],
)
def test_recognised(record: dict[str, Any], form: str) -> None:
    """A request has a body, or messages that end before their reply."""
    assert form_of(record) == form


@pytest.mark.parametrize(
    ("response", "reply"),
    [
        ("A city.", "A city."),
        ('{"a": 1}', '{"a": 1}'),
        ({"choices": [{"message": {"role": "assistant", "content": "A city."}}]}, "A city."),
        ({"choices": [{"text": "A city."}]}, "A city."),
        (json.dumps({"choices": [{"message": {"content": "A city."}}]}), "A city."),
        ({"content": [{"type": "text", "text": "A"}, {"type": "text", "text": "city."}]}, "A\ncity."),
        (None, None),
        ({"error": {"code": 500}}, None),
    ],
)
def test_replies(response: Any, reply: str | None) -> None:  # noqa: ANN401 - any JSON value
    """A reply is text, a message, or in the server's answer; an error is none."""
    read = GatewayLog({}).request(unfolded({"messages": MESSAGES, "response": response}))
    assert read.get("reply", {}).get("content") == reply


def test_uncounted_parts_have_a_place() -> None:
    """Message 1, after the system prompt; 3 characters of text before the image."""
    content = ["see", {"type": "image_url", "image_url": {"url": "u"}}, "it"]
    read = GatewayLog({}).request({"system": "Be brief.", "messages": [{"role": "user", "content": content}]})
    assert [part[:2] for part in read["uncounted"]] == [[1, 3]]
    assert read["messages"][1]["content"] == "see\nit"


def test_csv_with_json_in_a_column(tmp_path: Path) -> None:
    """A cell that holds the request's JSON."""
    with (tmp_path / "log.csv").open("w", encoding="utf8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["when", "call"])
        writer.writerow(["2026-11-01", json.dumps({"model": "m", "messages": MESSAGES})])
    found = recognise({"log.csv": tmp_path / "log.csv"}, "requests", {"messages": "call.messages", "time": "when"})
    assert found.form.name == "requests"
    assert [row["messages"] for row in found.rows] == [1]


def test_page() -> None:
    """The sample is recognised and read whole, and every role is named."""
    (sample,) = re.findall(r"```json\n(.*)\n```", SECTION)
    record = json.loads(sample)
    assert looks_like([record], {}) is not None
    read = GatewayLog({}).request(unfolded(record))
    assert (read["reply"]["content"], read["reported"], read["model"]) == ("A city.", (13, 0), "m")
    rows = re.findall(r"^\| ([a-z, ]+) \|", SECTION, re.MULTILINE)
    assert {name for row in rows for name in row.split(", ")} - {"role"} == {role.name for role in ROLES} - {"role"}

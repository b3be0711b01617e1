"""The content of one message: text, parts, calls and reasoning, by the rule for `messages` in docs/workloads.md."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.io.json_text import json_of
from pipelines.workloads.chat_records import UnusableError, kind_of

TEXT_PARTS = ("text", "input_text", "output_text")
Call = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Content:
    """The text of a content, and how many of its parts cannot be counted."""

    text: str
    uncounted_parts: int = 0


def content_of(value: Any, where: str) -> Content:  # noqa: ANN401 - any JSON value
    """Return the text of a content: a string, null as empty text, or parts joined by one newline as vLLM does.

    Raises:
        UnusableError: it is neither; the reason is `missing_field`.
    """
    if isinstance(value, str):
        return Content(value)
    if value is None:
        return Content("")
    if not isinstance(value, list):
        raise UnusableError("missing_field", f"{where} is {kind_of(value)}")
    texts = [_part_text(part) for part in value]
    return Content("\n".join(text for text in texts if text is not None), texts.count(None))


@dataclass(frozen=True, slots=True)
class Uncounted:
    """A part that cannot be counted: the characters of the content's text before it, and the sha256 of its JSON."""

    characters: int
    sha256: str


def uncounted_in(value: Any) -> Iterator[Uncounted]:  # noqa: ANN401 - any JSON value
    """Yield the parts of a content that cannot be counted.

    >>> [one.characters for one in uncounted_in(["see", {"type": "image_url"}, "it"])]
    [3]
    """
    before: list[str] = []
    for part in value if isinstance(value, list) else ():
        text = _part_text(part)
        if text is not None:
            before.append(text)
            continue
        whole = json.dumps(part, sort_keys=True, default=str).encode()
        yield Uncounted(len("\n".join(before)), hashlib.sha256(whole).hexdigest())


def _part_text(part: Any) -> str | None:  # noqa: ANN401 - any JSON value
    """Return the text of a part, None where it holds an image, audio, a file, or anything else that is no text."""
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping) and part.get("type", "text") in TEXT_PARTS and isinstance(part.get("text"), str):
        return str(part["text"])
    return None


def calls_of(message: Mapping[str, Any], where: str) -> list[Call]:
    """Return the calls of a message, each with `name` and `arguments`; a `function_call` is one call.

    Raises:
        UnusableError: a call has no name; the reason is `missing_field`.
    """
    listed = message.get("tool_calls")
    if not listed:
        one = message.get("function_call")
        listed = [{"function": one}] if one else []
    if not isinstance(listed, list):
        raise UnusableError("missing_field", f"tool_calls of {where} is {kind_of(listed)}")
    return [_call(call, f"call {n} of {where}") for n, call in enumerate(listed)]


def _call(call: Any, where: str) -> Call:  # noqa: ANN401 - any JSON value
    inner = call
    for key in ("function", "custom"):
        if isinstance(call, Mapping) and isinstance(call.get(key), Mapping):
            inner = call[key]
    name = inner.get("name") if isinstance(inner, Mapping) else None
    if not isinstance(name, str):
        raise UnusableError("missing_field", f"name of {where} is {kind_of(name)}")
    found = {"name": name, "arguments": inner.get("arguments", inner.get("input"))}
    return found | ({"id": call["id"]} if isinstance(call.get("id"), str) else {})


def call_texts(call: Call) -> Iterator[str]:
    """Yield what `text` counts of a call: its name, and its arguments as they are or as JSON."""
    yield call["name"]
    arguments = call["arguments"]
    if arguments is not None:
        yield arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)


def rendered_call(call: Call) -> Call:
    """Return a call as templates take it: arguments that are the JSON of an object become that object."""
    arguments = call["arguments"]
    if isinstance(arguments, str):
        try:
            read = json_of(arguments)
        except ValueError:
            read = None
        arguments = read if isinstance(read, dict) else arguments
    function = {"name": call["name"], "arguments": {} if arguments is None else arguments}
    return {"type": "function", "function": function} | ({"id": call["id"]} if "id" in call else {})


def reasoning_of(message: Mapping[str, Any], where: str) -> str:
    """Return the reasoning of a message, empty where there is none.

    Raises:
        UnusableError: it is no text; the reason is `missing_field`.
    """
    for key in ("reasoning_content", "reasoning"):
        if message.get(key):
            return content_of(message[key], f"{key} of {where}").text
    return ""


def tools_of(value: Any) -> list[Any]:  # noqa: ANN401 - any JSON value
    """Return the tools that a conversation offers: a list, or one as JSON text; none where it is absent or empty.

    Raises:
        UnusableError: it is neither; the reason is `missing_field`.
    """
    if isinstance(value, str) and value.strip():
        try:
            value = json_of(value)
        except ValueError:
            raise UnusableError("missing_field", "tools is text that is no JSON") from None
    if value is None or value in ("", []):
        return []
    if not isinstance(value, list) or not all(isinstance(tool, dict) for tool in value):
        raise UnusableError("missing_field", "tools is no list of objects")
    return value

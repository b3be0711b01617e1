"""Records that are whole conversations, in every shape that people write them: what `sharegpt` and `messages` share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.io.json_text import json_of
from pipelines.records.record import Record
from pipelines.sessions.writing import ASSISTANT, REASONING, SYSTEM, TOOL
from pipelines.workloads.chat_records import ROLES, UnusableError, kind_of, require_request
from pipelines.workloads.formats.contents import (
    Call,
    call_texts,
    calls_of,
    content_of,
    reasoning_of,
    rendered_call,
    tools_of,
)
from pipelines.workloads.formats.fields import ABSENT, first_of, name_of, paths_of
from pipelines.workloads.formats.format import Fields, Role, Sink, Understood, Value, is_majority

TEMPLATE_ROLES = {ASSISTANT: "assistant", SYSTEM: "system", TOOL: "tool"}
_EXTRAS = ("name", "tool_call_id")


@dataclass(slots=True)
class Message:
    """One message: its role, its text, and what an assistant adds."""

    role: int
    text: str
    calls: list[Call] = field(default_factory=list)
    reasoning: str = ""
    extras: dict[str, str] = field(default_factory=dict)

    def rows(self) -> Iterator[tuple[int, str]]:
        """Yield (role, text) of what `text` counts, each by itself: reasoning, content, names and arguments."""
        if self.reasoning:
            yield REASONING, self.reasoning
        yield self.role, self.text
        for call in self.calls:
            yield from ((self.role, text) for text in call_texts(call))

    def rendered(self) -> dict[str, Any]:
        """Return the message as templates take it."""
        found: dict[str, Any] = {"role": TEMPLATE_ROLES.get(self.role, "user"), "content": self.text, **self.extras}
        if self.calls:
            found["tool_calls"] = [rendered_call(call) for call in self.calls]
        if self.reasoning:
            found["reasoning_content"] = self.reasoning
        return found


class Conversations:
    """Reads records of one format; the paths of its fields are looked up once."""

    def __init__(self, roles: Sequence[Role], given: Fields) -> None:
        """Use the given paths, else the format's names."""
        self.paths = {role.name: paths_of(role, given) for role in roles}

    def write(self, records: Iterable[Record], sink: Sink) -> None:
        """Write each record as one session; a record that cannot be used is rejected with its reason."""
        for record in records:
            try:
                self._write(record, sink)
            except UnusableError as error:
                name = self.given_name(record.value)
                sink.reject(UnusableError(error.reason, error.detail, name).at(record.path, record.index))

    def _write(self, record: Record, sink: Sink) -> None:
        messages, uncounted = self.messages(record.value)
        tools = tools_of(self._value(record.value, "tools"))
        require_request([message.role for message in messages], "")
        name = self.given_name(record.value)
        session = sink.session(str(record.index) if name is None else name, record.path, record.index)
        sink.kept += 1
        sink.uncounted_parts += uncounted
        rows = [row for message in messages for row in message.rows()]
        for position, (role, text) in enumerate(rows):
            sink.message(session, position, role, text)
        if tools or len(rows) > len(messages):
            found = {"messages": [message.rendered() for message in messages]}
            sink.structure(session, found | ({"tools": tools} if tools else {}))

    def given_name(self, value: Any) -> str | None:  # noqa: ANN401 - any JSON value
        """Return the session's name, None where the record gives none."""
        return name_of(self._value(value, "session")) if isinstance(value, Mapping) else None

    def messages(self, value: Any) -> tuple[list[Message], int]:  # noqa: ANN401 - any JSON value
        """Return the messages of a record, and how many parts of theirs cannot be counted.

        Raises:
            UnusableError: with the reason `not_an_object`, `missing_field`, `no_messages` or `unknown_role`.
        """
        if not isinstance(value, Mapping):
            raise UnusableError("not_an_object", f"the element is {kind_of(value)}")
        listed = listed_messages(self._value(value, "messages"), self.paths["messages"][0])
        if not listed:
            raise UnusableError("no_messages", f"{self.paths['messages'][0]} is empty")
        system = content_of(self._value(value, "system"), "system")
        found, uncounted = [], system.uncounted_parts
        if system.text:
            found.append(Message(SYSTEM, system.text))
        for n, message in enumerate(listed):
            one, more = self._message(message, f"message {n}")
            found.append(one)
            uncounted += more
        return found, uncounted

    def _value(self, value: Any, role: str) -> Any:  # noqa: ANN401 - any JSON value
        found = first_of(value, self.paths[role]) if role in self.paths else None
        return None if found is ABSENT and role != "messages" else found

    def _message(self, message: Any, where: str) -> tuple[Message, int]:  # noqa: ANN401 - any JSON value
        if not isinstance(message, Mapping):
            raise UnusableError("missing_field", f"{where} is {kind_of(message)}")
        named = first_of(message, self.paths["role"])
        if not isinstance(named, str):
            found = None if named is ABSENT else named
            raise UnusableError("missing_field", f"{self.paths['role'][0]} of {where} is {kind_of(found)}")
        role = ROLES.get(named, ROLES.get(named.strip().lower()))
        if role is None:
            raise UnusableError("unknown_role", f"{where} has role {named[:40]!r}")
        content = first_of(message, self.paths["text"])
        if isinstance(content, str) and role != ASSISTANT:
            # The most frequent case, and the only one that has to be fast.
            return Message(role, content, extras=_extras(message) if role == TOOL else {}), 0
        calls = calls_of(message, where) if role == ASSISTANT else []
        reasoning = reasoning_of(message, where) if role == ASSISTANT else ""
        if content is ABSENT and not calls and not reasoning:
            raise UnusableError("missing_field", f"{self.paths['text'][0]} of {where} is absent")
        found = content_of(None if content is ABSENT else content, f"{self.paths['text'][0]} of {where}")
        return Message(role, found.text, calls, reasoning), found.uncounted_parts


def _extras(message: Mapping[str, Any]) -> dict[str, str]:
    return {key: message[key] for key in _EXTRAS if isinstance(message.get(key), str)}


def listed_messages(value: Any, name: str) -> list[Any]:  # noqa: ANN401 - any JSON value
    """Return the messages as a list: from a list, a dict of lists of equal length, or a string that is the JSON of one.

    Raises:
        UnusableError: it is none of them; the reason is `missing_field`.
    """
    if isinstance(value, str):
        try:
            value = json_of(value)
        except ValueError:
            raise UnusableError("missing_field", f"{name} is text that is no JSON") from None
    if isinstance(value, Mapping) and value and all(isinstance(column, list) for column in value.values()):
        if len({len(column) for column in value.values()}) > 1:
            raise UnusableError("missing_field", f"{name} holds lists of several lengths")
        return [dict(zip(value, row, strict=True)) for row in zip(*value.values(), strict=True)]
    if not isinstance(value, list):
        raise UnusableError("missing_field", f"{name} is {kind_of(None if value is ABSENT else value)}")
    return value


def recognised(
    records: Sequence[Value], given: Fields, roles: Sequence[Role], own: tuple[str, str]
) -> Understood | None:
    """Return the fields of records that are conversations whose messages have the format's `own` role and text names.

    Args:
        records: the first records.
        given: paths that the user gave.
        roles: the fields of the format.
        own: the names of role and text in a message, such as `from` and `value`.
    """
    reader, fits, seen = Conversations(roles, given), 0, ""
    by_name = {role.name: role for role in roles}
    for record in records:
        path = next((p for p in reader.paths["messages"] if first_of(record, (p,)) not in (ABSENT, None)), "")
        try:
            listed = listed_messages(first_of(record, (path,)), path) if path else []
        except UnusableError:
            continue
        wanted = [given.get(name, first) for name, first in zip(("role", "text"), own, strict=True)]
        if listed and isinstance(listed[0], Mapping) and wanted[0] in listed[0]:
            fits, seen = fits + 1, seen or path
    if not records or not is_majority(fits, len(records)):
        return None
    fields = {"messages": seen}
    for name in ("session", "system", "tools"):
        if name in by_name and (path := _used(records, reader.paths[name])):
            fields[name] = path
    fields |= dict(zip(("role", "text"), wanted, strict=True))
    how = f"{seen} of {fits} of the first {len(records)} records holds messages with {wanted[0]!r} and {wanted[1]!r}"
    return Understood(fields, how)


def _used(records: Sequence[Value], paths: tuple[str, ...]) -> str:
    """Return the first path that some record has."""
    return next((path for path in paths if any(first_of(one, (path,)) not in (ABSENT, None) for one in records)), "")


MESSAGES = Role("messages", "the messages", ("messages", "conversation", "conversations"), is_needed=True)
SESSION = Role("session", "the name of the conversation", ("id", "conversation_id", "session_id", "session"))
SYSTEM_TEXT = Role("system", "a system prompt beside the messages", ("system", "system_prompt"))

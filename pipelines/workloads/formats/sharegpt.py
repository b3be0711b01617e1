"""`sharegpt`: `{"id", "conversations": [{"from", "value"}]}`, the messages as a list, as lists, or as JSON text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipelines.records.record import Record
from pipelines.workloads.formats.conversations import MESSAGES, SESSION, SYSTEM_TEXT, Conversations, recognised
from pipelines.workloads.formats.format import Fields, Format, Role, Sink, Understood, Value

OWN = ("from", "value")
ROLES = (
    Role("messages", MESSAGES.meaning, ("conversations", "conversation", "messages"), is_needed=True),
    SESSION,
    SYSTEM_TEXT,
    Role("role", "who speaks", ("from", "role"), is_needed=True, is_of_message=True),
    Role("text", "what is said", ("value", "content", "text"), is_needed=True, is_of_message=True),
)


def looks_like(records: Sequence[Value], given: Fields) -> Understood | None:
    """Recognise messages with `from` and `value`."""
    return recognised(records, given, ROLES, OWN)


def read(records: Iterable[Record], fields: Fields, sink: Sink) -> None:
    """Write each record as one session of its messages."""
    Conversations(ROLES, fields).write(records, sink)


FORMAT = Format(
    name="sharegpt",
    order=40,
    kind="chat",
    record="a conversation, its messages with from and value",
    roles=ROLES,
    looks_like=looks_like,
    read=read,
)

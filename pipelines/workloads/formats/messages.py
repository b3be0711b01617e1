"""`messages`: `{"messages": [{"role", "content"}]}` as OpenAI's interface has it, with parts, calls and reasoning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipelines.records.record import Record
from pipelines.workloads.formats.conversations import MESSAGES, SESSION, SYSTEM_TEXT, Conversations, recognised
from pipelines.workloads.formats.format import Fields, Format, Role, Sink, Understood, Value

OWN = ("role", "content")
ROLES = (
    MESSAGES,
    SESSION,
    SYSTEM_TEXT,
    Role("tools", "the tools that are offered, for counting chat", ("tools",)),
    Role("role", "who speaks", ("role", "from"), is_needed=True, is_of_message=True),
    Role("text", "what is said: text, null or parts", ("content", "value", "text"), is_needed=True, is_of_message=True),
)


def looks_like(records: Sequence[Value], given: Fields) -> Understood | None:
    """Recognise messages with `role` and `content`."""
    return recognised(records, given, ROLES, OWN)


def read(records: Iterable[Record], fields: Fields, sink: Sink) -> None:
    """Write each record as one session of its messages."""
    Conversations(ROLES, fields).write(records, sink)


FORMAT = Format(
    name="messages",
    order=50,
    kind="chat",
    record="a conversation, its messages with role and content",
    roles=ROLES,
    looks_like=looks_like,
    read=read,
)

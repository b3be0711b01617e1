"""The format of a chat record, `{id, conversations: [{from, value}]}`, and every reason to reject one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pipelines.io.json_array import Cut
from pipelines.sessions.rejects import FILE_LEVEL, RECORD_LEVEL, Reject
from pipelines.sessions.writing import ASSISTANT, SYSTEM, TOOL, USER

ROLES = {
    **dict.fromkeys(("human", "user"), USER),
    **dict.fromkeys(("gpt", "assistant", "chatgpt", "bing", "bard", "model"), ASSISTANT),
    **dict.fromkeys(("system", "developer"), SYSTEM),
    **dict.fromkeys(("tool", "function", "observation"), TOOL),
}


class UnusableError(Exception):
    """An unusable record: the reason for `rejects`, and a detail."""

    def __init__(self, reason: str, detail: str, session_id: str | None = None) -> None:
        """Keep the reason and the detail."""
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail
        self.session_id = session_id

    def at(self, path: str, record: int) -> Reject:
        """Return it as the reject of that record."""
        return Reject(path, record, self.reason, self.detail, self.session_id)


@dataclass(frozen=True)
class Chat:
    """One conversation, or a piece of one: role codes and texts of the same length."""

    id: str
    roles: list[int]
    texts: list[str]


def record_id(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return the record's id.

    Raises:
        UnusableError: the record is not an object, or its id is absent, null or not text.
    """
    if not isinstance(value, dict):
        raise UnusableError("not_an_object", f"the element is {kind_of(value)}")
    if not isinstance(value.get("id"), str):
        raise UnusableError("missing_field", f"id is {kind_of(value.get('id'))}")
    return str(value["id"])


def parse_chat(value: Any) -> Chat:  # noqa: ANN401 - any JSON value
    """Return the conversation of a record.

    Raises:
        UnusableError: with the reason `not_an_object`, `missing_field`, `no_messages` or `unknown_role`.
    """
    name = record_id(value)
    messages = value.get("conversations")
    if not isinstance(messages, list):
        raise UnusableError("missing_field", f"conversations is {kind_of(messages)}", name)
    if not messages:
        raise UnusableError("no_messages", "conversations is empty", name)
    try:
        parsed = list(_messages(messages))
    except UnusableError as error:
        raise UnusableError(error.reason, error.detail, name) from None
    return Chat(name, [role for role, _ in parsed], [text for _, text in parsed])


def _messages(messages: list[Any]) -> Iterator[tuple[int, str]]:
    for n, message in enumerate(messages):
        if not isinstance(message, dict):
            raise UnusableError("missing_field", f"message {n} is {kind_of(message)}")
        role, text = message.get("from"), message.get("value")
        if not isinstance(role, str) or not isinstance(text, str):
            name, found = ("from", role) if not isinstance(role, str) else ("value", text)
            raise UnusableError("missing_field", f"{name} of message {n} is {kind_of(found)}")
        if role not in ROLES:
            raise UnusableError("unknown_role", f"message {n} has role {role[:40]!r}")
        yield ROLES[role], text


def require_request(roles: list[int], session_id: str) -> None:
    """Raise UnusableError (`no_request`) where a conversation has only replies."""
    if all(role == ASSISTANT for role in roles):
        raise UnusableError("no_request", f"{len(roles)} replies and no request", session_id)


def cut_reject(path: str, cut: Cut) -> Reject:
    """Return the reject of an unusable element; of the file, if the rest of it is unreadable."""
    level = FILE_LEVEL if cut.is_end else RECORD_LEVEL
    return Reject(path, cut.index, cut.reason, f"{cut.why}, at byte {cut.byte:,}", level=level)


def kind_of(value: object) -> str:
    """Return the type of a JSON value in words, without its content."""
    names = {dict: "an object", list: "an array", str: "text", bool: "a boolean", float: "a number"}
    return "absent or null" if value is None else names.get(type(value), type(value).__name__)

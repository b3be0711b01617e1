"""The declaration of a format: what a record is, its fields, how it is recognised, how records become sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pipelines.records.record import Record
from pipelines.reuse.requests import Requests
from pipelines.sessions.rejects import Reject
from pipelines.sessions.service import Service
from pipelines.workloads.declaration import Kind
from warehouse.declared.fields import HISTORY

# Paths by role, as a user gives them; roles that are not in it have the format's own names.
Fields = Mapping[str, str]
Value = Mapping[str, Any]


class Sink(Protocol):
    """What a format writes into: `pipelines.sessions.writing.SessionsWriter`, or a preview."""

    kept: int
    uncounted_parts: int

    def session(self, session_id: str, path: str, record: int) -> int:
        """Register a session that begins at a record; return its number."""

    def message(self, session: int, position: int, role: int, text: str) -> None:
        """Append one message to a session."""

    def structure(self, session: int, conversation: Mapping[str, Any]) -> None:
        """Keep a conversation whose prompts only a template can render: `messages`, and `tools` where there are."""

    def requests(self, requests: Requests, notes: list[str]) -> None:
        """Keep the requests of a log, whose sessions were registered in their order, and what the user is told."""

    def service(self, service: Service, session: Sequence[int], turn_index: Sequence[int]) -> None:
        """Keep the order of service of requests that were written by `structure`, numbered in the file's order."""

    def reject(self, reject: Reject) -> None:
        """Record a reject."""


@dataclass(frozen=True)
class Role:
    """A field of a record: what it means, and the names that are tried for it, the first that is there counts.

    Attributes:
        name: The role, as in `--field role=path`.
        meaning: What it holds, in words.
        names: Dotted paths.
        is_needed: A record without it is no record of this format.
        is_of_message: It is a field of each message, not of the record.
    """

    name: str
    meaning: str
    names: tuple[str, ...]
    is_needed: bool = False
    is_of_message: bool = False


# The share of the first records that decides about a format; the others become rejects.
LEAST_SHARE = 0.5


def is_majority(fits: int, looked_at: int) -> bool:
    """Return whether so many of the first records decide that all are of a format: half of them, and one at least.

    >>> is_majority(0, 0), is_majority(1, 2), is_majority(9, 20)
    (False, True, False)
    """
    return fits >= max(1, LEAST_SHARE * looked_at)


@dataclass(frozen=True)
class Understood:
    """What was recognised: the paths by role, and the reason in words. No text of the records is in it."""

    fields: dict[str, str]
    reason: str


@dataclass(frozen=True)
class Format:
    """One format of records.

    Attributes:
        name: As in the declaration and in `--format`.
        order: Formats are asked in this order whether they recognise some records.
        kind: What a session is.
        record: What a record is, in words.
        roles: Its fields.
        looks_like: Recognises the first records of a source, None where they are of another format.
        read: Writes the sessions of records; a record that cannot be used is a reject.
        reuse: What K is; a log that has the tokens itself says another than `history`.
    """

    name: str
    order: int
    kind: Kind
    record: str
    roles: tuple[Role, ...]
    looks_like: Callable[[Sequence[Value], Fields], Understood | None] = field(repr=False)
    read: Callable[[Iterable[Record], Fields, Sink], None] = field(repr=False)
    reuse: str = HISTORY

    def role(self, name: str) -> Role:
        """Return one role; StopIteration where there is none of that name."""
        return next(role for role in self.roles if role.name == name)

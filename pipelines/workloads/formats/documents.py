"""`documents`: a record is a document with one question or several; a repeated document is stored once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipelines.records.record import Record
from pipelines.sessions.rejects import without_surrogates
from pipelines.sessions.writing import DOCUMENT, QUESTION
from pipelines.workloads.chat_records import UnusableError, kind_of
from pipelines.workloads.formats.fields import ABSENT, first_of, name_of, paths_of
from pipelines.workloads.formats.format import Fields, Format, Role, Sink, Understood, Value, is_majority

ROLES = (
    Role(
        "document", "the long text", ("document", "context", "Context", "document.text", "passage", "article", "story"),
        is_needed=True,
    ),
    Role(
        "question", "a question about it, or a list of them",
        ("question", "Question", "question.text", "questions", "input", "query"), is_needed=True,
    ),
    Role("session", "the name of the document", ("id", "document_id", "document.id", "doc_id", "title")),
)  # fmt: skip


_KINDS: dict[str, tuple[type, ...]] = {"document": (str,), "question": (str, list), "session": (str, int)}


def looks_like(records: Sequence[Value], given: Fields) -> Understood | None:
    """Recognise a document and a question in half of the records."""
    fields = {}
    for role in ROLES:
        paths = paths_of(role, given)
        # The path that most records hold it at; one that holds something else is named where there is no other.
        there = [path for path in paths if any(first_of(one, (path,)) not in (ABSENT, None) for one in records)]
        if there:
            fields[role.name] = max(there, key=lambda path: _fitting(records, (path,), role.name))
        if role.is_needed and not is_majority(_fitting(records, paths, role.name), len(records)):
            return None
    return Understood(fields, f"the first records have {fields['document']!r} and {fields['question']!r}")


def _fitting(records: Sequence[Value], paths: tuple[str, ...], role: str) -> int:
    """Return how many records hold what a role takes at one of the paths."""
    return sum(any(isinstance(first_of(one, (path,)), _KINDS[role]) for path in paths) for one in records)


def read(records: Iterable[Record], fields: Fields, sink: Sink) -> None:
    """Write each document as one session at its first record, and each record's questions after it."""
    paths = {role.name: tuple(_text_first(paths_of(role, fields))) for role in ROLES}
    known: dict[bytes, int] = {}
    following: list[int] = []
    for record in records:
        try:
            document, questions = _parsed(record.value, paths)
        except UnusableError as error:
            sink.reject(error.at(record.path, record.index))
            continue
        key = hashlib.sha256(without_surrogates(document).encode()).digest()
        if key not in known:
            name = name_of(first_of(record.value, paths["session"])) or key.hex()
            known[key] = sink.session(name, record.path, record.index)
            following.append(1)
            sink.message(known[key], 0, DOCUMENT, document)
        session = known[key]
        for question in questions:
            sink.message(session, following[session], QUESTION, question)
            following[session] += 1
        sink.kept += 1


def _text_first(paths: tuple[str, ...]) -> Iterable[str]:
    """Return the paths with the deeper ones first: `document` may be an object that holds `document.text`."""
    return sorted(paths, key=lambda path: -path.count("."))


def _parsed(value: Any, paths: Mapping[str, tuple[str, ...]]) -> tuple[str, list[str]]:  # noqa: ANN401 - any JSON value
    if not isinstance(value, Mapping):
        raise UnusableError("not_an_object", f"the element is {kind_of(value)}")
    document, asked = first_of(value, paths["document"]), first_of(value, paths["question"])
    if not isinstance(document, str):
        raise UnusableError("missing_field", f"document is {_kind(document)}")
    questions = asked if isinstance(asked, list) else [asked]
    wrong = [question for question in questions if not isinstance(question, str)]
    if wrong or not questions:
        raise UnusableError("missing_field", f"question is {_kind(wrong[0]) if wrong else 'an empty list'}")
    return document, questions


def _kind(value: Any) -> str:  # noqa: ANN401 - any JSON value
    return kind_of(None if value is ABSENT else value)


FORMAT = Format(
    name="documents",
    order=60,
    kind="documents",
    record="a document and a question about it",
    roles=ROLES,
    looks_like=looks_like,
    read=read,
)

"""What a source holds, found out from the first records of each of its files: the format, its fields, some rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipelines.records.reading import read_records
from pipelines.records.record import Record, Unread
from pipelines.reuse.requests import Requests
from pipelines.sessions.rejects import Reject
from pipelines.sessions.service import Service
from pipelines.sessions.writing import ROLE_NAMES
from pipelines.workloads.formats import format_named, formats
from pipelines.workloads.formats.fields import ABSENT, first_of, paths_of
from pipelines.workloads.formats.format import Fields, Format, Understood, Value
from warehouse.errors import ErrorCode, KappaError

FIRST_RECORDS = 20
SHOWN_ROWS = 3
_SHOWN_KEYS, _KEY_CHARACTERS = 12, 40
_LENGTHS = ({"contexttokens", "generatedtokens"}, {"input_length", "output_length"}, {"num_prefill_tokens"})
Answer = tuple[Format, Understood]


@dataclass
class Preview:
    """A sink that keeps what a row of each session says of it, without its text."""

    kept: int = 0
    uncounted_parts: int = 0
    rows: list[dict[str, object]] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    prompts: list[Mapping[str, Any]] = field(default_factory=list)

    def session(self, session_id: str, path: str, record: int) -> int:
        """Begin a row."""
        self.rows.append(
            {"file": path, "record": record, "session": session_id, "messages": 0, "roles": "", "characters": 0}
        )
        return len(self.rows) - 1

    def message(self, session: int, position: int, role: int, text: str) -> None:
        """Add a message to a row."""
        del position
        row, name = self.rows[session], ROLE_NAMES[role]
        row["messages"] = int(str(row["messages"])) + 1
        row["characters"] = int(str(row["characters"])) + len(text)
        if name not in str(row["roles"]).split():
            row["roles"] = f"{row['roles']} {name}".strip()

    def structure(self, session: int, conversation: Mapping[str, Any]) -> None:
        """Note the tools that a session offers."""
        if session >= len(self.rows):
            # A request: its session is known when all were read.
            self.prompts.append(conversation)
        elif conversation.get("tools"):
            self.rows[session]["roles"] = f"{self.rows[session]['roles']} tools"

    def requests(self, requests: Requests, notes: list[str]) -> None:
        """Make the rows those of the first requests, which have tokens in the place of text."""
        del notes
        sessions = self.rows
        self.rows = [
            {
                "session": sessions[session]["session"],
                "turn_index": int(requests.turn_index[number]),
                "context_tokens": int(requests.context_tokens[number]),
                "cached_tokens": int(requests.cached_tokens[number]),
                "output_tokens": int(requests.output_tokens[number]) if requests.has_output[number] else None,
            }
            for number, session in enumerate(requests.session[:SHOWN_ROWS].tolist())
        ]

    def service(self, service: Service, session: Sequence[int], turn_index: Sequence[int]) -> None:
        """Make the rows those of the first requests in order of service."""
        sessions = self.rows
        self.rows = [
            {
                "session": sessions[number]["session"],
                "turn_index": turn,
                "messages": len(prompt.get("messages", ())),
                "characters": sum(len(one["content"]) for one in prompt.get("messages", ()))
                + len(prompt.get("prompt", "")),
                "reply": "known" if "reply" in prompt else "unknown",
            }
            for number, turn, prompt in zip(
                session[:SHOWN_ROWS],
                turn_index,
                (self.prompts[place] for place in service.order.tolist()),
                strict=False,
            )
        ]

    def reject(self, reject: Reject) -> None:
        """Keep a reject."""
        self.rejects.append(reject)


@dataclass(frozen=True)
class Recognised:
    """What a source holds.

    Attributes:
        form: The format.
        understood: The paths of its fields, and the reason in words.
        rows: Some of its sessions, without text.
        looked_at: Number of first records that were read.
        rejects: Those of them that cannot be used.
    """

    form: Format
    understood: Understood
    rows: list[dict[str, object]]
    looked_at: int
    rejects: list[Reject]


def recognise(files: Mapping[str, Path], format_name: str | None, given: Fields) -> Recognised:
    """Return the format, the fields and some rows of a source from the first records of each of its files.

    Args:
        files: the files by their names.
        format_name: the format that the user gave, or None.
        given: the paths by role that the user gave.

    Raises:
        KappaError: there is no record, no format fits, or two files are of two formats; it says what was seen.
    """
    asked = [format_named(format_name)] if format_name else list(formats().values())
    found: tuple[str, Answer, list[Record]] | None = None
    why = "the first lines hold none"
    for name, path in files.items():
        items = list(itertools.islice(read_records(path, name), FIRST_RECORDS))
        records = [one for one in items if isinstance(one, Record)]
        if not records:
            why = next((f"the first one: {one.detail}" for one in items if isinstance(one, Unread)), why)
            continue
        answer = _answer(name, records, asked, given, format_name)
        if found is None:
            found = name, answer, records
        elif found[1][0] is not answer[0]:
            what = f"{found[0]} and {name} are of two formats"
            why = f"the first is {found[1][0].name}, the other {answer[0].name}"
            raise KappaError(what, why, "add each by itself", code=ErrorCode.WRONG_KIND)
    if found is None:
        what = f"{', '.join(list(files)[:3])} holds no record"
        raise KappaError(what, why, "name a file with records", code=ErrorCode.NO_RECORD)
    form, understood = found[1]
    return _shown(form, understood, given, found[2])


def _answer(name: str, records: list[Record], asked: list[Format], given: Fields, format_name: str | None) -> Answer:
    values = [record.value for record in records if isinstance(record.value, Mapping)]
    for form in asked:
        roles = {role.name for role in form.roles}
        if values and set(given) <= roles and (understood := form.looks_like(values, given)) is not None:
            return form, understood
    seen = f"its records have {_keys(values)}" if values else "its records are no objects"
    if values and any(needed <= {key.lower() for key in values[0]} for needed in _LENGTHS):
        why = f"{seen}: lengths without identities of blocks or sessions say nothing of reuse"
        raise KappaError(f"{name} cannot be a workload", why, "give a log with hash_ids", code=ErrorCode.LENGTHS_ALONE)
    # The format that most records by themselves are of.
    for form in sorted(asked, key=lambda one: -sum(one.looks_like([value], given) is not None for value in values)):
        if (found := _unusable(form, given, records)) is not None:
            what = f"{name} is not {form.name}, whose fields it has"
            raise KappaError(what, found, "mend it, or name its fields", code=ErrorCode.NO_RECORD)
    wanted = "; ".join(f"{form.name}: {_needs(form, given)}" for form in asked)
    what = f"{name} is not {format_name}" if format_name else f"{name} is of no known format"
    remedy = "name what differs with --field ROLE=PATH" + ("" if format_name else ", and the format with --format")
    raise KappaError(what, f"{seen}, needed is {wanted}", remedy, code=ErrorCode.WRONG_KIND)


def _unusable(form: Format, given: Fields, records: Sequence[Record]) -> str | None:
    """Return why most records that have the fields of a format cannot be used; None where they lack one."""
    values = [record.value for record in records if isinstance(record.value, Mapping)]
    needed = [paths_of(role, given) for role in form.roles if role.is_needed and not role.is_of_message]
    if not needed or any(all(first_of(one, paths) is ABSENT for one in values) for paths in needed):
        return None
    preview = Preview()
    try:
        form.read(records, given, preview)
    except KappaError as error:
        return error.why
    if not preview.rejects:
        return None
    first = preview.rejects[0].detail
    return f"of its first {len(records)} records {len(preview.rejects)} cannot be used, the first one: {first}"


def _keys(values: Sequence[Value]) -> str:
    keys = list(dict.fromkeys(str(key) for value in values for key in value))
    shown = ", ".join(key[:_KEY_CHARACTERS] for key in keys[:_SHOWN_KEYS])
    more = f" and {len(keys) - _SHOWN_KEYS} more" if keys[_SHOWN_KEYS:] else ""
    return f"the keys {shown}{more}" if keys else "no keys"


def _needs(form: Format, given: Fields) -> str:
    needed = [role for role in form.roles if role.is_needed]
    return ", ".join(f"{role.name} ({given.get(role.name) or ' or '.join(role.names)})" for role in needed)


def _shown(form: Format, understood: Understood, given: Fields, records: Iterable[Record]) -> Recognised:
    records, preview = list(records), Preview()
    form.read(records, given, preview)
    if not preview.kept:
        why = f"of its first {len(records)} records none can be used, the first one: {preview.rejects[0].detail}"
        raise KappaError(
            f"{records[0].path} is {form.name}", why, "mend it, or name its fields", code=ErrorCode.NO_RECORD
        )
    return Recognised(form, understood, preview.rows[:SHOWN_ROWS], len(records), preview.rejects)

"""What the formats without text share: requests as they are read, then in order of service, and rejects."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pipelines.records.record import Record
from pipelines.reuse.requests import Ints, Requests, turn_indices
from pipelines.sessions.rejects import Reject
from pipelines.sessions.service import Service
from pipelines.turns.derivation import Turns
from pipelines.workloads.formats.cells import at, is_empty
from pipelines.workloads.formats.fields import paths_of
from pipelines.workloads.formats.format import Fields, Role, Sink, Understood, Value
from warehouse.errors import ErrorCode, KappaError

# A record: its file, its number there from 0, and its value, most often a dict.
Records = Iterable[tuple[str, int, object]]


class Unusable(Exception):  # noqa: N818 - a reason for `rejects`, no fault of the program
    """Why a record, or a request in one, is left out: the reason for `rejects`, and what was found."""

    def __init__(self, reason: str, detail: str) -> None:
        """Keep both."""
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


def object_of(value: object) -> dict[str, Any]:
    """Return a record that is an object.

    Raises:
        Unusable: it is none.
    """
    if not isinstance(value, dict):
        raise Unusable("not_an_object", "the record is no object")
    return value


@dataclass
class Read:
    """Requests in the order of the file, as columns that grow.

    Attributes:
        prompt: n of each request in tokens.
        output: Tokens of the reply, -1 where the log has none.
        instant: Time in nanoseconds; None where it is absent or cannot be read.
        timed: Number of requests that give a time.
        session: Name of each request's session.
        paths: File of each request's record, as `numbers` is its number there.
        current: File and number of the record that is being read.
        records: Records read, by file; each is kept or in `rejects`.
        notes: What the user is told, a sentence each.
    """

    prompt: array[int] = field(default_factory=lambda: array("q"))
    output: array[int] = field(default_factory=lambda: array("q"))
    instant: list[int | None] = field(default_factory=list)
    timed: int = 0
    session: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    numbers: array[int] = field(default_factory=lambda: array("q"))
    current: tuple[str, int] = ("", 0)
    records: Counter[str] = field(default_factory=Counter)
    kept: int = 0
    rejects: list[Reject] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, session: str, prompt: int, output: int | None, instant: int | None, *, is_timed: bool) -> None:
        """Append a request."""
        self.session.append(session)
        self.paths.append(self.current[0])
        self.numbers.append(self.current[1])
        self.prompt.append(prompt)
        self.output.append(-1 if output is None else output)
        self.instant.append(instant)
        self.timed += is_timed

    def session_codes(self) -> tuple[list[str], Ints]:
        """Return the names of the sessions as they first appear, and the place of each request's among them."""
        numbers: dict[str, int] = {}
        codes = [numbers.setdefault(name, len(numbers)) for name in self.session]
        return list(numbers), np.array(codes, np.int64)


@dataclass(frozen=True)
class Logged:
    """What a log without text gives: requests in order of service with K of each, rejects, and what was read.

    Attributes:
        requests: The requests; with identities of their blocks where the format has them.
        origins: File and number of the record in which each session begins.
        reuse: `prefix` or `reported`.
        rejects: Records left out, and requests of records that are kept.
        records: Records read by file; records = kept + rejects of level record.
        kept: Records of which at least one request is kept.
        notes: What the user is told, a sentence each.
    """

    requests: Requests
    origins: list[tuple[str, int]]
    reuse: str
    rejects: list[Reject]
    records: Mapping[str, int]
    kept: int
    notes: list[str]

    def turns(self) -> Turns:
        """Return the requests as turns, in order of service."""
        return turns_of(self.requests)


def turns_of(requests: Requests) -> Turns:
    """Return requests as turns, in order of service."""
    of, cached = requests, requests.cached_tokens
    return Turns(of.session, of.turn_index, cached, of.context_tokens - cached, of.output_tokens, of.has_output)


def plain(records: Iterable[Record]) -> Iterator[tuple[str, int, object]]:
    """Yield records as files, numbers and values."""
    for record in records:
        yield record.path, record.index, record.value


def understood(
    records: Sequence[Value], given: Fields, roles: Sequence[Role], reason: str, inside: tuple[str, ...] = ()
) -> Understood:
    """Return the first path of each role that some record holds, in itself or in one of the places `inside`."""
    fields: dict[str, str] = {}
    for role in roles:
        paths = paths_of(role, given)
        paths = (*paths, *(f"{place}.{path}" for place in inside for path in paths))
        found = [path for path in paths if any(not is_empty(at(record, path)) for record in records)]
        fields |= {role.name: found[0]} if found else {}
    return Understood(fields, reason)


def counted_records(records: Records, read: Read) -> Iterator[tuple[str, int, object]]:
    """Yield the records and count them by file."""
    for path, index, value in records:
        read.records[path] += 1
        read.current = path, index
        yield path, index, value


def served(  # noqa: PLR0913, PLR0917 - the columns of `Requests` that differ by format
    read: Read,
    service: Service,
    cached: Ints,
    block_tokens: int,
    offsets: Ints,
    ids: Ints,
    reuse: str,
    lookup: Ints,
) -> Logged:
    """Return what was read in order of service; the arrays are in that order already."""
    sessions, session = read.session_codes()
    order = service.order
    output = np.array(read.output, np.int64)[order]
    requests = Requests(
        block_tokens=block_tokens,
        sessions=sessions,
        session=session[order],
        turn_index=turn_indices(session[order]),
        context_tokens=np.array(read.prompt, np.int64)[order],
        cached_tokens=cached,
        output_tokens=np.maximum(output, 0),
        has_output=output >= 0,
        arrival_s=service.arrival_s,
        offsets=offsets,
        ids=ids,
        lookup_blocks=lookup,
    )
    first = np.unique(session, return_index=True)[1].tolist()
    origins = [(read.paths[place], read.numbers[place]) for place in first]
    notes = [*read.notes, *([service.note] if service.note else [])]
    return Logged(requests, origins, reuse, read.rejects, read.records, read.kept, notes)


def write_log(logged: Logged, sink: Sink) -> None:
    """Write what a log gives: its sessions, requests, rejects and notes."""
    for name, (path, record) in zip(logged.requests.sessions, logged.origins, strict=True):
        sink.session(name, path, record)
    sink.requests(logged.requests, logged.notes)
    for reject in logged.rejects:
        sink.reject(reject)
    sink.kept += logged.kept


def lengths_alone() -> KappaError:
    """Return the error of a log that has lengths of requests alone (rule 17)."""
    return KappaError(
        "the log has lengths of requests and nothing that tells what they share",
        "without identities of blocks, sessions or reported cached tokens nothing is known of reuse",
        "use it for arrivals alone, or log hash_ids, session ids or cached tokens",
        code=ErrorCode.LENGTHS_ALONE,
    )

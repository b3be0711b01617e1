"""The format `trace`: requests with the identities of their prompts' blocks, in the forms of three known traces.

Mooncake: a row a request, times in milliseconds, blocks of 512. Bailian: rows with `chat_id`, seconds, blocks of 16
that are hashed one by one. Sessions: a record with its `requests` and a `block_size`, identities of the session's own
where `hash_id_scope` is `local`, and subagents with requests of their own.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pipelines.records.record import Record
from pipelines.reuse.given import leading_left
from pipelines.reuse.leading import cached_by_blocks
from pipelines.sessions.rejects import TURN_LEVEL, Reject
from pipelines.sessions.service import Service
from pipelines.workloads.formats.blocks import BlockColumns
from pipelines.workloads.formats.cells import BadNumberError, first_at, is_empty, list_of, tokens_of
from pipelines.workloads.formats.fields import name_of, paths_of
from pipelines.workloads.formats.format import Fields, Format, Role, Sink, Understood, Value, is_majority
from pipelines.workloads.formats.instants import MILLISECOND, SECOND, instant_of, order_of_service
from pipelines.workloads.formats.logged import (
    Logged,
    Read,
    Records,
    Unusable,
    counted_records,
    lengths_alone,
    object_of,
    plain,
    served,
    understood,
    write_log,
)
from warehouse.declared.fields import PREFIX
from warehouse.errors import ErrorCode, KappaError

MOONCAKE_BLOCK, BAILIAN_BLOCK = 512, 16
ROLES = (
    Role("blocks", "the identities of the prompt's blocks", ("hash_ids",), is_needed=True),
    Role("prompt_tokens", "tokens of the prompt", ("input_length", "in"), is_needed=True),
    Role("output_tokens", "tokens of the reply", ("output_length", "out")),
    Role("time", "when the request arrived", ("timestamp", "t", "time")),
    Role("session", "the chat that the request belongs to", ("chat_id", "session_id")),
    Role("parent", "the chat before it", ("parent_chat_id",)),
    Role("block_tokens", "tokens of a block", ("block_size",)),
    Role("reply_blocks", "the identities of the blocks that the reply leaves", ("reply_hash_ids",)),
)
_NO_PARENT = ("", "-1")


def read(records: Records, fields: Mapping[str, str]) -> Logged:
    """Return the requests of a trace with K = min(B h, n - 1), h the leading identities that an earlier one held.

    Requests are served in order of time; without times, or with one that cannot be read, in the order of the file.
    Sessions as records are served one after the other, each by the times of its requests.

    Args:
        records: The records of all files.
        fields: Paths by role, where they are not the usual ones; the roles are those of `ROLES`.

    Raises:
        KappaError: no request of any record can be used; records name two sizes of blocks.
    """
    trace = _Trace({role.name: paths_of(role, fields) for role in ROLES})
    for path, index, value in counted_records(records, trace.read):
        trace.add(path, index, value)
    return trace.finished()


@dataclass
class _Trace:
    """What was read so far."""

    paths: Mapping[str, tuple[str, ...]]
    read: Read = field(default_factory=Read)
    blocks: BlockColumns = field(default_factory=BlockColumns)
    records: array[int] = field(default_factory=lambda: array("q"))
    parents: dict[str, str] = field(default_factory=dict)
    is_of_sessions: bool = False
    lengths_only: int = 0

    def add(self, path: str, index: int, value: object) -> None:
        """Take the request of a record, or those of a session, or reject the record."""
        try:
            record = object_of(value)
            if list_of(record.get("requests")) is not None:
                self._add_session(path, index, record)
            else:
                self._add_row(record)
            self.read.kept += 1
        except Unusable as error:
            self.read.rejects.append(Reject(path, index, error.reason, error.detail, self._session_of(value)))
        except BadNumberError as error:
            self.read.rejects.append(Reject(path, index, "bad_number", str(error), self._session_of(value)))

    def _session_of(self, value: object) -> str | None:
        return name_of(first_at(value, ("id", *self.paths["session"])))

    def _add_row(self, value: dict[str, Any]) -> None:
        number = str(self.read.records.total() - 1)
        name = name_of(first_at(value, self.paths["session"]))
        is_chat = name is not None and "chat_id" in value
        if is_chat:
            parent = name_of(first_at(value, self.paths["parent"])) or ""
            self.parents.setdefault(str(name), parent)
        block = self._block_tokens(value, BAILIAN_BLOCK if is_chat else MOONCAKE_BLOCK)
        self.blocks.is_chained |= is_chat
        unit = SECOND if is_chat else MILLISECOND
        self._request(value, name or number, block, scope=0, unit_ns=unit, may_repeat=is_chat)

    def _add_session(self, path: str, index: int, value: dict[str, Any]) -> None:
        record = self.read.records.total()
        block = self._block_tokens(value, 0)
        if not block:
            raise Unusable("missing_field", "a session needs its block_size")
        scope = record if value.get("hash_id_scope") == "local" else 0
        name = name_of(value.get("id")) or str(record - 1)
        before, rejects = len(self.read.session), []
        for number, (session, request) in enumerate(_streams(list_of(value["requests"]) or [], name)):
            try:
                self._request(request, session, block, scope=scope, unit_ns=SECOND, may_repeat=False)
            except (Unusable, BadNumberError) as error:
                reason = error.reason if isinstance(error, Unusable) else "bad_number"
                detail = error.detail if isinstance(error, Unusable) else str(error)
                rejects.append(Reject(path, index, reason, f"request {number}: {detail}", session, TURN_LEVEL))
        if len(self.read.session) == before:
            first = rejects[0] if rejects else Reject(path, index, "no_messages", "the session has no request")
            raise Unusable(first.reason, first.detail)
        self.read.rejects += rejects
        self.is_of_sessions = True

    def _block_tokens(self, value: dict[str, Any], usual: int) -> int:
        given = tokens_of(first_at(value, self.paths["block_tokens"]), "block_size")
        if given == 0:
            raise BadNumberError("block_size is 0")
        return given or usual

    def _request(  # noqa: PLR0913 - what differs between the forms
        self, value: object, session: str, block: int, *, scope: int, unit_ns: int, may_repeat: bool
    ) -> None:
        """Append a request; Unusable or BadNumberError where it must be left out, and then it leaves no identities."""
        prompt = tokens_of(first_at(value, self.paths["prompt_tokens"]), "the length of the prompt")
        output = tokens_of(first_at(value, self.paths["output_tokens"]), "the length of the reply")
        given = first_at(value, self.paths["blocks"])
        ids = list_of(given)
        if prompt is None:
            raise Unusable("missing_field", "the length of the prompt is absent or null")
        if ids is None:
            self.lengths_only += is_empty(given)
            raise Unusable("missing_field", "the identities of its blocks are absent or no list")
        if not prompt:
            raise Unusable("empty_turn", "a prompt of no token")
        if len(ids) not in (prompt // block, -(-prompt // block)):
            detail = f"{len(ids):,} identities for {prompt:,} tokens in blocks of {block:,}"
            raise Unusable("hash_mismatch", detail)
        reply = list_of(first_at(value, self.paths["reply_blocks"])) or []
        numbers = self.blocks.numbers([*ids, *reply])
        if not may_repeat and len(set(numbers)) < len(numbers):
            raise Unusable("hash_mismatch", "an identity is twice in the request")
        time = first_at(value, self.paths["time"])
        instant = None if is_empty(time) else instant_of(time, unit_ns)
        self.read.add(session, prompt, output, instant, is_timed=not is_empty(time))
        self.blocks.add(numbers, scope, block, len(ids))
        self.records.append(self.read.records.total())

    def finished(self) -> Logged:
        """Return the requests in order of service, with K."""
        self._require_requests()
        read = self.read
        read.session = [self._oldest(name) for name in read.session] if self.parents else read.session
        service = self._service()
        offsets, codes, first = self.blocks.in_order(service.order)
        (block,) = self.blocks.sizes
        lookup = np.array(self.blocks.lookups, np.int64)[service.order]
        leading = np.minimum(leading_left(codes, first, offsets), lookup)
        cached = cached_by_blocks(leading, np.array(read.prompt, np.int64)[service.order], block)
        return served(read, service, cached, block, offsets, codes, PREFIX, lookup)

    def _require_requests(self) -> None:
        if len(self.blocks.sizes) > 1:
            sizes = " and ".join(f"{size:,}" for size in sorted(self.blocks.sizes))
            what, remedy = f"the trace has blocks of {sizes} tokens", "make one workload of each size"
            raise KappaError(what, "identities of blocks of two sizes cannot meet", remedy, code=ErrorCode.BAD_FILE)
        if self.read.session:
            return
        if self.lengths_only and self.lengths_only >= len(self.read.rejects):
            raise lengths_alone()
        first = self.read.rejects[0].detail if self.read.rejects else "there is no record"
        raise KappaError("the trace holds no usable request", first, "look at its records", code=ErrorCode.NO_RECORD)

    def _service(self) -> Service:
        read = self.read
        if not self.is_of_sessions:
            return order_of_service(read.instant, given=read.timed)
        # Times count from the begin of each session: sessions follow one another, an unread time keeps one's own order.
        record = np.array(self.records, np.int64)
        unread = np.unique(record[[instant is None for instant in read.instant]])
        is_timed = ~np.isin(record, unread)
        times = np.where(is_timed, np.array([instant or 0 for instant in read.instant], np.int64), 0)
        note = f"{len(unread):,} sessions have a time that cannot be read: their requests are in the order of the file"
        return Service(np.lexsort((times, record)), None, note if len(unread) and read.timed else "")

    def _oldest(self, name: str) -> str:
        """Return the oldest ancestor of a chat that is in the file; in a circle the first that comes again."""
        seen: set[str] = set()
        while name not in seen and (parent := self.parents.get(name, "")) not in _NO_PARENT and parent in self.parents:
            seen.add(name)
            name = parent
        return name


def _streams(requests: list[Any], session: str) -> Iterator[tuple[str, object]]:
    """Yield the requests of a session and of its subagents, whose session is `session::sa:agent_id`."""
    for number, request in enumerate(requests):
        if isinstance(request, dict) and request.get("type") == "subagent":
            agent = name_of(request.get("agent_id")) or str(number)
            yield from _streams(list_of(request.get("requests")) or [], f"{session}::sa:{agent}")
        else:
            yield session, request


def looks_like(records: Sequence[Value], given: Fields) -> Understood | None:
    """Recognise identities of blocks in half of the records, or in the requests of each."""
    blocks, found, fits = paths_of(ROLES[0], given), [*records], 0
    for record in records:
        inner = [one for one in list_of(record.get("requests")) or [] if isinstance(one, dict)]
        is_row = first_at(record, blocks) is not None
        fits += is_row or any(first_at(one, (*blocks, "requests")) is not None for one in inner)
        found += inner
    if not is_majority(fits, len(records)):
        return None
    return understood(found, given, ROLES, f"identities of blocks in {blocks[0]}")


def write(records: Iterable[Record], fields: Fields, sink: Sink) -> None:
    """Write the requests of a trace, as `read` returns them."""
    write_log(read(plain(records), fields), sink)


FORMAT = Format(
    name="trace",
    order=10,
    kind="requests",
    record="a request with the identities of its blocks, or a session of them",
    roles=ROLES,
    looks_like=looks_like,
    read=write,
    reuse=PREFIX,
)

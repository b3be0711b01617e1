"""The format `usage`: what a server said of each request, prompt tokens and those of them that it found in its cache.

Vendors name and split them in different ways: cached tokens within the prompt's (OpenAI, vLLM, SGLang, DeepSeek) or in
addition to `input_tokens` (Anthropic), or plain columns K and T.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pipelines.records.record import Record
from pipelines.sessions.rejects import Reject
from pipelines.workloads.formats.cells import BadNumberError, at, first_at, is_empty, tokens_of
from pipelines.workloads.formats.fields import name_of, paths_of
from pipelines.workloads.formats.format import Fields, Format, Role, Sink, Understood, Value, is_majority
from pipelines.workloads.formats.instants import instant_of, order_of_service
from pipelines.workloads.formats.logged import (
    Logged,
    Read,
    Records,
    Unusable,
    counted_records,
    object_of,
    plain,
    served,
    understood,
    write_log,
)
from warehouse.declared.fields import REPORTED
from warehouse.errors import ErrorCode, KappaError

ROLES = (
    Role("prompt_tokens", "tokens of the prompt", ("prompt_tokens", "input_tokens")),
    Role(
        "cached_tokens",
        "those of them that the server found in its cache",
        (
            "prompt_tokens_details.cached_tokens",
            "input_tokens_details.cached_tokens",
            "prompt_cache_hit_tokens",
            "cached_tokens",
        ),
        is_needed=True,
    ),
    Role("prefill_tokens", "the other tokens of the prompt, in the place of all", ("prefill_tokens",)),
    Role("output_tokens", "tokens of the reply", ("completion_tokens", "output_tokens")),
    Role("time", "when the request arrived", ("timestamp", "time", "created", "created_at")),
    Role("session", "the session that it belongs to", ("session_id", "session", "conversation_id")),
)
# Where the counts of a response are, if not in the record itself.
_INSIDE = ("usage", "response.usage", "response.body.usage")
_READ, _CREATED = "cache_read_input_tokens", "cache_creation_input_tokens"


def read(records: Records, fields: Mapping[str, str]) -> Logged:
    """Return the requests of a usage log with K = min(cached tokens that were reported, n - 1), n the prompt's tokens.

    A request that reports none between others that do has K = 0, and a note says how many there are.

    Args:
        records: The records of all files.
        fields: Paths by role, where they are not the usual ones; the roles are those of `ROLES`.

    Raises:
        KappaError: no request can be used, or no one reports cached tokens.
    """
    usage = _Usage(fields)
    for path, index, value in counted_records(records, usage.read):
        usage.add(path, index, value)
    return usage.finished()


@dataclass
class _Usage:
    """What was read so far; `cached` is -1 where nothing is reported."""

    fields: Mapping[str, str]
    read: Read = field(default_factory=Read)
    cached: array[int] = field(default_factory=lambda: array("q"))

    @cached_property
    def paths(self) -> dict[str, tuple[str, ...]]:
        """Paths by role."""
        return {role.name: paths_of(role, self.fields) for role in ROLES}

    def add(self, path: str, index: int, value: object) -> None:
        """Take the request of a record, or reject it."""
        try:
            self._add(object_of(value))
            self.read.kept += 1
        except Unusable as error:
            self.read.rejects.append(Reject(path, index, error.reason, error.detail, self._session_of(value)))
        except BadNumberError as error:
            self.read.rejects.append(Reject(path, index, "bad_number", str(error), self._session_of(value)))

    def is_counted(self, record: object) -> bool:
        """Return whether a record has tokens of a prompt, in whatever names."""
        try:
            return self.counts(object_of(record))[0] is not None
        except (Unusable, BadNumberError):
            return False

    def _session_of(self, value: object) -> str | None:
        return name_of(first_at(value, self.paths["session"]))

    def _add(self, record: dict[str, Any]) -> None:
        prompt, cached = self.counts(record)
        if prompt is None:
            raise Unusable("missing_field", "the tokens of the prompt are absent or null")
        if not prompt:
            raise Unusable("empty_turn", "a prompt of no token")
        if cached is not None and cached > prompt:
            raise BadNumberError(f"{cached:,} cached tokens of a prompt of {prompt:,}")
        output = tokens_of(self._found(record, "output_tokens"), "the tokens of the reply")
        time = first_at(record, self.paths["time"])
        instant = None if is_empty(time) else instant_of(time)
        session = self._session_of(record) or str(self.read.records.total() - 1)
        self.read.add(session, prompt, output, instant, is_timed=not is_empty(time))
        self.cached.append(-1 if cached is None else cached)

    def counts(self, record: dict[str, Any]) -> tuple[int | None, int | None]:
        """Return n and the cached tokens among them, None where they are not given."""
        counts = next((inner for path in _INSIDE if isinstance(inner := at(record, path), dict)), record)
        own = self.fields.keys() & {"prompt_tokens", "cached_tokens", "prefill_tokens"}
        if not own and "input_tokens" in counts and (_READ in counts or _CREATED in counts):
            return self._anthropic(counts)
        cached = tokens_of(self._found(record, "cached_tokens"), "the number of cached tokens")
        prompt = tokens_of(self._found(record, "prompt_tokens"), "the number of prompt tokens")
        prefill = tokens_of(self._found(record, "prefill_tokens"), "the number of new tokens")
        if prompt is None and prefill is not None:
            prompt = prefill + (cached or 0)
        return prompt, cached

    @staticmethod
    def _anthropic(counts: dict[str, Any]) -> tuple[int | None, int | None]:
        """Return n, the sum of three counts that exclude one another, and what was read from the cache."""
        new, cached, created = (tokens_of(counts.get(name), name) for name in ("input_tokens", _READ, _CREATED))
        if cached is None and created is None:
            return new, None
        return None if new is None else new + (cached or 0) + (created or 0), cached or 0

    def _found(self, record: dict[str, Any], role: str) -> Any:  # noqa: ANN401 - any JSON value
        return first_at(record, self._where(role))

    def _where(self, role: str) -> tuple[str, ...]:
        """Return the paths of a role: the one that the user names, else those where vendors put it."""
        paths = self.paths[role]
        if role in self.fields:
            return paths
        return (*paths, *(f"{inside}.{path}" for inside in _INSIDE for path in paths))

    def finished(self) -> Logged:
        """Return the requests in order of service, with K."""
        read, reported = self.read, np.array(self.cached, np.int64)
        if not len(reported):
            first = read.rejects[0].detail if read.rejects else "there is no record"
            raise KappaError("the log holds no usable request", first, "look at its records", code=ErrorCode.NO_RECORD)
        silent = int((reported < 0).sum())
        if silent == len(reported):
            raise self._nothing_reported()
        if silent:
            read.notes.append(f"{silent:,} of {len(reported):,} requests report no cached tokens: taken as none")
        service = order_of_service(read.instant, given=read.timed)
        cached = np.minimum(np.maximum(reported, 0), np.array(read.prompt, np.int64) - 1)[service.order]
        offsets, none = np.zeros(len(reported) + 1, np.int64), np.zeros(0, np.int64)
        return served(read, service, cached, 0, offsets, none, REPORTED, np.diff(offsets))

    @staticmethod
    def _nothing_reported() -> KappaError:
        return KappaError(
            "no request of the log reports cached tokens",
            "nothing is known of reuse: the server was not asked to report it",
            "start it so that it does (vLLM: --enable-prompt-tokens-details, SGLang: --enable-cache-report)",
            code=ErrorCode.NO_CACHED_TOKENS,
        )


def reported_by(record: object) -> tuple[int, int] | None:
    """Return the tokens of the prompt and those of them that the server found in its cache; None where it says not."""
    try:
        prompt, cached = _Usage({}).counts(object_of(record))
    except (Unusable, BadNumberError):
        return None
    return None if prompt is None or cached is None or cached > prompt else (prompt, cached)


def looks_like(records: Sequence[Value], given: Fields) -> Understood | None:
    """Recognise tokens of a prompt in half of the records, and cached tokens, be they null, in one."""
    usage = _Usage(given)
    if not is_majority(sum(usage.is_counted(record) for record in records), len(records)):
        return None
    names = [name for name in (*usage.paths["cached_tokens"], _READ) if any(_named(record, name) for record in records)]
    return understood(records, given, ROLES, f"tokens of a prompt and {names[0]}", _INSIDE) if names else None


def write(records: Iterable[Record], fields: Fields, sink: Sink) -> None:
    """Write the requests of a usage log, as `read` returns them."""
    write_log(read(plain(records), fields), sink)


def _named(record: object, path: str) -> bool:
    """Return whether a record has a path, or the object that would hold it, be it null."""
    head = path.rpartition(".")[0] or path
    places = [record, *(at(record, inside) for inside in _INSIDE)]
    return any(isinstance(place, dict) and (path in place or head in place) for place in places)


FORMAT = Format(
    name="usage",
    order=20,
    kind="requests",
    record="a request with the cached tokens that the server reported",
    roles=ROLES,
    looks_like=looks_like,
    read=write,
    reuse=REPORTED,
)

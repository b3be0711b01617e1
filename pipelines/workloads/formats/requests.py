"""`requests`: the log of a gateway, one request to a server a record, with its messages or its prompt."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.io.json_text import json_of
from pipelines.records.record import Record
from pipelines.reuse.chains import Chains
from pipelines.sessions.rejects import without_surrogates
from pipelines.sessions.writing import ASSISTANT
from pipelines.workloads.chat_records import UnusableError, kind_of
from pipelines.workloads.formats.cells import at, first_at, is_empty
from pipelines.workloads.formats.contents import Uncounted, content_of, tools_of, uncounted_in
from pipelines.workloads.formats.conversations import Conversations, Message, listed_messages
from pipelines.workloads.formats.fields import ABSENT, first_of, name_of, paths_of
from pipelines.workloads.formats.format import Fields, Format, Role, Sink, Understood, Value, is_majority
from pipelines.workloads.formats.instants import instant_of, order_of_service
from pipelines.workloads.formats.logged import understood
from pipelines.workloads.formats.usage import reported_by
from warehouse.declared.fields import PREFIX

# Where a gateway keeps the body of the request, and the server's answer, as an object or as its JSON.
_REQUEST = ("request", "request_body", "body", "payload", "request.body")
_RESPONSE = ("response", "response_body", "response.body")


def _within(*names: str) -> tuple[str, ...]:
    return (*names, *(f"{place}.{name}" for name in names for place in _REQUEST))


ROLES = (
    Role("messages", "the messages of the prompt", _within("messages")),
    Role("prompt", "the prompt as text, in the place of messages", _within("prompt")),
    Role(
        "response",
        "the reply: text, a message, or the server's answer",
        (
            *(f"{place}{end}" for end in ("choices.0.message", "choices.0.text") for place in ("", "response.")),
            *(f"{place}.{end}" for end in ("choices.0.message", "choices.0.text") for place in _RESPONSE[1:]),
            "response.message", "response.content", "response", "completion", "reply",
        ),
    ),
    Role("time", "when the request arrived", ("timestamp", "time", "created_at", "created", "start_time")),
    Role("session", "the session that it belongs to", ("session_id", "session", "conversation_id")),
    Role("model", "the model that answers", (*_within("model"), "response.model")),
    Role("system", "a system prompt beside the messages", _within("system")),
    Role("tools", "the tools that are offered", _within("tools")),
    Role("role", "who speaks", ("role",), is_of_message=True),
    Role("text", "what is said: text, null or parts", ("content", "text"), is_of_message=True),
)  # fmt: skip


@dataclass
class _Read:
    """What places requests in sessions, in the order of the file.

    Attributes:
        said: What identifies each message of a request, 16 bytes each.
        given: The name of its session, None where it names none.
    """

    origins: list[tuple[str, int]] = field(default_factory=list)
    instants: list[int | None] = field(default_factory=list)
    timed: int = 0
    said: list[list[bytes]] = field(default_factory=list)
    model: list[str] = field(default_factory=list)
    given: list[str | None] = field(default_factory=list)


class GatewayLog:
    """Reads the records of one log; the paths of its fields are looked up once."""

    def __init__(self, given: Fields) -> None:
        """Use the given paths, else the format's names."""
        self.paths = {role.name: paths_of(role, given) for role in ROLES}
        self.columns = {path.partition(".")[0] for path in given.values() if "." in path}
        self.conversations = Conversations(ROLES, given)
        self.read = _Read()

    def write(self, records: Iterable[Record], sink: Sink) -> None:
        """Write each record as one request, then the sessions; a record that cannot be used is a reject."""
        for record in records:
            value = unfolded(record.value, self.columns)
            try:
                request = self.request(value)
            except UnusableError as error:
                name = name_of(first_at(value, self.paths["session"])) if isinstance(value, Mapping) else None
                sink.reject(UnusableError(error.reason, error.detail, name).at(record.path, record.index))
                continue
            self._place(record, value, request)
            sink.structure(sink.kept, request)
            sink.kept += 1
            sink.uncounted_parts += len(request.get("uncounted", []))
        self._serve(sink)

    def request(self, value: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
        """Return a request as it is staged: messages or prompt, tools, reply, model, what cannot be counted, report.

        Raises:
            UnusableError: with the reason `not_an_object`, `missing_field`, `no_messages` or `unknown_role`.
        """
        if not isinstance(value, Mapping):
            raise UnusableError("not_an_object", f"the element is {kind_of(value)}")
        found: dict[str, Any] = {"model": without_surrogates(str(first_at(value, self.paths["model"]) or ""))}
        if is_empty(first_at(value, self.paths["messages"])) and self._prompt(value) is not None:
            found["prompt"] = self._prompt(value)
        else:
            found |= self._messages(value)
            if tools := tools_of(first_at(value, self.paths["tools"])):
                found["tools"] = tools
        reply, report = self._reply(first_at(value, self.paths["response"])), reported_by(value)
        return found | ({} if reply is None else {"reply": reply}) | ({} if report is None else {"reported": report})

    def _prompt(self, value: Value) -> str | None:
        found = first_of(value, self.paths["prompt"])
        if found is ABSENT:
            return None
        if found is None or isinstance(found, str):
            return found
        raise UnusableError("missing_field", f"{self.paths['prompt'][0]} is {kind_of(found)}")

    def _messages(self, value: Value) -> dict[str, Any]:
        messages, _ = self.conversations.messages(value)
        listed = listed_messages(first_at(value, self.paths["messages"]), self.paths["messages"][0])
        before = len(messages) - len(listed)
        uncounted = [
            [number + before, one.characters, one.sha256]
            for number, message in enumerate(listed)
            for one in uncounted_in(first_at(message, self.paths["text"]))
        ]
        system = [[0, one.characters, one.sha256] for one in self._system_parts(value)] if before else []
        found = {"messages": [message.rendered() for message in messages]}
        return found | ({"uncounted": system + uncounted} if system or uncounted else {})

    def _system_parts(self, value: Value) -> Iterator[Uncounted]:
        return uncounted_in(first_at(value, self.paths["system"]))

    def _reply(self, value: Any) -> dict[str, Any] | None:  # noqa: ANN401 - any JSON value
        """Return the reply as a message that a template takes, None where it is not known."""
        if is_empty(value):
            return None
        if isinstance(value, Mapping):
            if first_at(value, ("content", "tool_calls", "function_call", "reasoning_content", "reasoning")) is None:
                return None
            # An answer may lack its role.
            messages, _ = self.conversations.messages({"messages": [{**value, "role": "assistant"}]})
            return messages[0].rendered()
        return Message(ASSISTANT, content_of(value, "response").text).rendered()

    def _place(self, record: Record, value: Value, request: dict[str, Any]) -> None:
        read, time = self.read, first_at(value, self.paths["time"])
        read.origins.append((record.path, record.index))
        read.instants.append(None if time is None else instant_of(time))
        read.timed += time is not None
        read.said.append(list(_said(request)))
        read.model.append(request["model"])
        read.given.append(name_of(first_at(value, self.paths["session"])))

    def _serve(self, sink: Sink) -> None:
        """Register the sessions in order of service, and keep the order."""
        read, chains = self.read, Chains()
        service = order_of_service(read.instants, given=read.timed)
        numbers: dict[tuple[bool, str], int] = {}
        session, turn_index = [], []
        order = service.order.tolist()
        for at_file in order:
            given = read.given[at_file]
            place = chains.place(read.said[at_file], model=read.model[at_file], session=given)
            key = given is None, place.session
            if key not in numbers:
                path, record = read.origins[at_file]
                numbers[key] = sink.session(str(record) if given is None else given, path, record)
            session.append(numbers[key])
            turn_index.append(place.turn_index)
        sink.service(service, session, turn_index)


def _said(request: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield what identifies each message of a request: all that a template takes, and what cannot be counted."""
    parts: dict[int, list[list[Any]]] = {}
    for part in request.get("uncounted", []):
        parts.setdefault(part[0], []).append(part[1:])
    for number, message in enumerate(request.get("messages", [])):
        whole = json.dumps([message, parts.get(number, [])], sort_keys=True, default=str)
        yield hashlib.blake2b(whole.encode(), digest_size=16).digest()


def unfolded(value: Any, columns: Iterable[str] = ()) -> Any:  # noqa: ANN401 - any JSON value
    """Return a record whose request and answer are objects, where a cell of CSV or a text holds their JSON.

    >>> unfolded({"request": '{"prompt": "a"}', "note": "{}"})
    {'request': {'prompt': 'a'}, 'note': '{}'}
    """
    if not isinstance(value, Mapping):
        return value
    places = {*_REQUEST, *_RESPONSE, "usage", *columns}
    found = {name: _object(inner) if name in places else inner for name, inner in value.items()}
    inner = found.get("request"), found.get("response")
    for name, one in zip(("request", "response"), inner, strict=True):
        if isinstance(one, dict) and isinstance(one.get("body"), str):
            found[name] = {**one, "body": _object(one["body"])}
    return found


def _object(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return the object that a text holds as JSON, and anything else as it is."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            read = json_of(value)
        except ValueError:
            return value
        # A reply may be JSON itself; an answer has the keys of one.
        known = {"choices", "content", "message", "messages", "prompt", "usage", "prompt_tokens", "input_tokens"}
        return read if isinstance(read, dict) and known & read.keys() else value
    return value


def looks_like(records: Sequence[Value], given: Fields) -> Understood | None:
    """Recognise requests: a body, a prompt with what a gateway adds, or messages that end before their reply."""
    log = GatewayLog(given)
    values = [unfolded(record, log.columns) for record in records]
    fits = [value for value in values if _is_request(value, log)]
    if not records or not is_majority(len(fits), len(records)):
        return None
    return understood(fits, given, ROLES, f"{len(fits)} of the first {len(records)} records are requests to a server")


def _is_request(value: Value, log: GatewayLog) -> bool:
    added = [name for name in ("response", "time", "model") if first_at(value, log.paths[name]) is not None]
    where = next((path for path in log.paths["messages"] if not is_empty(at(value, path))), None)
    if where is None:
        return bool(added) and isinstance(first_at(value, log.paths["prompt"]), str)
    try:
        listed = listed_messages(at(value, where), where)
    except UnusableError:
        return False
    last = listed[-1] if listed else None
    if not isinstance(last, Mapping) or "role" not in last:
        return False
    return "." in where or (bool(added) and last["role"] != "assistant")


def read(records: Iterable[Record], fields: Fields, sink: Sink) -> None:
    """Write the requests of a log, their sessions and their order."""
    GatewayLog(fields).write(records, sink)


FORMAT = Format(
    name="requests",
    order=15,
    kind="prompts",
    record="a request to a server, its messages or its prompt",
    roles=ROLES,
    looks_like=looks_like,
    read=read,
    reuse=PREFIX,
)

"""K and T of conversations with tools, calls or reasoning: only their template says what a prompt of theirs is.

Each prompt is rendered; its tokens are counted once for each part of it that ends with an end of turn, so a prompt
that begins as the one before it costs its new parts. docs/workloads.md has the rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipelines.chat.layout import Ints
from pipelines.chat.pieces import shared_tokens
from pipelines.counting.engines import Counter, Ids, Rendered, TemplateRefusedError

# What a reply looks like while its turn goes on: as it is rendered before a tool's answer.
_PROBE = "kappa-probe-of-a-tool"
Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SessionTurns:
    """The turns of one conversation, shape (turns,) each; K and T are 0 from the turn on whose prompt is refused."""

    cached: Ints
    prefill: Ints
    output: Ints


class _Session:
    """Renders and counts the prompts of one conversation."""

    def __init__(self, conversation: Mapping[str, Any], render: Rendered, counter: Counter, end_of_turn: str) -> None:
        self.messages: list[Message] = conversation["messages"]
        self.tools: list[Any] | None = conversation.get("tools")
        self.render, self.counter, self.end = render, counter, end_of_turn
        self.end_ids = counter.encode(end_of_turn)
        self.known: dict[str, Ids] = {}

    def prompt(self, end: int) -> str:
        """Return the prompt of the messages before `end`."""
        return self.render(self.messages[:end], self.tools, True)

    def ids(self, text: str) -> Ids:
        """Return the tokens of a text, those of its parts put together where the end of a turn is one token."""
        if len(self.end_ids) != 1:
            return self.counter.encode(text)
        *whole, last = text.split(self.end)
        parts = [part + self.end for part in whole] + ([last] if last else [])
        for part in parts:
            if part not in self.known:
                self.known[part] = self.counter.encode(part)
        return np.concatenate([np.empty(0, np.uint32), *(self.known[part] for part in parts)])

    def generated(self, prompt: str, end: int) -> Ids:
        """Return the tokens of the reply at `end` as the model wrote them, its end of turn included.

        A plain reply is its text by itself; reasoning and calls are in the template's form.
        """
        reply = self.messages[end]
        if reply.get("tool_calls") or reply.get("reasoning_content"):
            probe = {"role": "tool", "content": _PROBE}
            try:
                whole = self.render([*self.messages[:end], reply, probe], self.tools, False)
            except TemplateRefusedError:
                return np.concatenate([*map(self.counter.encode, _texts(reply)), self.end_ids])
            stop = whole.rfind(self.end, 0, whole.rfind(_PROBE))
            if whole.startswith(prompt) and stop >= len(prompt):
                return self.ids(whole[len(prompt) : stop] + self.end)
        return np.concatenate([self.counter.encode(reply["content"]), self.end_ids])

    def others(self, end: int) -> int:
        """Return the tokens of the replies after the first one at `end`, with an end of turn each."""
        count = 0
        for reply in self.messages[end + 1 :]:
            if reply["role"] != "assistant":
                break
            count += sum(len(self.counter.encode(text)) for text in _texts(reply)) + len(self.end_ids)
        return count


def _texts(reply: Message) -> list[str]:
    """Return the texts of a reply, each counted by itself, where its template does not say more."""
    functions = [call["function"] for call in reply.get("tool_calls", [])]
    called = [text for function in functions for text in (function["name"], str(function["arguments"]))]
    return [reply.get("reasoning_content", ""), reply["content"], *called]


def session_turns(
    conversation: Mapping[str, Any], render: Rendered, counter: Counter, end_of_turn: str
) -> SessionTurns:
    """Return K, T and output of the turns of a conversation.

    Args:
        conversation: `messages`, and `tools` where there are, as templates take them.
        render: the text of a prompt, see `rendered_prompts`.
        counter: the engine; it must be able to encode.
        end_of_turn: the text that ends a turn.

    Source: docs/turns.md, "Chats, counting `chat`".
    """
    session = _Session(conversation, render, counter, end_of_turn)
    rows: list[tuple[int, int, int]] = []
    computed: Ids | None = None
    for end, ids, reply in _computed(session):
        if ids is None:
            rows.append((0, 0, 0))
            continue
        cached = 0 if computed is None else min(shared_tokens(ids, computed), len(ids) - 1)
        others = session.others(end) if end < len(session.messages) else 0
        rows.append((cached, len(ids) - cached, len(reply) + others))
        computed = np.concatenate((ids, reply))
    found = np.array(rows, np.int64).reshape(-1, 3)
    return SessionTurns(found[:, 0], found[:, 1], found[:, 2])


def left_by_turns(
    conversation: Mapping[str, Any], render: Rendered, counter: Counter, end_of_turn: str
) -> Iterator[Ids]:
    """Yield the token ids that each turn leaves: its prompt, the reply and its end; nothing where it is refused."""
    for _, ids, reply in _computed(_Session(conversation, render, counter, end_of_turn)):
        yield np.empty(0, np.uint32) if ids is None else np.concatenate((ids, reply))


def _computed(session: _Session) -> Iterator[tuple[int, Ids | None, Ids]]:
    """Yield the end of each turn's prompt, the tokens of the prompt, None from a refused one on, and of the reply."""
    is_refused, none = False, np.empty(0, np.uint32)
    for end in prompt_ends(session.messages):
        has_reply = end < len(session.messages)
        try:
            prompt = "" if is_refused else session.prompt(end)
        except TemplateRefusedError:
            is_refused = True
        if is_refused:
            yield end, None, none
        else:
            yield end, session.ids(prompt), session.generated(prompt, end) if has_reply else none


def prompt_ends(messages: list[Message]) -> Iterator[int]:
    """Yield the end of each turn's prompt: after each run of messages that are no replies.

    >>> list(prompt_ends([{"role": role} for role in ("system", "user", "assistant", "tool", "assistant")]))
    [2, 4]
    """
    for place, message in enumerate(messages):
        is_last = place + 1 == len(messages)
        if message["role"] != "assistant" and (is_last or messages[place + 1]["role"] == "assistant"):
            yield place + 1

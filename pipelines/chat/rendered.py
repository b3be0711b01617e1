"""K and T by a template of which only the text is known: every prompt is rendered, each of its parts tokenised once.

Time is quadratic in the turns of a session for rendering, linear for tokens. Memory holds the sessions that are not
yet whole in the order of the texts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.chat.documents import PROBES, document_content
from pipelines.chat.layout import Bools, Ints, Layout
from pipelines.chat.official import PROBE_CHATS, Chat
from pipelines.chat.pieces import shared_tokens
from pipelines.chat.prompts import prompt_ranges, with_ends_of_turn
from pipelines.chat.templates import ROLE_OF
from pipelines.counting.engines import Counter, Ids, rendered_prompts
from pipelines.counting.segments import Segments
from pipelines.sessions.writing import DOCUMENT, USER
from pipelines.turns.derivation import Turns, chat_turns, document_turns
from pipelines.vocab.files import TokenizerFile
from warehouse.errors import ErrorCode, KappaError

_SAID = "Xyzzy."


class Prompts:
    """The prompts of a template, as text and as tokens."""

    def __init__(self, file: TokenizerFile, template: str, counter: Counter) -> None:
        """Render some small conversations: a template that cannot say what was said is refused.

        Raises:
            KappaError: it refuses a question, or drops it.
        """
        self._render = rendered_prompts(file, template)
        self.segments = Segments(file, counter)
        self.end_of_turn = counter.encode(file.spec.template.end_of_turn)
        self._require(file.spec.name)
        known = [text for chat in PROBE_CHATS if (text := self.text(chat)) is not None]
        if not self.segments.agrees(known):
            self.segments.whole()

    def _require(self, name: str) -> None:
        chat = [(USER, _SAID)]
        try:
            text, again = (self._render(_messages(chat), None, True) for _ in range(2))
            why = "it drops the question" if _SAID not in text else "it renders another text each time"
            is_usable = _SAID in text and text == again
        except Exception as error:  # noqa: BLE001 - a template may raise anything
            why, is_usable = f"it refuses a single question ({type(error).__name__}: {error})", False
        if not is_usable:
            remedy = "correct the template, or leave it out and count `text` alone"
            what = f"the chat template of tokenizer {name} is not usable"
            raise KappaError(what, why, remedy, code=ErrorCode.NO_TEMPLATE)

    def text(self, chat: Chat) -> str | None:
        """Return the prompt of some messages, None where the template refuses them."""
        try:
            return self._render(_messages(chat), None, True)
        except Exception:  # noqa: BLE001 - a template may raise anything
            return None

    def ids(self, chat: Chat) -> Ids | None:
        """Return the token ids of the prompt, None where the template refuses the messages."""
        text = self.text(chat)
        return None if text is None else self.segments.encode(text)


def rendered_turns(
    batches: Iterable[pa.Array], layout: Layout, prompts: Prompts, tokens: Ints
) -> tuple[Turns, Ints, Ints, Bools]:
    """Return the turns of chats, the first message and the end of each one's prompt, and which the template refuses.

    Refused turns have K = T = 0.

    Args:
        batches: The texts in file order.
        layout: Their sessions, roles and order.
        prompts: The template.
        tokens: Tokens of each bare text by session and position.
    """
    session, role = layout.sorted_session, layout.sorted_role
    text = chat_turns(session, role, tokens)
    first, end = prompt_ranges(session, role)
    turns_of = _ranges(text.session)
    cached, length = np.zeros(len(end), np.int64), np.zeros(len(end), np.int64)
    for number, chat in _sessions(batches, layout):
        left: Ids | None = None
        for turn in turns_of.get(number, range(0)):
            stop = int(end[turn] - first[turn])
            prompt = prompts.ids(chat[:stop])
            if prompt is not None:
                length[turn] = len(prompt)
                cached[turn] = 0 if left is None else min(shared_tokens(prompt, left), len(prompt) - 1)
                reply = prompts.segments.encode(chat[stop][1]) if stop < len(chat) else np.empty(0, np.uint32)
                left = np.concatenate((prompt, reply, prompts.end_of_turn))
    turns = dataclasses.replace(text, cached=cached, prefill=length - cached, refused=length == 0)
    return with_ends_of_turn(turns, session, role, end), first, end, length == 0


def rendered_questions(
    batches: Iterable[pa.Array], layout: Layout, prompts: Prompts, tokens: Ints
) -> tuple[Turns, Ints, Ints, Bools]:
    """Return the same for documents with their questions (docs/turns.md)."""
    text = document_turns(layout.sorted_session, layout.sorted_role, tokens)
    asks = np.flatnonzero(layout.sorted_role != DOCUMENT)
    turns_of = _ranges(text.session)
    cached, length = np.zeros(len(asks), np.int64), np.zeros(len(asks), np.int64)
    for number, chat in _sessions(batches, layout):
        document = chat[0][1]
        probes = [prompts.ids([(USER, document_content(document, probe))]) for probe in PROBES]
        for turn, (_, question) in zip(turns_of.get(number, range(0)), chat[1:], strict=True):
            prompt = prompts.ids([(USER, document_content(document, question))])
            if prompt is not None and probes[0] is not None and probes[1] is not None:
                length[turn] = len(prompt)
                shared = [shared_tokens(*probes), *(shared_tokens(prompt, probe) for probe in probes)]  # type: ignore[arg-type]
                cached[turn] = min(len(prompt) - 1, *shared)
    turns = dataclasses.replace(text, cached=cached, prefill=length - cached, refused=length == 0)
    return turns, asks - turns.turn_index - 1, asks + 1, length == 0


def _sessions(batches: Iterable[pa.Array], layout: Layout) -> Iterator[tuple[int, list[tuple[int, str]]]]:
    """Yield each session with its messages by position, as soon as it is whole."""
    places = np.empty(len(layout.order), np.int64)
    ordered = layout.sorted_session
    starts = np.searchsorted(ordered, ordered)
    places[layout.order] = np.arange(len(ordered)) - starts
    sizes = np.bincount(layout.session) if len(layout.session) else np.empty(0, np.int64)
    held: dict[int, list[tuple[int, int, str]]] = {}
    row = 0
    for texts in batches:
        for text in texts.to_pylist():
            number = int(layout.session[row])
            messages = held.setdefault(number, [])
            messages.append((int(places[row]), int(layout.role[row]), text))
            row += 1
            if len(messages) == sizes[number]:
                del held[number]
                yield number, [(role, text) for _, role, text in sorted(messages)]


def _ranges(session: Ints) -> dict[int, range]:
    """Return the range of each session's turns; sessions rise."""
    starts = np.flatnonzero(np.diff(session, prepend=-1) != 0)
    ends = np.append(starts[1:], len(session))
    return {int(session[a]): range(int(a), int(b)) for a, b in zip(starts, ends, strict=False)}


def _messages(chat: Chat) -> list[dict[str, Any]]:
    return [{"role": ROLE_OF.get(role, "user"), "content": text} for role, text in chat]

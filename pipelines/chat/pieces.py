"""Tokens of each message's piece of a prompt, and the part of a reply that a later prompt shares: one pass over texts.

Memory holds a batch of texts and some numbers a message. `prompts` puts pieces together into prompts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.chat.layout import Bools, Ints, Layout
from pipelines.chat.templates import (
    ROLE_OF,
    Message,
    header,
    is_query,
    is_separable,
    piece,
    shown,
)
from pipelines.counting.engines import Counter, Ids
from pipelines.sessions.writing import ASSISTANT, TOOL, USER
from pipelines.vocab.specs import TemplateFacts

_SPACE, _ASCII = 0x20, 0x80


@dataclasses.dataclass(frozen=True, slots=True)
class Pieces:
    """Counts of each message in tokens, in the order of the texts; shape (messages,) each.

    Attributes:
        header: Tokens of the generation header (a single number).
        early: Tokens of the message's piece before the last query.
        late: Tokens of its piece after the last query.
        shared_early: For a reply: the length of the common prefix of [generation header, reply, end of turn] and its
            early piece; 0 for other messages.
        shared_late: The same for its late piece.
        twist: Length of the common prefix of the late and the early piece, -1 where they are the same text.
        is_query: The message moves the point after which thinking is shown.
        is_open: One of those prefixes reaches the end of a piece and may continue into the next piece.
        is_direct: The piece's own text was tokenised, instead of using the message's tokens.
    """

    header: int
    early: Ints
    late: Ints
    shared_early: Ints
    shared_late: Ints
    twist: Ints
    is_query: Bools
    is_open: Bools
    is_direct: Bools

    def taken(self, rows: Ints) -> Pieces:
        """Return the counts of some messages."""
        names = [field.name for field in dataclasses.fields(self) if field.name != "header"]
        return Pieces(self.header, **{name: getattr(self, name)[rows] for name in names})


def shared_tokens(left: Ids, right: Ids) -> int:
    """Return the length of the common prefix of two lists: [1 2 3] and [1 2 4 5] share 2."""
    length = min(len(left), len(right))
    differs = left[:length] != right[:length]
    return int(differs.argmax()) if differs.any() else length


class _Builder:
    """Computes the counts batch after batch."""

    def __init__(self, facts: TemplateFacts, layout: Layout, tokens: Ints, counter: Counter) -> None:
        self.facts, self.layout, self.tokens, self.counter = facts, layout, tokens, counter
        self.opening_ids = counter.encode(header(facts, "assistant"))
        self.closing_ids = counter.encode(facts.end_of_turn)
        # The first tokens of everything that can follow a reply in a prompt.
        pieces = [piece(facts, Message(role, "")) for role in (USER, *ROLE_OF)]
        self.beginnings = {int(counter.encode(text)[0]) for text in (header(facts, "assistant"), *pieces)}
        size = len(tokens)
        early = tokens + self._frames()
        reply = np.where(layout.role == ASSISTANT, len(self.opening_ids) + tokens + len(self.closing_ids), 0)
        self.pieces = Pieces(
            header=len(self.opening_ids),
            early=early,
            late=early.copy(),
            shared_early=reply,
            shared_late=reply.copy(),
            twist=np.full(size, -1, np.int64),
            is_query=layout.role == USER,
            is_open=np.zeros(size, np.bool_),
            is_direct=np.zeros(size, np.bool_),
        )

    def _frames(self) -> Ints:
        """Return the tokens that a piece adds to its message's text where it holds that text unchanged."""
        roles = [USER, *ROLE_OF]
        keys = [(role, is_first) for role in roles for is_first in (False, True)]
        counts = self.counter.count_strings([piece(self.facts, Message(role, "", first)) for role, first in keys])
        table = np.zeros((max(roles) + 1, 2), np.int64)
        for (role, is_first), count in zip(keys, counts.tolist(), strict=True):
            table[role, int(is_first)] = count
        return np.asarray(table[self.layout.role, self.layout.is_first.astype(np.int8)], np.int64)

    def add(self, first_row: int, texts: pa.Array) -> None:
        """Correct the counts of the messages of a batch whose piece changes their text."""
        role = self.layout.role[first_row : first_row + len(texts)]
        for at in np.flatnonzero(_suspects(texts, role)).tolist():
            row, text = first_row + at, texts[at].as_py()
            message = self._message(row, text)
            self.pieces.is_query[row] = is_query(self.facts, message.role, text)
            as_it_is = message.role != TOOL and shown(self.facts, message) == text and is_separable(text)
            if not as_it_is:
                self._count(row, message)

    def _message(self, row: int, text: str) -> Message:
        layout = self.layout
        flags = (bool(some[row]) for some in (layout.is_first, layout.after_tool, layout.before_tool))
        return Message(int(layout.role[row]), text, *flags)

    def _count(self, row: int, message: Message) -> None:
        pieces, facts = self.pieces, self.facts
        pieces.is_direct[row] = True
        early = piece(facts, message)
        if message.role != ASSISTANT:
            pieces.early[row] = pieces.late[row] = self.counter.count(pa.array([early], pa.large_string()))[0]
            return
        late = piece(facts, message, is_late=True)
        early_ids = self.counter.encode(early)
        late_ids = early_ids if late == early else self.counter.encode(late)
        reply = np.concatenate((self.opening_ids, self.counter.encode(message.text), self.closing_ids))
        pieces.early[row], pieces.late[row] = len(early_ids), len(late_ids)
        pieces.shared_early[row] = shared_tokens(reply, early_ids)
        pieces.shared_late[row] = shared_tokens(reply, late_ids)
        pieces.is_open[row] = self._goes_on(early_ids, reply) or self._goes_on(late_ids, reply)
        if late != early:
            pieces.twist[row] = shared_tokens(late_ids, early_ids)
            pieces.is_open[row] |= self._goes_on(early_ids, late_ids) or self._goes_on(late_ids, early_ids)

    def _goes_on(self, ids: Ids, longer: Ids) -> bool:
        """Return whether a piece is a prefix of the longer one and the text after it may share more of that."""
        shared = shared_tokens(ids, longer)
        return shared == len(ids) < len(longer) and int(longer[shared]) in self.beginnings


def count_pieces(
    batches: Iterable[pa.Array], layout: Layout, facts: TemplateFacts, counter: Counter, tokens: Ints
) -> Pieces:
    """Return the counts of each message, in the order of the texts.

    A message's own tokens come from `tokens`. Only texts that their piece changes (trimmed blank edges, leading line
    breaks, thinking, tools) are tokenised again, once for each form of the piece.

    Args:
        batches: The texts, large_string or string, in file order.
        layout: Their sessions, roles and order.
        facts: The facts of the template.
        counter: The engine; it must be able to encode.
        tokens: Tokens of each bare text, shape (messages,).

    Raises:
        ValueError: The numbers of texts, tokens and rows differ.
    """
    if len(tokens) != len(layout.role):
        raise ValueError(f"{len(tokens)} token counts for {len(layout.role)} messages")
    builder, row = _Builder(facts, layout, tokens, counter), 0
    for texts in batches:
        builder.add(row, texts.cast(pa.large_string()))
        row += len(texts)
    if row != len(tokens):
        raise ValueError(f"{row} texts for {len(tokens)} messages")
    return builder.pieces


def _suspects(texts: pa.Array, role: npt.NDArray[np.int8]) -> Bools:
    """Return which texts need a check: a tool's, with an edge that may be blank, with a thinking tag."""
    if len(texts) == 0:
        return np.zeros(0, np.bool_)
    _, offsets, letters = texts.buffers()
    ends = np.frombuffer(memoryview(offsets or bytes(8)), np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(memoryview(letters or b"\0"), np.uint8)
    found = role == TOOL
    for edge in (ends[:-1], ends[1:] - 1):
        letter = data[np.clip(edge, 0, len(data) - 1)]
        found = found | (letter <= _SPACE) | (letter >= _ASCII)
    # A regular expression search is 30 times as fast here as a substring search.
    marks = pc.match_substring_regex(texts, "</think>").to_numpy(zero_copy_only=False).astype(np.bool_)
    wrapped = pc.starts_with(texts, "<tool_response>").to_numpy(zero_copy_only=False).astype(np.bool_)
    return np.asarray(found | marks | wrapped, np.bool_)

"""K, T and kappa_ratio of every turn from the token counts of messages: the rules of docs/turns.md, vectorised.

Arrays are one element a message, sorted by session and position. This module reads no file and knows no tokenizer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipelines.sessions.writing import ASSISTANT, DOCUMENT, REASONING

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Turns:
    """One element a turn, including rejected turns, those with K + T = 0.

    `session`, `turn_index` identify a turn; `cached` is K, `prefill` is T, `output` the tokens of its replies if
    `has_output`, all in tokens. `refused` are turns whose prompt the chat template refuses, with K + T = 0.
    """

    session: Ints
    turn_index: Ints
    cached: Ints
    prefill: Ints
    output: Ints
    has_output: Bools
    refused: Bools | None = None

    @property
    def is_empty(self) -> Bools:
        """Turns with K + T = 0, which are rejected: as `template` where they are refused, else as `empty_turn`."""
        empty: Bools = self.cached + self.prefill == 0
        return empty


def chat_turns(session: Ints, role: npt.NDArray[np.int8], tokens: Ints) -> Turns:
    """Return the turns of chats.

    A turn is a maximal run of non-assistant messages. T is the tokens of that run, K of everything before it;
    opening replies belong to the first T; where T would be 0 and K > 0, one token moves from K to T. Reasoning is
    output only: no later prompt holds it.

    Roles as in `pipelines.sessions.writing`; [user 3, assistant 2, user 1] gives (K, T) = (0, 3), (5, 1).
    Source: docs/turns.md, after arXiv 2601.19910, section 3.
    """
    is_reply = (role == ASSISTANT) | (role == REASONING)
    opens = np.diff(session, prepend=-1) != 0
    starts = np.flatnonzero(~is_reply & (opens | np.concatenate(([True], is_reply[:-1]))))
    if not len(starts):
        return _none()
    session_start = np.flatnonzero(opens)
    session_end = np.append(session_start[1:], len(session))
    place = np.searchsorted(session_start, starts, side="right") - 1
    ends = np.minimum(np.append(starts[1:], len(session)), session_end[place])
    is_first = np.diff(session[starts], prepend=-1) != 0

    before = _running(np.where(role == REASONING, 0, tokens))
    requests = _running(np.where(is_reply, 0, tokens))
    generated = _running(np.where(is_reply, tokens, 0))
    replies = _running(is_reply.astype(np.int64))
    prefill = requests[ends] - requests[starts]
    output = generated[ends] - generated[starts]
    cached = before[starts] - before[session_start[place]]
    prefill = np.where(is_first, prefill + cached, prefill)
    cached = np.where(is_first, 0, cached)
    cached, prefill = at_least_one(cached, prefill)
    index = np.arange(len(starts)) - np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
    return Turns(session[starts], index, cached, prefill, output, replies[ends] > replies[starts])


def document_turns(session: Ints, role: npt.NDArray[np.int8], tokens: Ints) -> Turns:
    """Return the turns of documents: K is the document's tokens, T the question's, each question a turn.

    Every question, even the first, finds the document cached: the paper's steady state (docs/turns.md).
    """
    is_document = role == DOCUMENT
    document = np.flatnonzero(is_document)
    asks = np.flatnonzero(~is_document)
    place = np.searchsorted(document, asks) - 1
    cached, prefill = at_least_one(tokens[document[place]], tokens[asks])
    none = np.zeros(len(asks), np.int64)
    return Turns(session[asks], asks - document[place] - 1, cached, prefill, none, none.astype(bool))


def at_least_one(cached: Ints, prefill: Ints) -> tuple[Ints, Ints]:
    """Return K and T with T >= 1 wherever K + T > 0: a server always computes the last prompt token."""
    moved = ((prefill == 0) & (cached > 0)).astype(np.int64)
    return cached - moved, prefill + moved


def _running(values: Ints) -> Ints:
    """Return running sums with a leading zero, so that the sum of [a, b) is the difference at b and a."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(values, dtype=np.int64)))


def _none() -> Turns:
    empty = np.zeros(0, np.int64)
    return Turns(empty, empty, empty, empty, empty, empty.astype(bool))

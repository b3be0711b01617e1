"""K and T of chats as a server sees them, vectorised, from the token counts of each message's piece; docs/turns.md.

Arrays are one element a message, sorted by session and position. No text and no engine here.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from pipelines.chat.layout import Bools, Ints
from pipelines.chat.pieces import Pieces
from pipelines.sessions.writing import ASSISTANT
from pipelines.turns.derivation import Turns, chat_turns


@dataclasses.dataclass(frozen=True, slots=True)
class PromptTurns:
    """The turns of chats, and the range of messages in their prompts.

    Attributes:
        turns: K, T and output of every turn; no turn is empty.
        template_tokens: K + T minus the tokens of the bare message texts; negative where thinking is dropped.
        first: First message of the turn's session, an index into the sorted messages.
        end: The prompt ends before this message, which is the turn's first reply if it has one.
        is_open: More may be shared with the previous prompt than K here, see `pieces`: only a real prompt shows it.
        is_structured: The turn is of a conversation with tools, calls or reasoning, see `structured`; None: none is.
    """

    turns: Turns
    template_tokens: Ints
    first: Ints
    end: Ints
    is_open: Bools
    is_structured: Bools | None = None


def prompt_turns(session: Ints, role: npt.NDArray[np.int8], tokens: Ints, pieces: Pieces) -> PromptTurns:
    """Return the turns with the token counts of their whole prompts.

    The prompt of a turn is the pieces up to its last request, early ones before the last query and late ones after it,
    then the generation header. The previous prompt, its first reply and the end of the turn are cached: K is the shared
    prefix with them. Where thinking after the former last query is no longer shown, the prompts diverge in the first
    piece that changed; else they diverge in or after the reply.

    Headers 4, pieces 10 (request), 7 (reply of 2 tokens in a frame of 5), 9 (request): (K, T) = (0, 14), (17, 13):
    14 + 2 + 1 = 17 of 10 + 7 + 9 + 4 = 30.

    Args:
        session: Number of each message's session.
        role: Its role.
        tokens: Tokens of its bare text.
        pieces: Its other counts.

    Source: docs/turns.md, "Chats, counting `chat`".
    """
    text = chat_turns(session, role, tokens)
    first, end = prompt_ranges(session, role)
    early, late = _running(pieces.early), _running(pieces.late)
    # Pieces before `split` are early; without a query the template treats the whole prompt as before the last query.
    last_query = _last_where(pieces.is_query)[end - 1]
    split = np.where(last_query >= first, last_query + 1, end)
    length = early[split] - early[first] + late[end] - late[split] + pieces.header

    is_next = np.concatenate(([False], first[1:] == first[:-1])) if len(first) else np.zeros(0, np.bool_)
    now = np.flatnonzero(is_next)
    before = now - 1
    reply, old = end[before], split[before]
    shared = np.where(reply < split[now], pieces.shared_early[reply], pieces.shared_late[reply])
    cached, is_open = np.zeros(len(first), np.int64), np.zeros(len(first), np.bool_)
    is_open[now] = pieces.is_open[reply]
    cached[now] = length[before] - pieces.header + shared
    changed = _next_where(pieces.twist >= 0)[old]
    moved = np.flatnonzero((split[now] > old) & (changed < reply))
    at, old, start = changed[moved], old[moved], first[now[moved]]
    cached[now[moved]] = early[old] - early[start] + late[at] - late[old] + pieces.twist[at]
    is_open[now[moved]] = pieces.is_open[at]
    cached = np.minimum(cached, length - 1)

    turns = dataclasses.replace(text, cached=cached, prefill=length - cached)
    turns = with_ends_of_turn(turns, session, role, end)
    return PromptTurns(turns, length - text.cached - text.prefill, first, end, is_open)


def with_ends_of_turn(turns: Turns, session: Ints, role: npt.NDArray[np.int8], end: Ints) -> Turns:
    """Return the turns with one token more of output for each reply; `end` is the end of each turn's prompt."""
    # Replies of a turn are between its end and that of the next one, or the end of the session.
    replies = _running((role == ASSISTANT).astype(np.int64))
    stop = np.minimum(np.append(end[1:], len(role))[: len(end)], _next_where(_starts(session))[end])
    return dataclasses.replace(turns, output=turns.output + replies[stop] - replies[end])


def prompt_ranges(session: Ints, role: npt.NDArray[np.int8]) -> tuple[Ints, Ints]:
    """Return for each turn the first message of its session and the end of its requests."""
    asks = role != ASSISTANT
    starts = _starts(session)
    # A run of requests ends before a reply and at the end of a session.
    ends_run = asks & np.concatenate((starts[1:] | ~asks[1:], [True]))[: len(asks)]
    end = np.flatnonzero(ends_run) + 1
    return _last_where(starts)[end - 1], end


def _starts(session: Ints) -> Bools:
    return np.asarray(np.diff(session, prepend=-1) != 0, np.bool_)


def _last_where(flags: Bools) -> Ints:
    """Return for each index the last index up to it where the flag is set, or -1."""
    places = np.where(flags, np.arange(len(flags)), -1)
    return np.maximum.accumulate(places) if len(places) else places


def _next_where(flags: Bools) -> Ints:
    """Return for each index the next index from it on where the flag is set, or the length; one element more."""
    places = np.append(np.where(flags, np.arange(len(flags)), len(flags)), len(flags))
    return np.minimum.accumulate(places[::-1])[::-1]


def _running(values: Ints) -> Ints:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(values, dtype=np.int64)))

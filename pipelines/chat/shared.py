"""K by `prefix` for chats and documents in file order: blocks that any earlier session or turn has left.

Only the start of a session that another session may share is tokenised: a session whose start ends in a block that no
other session has is settled, and the others are read further. So a set where little is shared costs little.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from pipelines.chat.documents import PROBES, Ending, document_content, ending_ids, ending_of
from pipelines.chat.layout import Ints, Layout
from pipelines.chat.official import Chat
from pipelines.chat.pieces import shared_tokens
from pipelines.chat.prompts import prompt_ranges
from pipelines.chat.rendered import Prompts
from pipelines.chat.templates import Message, header, is_query, piece
from pipelines.counting.engines import WHOLE_BYTES, Counter, EngineError, Ids
from pipelines.io.arrow_text import SAFE_CUT, byte_lengths, bytes_of
from pipelines.reuse.identities import BLOCK_TOKENS, Blocks, Lane, chained_blocks
from pipelines.reuse.leading import cached_by_blocks, leading_blocks
from pipelines.sessions.messages import Messages
from pipelines.sessions.writing import ASSISTANT, DOCUMENT, TOOL, USER
from pipelines.turns.derivation import Turns
from pipelines.vocab.specs import TemplateFacts

# Bytes of each session's start that are tokenised first, then of those that are not settled; at last all of it.
LIMITS: tuple[int | None, ...] = (1 << 10, 1 << 14, None)
_CHUNK_BYTES = 32 << 20
_END_THINK = "</think>"
_SAMPLE = 100


@dataclasses.dataclass(frozen=True, slots=True)
class Start:
    """The start of what a turn leaves: texts that are tokenised each by itself, and whether more follows."""

    texts: tuple[str, ...]
    is_cut: bool


_UNKNOWN = Start((), is_cut=True)


class Source(Protocol):
    """How the start of a turn is written, and tokenised."""

    def start(self, chat: Chat, end: int, limit: int | None, *, is_whole: bool = True) -> Start:
        """Return the start of what the turn leaves whose prompt ends before message `end`, of about `limit` bytes.

        It leaves the prompt, the reply by itself and the end of the turn (rule 6). `chat` may lack its last messages.
        """
        ...

    def encode(self, texts: list[str]) -> list[Ids]:
        """Return the token ids of each text."""
        ...


class Known:
    """A template by its facts: pieces are put together, and long starts cut."""

    def __init__(self, facts: TemplateFacts, counter: Counter, exact: Counter | None = None) -> None:
        """Keep them; `exact` encodes a sample a second time."""
        self.facts, self.counter, self.exact = facts, counter, exact

    def start(self, chat: Chat, end: int, limit: int | None, *, is_whole: bool = True) -> Start:
        """Return it, cut at a safe place after the limit or where no more is known."""
        if not is_whole and end >= len(chat):
            # What follows a tool's message changes its piece.
            known = chat[:-1] if chat and chat[-1][0] == TOOL else chat
            return Start(("".join(_pieces(self.facts, known, limit)[0]),), is_cut=True)
        texts, is_cut = _pieces(self.facts, chat[:end], limit)
        if is_cut:
            return Start(("".join(texts),), is_cut=True)
        prompt = "".join(texts) + header(self.facts, "assistant")
        return Start((prompt, *_reply(chat, end, self.facts.end_of_turn)), is_cut=False)

    def encode(self, texts: list[str]) -> list[Ids]:
        """Return the token ids of each text, short ones in one call.

        Raises:
            RuntimeError: the exact engine encodes one of a sample otherwise.
        """
        found = self._encoded(texts)
        for at in range(0, len(texts), max(1, len(texts) // _SAMPLE)) if self.exact is not None else ():
            if len(texts[at]) <= WHOLE_BYTES and not np.array_equal(found[at], self.exact.encode(texts[at])):  # type: ignore[union-attr]
                raise EngineError(f"{self.counter.engine} encodes a text otherwise than tokenizers")
        return found

    def _encoded(self, texts: list[str]) -> list[Ids]:
        assert self.counter.encode_strings is not None
        is_long = [len(text) > WHOLE_BYTES for text in texts]
        short = iter(self.counter.encode_strings([t for t, long in zip(texts, is_long, strict=True) if not long]))
        return [self.counter.encode(t) if long else next(short) for t, long in zip(texts, is_long, strict=True)]


class Rendered:
    """A template of which only the text is known: nothing is cut."""

    def __init__(self, prompts: Prompts, end_of_turn: str) -> None:
        """Keep both."""
        self.prompts, self.end_of_turn = prompts, end_of_turn

    def start(self, chat: Chat, end: int, limit: int | None, *, is_whole: bool = True) -> Start:
        """Return all of it, nothing where the template refuses the messages."""
        if limit is not None or not is_whole:
            return _UNKNOWN
        prompt = self.prompts.text(chat[:end])
        return Start(() if prompt is None else (prompt, *_reply(chat, end, self.end_of_turn)), is_cut=False)

    def encode(self, texts: list[str]) -> list[Ids]:
        """Return the token ids of each text, by parts."""
        return [self.prompts.segments.encode(text) for text in texts]


def _reply(chat: Chat, end: int, end_of_turn: str) -> tuple[str, ...]:
    return () if end == len(chat) or chat[end][0] != ASSISTANT else (chat[end][1], end_of_turn)


def _pieces(facts: TemplateFacts, chat: Chat, limit: int | None) -> tuple[list[str], bool]:
    """Return the text of each message's piece, up to a safe cut after the limit, and whether it was cut there."""
    last_query = next((at for at in range(len(chat) - 1, -1, -1) if is_query(facts, *chat[at])), len(chat))
    texts: list[str] = []
    size = 0
    for at, (role, text) in enumerate(chat):
        after = at > 0 and chat[at - 1][0] == TOOL
        before = at + 1 < len(chat) and chat[at + 1][0] == TOOL
        message = Message(role, text, is_first=at == 0, after_tool=after, before_tool=before)
        data = piece(facts, message, is_late=at > last_query).encode()
        if limit is not None and size + len(data) > limit:
            found = SAFE_CUT.search(data, max(0, limit - size))
            return [*texts, data[: found.end() if found else None].decode()], True
        texts.append(data.decode())
        size += len(data)
    return texts, False


@dataclasses.dataclass(frozen=True, slots=True)
class _Left:
    """The blocks of what a turn leaves, as far as they are known."""

    turn: int
    identity: Lane
    check: Lane
    is_cut: bool


def prefix_of_chats(  # noqa: PLR0913, PLR0917 - what a count of chats is given
    messages: Messages,
    layout: Layout,
    history: Turns,
    tokens: Ints,
    source: Source,
    structured: Iterable[tuple[int, Iterable[Ids]]] = (),
) -> Ints:
    """Return K by `prefix` of every turn, shape (turns,): K = min(16 h, n - 1), in file order, unlimited cache.

    h is the larger of what the turn before left (K of `history`) and what earlier sessions left.

    Args:
        messages: The messages of a conversations product.
        layout: Their sessions, roles and order.
        history: Their turns by `history`, counted as `chat`; those without a prompt have K = T = 0.
        tokens: Tokens of each bare text by session and position.
        source: `Known` or `Rendered`.
        structured: Sessions that only their template renders, each with what its turns leave.
    """
    fixed = _fixed(history, structured)
    first, end = prompt_ranges(layout.sorted_session, layout.sorted_role)
    length = history.cached + history.prefill
    # Where the next prompt begins with all that a turn leaves, the blocks of the later turn hold those of this one.
    replies = np.append(tokens, 0)[end] + 1
    is_held = np.zeros(len(end), np.bool_)
    is_held[:-1] = (first[1:] == first[:-1]) & (history.cached[1:] == length[:-1] + replies[:-1])
    is_held &= ~np.isin(history.session, list(fixed))
    kept = np.flatnonzero(~is_held)
    owners = history.session[kept]

    def sequences(session: int, chat: Chat, limit: int | None, *, is_whole: bool) -> Iterator[tuple[int, Start]]:
        if limit is not None and any(role == ASSISTANT and _END_THINK in text for role, text in chat):
            # Whether thinking is shown depends on later messages.
            yield -1, _UNKNOWN
            return
        for turn in kept[slice(*np.searchsorted(owners, [session, session + 1]))].tolist():
            yield turn, source.start(chat, int(end[turn] - first[turn]), limit, is_whole=is_whole)

    shared = _shared(_settled(messages, layout, sequences, source, fixed), len(end))
    shared = shared[kept[np.searchsorted(kept, np.arange(len(end)))]]
    # T = 1 where all of the prompt was there: one token is computed whatever is cached.
    own = np.where(history.prefill == 1, length, history.cached) // BLOCK_TOKENS
    blocks = np.maximum(own, np.minimum(shared, length // BLOCK_TOKENS))
    return np.maximum(cached_by_blocks(blocks, length), 0)


def _fixed(history: Turns, structured: Iterable[tuple[int, Iterable[Ids]]]) -> dict[int, list[_Left]]:
    """Return the blocks of sessions whose tokens are known, all of them."""
    found: dict[int, list[_Left]] = {}
    for session, turns in structured:
        first = int(np.searchsorted(history.session, session))
        for turn, ids in enumerate(turns, first):
            blocks = chained_blocks(ids, np.array([len(ids)], np.int64))
            found.setdefault(session, []).append(_Left(turn, blocks.identity, blocks.check, is_cut=False))
    return found


def prefix_of_documents(messages: Messages, layout: Layout, history: Turns, own: Ints, source: Source) -> Ints:
    """Return K by `prefix` of every question: the first of a document finds nothing of it, later ones the document.

    Args:
        messages: As in `prefix_of_chats`, as are `layout`, `history` and `source`.
        layout: See `messages`.
        history: See `messages`.
        own: Tokens that each prompt shares with an earlier one of its document, see `shared_with_earlier`; zeros where
            the source is `Rendered`, whose sequences are all compared.
        source: See `messages`.
    """
    length = history.cached + history.prefill

    def sequences(session: int, chat: Chat, limit: int | None, *, is_whole: bool) -> Iterator[tuple[int, Start]]:
        turn = int(np.searchsorted(history.session, session))
        document = chat[0][1]
        asked = [text for _, text in chat[1:]] if is_whole else [*PROBES[:1]]
        starts = [source.start([(USER, document_content(document, text))], 1, limit) for text in asked]
        if starts[0].is_cut or not is_whole:
            # A start that is cut within the document is the same whatever is asked.
            is_inside = starts[0].is_cut and limit is not None and SAFE_CUT.search(document.strip().encode(), limit)
            starts = starts[:1] if is_inside else [_UNKNOWN]
        for number, start in enumerate(starts):
            yield turn + number, start

    shared = _shared(_settled(messages, layout, sequences, source), len(length))
    blocks = np.maximum(own // BLOCK_TOKENS, np.minimum(shared, length // BLOCK_TOKENS))
    return np.maximum(cached_by_blocks(blocks, length), 0)


def shared_with_earlier(
    messages: Messages, layout: Layout, facts: TemplateFacts, counter: Counter, tokens: Ints
) -> Ints:
    """Return the tokens that each question's prompt shares with an earlier one of its document, by session.

    `tokens` has those of each bare text in file order.
    """
    endings: dict[int, Ending] = {}
    ids: dict[int, Ids] = {}
    row = 0
    for texts in messages.texts():
        ends, data = bytes_of(texts)
        for start, stop in itertools.pairwise(ends.tolist()):
            session = int(layout.session[row])
            if layout.role[row] == DOCUMENT:
                endings[session] = ending_of(data[start:stop], int(tokens[row]), facts, counter)
            else:
                ids[row] = ending_ids(endings[session], str(data[start:stop], "utf-8"), facts, counter)
            row += 1
    asks = layout.order[layout.sorted_role != DOCUMENT]
    found = np.zeros(len(asks), np.int64)
    for session, turns in itertools.groupby(range(len(asks)), key=lambda at: int(layout.session[asks[at]])):
        earlier: list[Ids] = []
        for at in turns:
            now = ids[int(asks[at])]
            if earlier:
                found[at] = endings[session].head_tokens + max(shared_tokens(now, other) for other in earlier)
            earlier.append(now)
    return found


def _shared(found: dict[int, list[_Left]], turns: int) -> Ints:
    """Return the leading blocks of each kept turn's sequence that an earlier sequence has, shape (turns,)."""
    left = [one for session in sorted(found) for one in found[session]]
    blocks = _joined(left)
    shared = np.zeros(turns, np.int64)
    shared[[one.turn for one in left]] = leading_blocks(blocks, blocks)
    return shared


def _joined(left: Sequence[_Left]) -> Blocks:
    none = np.empty(0, np.uint64)
    ends = np.cumsum([len(one.identity) for one in left], dtype=np.int64)
    return Blocks(
        np.concatenate([none, *(one.identity for one in left)]),
        np.concatenate([none, *(one.check for one in left)]),
        ends,
    )


class _Sequences(Protocol):
    def __call__(
        self, session: int, chat: Chat, limit: int | None, *, is_whole: bool
    ) -> Iterator[tuple[int, Start]]: ...


def _settled(
    messages: Messages,
    layout: Layout,
    sequences: _Sequences,
    source: Source,
    fixed: Mapping[int, list[_Left]] | None = None,
) -> dict[int, list[_Left]]:
    """Return the blocks of each session's sequences, as far as another session may share them."""
    found = dict(fixed or {})
    lengths = np.concatenate([np.empty(0, np.int64), *map(byte_lengths, messages.texts())])[layout.order]
    todo = np.setdiff1d(layout.sorted_session, list(found))
    for limit in LIMITS:
        for chats in _chats(messages, layout, lengths, todo, limit):
            begun = [
                (session, turn, start)
                for session, chat, is_whole in chats
                for turn, start in sequences(session, chat, limit, is_whole=is_whole)
            ]
            found.update((session, []) for session, _, _ in chats)
            for (session, turn, start), blocks in zip(begun, _blocks(begun, source), strict=True):
                found[session].append(_Left(turn, *blocks, is_cut=start.is_cut))
        todo = _unsettled(found)
    return found


def _blocks(begun: list[tuple[int, int, Start]], source: Source) -> Iterator[tuple[Lane, Lane]]:
    """Yield both lanes of the identities of each start."""
    ids = source.encode([text for _, _, start in begun for text in start.texts])
    sizes = np.cumsum([0, *map(len, ids)])
    ends = sizes[np.cumsum([len(start.texts) for _, _, start in begun], dtype=np.int64)]
    blocks = chained_blocks(np.concatenate([np.empty(0, np.uint32), *ids]), ends)
    for stop, count in zip(blocks.ends.tolist(), blocks.counts.tolist(), strict=True):
        # Copies: a view would keep the whole chunk.
        yield blocks.identity[stop - count : stop].copy(), blocks.check[stop - count : stop].copy()


def _unsettled(found: dict[int, list[_Left]]) -> Ints:
    """Return the sessions with a start that ends in no block, or in one that another session has too."""
    names = [(session, one) for session in sorted(found) for one in found[session]]
    blocks = _joined([one for _, one in names])
    session = np.repeat([number for number, _ in names], blocks.counts)
    order = np.lexsort((session, blocks.identity))
    identity, session = blocks.identity[order], session[order]
    starts = np.flatnonzero(np.append(True, identity[1:] != identity[:-1])) if len(identity) else np.empty(0, np.int64)
    is_shared = session[starts] != session[np.append(starts[1:], len(session)) - 1] if len(identity) else starts == 0
    common = set(identity[starts[is_shared]].tolist())
    return np.array(
        sorted({n for n, one in names if one.is_cut and (not len(one.identity) or int(one.identity[-1]) in common)}),
        np.int64,
    )


def _chats(
    messages: Messages, layout: Layout, lengths: Ints, sessions: Ints, limit: int | None
) -> Iterator[list[tuple[int, Chat, bool]]]:
    """Yield some sessions in chunks: those of their messages that begin within the limit, and whether these are all."""
    ordered = layout.sorted_session
    before = np.cumsum(lengths) - lengths
    opens = np.searchsorted(ordered, ordered)
    is_read = np.isin(ordered, sessions)
    if limit is not None:
        is_read &= before - before[opens] <= limit
    rows = np.flatnonzero(is_read)
    chunk = (np.cumsum(lengths[rows]) // _CHUNK_BYTES)[np.searchsorted(ordered[rows], ordered[rows])]
    for some in np.split(rows, np.flatnonzero(np.diff(chunk)) + 1):
        if not len(some):
            continue
        texts, session = messages.texts_at(layout.order[some]), ordered[some]
        starts = np.flatnonzero(np.diff(session, prepend=-1))
        stops = np.append(starts[1:], len(some))
        sizes = np.searchsorted(ordered, session[starts], side="right") - opens[some[starts]]
        roles = layout.sorted_role[some].tolist()
        yield [
            (number, list(zip(roles[a:b], texts[a:b], strict=True)), b - a == size)
            for number, a, b, size in zip(session[starts].tolist(), starts.tolist(), stops.tolist(), sizes, strict=True)
        ]

"""The requests of an exported trace, one after the other: lengths, and blocks by ordinals of their first use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from pipelines.reuse.given import chained_codes, dense_codes, leading_left
from pipelines.reuse.leading import cached_by_blocks
from pipelines.reuse.requests import Floats, Ints, Requests
from pipelines.turns.derivation import Turns
from warehouse.errors import ErrorCode, UsageError


@dataclass(frozen=True, slots=True)
class Row:
    """One request.

    Attributes:
        session: Number of its session.
        turn_index: Its place among those of the session, from 0.
        context_tokens: n.
        cached_tokens: K that the workload has, in whole blocks.
        read_tokens: K of whoever reads the trace; less where nothing in the trace left a block that K has.
        output_tokens: Tokens of the reply, None where it is not known.
        arrival_s: Time of arrival in seconds, None where it is not known.
        prompt_blocks: Ordinals of the prompt's blocks.
        reply_blocks: Ordinals of the blocks that prompt and reply fill after those.
    """

    session: int
    turn_index: int
    context_tokens: int
    cached_tokens: int
    read_tokens: int
    output_tokens: int | None
    arrival_s: float | None
    prompt_blocks: list[int]
    reply_blocks: list[int]


def rows_of_requests(requests: Requests, block_tokens: int, *, is_chained: bool) -> Iterator[Row]:
    """Yield requests whose blocks have identities.

    Ordinals are those of first use, so that they say which blocks are equal and nothing else. K in blocks of another
    size is that of whole blocks of that size, each known by all that is before its end.

    Args:
        requests: In order of service.
        block_tokens: Tokens of a block of the trace, a multiple of the requests' own.
        is_chained: Whether the form knows a block by all before it too.

    Raises:
        UsageError: the size is no multiple.
    """
    several, rest = divmod(block_tokens, requests.block_tokens)
    if rest or not several:
        what, why = f"--block-tokens {block_tokens} is not possible", f"its blocks have {requests.block_tokens} tokens"
        raise UsageError(what, why, "give a multiple of that", code=ErrorCode.USAGE)
    offsets, ids, lookup = requests.offsets, requests.ids, requests.lookup_blocks
    expected: Ints | None = requests.cached_tokens
    if is_chained or several > 1:
        ids = chained_codes(ids, offsets)
    if several > 1:
        offsets, ids, lookup = _in_chunks(requests, ids, several, block_tokens)
        expected = None
    ids, first = dense_codes(ids)
    leading = np.minimum(leading_left(ids, first, offsets), lookup)
    read = cached_by_blocks(leading, requests.context_tokens, block_tokens)
    return _rows(requests, offsets, ids, lookup, read if expected is None else expected, read)


def _in_chunks(requests: Requests, ids: Ints, several: int, block_tokens: int) -> tuple[Ints, Ints, Ints]:
    """Return offsets, identities and prompts' counts of whole chunks: a chunk is known by its last block."""
    counts = np.diff(requests.offsets)
    lookup = np.minimum(requests.lookup_blocks // several, requests.context_tokens // block_tokens)
    position = np.arange(len(ids)) - np.repeat(requests.offsets[:-1], counts)
    # A log may name a last block that is not full.
    filled = np.repeat(requests.context_tokens + requests.output_tokens, counts)
    is_last = (position % several == several - 1) & ((position + 1) * requests.block_tokens <= filled)
    before = np.concatenate((np.zeros(1, np.int64), np.cumsum(is_last, dtype=np.int64)))
    return before[requests.offsets], ids[is_last], lookup


def _rows(  # noqa: PLR0913, PLR0917 - the columns that differ by the size of blocks
    requests: Requests, offsets: Ints, ids: Ints, lookup: Ints, cached: Ints, read: Ints
) -> Iterator[Row]:
    starts = offsets.tolist()
    for number in range(len(requests)):
        start, end = starts[number], starts[number + 1]
        middle = start + int(lookup[number])
        yield Row(
            session=int(requests.session[number]),
            turn_index=int(requests.turn_index[number]),
            context_tokens=int(requests.context_tokens[number]),
            cached_tokens=int(cached[number]),
            read_tokens=int(read[number]),
            output_tokens=int(requests.output_tokens[number]) if requests.has_output[number] else None,
            arrival_s=None if requests.arrival_s is None else float(requests.arrival_s[number]),
            prompt_blocks=ids[start:middle].tolist(),
            reply_blocks=ids[middle:end].tolist(),
        )


def rows_of_turns(turns: Turns, block_tokens: int, arrival_s: Floats | None = None) -> Iterator[Row]:
    """Yield turns that reuse within their sessions, in the order given: a block is (session, position).

    A turn looks up its floor(K / B) leading blocks; those that it computes get new ordinals, as their text may be
    another than that of an earlier turn. Prompt and reply leave floor((n + output) / B). Where no earlier turn of the
    session left so many blocks, as before the first question on a document, K as it is read is less.

    Args:
        turns: In order of service.
        block_tokens: B.
        arrival_s: Time of arrival, shape (turns,), or None.
    """
    left: dict[int, list[int]] = {}
    following = 0
    columns: Iterable[tuple[int, ...]] = zip(
        *(column.tolist() for column in (turns.session, turns.turn_index, turns.cached, turns.prefill, turns.output)),
        strict=True,
    )
    for number, (session, turn_index, cached, prefill, output) in enumerate(columns):
        context, wanted = cached + prefill, cached // block_tokens
        known = left.get(session, [])[:wanted]
        fresh = (context + output) // block_tokens - len(known)
        blocks = [*known, *range(following, following + fresh)]
        following += fresh
        left[session] = blocks
        prompt = context // block_tokens
        yield Row(
            session=session,
            turn_index=turn_index,
            context_tokens=context,
            cached_tokens=block_tokens * wanted,
            read_tokens=min(block_tokens * len(known), context - 1),
            output_tokens=output if turns.has_output[number] else None,
            arrival_s=None if arrival_s is None else float(arrival_s[number]),
            prompt_blocks=blocks[:prompt],
            reply_blocks=blocks[prompt:],
        )

"""The requests that a cache serves, as arrays in the order of service: what each looks up and what it leaves.

A request of n tokens looks up leading blocks of its prompt, up to the first miss, and leaves blocks: those that it
looked up and the new ones. Blocks have identities: given ones, or (session, position) where all reuse is in a session.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Requests:
    """Requests in order of service; R of them.

    Attributes:
        block_tokens: Tokens of a block, B.
        context_tokens: n, tokens of each prompt, at least 1; shape (R,).
        lookup_blocks: Leading blocks that each looks up, at most those that it leaves; shape (R,).
        left_blocks: Blocks that each leaves, touched from the last to the first; shape (R,).
        session: Number of each request's session; shape (R,).
        ids: Identities of the blocks, request after request, first block first, none twice in a request;
            shape (sum of left_blocks,). None: a block is (session, position).
        arrival_s: Time of arrival; shape (R,). None where there is no clock.
    """

    block_tokens: int
    context_tokens: Ints
    lookup_blocks: Ints
    left_blocks: Ints
    session: Ints
    ids: Ints | None = None
    arrival_s: Floats | None = None

    def __len__(self) -> int:
        """Return R."""
        return len(self.context_tokens)

    @property
    def offsets(self) -> Ints:
        """Blocks left before each request, and in all; shape (R + 1,)."""
        return np.concatenate((np.zeros(1, np.int64), np.cumsum(self.left_blocks, dtype=np.int64)))

    @property
    def most_cached_tokens(self) -> Ints:
        """The most that can be cached, n - 1, since a server computes at least the last token; shape (R,)."""
        return self.context_tokens - 1

    def cached_tokens(self, blocks: Ints) -> Ints:
        """Return min(B h, n - 1) for h cached leading blocks of each request, in tokens; shape (R,)."""
        return np.minimum(self.block_tokens * blocks, self.most_cached_tokens)


def requests_of_ids(  # noqa: PLR0913 - the arrays of a log
    *,
    block_tokens: int,
    offsets: Ints,
    ids: Ints,
    lookup_counts: Ints,
    context_tokens: Ints,
    session: Ints,
    arrival_s: Floats | None = None,
) -> Requests:
    """Return requests whose blocks have given identities; request r leaves `ids[offsets[r]:offsets[r + 1]]`."""
    return Requests(block_tokens, context_tokens, lookup_counts, np.diff(offsets), session, ids, arrival_s)


def requests_of_turns(  # noqa: PLR0913, PLR0917 - the columns of `turns`
    cached: Ints, prefill: Ints, output: Ints, session: Ints, block_tokens: int, arrival_s: Floats | None = None
) -> Requests:
    """Return the requests of turns that reuse within sessions: each looks up K // B blocks, leaves (n + output) // B.

    Args:
        cached: K in tokens; shape (R,), like the others.
        prefill: T in tokens, at least 1.
        output: Tokens of the replies; 0 where there is none.
        session: Number of each turn's session.
        block_tokens: B.
        arrival_s: Time of arrival.
    """
    context = cached + prefill
    left = (context + output) // block_tokens
    return Requests(block_tokens, context, cached // block_tokens, left, session, None, arrival_s)


def in_order(requests: Requests, order: Ints) -> Requests:
    """Return the requests in another order of service.

    Raises:
        ValueError: the blocks have given identities, which come with an order of their own.
    """
    if requests.ids is not None:
        raise ValueError("requests with identities have an order of their own")
    arrival = None if requests.arrival_s is None else requests.arrival_s[order]
    arrays = {
        name: getattr(requests, name)[order] for name in ("context_tokens", "lookup_blocks", "left_blocks", "session")
    }
    return replace(requests, arrival_s=arrival, **arrays)


def in_chunks(requests: Requests, blocks: int) -> Requests:
    """Return the same requests with `blocks` blocks as one: only whole chunks are looked up and left, as in LMCache.

    An identity stands for all that is before it in its prompt, so that a chunk is its last block.

    Args:
        requests: Requests whose identities are chained (`policies.is_chained`), or without identities.
        blocks: Blocks of a chunk.
    """
    left, looked = requests.left_blocks // blocks, requests.lookup_blocks // blocks
    ids = None
    if requests.ids is not None:
        position = np.arange(len(requests.ids)) - np.repeat(requests.offsets[:-1], requests.left_blocks)
        ids = requests.ids[position % blocks == blocks - 1]
    size = requests.block_tokens * blocks
    return replace(requests, block_tokens=size, lookup_blocks=looked, left_blocks=left, ids=ids)


def with_identities(requests: Requests) -> Requests:
    """Return the same requests with a number for each (session, position), where blocks have no identities."""
    if requests.ids is not None:
        return requests
    longest = np.zeros(int(requests.session.max(initial=-1)) + 1, np.int64)
    np.maximum.at(longest, requests.session, requests.left_blocks)
    first = np.cumsum(longest) - longest
    position = np.arange(int(requests.left_blocks.sum())) - np.repeat(requests.offsets[:-1], requests.left_blocks)
    return replace(requests, ids=np.repeat(first[requests.session], requests.left_blocks) + position)

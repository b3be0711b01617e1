"""How many leading blocks of each request some earlier request has left, and K from that. Unlimited cache."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipelines.reuse.identities import BLOCK_TOKENS, Blocks, Ints

Identities = npt.NDArray[np.int64] | npt.NDArray[np.uint64]


def leading_known(asked: Identities, asked_ends: Ints, left: Identities, left_ends: Ints) -> Ints:
    """Return the number of leading identities of each request that an earlier one has left, shape (requests,).

    Requests are in their order of service. Identities of a trace are given for `asked` and `left` alike: an earlier
    request counts in whatever position it held one. [1 2 3] then [1 9 3]: the second finds 1.

    Args:
        asked: What the requests look up, one request after the other.
        asked_ends: End of each request's, shape (requests,).
        left: What they leave.
        left_ends: End of each request's, shape (requests,).
    """
    requests = np.arange(len(asked_ends))
    owner = np.repeat(requests, np.diff(left_ends, prepend=0))
    # The first place of each identity is the earliest request that left it: owners rise.
    known, first = np.unique(left, return_index=True)
    asker = np.repeat(requests, np.diff(asked_ends, prepend=0))
    if not len(known) or not len(asked):
        return np.zeros(len(requests), np.int64)
    at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    is_known = (known[at] == asked) & (owner[first[at]] < asker)
    return leading_true(is_known, asked_ends)


def leading_true(flags: npt.NDArray[np.bool_], ends: Ints) -> Ints:
    """Return the length of the leading run of true flags of each request, shape (requests,)."""
    misses = np.append(np.flatnonzero(~flags), len(flags))
    starts = ends - np.diff(ends, prepend=0)
    return np.asarray(np.minimum(misses[np.searchsorted(misses, starts)], ends) - starts, np.int64)


def leading_blocks(asked: Blocks, left: Blocks) -> Ints:
    """Return the leading full blocks of each request that an earlier one has left, shape (requests,).

    Raises:
        ArithmeticError: Two different prefixes have the same first lane; never seen, and 128 bits tell it.
    """
    _require_distinct(np.concatenate((left.identity, asked.identity)), np.concatenate((left.check, asked.check)))
    return leading_known(asked.identity, asked.ends, left.identity, left.ends)


def cached_by_blocks(leading: Ints, prompt_tokens: Ints, block_tokens: int = BLOCK_TOKENS) -> Ints:
    """Return K = min(b h, n - 1): a server always computes the last token. h = 2, n = 32, b = 16: K = 31.

    Args:
        leading: h, leading known blocks, shape (requests,).
        prompt_tokens: n >= 1, shape (requests,).
        block_tokens: b.
    """
    return np.minimum(block_tokens * leading, prompt_tokens - 1)


def _require_distinct(identity: npt.NDArray[np.uint64], check: npt.NDArray[np.uint64]) -> None:
    order = np.argsort(identity, kind="stable")
    identity, check = identity[order], check[order]
    if ((identity[1:] == identity[:-1]) & (check[1:] != check[:-1])).any():
        raise ArithmeticError("two different prefixes of tokens have the same 64-bit identity")

"""Identities of blocks of token ids, chained: equal where all tokens from the start of the request are equal.

Two lanes of 64 bits each are computed, 128 bits in all; `leading` looks up the first lane and compares the second.
"""

from __future__ import annotations

import dataclasses
import hashlib

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Lane = npt.NDArray[np.uint64]
BLOCK_TOKENS = 16
# Odd, without structure: digits of the golden ratio and of the finalisers of splitmix64.
_STEP, _FIRST, _SECOND = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_HALF = np.uint64(32)


@dataclasses.dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of requests, one request after the other.

    Attributes:
        identity: First lane of each block, shape (blocks,).
        check: Second lane, shape (blocks,); equal wherever `identity` is, see `leading`.
        ends: End of each request's blocks, shape (requests,).
    """

    identity: Lane
    check: Lane
    ends: Ints

    @property
    def counts(self) -> Ints:
        """Blocks of each request, shape (requests,)."""
        return np.diff(self.ends, prepend=0)


def chained_blocks(
    ids: npt.NDArray[np.uint32],
    ends: Ints,
    *,
    seeds: Lane | None = None,
    salts: Lane | None = None,
    block_tokens: int = BLOCK_TOKENS,
) -> Blocks:
    """Return the identities of the full blocks of each request.

    A block's content is hashed token by token with invertible steps, one lane for each of two keys. An identity is the
    sum of mix(content, number of the block) over the blocks up to and including it, modulo 2^64 (Zobrist's sum over
    places): the number makes the order count, and a sum needs no loop over blocks. Two different prefixes have
    equal identities with probability 2^-128; among 10^9 distinct blocks any two do with 10^-21. Texts that are made to
    collide are not considered: the keys are public.

    Args:
        ids: Token ids of all requests, shape (tokens,).
        ends: End of each request in `ids`, shape (requests,).
        seeds: What distinguishes requests with equal tokens (`seed_of`), shape (requests,), or None.
        salts: What distinguishes places with equal tokens, 0 where nothing does, shape (tokens,), or None.
        block_tokens: Tokens of a block; a last block with fewer has no identity.
    """
    lengths = np.diff(ends, prepend=0)
    counts = lengths // block_tokens
    last = np.cumsum(counts)
    owner = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(owner)) - (last - counts)[owner]
    starts = (ends - lengths)[owner] + number * block_tokens
    places = starts[:, None] + np.arange(block_tokens)
    rows = ids[places].astype(np.uint64)
    if salts is not None:
        rows ^= salts[places]
    salt = np.zeros(len(owner), np.uint64) if seeds is None else seeds[owner]
    lanes = [_chained(_mixed(_content(rows, key) ^ salt, number), last - counts, owner) for key in (_FIRST, _SECOND)]
    return Blocks(lanes[0], lanes[1], last)


def seed_of(*parts: str) -> np.uint64:
    """Return a seed from what distinguishes requests, such as a model's name or the salt of a user; 0 of nothing."""
    if not any(parts):
        return np.uint64(0)
    joined = b"".join(len(part).to_bytes(8, "little") + part.encode() for part in parts)
    return np.uint64(int.from_bytes(hashlib.blake2b(joined, digest_size=8).digest(), "little"))


def _content(rows: npt.NDArray[np.uint64], key: np.uint64) -> Lane:
    """Return a hash of each row; a step is invertible in what was before it and in the token."""
    mixed = np.full(len(rows), key)
    for token in rows.T:
        mixed = (mixed ^ token) * (key | np.uint64(1))
        mixed ^= mixed >> _HALF
    return mixed


def _mixed(content: Lane, number: Ints) -> Lane:
    """Return a hash of content and number (the mixing steps of splitmix64, twice)."""
    mixed = content
    for more in (number.astype(np.uint64) * _STEP, _STEP):
        mixed = mixed + more
        mixed = (mixed ^ (mixed >> _SHIFTS[0])) * _FIRST
        mixed = (mixed ^ (mixed >> _SHIFTS[1])) * _SECOND
        mixed = mixed ^ (mixed >> _SHIFTS[2])
    return mixed


def _chained(mixed: Lane, first: Ints, owner: Ints) -> Lane:
    """Return the running sum of each request, modulo 2^64."""
    before = np.concatenate((np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)))
    return np.asarray(before[1:] - before[first[owner]], np.uint64)

"""The forms of a trace: Mooncake's and Bailian's, a line of JSON a request."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pipelines.exporting.rows import Row
from pipelines.workloads.formats.trace import BAILIAN_BLOCK, MOONCAKE_BLOCK

Form = Literal["mooncake", "bailian"]
FORMS: tuple[Form, ...] = get_args(Form)
# Tokens of a block where a row names none.
USUAL_BLOCK: dict[Form, int] = {"mooncake": MOONCAKE_BLOCK, "bailian": BAILIAN_BLOCK}
# Ordinals of a trace are fewer than 2^32; 2^53 is what every reader of JSON holds exactly.
_RANGE_BITS, _RANGES_BITS = 32, 20
_MILLISECONDS = 1000


@dataclass
class Written:
    """What was written so far: the requests, sums of n, K and T as they are read, and where K is less than it was.

    Attributes:
        requests: Number of requests.
        cached_tokens: Sum of K as the trace is read.
        prefill_tokens: Sum of T as the trace is read.
        lesser: Requests whose K as it is read is less than that of the workload.
        lost_tokens: The difference, summed.
    """

    requests: int = 0
    cached_tokens: int = 0
    prefill_tokens: int = 0
    lesser: int = 0
    lost_tokens: int = 0

    def add(self, row: Row) -> None:
        """Count a request."""
        self.requests += 1
        self.cached_tokens += row.read_tokens
        self.prefill_tokens += row.context_tokens - row.read_tokens
        self.lesser += row.read_tokens < row.cached_tokens
        self.lost_tokens += row.cached_tokens - row.read_tokens


def first_ordinal(salt: str | None) -> int:
    """Return the first ordinal of a trace: 0, or the begin of one of 2^20 ranges by the salt.

    >>> first_ordinal(None), first_ordinal("a") == first_ordinal("b"), first_ordinal("a") < 2**53
    (0, False, True)
    """
    if salt is None:
        return 0
    digest = hashlib.blake2b(salt.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest, "little") % (1 << _RANGES_BITS) << _RANGE_BITS


def lines(rows: Iterable[Row], form: Form, block_tokens: int, salt: str | None, written: Written) -> Iterator[str]:
    """Yield the lines of a trace, without their ends, and count them in `written`.

    Numbers of blocks and of chats are ordinals of first use: no text, no name and no hash of one is in them. A key
    `block_size` says the tokens of a block where they are not the form's usual ones, and `reply_hash_ids` the blocks
    that a reply leaves.
    """
    first = first_ordinal(salt)
    latest: dict[int, int] = {}
    for number, row in enumerate(rows):
        written.add(row)
        chat = first + number
        found = _mooncake(row, first) if form == "mooncake" else _bailian(row, first, chat, latest)
        latest[row.session] = chat
        if row.reply_blocks:
            found["reply_hash_ids"] = [first + one for one in row.reply_blocks]
        if block_tokens != USUAL_BLOCK[form]:
            found["block_size"] = block_tokens
        yield json.dumps(found)


def _mooncake(row: Row, first: int) -> dict[str, Any]:
    return {
        "timestamp": None if row.arrival_s is None else round(row.arrival_s * _MILLISECONDS),
        "input_length": row.context_tokens,
        "output_length": row.output_tokens,
        "hash_ids": [first + one for one in row.prompt_blocks],
    }


def _bailian(row: Row, first: int, chat: int, latest: dict[int, int]) -> dict[str, Any]:
    return {
        "chat_id": chat,
        "parent_chat_id": latest.get(row.session, -1),
        "timestamp": row.arrival_s,
        "input_length": row.context_tokens,
        "output_length": row.output_tokens,
        "type": "text",
        "turn": row.turn_index + 1,
        "hash_ids": [first + one for one in row.prompt_blocks],
    }

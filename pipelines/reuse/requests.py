"""Requests in order of service with their K, as arrays and as the product `requests`, which capacity and serving read.

For reuse `history` nothing is stored: a block is (session, position), which follows from `turns`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
REQUESTS = "requests.parquet"
_BLOCK_TOKENS = b"block_tokens"
SCHEMA = pa.schema(
    [
        pa.field("session_id", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("turn_index", pa.int32(), nullable=False),
        pa.field("arrival_s", pa.float64()),
        pa.field("context_tokens", pa.int64(), nullable=False),
        pa.field("cached_tokens", pa.int64(), nullable=False),
        pa.field("output_tokens", pa.int64()),
        pa.field("lookup_blocks", pa.int64(), nullable=False),
        pa.field("left_blocks", pa.large_list(pa.int64()), nullable=False),
    ]
)


@dataclass(frozen=True)
class Requests:
    """R requests in order of service.

    Attributes:
        block_tokens: Tokens of a block; 0 where blocks have no identities.
        sessions: Name of each session.
        session: Place of each request's session in `sessions`; shape (R,).
        turn_index: Order of service in the session, from 0; shape (R,).
        context_tokens: n, tokens of the prompt, at least 1; shape (R,).
        cached_tokens: K, below n: of an unlimited cache, or as the server reported; shape (R,).
        output_tokens: Tokens of the reply, 0 where `has_output` is false; shape (R,).
        has_output: Whether the log has the tokens of the reply; shape (R,).
        arrival_s: Time of arrival in seconds; shape (R,). None where it is not known.
        offsets: Request r leaves `ids[offsets[r]:offsets[r + 1]]`, in tokens of its prompt from the first;
            shape (R + 1,).
        ids: Identities of blocks as codes 0, 1, ... in the order in which they first appear; shape (offsets[-1],).
        lookup_blocks: Number of those that are looked up, the leading ones; shape (R,).
    """

    block_tokens: int
    sessions: list[str]
    session: Ints
    turn_index: Ints
    context_tokens: Ints
    cached_tokens: Ints
    output_tokens: Ints
    has_output: Bools
    arrival_s: Floats | None
    offsets: Ints
    ids: Ints
    lookup_blocks: Ints

    def __len__(self) -> int:
        """Return R."""
        return len(self.context_tokens)


def turn_indices(session: Ints) -> Ints:
    """Return the place of each request among those of its session, from 0; shape (R,).

    >>> turn_indices(np.array([5, 3, 5, 5, 3])).tolist()
    [0, 0, 1, 2, 1]
    """
    order = np.argsort(session, kind="stable")
    first = np.flatnonzero(np.diff(session[order], prepend=-1) != 0)
    index = np.empty(len(session), np.int64)
    index[order] = np.arange(len(session)) - np.repeat(first, np.diff(first, append=len(session)))
    return index


def write_requests(requests: Requests, folder: Path) -> None:
    """Write the product: one row a request in order of service."""
    arrival = pa.nulls(len(requests), pa.float64()) if requests.arrival_s is None else pa.array(requests.arrival_s)
    columns = {
        "session_id": pa.DictionaryArray.from_arrays(requests.session.astype(np.int32), pa.array(requests.sessions)),
        "turn_index": pa.array(requests.turn_index.astype(np.int32)),
        "arrival_s": arrival,
        "context_tokens": pa.array(requests.context_tokens),
        "cached_tokens": pa.array(requests.cached_tokens),
        "output_tokens": pa.array(requests.output_tokens, mask=~requests.has_output),
        "lookup_blocks": pa.array(requests.lookup_blocks),
        "left_blocks": pa.LargeListArray.from_arrays(requests.offsets, pa.array(requests.ids)),
    }
    schema = SCHEMA.with_metadata({_BLOCK_TOKENS: str(requests.block_tokens)})
    pq.write_table(pa.table(columns, schema=schema), folder / REQUESTS, compression="zstd")


def read_requests(folder: Path) -> Requests:
    """Return the requests of a product."""
    table = pq.read_table(folder / REQUESTS)
    names = table["session_id"].combine_chunks()
    names = names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names
    blocks = table["left_blocks"].combine_chunks()
    has_output = table["output_tokens"].is_valid().to_numpy(zero_copy_only=False)
    return Requests(
        block_tokens=int(table.schema.metadata[_BLOCK_TOKENS]),
        sessions=names.dictionary.to_pylist(),
        session=names.indices.to_numpy().astype(np.int64),
        turn_index=table["turn_index"].to_numpy().astype(np.int64),
        context_tokens=table["context_tokens"].to_numpy(),
        cached_tokens=table["cached_tokens"].to_numpy(),
        output_tokens=table["output_tokens"].fill_null(0).to_numpy(),
        has_output=np.asarray(has_output, bool),
        arrival_s=None if table["arrival_s"].null_count else table["arrival_s"].to_numpy(),
        offsets=blocks.offsets.to_numpy(),
        ids=blocks.flatten().to_numpy(),
        lookup_blocks=table["lookup_blocks"].to_numpy(),
    )

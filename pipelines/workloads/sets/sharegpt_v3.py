"""ShareGPT V3, the cleaned edition in pieces of at most 2,048 tokens, which are stitched together again.

The pieces of a conversation can be anywhere in the file, so the file is read once into a spool of pieces in file
order, the seams are decided from a digest of each piece's first and last message, and the sessions are written from
slices of the memory-mapped spool. Text in memory is bounded by a batch.
"""

from __future__ import annotations

import hashlib
import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa

from pipelines.generated.chats import build_pieces
from pipelines.generated.encoding import json_array
from pipelines.sessions.messages import MESSAGES_SCHEMA
from pipelines.sessions.rejects import Reject, without_surrogates
from pipelines.sessions.writing import (
    FLUSH_CHARACTERS,
    MessageBuffer,
    SessionsWriter,
)
from pipelines.workloads.chat_records import Chat, UnusableError, parse_chat, require_request
from pipelines.workloads.declaration import InputFile, Workload, files_named, read_records

PATH = "ShareGPT_V3_unfiltered_cleaned_split.json"
SPOOL = "pieces.arrow"


@dataclass(frozen=True, slots=True)
class Piece:
    """One usable record: its part of its conversation, and the range of its messages in the spool."""

    path: str
    record: int
    number: int
    roles: bytes
    first: bytes
    last: bytes
    batch: int
    row: int


@dataclass(slots=True)
class Family:
    """The usable pieces of one conversation in file order; reason and detail of its first broken one, if any."""

    session_id: str
    pieces: list[Piece]
    broken: tuple[str, str] | None = None


def conversation_of(piece_id: str) -> tuple[str, int | None]:
    """Return the conversation's id and the piece's number; None where the id names no piece.

    >>> conversation_of("QWJhYvA_17")
    ('QWJhYvA', 17)
    >>> conversation_of("plain"), conversation_of("a_b")
    (('plain', None), ('a_b', None))
    """
    base, mark, number = piece_id.rpartition("_")
    # Python's limit on digits when it reads an integer; no piece has a longer number.
    if mark and number.isascii() and number.isdigit() and len(number) < sys.int_info.default_max_str_digits:
        return base, int(number)
    return piece_id, None


def message_digest(role: int, text: str) -> bytes:
    """Return 16 bytes that identify role and text; equal digests mean equal messages."""
    return hashlib.blake2b(bytes([role]) + without_surrogates(text).encode(), digest_size=16).digest()


def read(files: list[InputFile], writer: SessionsWriter, on_bytes: Callable[[int], None]) -> None:
    """Write each stitched conversation as one session, in the order of first mention in the file."""
    spool = writer.folder / SPOOL
    families = _spool_pieces(files, writer, on_bytes, spool)
    with pa.memory_map(str(spool)) as source:
        batches = pa.ipc.open_file(source)
        _write_sessions(families, writer, batches.get_batch)
    spool.unlink()


def _spool_pieces(
    files: list[InputFile], writer: SessionsWriter, on_bytes: Callable[[int], None], spool: Path
) -> list[Family]:
    families: dict[object, Family] = {}
    buffer = MessageBuffer()
    with pa.OSFile(str(spool), "wb") as sink, pa.ipc.new_file(sink, MESSAGES_SCHEMA) as out:
        batch = 0
        for file in files:
            for record, value in read_records(file, writer, on_bytes):
                try:
                    chat = parse_chat(value)
                except UnusableError as error:
                    _set_aside(error, file.path, record, families, writer)
                    continue
                _family(chat.id, record, families).pieces.append(_piece(chat, file.path, record, batch, buffer))
                if buffer.is_full:
                    out.write_batch(buffer.take())
                    batch += 1
        out.write_batch(buffer.take())
    return list(families.values())


def _family(piece_id: str, record: int, families: dict[object, Family]) -> Family:
    """Return the conversation of a piece; an id that names no piece is its own conversation."""
    base, number = conversation_of(piece_id)
    key = base if number is not None else (piece_id, record)
    return families.setdefault(key, Family(base, []))


def _set_aside(
    error: UnusableError, path: str, record: int, families: dict[object, Family], writer: SessionsWriter
) -> None:
    """Reject a piece; one that has an id and messages breaks its whole conversation."""
    if error.session_id is None or error.reason == "no_messages":
        writer.reject(error.at(path, record))
        return
    family = _family(error.session_id, record, families)
    writer.reject(Reject(path, record, error.reason, error.detail, family.session_id))
    # Not the error itself: it would keep the record's text.
    family.broken = family.broken or (error.reason, f"{error.detail} (of record {record})")


def _piece(chat: Chat, path: str, record: int, batch: int, buffer: MessageBuffer) -> Piece:
    row = len(buffer.text)
    for position, (role, text) in enumerate(zip(chat.roles, chat.texts, strict=True)):
        buffer.add(0, position, role, text)
    first = message_digest(chat.roles[0], chat.texts[0])
    last = message_digest(chat.roles[-1], chat.texts[-1])
    return Piece(path, record, conversation_of(chat.id)[1] or 0, bytes(chat.roles), first, last, batch, row)


def stitched(pieces: list[Piece]) -> list[tuple[Piece, int]]:
    """Return the pieces by their numbers, each with how many of its first messages are dropped (0 or 1)."""
    ordered = sorted(pieces, key=lambda piece: piece.number)
    drops = [0] + [int(a.last == b.first) for a, b in itertools.pairwise(ordered)]
    return list(zip(ordered, drops, strict=True))


def _write_sessions(families: list[Family], writer: SessionsWriter, batch_at: Callable[[int], pa.RecordBatch]) -> None:
    slices: list[pa.RecordBatch] = []
    size = 0
    for family in families:
        try:
            parts = _usable_parts(family)
        except UnusableError as error:
            _reject_family(family, error, writer)
            continue
        if not parts:
            continue
        writer.kept += len(parts)
        start = min((piece.path, piece.record) for piece in family.pieces)
        slices.extend(_session_slices(writer.session(family.session_id, *start), parts, batch_at))
        size = sum(part.nbytes for part in slices[-len(parts) :]) + size
        if size >= FLUSH_CHARACTERS:
            writer.write(_joined(slices))
            slices, size = [], 0
    if slices:
        writer.write(_joined(slices))


def _usable_parts(family: Family) -> list[tuple[Piece, int]]:
    """Return the stitched pieces; UnusableError where one of them is broken or none has a request."""
    if family.broken:
        raise UnusableError(*family.broken, family.session_id)
    parts = stitched(family.pieces)
    roles = [role for piece, drop in parts for role in piece.roles[drop:]]
    if parts:
        require_request(roles, family.session_id)
    return parts


def _reject_family(family: Family, error: UnusableError, writer: SessionsWriter) -> None:
    for piece in family.pieces:
        writer.reject(Reject(piece.path, piece.record, error.reason, error.detail, family.session_id))


def _session_slices(
    session: int, parts: list[tuple[Piece, int]], batch_at: Callable[[int], pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    position = 0
    for piece, drop in parts:
        count = len(piece.roles) - drop
        part = batch_at(piece.batch).slice(piece.row + drop, count)
        numbers = pa.array(np.arange(position, position + count, dtype=np.int32))
        sessions = pa.array(np.full(count, session, dtype=np.int32))
        yield pa.RecordBatch.from_arrays([sessions, numbers, part["role"], part["text"]], schema=MESSAGES_SCHEMA)
        position += count


def _joined(slices: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.Table.from_batches(slices).combine_chunks().to_batches()[0]


def sample(rng: Random) -> Iterator[tuple[str, bytes]]:
    """Generate the file."""
    yield PATH, json_array(build_pieces(rng), indent=2)


WORKLOAD = Workload(
    name="sharegpt-v3",
    order=2,
    title="ShareGPT V3 (stitched)",
    repo_id="anon8231489123/ShareGPT_Vicuna_unfiltered",
    licence="Apache-2.0 as published",
    kind="chat",
    select=files_named(PATH),
    read=read,
    sample=sample,
)

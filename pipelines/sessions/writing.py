"""The common form of every workload in a folder: sessions of messages, and the rejects.

A chat is a session of messages. A document is a session whose first message is the document and whose others are
its questions; those may be anywhere after it, `position` orders them. No later product contains text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.reuse.requests import Requests, write_requests
from pipelines.sessions.messages import MESSAGES_SCHEMA, MessagesWriter
from pipelines.sessions.rejects import Reject, RejectsWriter, without_surrogates
from pipelines.sessions.service import Service, write_service
from pipelines.sessions.structures import StructuresWriter

# Reasoning is what an assistant wrote before its reply, and no later prompt holds.
USER, ASSISTANT, SYSTEM, TOOL, DOCUMENT, QUESTION, REASONING = range(7)
ROLE_NAMES = ("user", "assistant", "system", "tool", "document", "question", "reasoning")

SESSIONS_SCHEMA = pa.schema(
    [("session", pa.int32()), ("session_id", pa.string()), ("path", pa.string()), ("record", pa.int64())]
)
SESSIONS = "sessions.parquet"

FLUSH_MESSAGES = 8192
FLUSH_CHARACTERS = 8 << 20


@dataclass
class MessageBuffer:
    """Buffers messages as Python values until a batch is full."""

    session: list[int] = field(default_factory=list)
    position: list[int] = field(default_factory=list)
    role: list[int] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    characters: int = 0

    def add(self, session: int, position: int, role: int, text: str) -> None:
        """Append one message."""
        self.session.append(session)
        self.position.append(position)
        self.role.append(role)
        self.text.append(text)
        self.characters += len(text)

    @property
    def is_full(self) -> bool:
        """True where the buffer is full enough to write."""
        return len(self.text) >= FLUSH_MESSAGES or self.characters >= FLUSH_CHARACTERS

    def take(self) -> pa.RecordBatch:
        """Return the buffer as one batch and empty it."""
        columns = [self.session, self.position, self.role, _texts(self.text)]
        batch = pa.RecordBatch.from_arrays(
            [
                c if isinstance(c, pa.Array) else pa.array(c, t)
                for c, t in zip(columns, MESSAGES_SCHEMA.types, strict=True)
            ],
            schema=MESSAGES_SCHEMA,
        )
        self.__init__()  # type: ignore[misc]  # restart with every default
        return batch


def _texts(texts: list[str]) -> pa.Array:
    try:
        return pa.array(texts, pa.large_string())
    except (UnicodeEncodeError, pa.ArrowInvalid):
        return pa.array([without_surrogates(text) for text in texts], pa.large_string())


class SessionsWriter:
    """Writes sessions, messages and rejects of one workload into a folder; memory is bounded by a batch."""

    def __init__(self, folder: Path, workload: str) -> None:
        """Open the files in `folder`."""
        self.folder = folder
        self.buffer = MessageBuffer()
        self.session_ids: list[str] = []
        self.origins: list[tuple[str, int]] = []
        self.rejects = RejectsWriter(folder, workload)
        self.records: Counter[str] = Counter()
        self.kept = 0
        self.notes: list[str] = []
        self.served = 0
        self.uncounted_parts = 0
        self.reasoning = 0
        self.messages = 0
        self.text_bytes = 0
        self._used: dict[str, int] = {}
        # Writing a batch releases Python's lock, so the next one is read meanwhile.
        self._background = ThreadPoolExecutor(1)
        self._written: Future[None] | None = None
        self._writer = MessagesWriter(folder)
        self._structures = StructuresWriter(folder)

    def session(self, session_id: str, path: str, record: int) -> int:
        """Register a session that begins at a record; return its number. A repeated id becomes `id#2`, ..."""
        clean = without_surrogates(session_id)
        name = clean
        while name in self._used:
            self._used[clean] += 1
            name = f"{clean}#{self._used[clean]}"
        self._used[name] = 1
        self.session_ids.append(name)
        self.origins.append((path, record))
        return len(self.session_ids) - 1

    def message(self, session: int, position: int, role: int, text: str) -> None:
        """Append one message to a session."""
        self.buffer.add(session, position, role, text)
        self.reasoning += role == REASONING
        if self.buffer.is_full:
            self.flush()

    def requests(self, requests: Requests, notes: list[str]) -> None:
        """Keep the requests of a log, whose sessions were registered in their order, and what the user is told."""
        write_requests(requests, self.folder)
        self.notes += notes
        self.served += len(requests)

    def service(self, service: Service, session: Sequence[int], turn_index: Sequence[int]) -> None:
        """Keep the order of service of requests that were written by `structure`, numbered in the file's order."""
        write_service(service, session, turn_index, self.folder)
        self.notes += [service.note] if service.note else []
        self.served += len(session)

    def structure(self, session: int, conversation: Mapping[str, Any]) -> None:
        """Keep a conversation whose prompts only a template can render."""
        self._structures.add(session, conversation)

    def reject(self, reject: Reject) -> None:
        """Record a reject."""
        self.rejects.add(reject)

    def flush(self) -> None:
        """Write the buffer."""
        if self.buffer.text:
            self.write(self.buffer.take())

    def write(self, batch: pa.RecordBatch) -> None:
        """Write one batch of messages."""
        self.messages += batch.num_rows
        self.text_bytes += pc.sum(pc.binary_length(batch["text"])).as_py() or 0
        self._wait()
        self._written = self._background.submit(self._writer.write, batch)

    def _wait(self) -> None:
        """Wait for the previous batch, and raise its error."""
        if self._written is not None:
            self._written.result()

    def close(self) -> None:
        """Finish the files."""
        self.flush()
        self._wait()
        self._background.shutdown()
        self._writer.close()
        self._structures.close()
        numbers = np.arange(len(self.session_ids), dtype=np.int32)
        columns = [
            numbers,
            self.session_ids,
            [path for path, _ in self.origins],
            [record for _, record in self.origins],
        ]
        sessions = pa.table(dict(zip(SESSIONS_SCHEMA.names, columns, strict=True)), schema=SESSIONS_SCHEMA)
        pq.write_table(sessions, self.folder / SESSIONS)
        self.rejects.close(self.records)

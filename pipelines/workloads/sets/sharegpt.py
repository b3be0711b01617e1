"""ShareGPT, the unsplit edition of 90,665 conversations that the paper measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from pipelines.generated.chats import build_whole
from pipelines.generated.encoding import json_array
from pipelines.sessions.writing import SessionsWriter
from pipelines.workloads.chat_records import UnusableError, parse_chat, require_request
from pipelines.workloads.declaration import InputFile, Workload, files_named, read_records

PATHS = ("sg_90k_part1.json", "sg_90k_part2.json")


def read(files: list[InputFile], writer: SessionsWriter, on_bytes: Callable[[int], None]) -> None:
    """Write each record as one session of its messages; an unusable record is rejected with its reason."""
    for file in files:
        for record, value in read_records(file, writer, on_bytes):
            try:
                chat = parse_chat(value)
                require_request(chat.roles, chat.id)
            except UnusableError as error:
                writer.reject(error.at(file.path, record))
                continue
            session = writer.session(chat.id, file.path, record)
            writer.kept += 1
            for position, (role, text) in enumerate(zip(chat.roles, chat.texts, strict=True)):
                writer.message(session, position, role, text)


def sample(rng: Random) -> Iterator[tuple[str, bytes]]:
    """Generate both files."""
    for path, records in zip(PATHS, build_whole(rng), strict=True):
        yield path, json_array(records)


WORKLOAD = Workload(
    name="sharegpt",
    order=1,
    title="ShareGPT (unsplit)",
    repo_id="RyokoAI/ShareGPT52K",
    licence="CC0-1.0 as published",
    kind="chat",
    select=files_named(*PATHS),
    read=read,
    sample=sample,
)

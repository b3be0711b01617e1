"""Distinct text of three kinds for `bench.counting`, stored as the program stores messages."""

from __future__ import annotations

import hashlib
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from random import Random

from bench.chat_set import conversation, draw_exchanges
from bench.text import Source
from pipelines.generated.lengths import STORY_TOKENS, USER_TURNS, draw_lengths
from pipelines.sessions.writing import USER, SessionsWriter

KINDS = ("chat", "book", "code")
SUFFIXES = (".py", ".pyi", ".js", ".ts", ".c", ".h", ".cc", ".cpp", ".hpp", ".rs", ".sql", ".sh", ".css")


def write_texts(kind: str, folder: Path, megabytes: float) -> int:
    """Write about the given megabytes of one kind into `folder` as messages of one session; return the bytes of text.

    Chats and books are generated. Code is the Python code installed with this interpreter, each content once; it can
    be less than asked for.
    """
    folder.mkdir(parents=True)
    writer = SessionsWriter(folder, kind)
    session = writer.session(kind, kind, 0)
    room = megabytes * 1e6
    for position, text in enumerate(_SOURCES[kind]()):
        writer.message(session, position, USER, text)
        room -= len(text.encode())
        if room <= 0:
            break
    writer.close()
    return writer.text_bytes


def _chats() -> Iterator[str]:
    unit = 0
    while True:
        source = Source(f"counting/chat/{unit}")
        for exchanges in draw_exchanges(source.random, draw_lengths(source.random, USER_TURNS, 200)):
            yield from (message["value"] for message in conversation(source, exchanges))
        unit += 1


def _books() -> Iterator[str]:
    source = Source("counting/book")
    while True:
        for tokens in draw_lengths(source.random, STORY_TOKENS, 50):
            yield source.story(tokens * 4)


def _code() -> Iterator[str]:
    """Yield the sources installed with this Python in a fixed random order, each content once."""
    folders = {Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib", "include")}
    paths = sorted({path for folder in folders for path in folder.rglob("*") if path.suffix in SUFFIXES})
    Random(0).shuffle(paths)  # noqa: S311 - an order, no secret
    seen: set[bytes] = set()
    for path in paths:
        content = path.read_bytes() if path.is_file() else b""
        digest = hashlib.sha256(content).digest()
        if content and digest not in seen:
            seen.add(digest)
            yield content.decode("utf-8", "replace")


_SOURCES = {"chat": _chats, "book": _books, "code": _code}

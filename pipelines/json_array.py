"""Reads the elements of a large JSON array, or of JSON lines, one at a time and in bounded memory.

The standard library's decoder over a growing buffer: exact for lone surrogates, a byte order mark and NaN, and every
whole element before a truncation comes out. Memory is a few times the largest element. What an element means is not
known here.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

STEP_BYTES = 1 << 20
MAX_ELEMENT_CHARACTERS = 1 << 30

_SPACE = re.compile(r"[ \t\r\n\ufeff]*")
# No number is used, and Python refuses integers of more than 4,300 digits: as floats they cost nothing and never fail.
_DECODER = json.JSONDecoder(strict=False, parse_int=float)
# An error this close to the end of the buffer may be a literal or an escape that the next bytes complete.
_NEAR_END = 16


@dataclass(frozen=True)
class Element:
    """One element of the file: its number from 0 and the decoded value."""

    index: int
    value: Any


@dataclass(frozen=True)
class Cut:
    """An element that is not whole: its number, its first byte, why, and whether the file could be read no further."""

    index: int
    byte: int
    why: str
    is_end: bool = True


def _invalid_byte(error: UnicodeError) -> tuple[str, int]:
    """Decode a UTF-8 encoded surrogate as itself and any other invalid byte as U+FFFD."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    block = error.object[error.start : error.start + 3]
    try:
        return block.decode("utf-8", "surrogatepass"), error.start + 3
    except UnicodeDecodeError:
        return "\ufffd", error.start + 1


codecs.register_error("kappa.surrogates", _invalid_byte)


class _Buffer:
    """The undecoded rest of a file as text; `fill` appends the next bytes, twice as many each time it has to wait."""

    def __init__(self, handle: BinaryIO, on_bytes: Callable[[int], None]) -> None:
        self.handle = handle
        self.on_bytes = on_bytes
        self.decoder = codecs.getincrementaldecoder("utf-8")("kappa.surrogates")
        self.text = ""
        self.position = 0
        self.is_complete = False
        self.step = STEP_BYTES

    def fill(self) -> bool:
        """Drop what was consumed and append the next bytes; False at the end of the file."""
        if self.is_complete:
            return False
        block = self.handle.read(self.step)
        self.is_complete = not block
        self.text = self.text[self.position :] + self.decoder.decode(block, final=not block)
        self.position = 0
        self.step = min(self.step * 2, 1 << 28)
        self.on_bytes(len(block))
        return True

    def consume(self, position: int) -> None:
        self.position = position
        self.step = STEP_BYTES

    def peek(self) -> str:
        """Return the next visible character, '' at the end of the file."""
        while True:
            match = _SPACE.match(self.text, self.position)
            self.position = match.end() if match else self.position
            if self.position < len(self.text):
                return self.text[self.position]
            if not self.fill():
                return ""

    def value(self) -> Any:  # noqa: ANN401 - any JSON value
        """Decode one value and wait until the character behind it is seen; json.JSONDecodeError where there is none."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self.text, self.position)
            except json.JSONDecodeError as error:
                is_short = error.msg.startswith("Unterminated string") or error.pos >= len(self.text) - _NEAR_END
                if len(self.text) > MAX_ELEMENT_CHARACTERS or not is_short or not self.fill():
                    raise
                continue
            if end == len(self.text) and not isinstance(value, dict | list | str) and self.fill():
                continue
            self.consume(end)
            return value

    def skip_line(self) -> None:
        """Consume the rest of the line."""
        while (end := self.text.find("\n", self.position)) < 0:
            self.position = len(self.text)
            if not self.fill():
                return
        self.consume(end + 1)

    def bytes_left(self) -> int:
        return len(self.text[self.position :].encode("utf-8", "surrogatepass"))


def read_elements(path: Path, on_bytes: Callable[[int], None] = lambda _: None) -> Iterator[Element | Cut]:
    """Yield each element of a JSON array or of JSON lines, and a `Cut` for one that is not whole.

    Behind a line that is not JSON the next line is read; an array is read to the first such place.

    Args:
        path: the file, UTF-8; a byte order mark, lone surrogates and control characters in strings are accepted.
        on_bytes: called with the number of bytes of each block read.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as handle:
        buffer = _Buffer(handle, on_bytes)
        is_array = buffer.peek() == "["
        if is_array:
            buffer.consume(buffer.position + 1)
        yield from _elements(buffer, handle, is_array=is_array)


def _elements(buffer: _Buffer, handle: BinaryIO, *, is_array: bool) -> Iterator[Element | Cut]:
    index = 0
    while True:
        mark = buffer.peek()
        if mark == "" or (is_array and mark == "]"):
            break
        try:
            value = buffer.value()
        except (json.JSONDecodeError, RecursionError) as error:
            is_end = is_array or buffer.is_complete
            yield Cut(index, _offset(buffer, handle), _reason(buffer, error), is_end)
            if is_end:
                return
            buffer.skip_line()
            index += 1
            continue
        yield Element(index, value)
        index += 1
        if is_array and buffer.peek() == ",":
            buffer.consume(buffer.position + 1)
        elif is_array and buffer.peek() not in ("]", ""):
            yield Cut(index, _offset(buffer, handle), "no comma between two elements")
            return
    if is_array and mark == "":
        yield Cut(index, _offset(buffer, handle), "the array is not closed")


def _offset(buffer: _Buffer, handle: BinaryIO) -> int:
    """Byte at which the unread rest begins; a cut multi-byte character at the end of the file counts as three."""
    return max(0, handle.tell() - buffer.bytes_left())


def _reason(buffer: _Buffer, error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return "the file ends inside an element" if buffer.is_complete else "not JSON"

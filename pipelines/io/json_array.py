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

from pipelines.io.json_repeats import RepeatDecoder

# A record that the end of the buffer cuts is decoded twice: few are, of those that are a fraction of a step long.
STEP_BYTES = 1 << 22
MAX_ELEMENT_CHARACTERS = 1 << 30

_SPACE = re.compile(r"[ \t\r\n\ufeff]*")
# No number is used, and Python refuses integers of more than 4,300 digits: as floats they cost nothing and never fail.
_DECODER = json.JSONDecoder(strict=False, parse_int=float)
# An error this close to the end of the buffer may be a literal or an escape that the next bytes complete.
_NEAR_END = 16
# Surrogates that stand for one invalid byte each, see `_invalid_byte`.
_BYTES = re.compile("[\udc80-\udcff]")


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
    """Decode a UTF-8 encoded surrogate as itself and any other invalid byte as a surrogate that stands for that byte.

    Both become U+FFFD where texts are kept; until then each says how many bytes it was.
    """
    if not isinstance(error, UnicodeDecodeError):
        raise error
    block = error.object[error.start : error.start + 3]
    try:
        return block.decode("utf-8", "surrogatepass"), error.start + 3
    except UnicodeDecodeError:
        return chr(0xDC00 + error.object[error.start]), error.start + 1


codecs.register_error("kappa.surrogates", _invalid_byte)


def _bytes(text: str) -> int:
    """Return how many bytes of the file a decoded text was."""
    return len(text.encode("utf-8", "surrogatepass")) - 2 * len(_BYTES.findall(text))


class _Buffer:
    """The undecoded rest of a file as text; `fill` appends the next bytes, twice as many each time it has to wait."""

    def __init__(self, handle: BinaryIO, on_bytes: Callable[[int], None], repeated: str | None = None) -> None:
        self.handle = handle
        self.on_bytes = on_bytes
        self.raw_decode = (RepeatDecoder(_DECODER, repeated) if repeated else _DECODER).raw_decode
        self.decoder = codecs.getincrementaldecoder("utf-8")("kappa.surrogates")
        self.text = ""
        self.position = 0
        self.is_complete = False
        self.step = STEP_BYTES
        self.last_size = 0

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
        # To fail costs as much as to decode: an element as long as the one before shall be there as a whole.
        if len(self.text) - self.position < self.last_size:
            self.fill()
        while True:
            try:
                value, end = self.raw_decode(self.text, self.position)
            except json.JSONDecodeError as error:
                is_short = error.msg.startswith("Unterminated string") or error.pos >= len(self.text) - _NEAR_END
                if len(self.text) > MAX_ELEMENT_CHARACTERS or not is_short or not self.fill():
                    raise
                continue
            if end == len(self.text) and not isinstance(value, dict | list | str) and self.fill():
                continue
            self.last_size = end - self.position
            self.consume(end)
            return value

    def line(self) -> str:
        """Consume and return the text up to the next line break or the end of the file."""
        while (end := self.text.find("\n", self.position)) < 0 and self.fill():
            pass
        end = len(self.text) if end < 0 else end
        line = self.text[self.position : end]
        self.consume(end)
        return line

    def offset(self) -> int:
        """Return the byte of the file at which the rest that is not consumed begins."""
        pending = len(self.decoder.getstate()[0])
        return self.handle.tell() - pending - _bytes(self.text[self.position :])


def read_elements(
    path: Path, on_bytes: Callable[[int], None] = lambda _: None, repeated: str | None = None
) -> Iterator[Element | Cut]:
    """Yield each element of a JSON array or of JSON lines, and a `Cut` for one that is not whole.

    Behind a line that is not JSON the next line is read; an array is read to the first such place.

    Args:
        path: the file, UTF-8; a byte order mark, lone surrogates and control characters in strings are accepted.
        on_bytes: called with the number of bytes of each block read.
        repeated: the key of a long text that often is the one of the element before; it is then not decoded again.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as handle:
        buffer = _Buffer(handle, on_bytes, repeated)
        yield from _array(buffer) if buffer.peek() == "[" else _lines(buffer)


def _array(buffer: _Buffer) -> Iterator[Element | Cut]:
    index, why = 0, ""
    buffer.consume(buffer.position + 1)
    while (mark := buffer.peek()) not in ("]", "") and not why:
        try:
            value = buffer.value()
        except (ValueError, RecursionError) as error:
            why = _reason(error, is_complete=buffer.is_complete)
            break
        yield Element(index, value)
        index += 1
        if buffer.peek() == ",":
            buffer.consume(buffer.position + 1)
        elif buffer.peek() not in ("]", ""):
            why = "no comma between two elements"
    if mark == "]" and not why:
        buffer.consume(buffer.position + 1)
        why = "something stands behind the end of the array" if buffer.peek() else ""
    elif not why:
        why = "the array is not closed"
    if why:
        yield Cut(index, buffer.offset(), why)


def _lines(buffer: _Buffer) -> Iterator[Element | Cut]:
    index = 0
    while buffer.peek():
        line, position = buffer.line(), 0
        while position < len(line):
            try:
                value, end = buffer.raw_decode(line, position)
            except (ValueError, RecursionError) as error:
                byte = buffer.offset() - _bytes(line[position:])
                is_end = not buffer.peek()
                yield Cut(index, byte, _reason(error, is_complete=is_end), is_end)
                index += 1
                break
            yield Element(index, value)
            index += 1
            position = _visible(line, end)


def _visible(text: str, position: int) -> int:
    """Return the place of the next visible character, or the end."""
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _reason(error: Exception, *, is_complete: bool) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return "the file ends inside an element" if is_complete else "not JSON"

"""Reads the elements of a large JSON array, or of JSON lines, one at a time and in bounded memory.

The standard library's decoder over a growing buffer: exact for lone surrogates, a byte order mark and NaN; every
complete element before a truncation is returned. Memory is a few times the largest element; time is linear for any
bytes. This module does not interpret elements.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pipelines.io.json_bytes import SURROGATES, byte_length
from pipelines.io.json_deep import DEEP, TooDeepError, Whole, decoded, is_deep, skip
from pipelines.io.json_repeats import RepeatDecoder
from pipelines.io.json_text import DECODER

# A record cut by the end of the buffer is decoded twice: rare, as records are a fraction of a step.
STEP_BYTES = 1 << 22
MAX_ELEMENT_CHARACTERS = 1 << 30

_SPACE = re.compile(r"[ \t\r\n\ufeff]*")
# An error this close to the end of the buffer may be a literal or an escape that the next bytes complete.
_NEAR_END = 16
TRUNCATED, NOT_AN_OBJECT, TOO_DEEP = "truncated", "not_an_object", "too_deep"
_NOT_JSON, _ENDS = "not JSON", "the file ends inside an element"


@dataclass(frozen=True)
class Element:
    """One element of the file: its index from 0 and the decoded value."""

    index: int
    value: Any


@dataclass(frozen=True)
class Cut:
    """An unusable element: its index, its first byte, the message, and the reason for `rejects`.

    The file is unreadable after one that is `truncated`.
    """

    index: int
    byte: int
    why: str
    reason: str = TRUNCATED

    @property
    def is_end(self) -> bool:
        """Whether the rest of the file is unread."""
        return self.reason == TRUNCATED


class _Buffer:
    """The undecoded rest of a file as text; `fill` appends the next bytes, twice as many at each retry."""

    def __init__(self, handle: BinaryIO, on_bytes: Callable[[int], None], repeated: str | None = None) -> None:
        self.handle = handle
        self.on_bytes = on_bytes
        self.decode = (RepeatDecoder(DECODER, repeated) if repeated else DECODER).raw_decode
        self.decoder = codecs.getincrementaldecoder("utf-8")(SURROGATES)
        self.text = ""
        self.position = 0
        self.is_complete = False
        self.step = STEP_BYTES
        self.last_size = 0
        # A text position and its byte offset in the file: text before it is never encoded again.
        self.known = (0, 0)

    def fill(self) -> bool:
        """Drop the consumed text and append the next bytes; False at the end of the file."""
        if self.is_complete:
            return False
        begin = self._begin()
        block = self.handle.read(self.step)
        self.is_complete = not block
        self.text = self.text[self.position :] + self.decoder.decode(block, final=not block)
        self.position = 0
        self.known = (0, begin)
        self.step = min(self.step * 2, 1 << 28)
        self.on_bytes(len(block))
        return True

    def _begin(self) -> int:
        """Return the byte offset of `position`, measured from a known position or from the end, whichever is closer."""
        if self.position - self.known[0] <= len(self.text) - self.position:
            return self.byte(self.position)
        end = self.handle.tell() - len(self.decoder.getstate()[0])
        return end - byte_length(self.text[self.position :])

    def byte(self, position: int) -> int:
        """Return the byte offset of a position at or after the previous one asked for."""
        place, byte = self.known
        self.known = (position, byte + byte_length(self.text[place:position]))
        return self.known[1]

    def consume(self, position: int) -> None:
        self.position = position
        self.step = STEP_BYTES

    def peek(self) -> str:
        """Return the next visible character, '' at the end of the file."""
        while True:
            self.position = _visible(self.text, self.position)
            if self.position < len(self.text):
                return self.text[self.position]
            if not self.fill():
                return ""

    def element(self, index: int) -> Element | Cut:
        """Consume one element if it is usable, with the buffer filled to the character after it."""
        # A failed decode costs a full one, so read enough first: as much as the previous element took.
        if len(self.text) - self.position < self.last_size:
            self.fill()
        while True:
            try:
                value, end = decoded(self.decode, self.text, self.position)
            except ValueError as error:
                if self._is_whole(error) or not self.fill():
                    return Cut(index, self.byte(self.position), self.why())
                continue
            if end == len(self.text) and not isinstance(value, dict | list | str) and self.fill():
                continue
            if end < 0:
                byte = self.byte(self.position)
                return self._passed_over(index, byte)
            self.last_size = end - self.position
            byte = self.byte(self.position) if (too_deep := is_deep(value)) else 0
            self.consume(end)
            return Cut(index, byte, DEEP, TOO_DEEP) if too_deep else Element(index, value)

    def _passed_over(self, index: int, byte: int) -> Cut:
        """Consume an element that is too deep to decode; return why it is none."""
        try:
            is_whole = skip(self)
        except TooDeepError as error:
            return Cut(index, byte, f"{error}, the rest is not read")
        if is_whole:
            return Cut(index, byte, DEEP, TOO_DEEP)
        return Cut(index, byte, f"{DEEP}, and {self.why()}" if self.is_complete else self.why())

    def _is_whole(self, error: ValueError) -> bool:
        """Whether more bytes could not fix the failure."""
        assert isinstance(error, json.JSONDecodeError)
        is_short = error.msg.startswith("Unterminated string") or error.pos >= len(self.text) - _NEAR_END
        return not is_short or len(self.text) > MAX_ELEMENT_CHARACTERS

    def why(self) -> str:
        """Return the error of a failed element."""
        return _ENDS if self.is_complete else _NOT_JSON

    def line(self) -> str:
        """Consume and return the text up to the next line break, the end of the file, or the length limit."""
        seen = self.position
        while (end := self.text.find("\n", seen)) < 0 and len(self.text) - self.position <= MAX_ELEMENT_CHARACTERS:
            seen = len(self.text) - self.position
            if not self.fill():
                break
        end = len(self.text) if end < 0 else end
        line = self.text[self.position : end]
        self.consume(end)
        return line


def read_elements(
    path: Path, on_bytes: Callable[[int], None] = lambda _: None, repeated: str | None = None
) -> Iterator[Element | Cut]:
    """Yield each element of a JSON array or of JSON lines, and a `Cut` for an incomplete one.

    After a line that is not JSON, reading continues with the next line; an array is read up to the first such position.
    A value of more levels than `json_deep.MAX_DEPTH` is skipped.

    Args:
        path: the file, UTF-8; a byte order mark, lone surrogates and control characters in strings are accepted.
        on_bytes: called with the number of bytes of each block read.
        repeated: the key of a long text that often equals the previous element's; it is then not decoded again.

    Raises:
        OSError: the file is not readable.
    """
    with path.open("rb") as handle:
        yield from read_stream(handle, on_bytes, repeated)


def read_stream(
    handle: BinaryIO, on_bytes: Callable[[int], None] = lambda _: None, repeated: str | None = None
) -> Iterator[Element | Cut]:
    """Yield the elements of a stream that can `read` and `tell`; see `read_elements`.

    Objects that are printed over several lines, one after another, are elements too.
    """
    buffer = _Buffer(handle, on_bytes, repeated)
    if buffer.peek() == "[":
        yield from _array(buffer)
    else:
        yield from _printed(buffer) if _is_printed(buffer) else _lines(buffer)


def _is_printed(buffer: _Buffer) -> bool:
    """Return whether the file begins with an object whose first line is no more than a brace."""
    while (end := buffer.text.find("\n", buffer.position)) < 0 and len(buffer.text) - buffer.position <= _NEAR_END:
        if not buffer.fill():
            break
    return end >= 0 and buffer.text[buffer.position : end].strip() == "{"


def _printed(buffer: _Buffer) -> Iterator[Element | Cut]:
    index = 0
    while buffer.peek():
        element = buffer.element(index)
        yield element
        if isinstance(element, Cut) and element.is_end:
            return
        index += 1


def _array(buffer: _Buffer) -> Iterator[Element | Cut]:
    index = 0
    buffer.consume(buffer.position + 1)
    while (mark := buffer.peek()) not in ("]", ""):
        element = buffer.element(index)
        yield element
        if isinstance(element, Cut) and element.is_end:
            return
        index += 1
        if buffer.peek() == ",":
            buffer.consume(buffer.position + 1)
        elif buffer.peek() not in ("]", ""):
            yield Cut(index, buffer.byte(buffer.position), "no comma between two elements")
            return
    buffer.consume(buffer.position + len(mark))
    if not mark or buffer.peek():
        why = "something follows the end of the array" if mark else "the array is not closed"
        yield Cut(index, buffer.byte(buffer.position), why)


def _lines(buffer: _Buffer) -> Iterator[Element | Cut]:
    index = 0
    while buffer.peek():
        line, position = buffer.line(), 0
        while position < len(line):
            element, position = _element(buffer, line, position, index)
            yield element
            if isinstance(element, Cut) and element.is_end:
                return
            index += 1


def _element(buffer: _Buffer, line: str, position: int, index: int) -> tuple[Element | Cut, int]:
    """Return the element at a position of the consumed line, and where the next one begins."""
    place, rest = buffer.position - len(line) + position, Whole(line, position)
    try:
        value, rest.position = decoded(buffer.decode, line, position)
    except ValueError:
        return _broken(buffer, index, place), len(line)
    if rest.position < 0:
        rest.position = position
        try:
            is_whole = skip(rest)
        except TooDeepError as error:
            # The next line is another record.
            return Cut(index, buffer.byte(place), str(error), TOO_DEEP), len(line)
        if not is_whole:
            return _broken(buffer, index, place), len(line)
    elif not is_deep(value):
        return Element(index, value), _visible(line, rest.position)
    return Cut(index, buffer.byte(place), DEEP, TOO_DEEP), _visible(line, rest.position)


def _broken(buffer: _Buffer, index: int, place: int) -> Cut:
    """Return the error of a line: without a line end it is truncated, otherwise it is complete but no record."""
    is_cut = buffer.position == len(buffer.text)
    return Cut(index, buffer.byte(place), *((buffer.why(), TRUNCATED) if is_cut else (_NOT_JSON, NOT_AN_OBJECT)))


def _visible(text: str, position: int) -> int:
    """Return the position of the next visible character, or the end."""
    match = _SPACE.match(text, position)
    return match.end() if match else position

"""A JSON decoder that reuses a repeated long text: DocFinQA repeats a filing in the record of every question.

Where an object begins with the same characters as the previous one up to the end of that text, only the rest of it
is decoded. The result equals that of the plain decoder.
"""

from __future__ import annotations

import json
import re
from typing import Any

# Decoding a shorter text is faster than comparing and remembering it; a longer one would cost three times its memory.
_LONG, _LONGEST = 1 << 12, 1 << 24
# The rest of a record is searched for within this many characters; a longer one is decoded from its beginning.
_REST = 1 << 16
_NEXT = re.compile(r'[ \t\r\n]*(?:,[ \t\r\n]*(?=")|(\}))')


class RepeatDecoder:
    """Decodes as `decoder` does; reuses an object's first member where it is `key` with a long text."""

    def __init__(self, decoder: json.JSONDecoder, key: str) -> None:
        """Start with an empty cache."""
        self._decoder = decoder
        self._key = key
        self._head = re.compile(r"\{[ \t\r\n]*" + re.escape(json.dumps(key)) + r'[ \t\r\n]*:[ \t\r\n]*(?=")')
        self._raw = ""
        self._value = ""

    def raw_decode(self, text: str, position: int) -> tuple[Any, int]:
        """Return the value that begins at `position` and the position after it, as `json.JSONDecoder.raw_decode`."""
        if self._raw and text.startswith(self._raw, position):
            found = self._rest(text, position + len(self._raw))
            if found is not None:
                return found
        value, end = self._decoder.raw_decode(text, position)
        self._remember(text, position, value)
        return value, end

    def _rest(self, text: str, place: int) -> tuple[Any, int] | None:
        """Return the object whose cached member ends at `place`; None where its rest is incomplete or not plain."""
        mark = _NEXT.match(text, place)
        if mark is None:
            return None
        if mark[1]:
            return {self._key: self._value}, mark.end()
        try:
            rest, end = self._decoder.raw_decode("{" + text[mark.end() : mark.end() + _REST])
        except json.JSONDecodeError:
            return None
        return {self._key: self._value, **rest}, mark.end() + end - 1

    def _remember(self, text: str, position: int, value: Any) -> None:  # noqa: ANN401 - any JSON value
        known = value.get(self._key) if isinstance(value, dict) else None
        is_long = isinstance(known, str) and _LONG <= len(known) <= _LONGEST
        head = self._head.match(text, position) if is_long else None
        if head is None:
            return
        first, end = self._decoder.raw_decode(text, head.end())
        # With a duplicate key the last value counts: do not cache.
        if first == known:
            self._raw, self._value = text[position:end], known

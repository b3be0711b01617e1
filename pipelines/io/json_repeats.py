"""A JSON decoder that knows a long text again: DocFinQA repeats a whole filing in the record of every question.

Where an object begins with the same characters as the one before up to the end of that text, only the rest of it is
decoded. What comes out is what the plain decoder gives.
"""

from __future__ import annotations

import json
import re
from typing import Any

# A shorter text is decoded faster than it is compared and remembered; a longer one would cost memory three times.
_LONG, _LONGEST = 1 << 12, 1 << 24
# The rest of a record is looked for in so many characters; a longer one is decoded from its beginning.
_REST = 1 << 16
_NEXT = re.compile(r'[ \t\r\n]*(?:,[ \t\r\n]*(?=")|(\}))')


class RepeatDecoder:
    """Decodes as `decoder` does; an object's first member is known again where it is `key` with a long text."""

    def __init__(self, decoder: json.JSONDecoder, key: str) -> None:
        """Begin with nothing known."""
        self._decoder = decoder
        self._key = key
        self._head = re.compile(r"\{[ \t\r\n]*" + re.escape(json.dumps(key)) + r'[ \t\r\n]*:[ \t\r\n]*(?=")')
        self._raw = ""
        self._value = ""

    def raw_decode(self, text: str, position: int) -> tuple[Any, int]:
        """Return the value that begins at `position` and the place behind it, as `json.JSONDecoder.raw_decode`."""
        if self._raw and text.startswith(self._raw, position):
            found = self._rest(text, position + len(self._raw))
            if found is not None:
                return found
        value, end = self._decoder.raw_decode(text, position)
        self._remember(text, position, value)
        return value, end

    def _rest(self, text: str, place: int) -> tuple[Any, int] | None:
        """Return the object whose known member ends at `place`; None where its rest is not whole or not plain."""
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
        # A key may stand twice in an object; then the last one counts, and there is nothing to know again.
        if first == known:
            self._raw, self._value = text[position:end], known

"""JSON values that are nested too deeply: measures their depth, and skips them without recursion.

The depth limit of Python's decoder depends on its version and on the caller's stack; `MAX_DEPTH` does not.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

# Records of the sets are 4 deep. Python's decoder shares some 1,000 levels with all of its callers.
MAX_DEPTH = 500
# A deeper value is not passed over: nobody wrote it as a record, and each level takes a step of Python.
MOST_SKIPPED = 100_000
DEEP = f"more than {MAX_DEPTH} arrays and objects inside each other"

_SPACE = re.compile(r"[ \t\r\n]*+")
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?[0-9]++)?+|true|false|null|NaN|-?Infinity")
_STRING = re.compile(r'(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
_ESCAPE, _LITERAL = len("\\uffff"), len("-Infinity")
# The tokens allowed next, by state: a token's kind is its first character, that of a number or a literal is 0.
_VALUE, _FIRST, _KEY, _FIRST_KEY, _COLON, _NEXT = '[{"0', '[{"0]', '"', '"}', ":", ",]}"


class Source(Protocol):
    """Text that can grow: `fill` drops the consumed text and returns False at the end."""

    text: str
    position: int

    def fill(self) -> bool:
        """Append more text."""

    def consume(self, position: int) -> None:
        """Continue at a later position."""


@dataclass
class Whole:
    """Text that is complete."""

    text: str
    position: int

    def fill(self) -> bool:
        """Return False: there is no more text."""
        return False

    def consume(self, position: int) -> None:
        """Continue at a later position."""
        self.position = position


def decoded(decode: Callable[[str, int], tuple[Any, int]], text: str, position: int) -> tuple[Any, int]:
    """Decode a value; the end is -1 where it has more than `MAX_DEPTH` levels and is too deep for Python to decode.

    A deep stack of callers leaves Python fewer levels, so a new thread decodes with all of them.
    """
    try:
        return decode(text, position)
    except RecursionError:
        with ThreadPoolExecutor(1) as thread:
            try:
                return thread.submit(decode, text, position).result()
            except RecursionError:
                return None, -1


def is_deep(value: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Return whether a decoded value has more than `MAX_DEPTH` arrays and objects inside each other."""
    # The garbage collector tracks containers that hold containers, so a shallow value is recognised in a microsecond.
    level = [value]
    for _ in range(MAX_DEPTH - 1):
        level = list(filter(gc.is_tracked, gc.get_referents(*level)))
        if not level:
            return False
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for inner in level if isinstance(inner, dict | list)]
        if not level:
            return False
        level = [inner for outer in level for inner in (outer.values() if isinstance(outer, dict) else outer)]
    return True


class TooDeepError(ValueError):
    """A value of more than `MOST_SKIPPED` levels: where it ends is not looked for."""


def skip(source: Source) -> bool:
    """Consume one value; False where it is not JSON. Linear in its length; memory is a byte a level.

    Raises:
        TooDeepError: it has more than `MOST_SKIPPED` levels.
    """
    state, opened = _VALUE, bytearray()
    while (kind := _kind(source)) and kind in state and _is_passed(source, kind):
        if kind in "[{":
            opened += kind.encode()
            if len(opened) > MOST_SKIPPED:
                raise TooDeepError(f"more than {MOST_SKIPPED:,} arrays and objects inside each other")
            state = _FIRST if kind == "[" else _FIRST_KEY
        elif kind == ",":
            state = _VALUE if opened[-1:] == b"[" else _KEY
        elif kind == ":" or (kind == '"' and state in (_KEY, _FIRST_KEY)):
            state = _VALUE if kind == ":" else _COLON
        elif kind in "]}" and chr(opened.pop()) + kind not in ("[]", "{}"):
            return False
        elif not opened:
            return True
        else:
            state = _NEXT
    return False


def _kind(source: Source) -> str:
    """Skip white space and return the first character of the next token, '' at the end."""
    while True:
        match = _SPACE.match(source.text, source.position)
        source.consume(match.end() if match else source.position)
        if source.position < len(source.text):
            first = source.text[source.position]
            return first if first in '[]{},:"' else "0"
        if not source.fill():
            return ""


def _is_passed(source: Source, kind: str) -> bool:
    """Skip the next token; False where it is incomplete."""
    if kind == "0":
        return _is_scalar_passed(source)
    source.consume(source.position + 1)
    return kind != '"' or _is_string_passed(source)


def _is_scalar_passed(source: Source) -> bool:
    while True:
        match = _SCALAR.match(source.text, source.position)
        end = match.end() if match else source.position
        # This close to the end of the text the token may continue.
        if len(source.text) - end >= _LITERAL or not source.fill():
            source.consume(end)
            return match is not None


def _is_string_passed(source: Source) -> bool:
    while True:
        match = _STRING.match(source.text, source.position)
        source.consume(match.end() if match else source.position)
        if source.text[source.position : source.position + 1] == '"':
            source.consume(source.position + 1)
            return True
        if len(source.text) - source.position >= _ESCAPE or not source.fill():
            return False

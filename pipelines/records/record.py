"""What a reader of records yields: a record, or the place where one cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Record:
    """One record: the file it is in, its number there from 0, and its value, most often a dict."""

    path: str
    index: int
    value: Any


@dataclass(frozen=True, slots=True)
class Unread:
    """A record that cannot be read, with the reason for `rejects`; `is_end` where nothing after it was read."""

    path: str
    index: int
    reason: str
    detail: str
    is_end: bool = False

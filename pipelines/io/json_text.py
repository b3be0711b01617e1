"""Decodes JSON as it is in files of records and in texts in them: whatever the text, a value or a ValueError."""

from __future__ import annotations

import json
from typing import Any

from pipelines.io.json_deep import DEEP, decoded, is_deep

# Python rejects integers of more than 4,300 digits; no quantity has that many.
_MOST_DIGITS = 400


def _number(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)


DECODER = json.JSONDecoder(strict=False, parse_int=_number)


def json_of(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value of a text that is JSON, such as a cell of CSV.

    Raises:
        ValueError: it is no JSON, or has too many arrays and objects inside each other.

    >>> json_of(' {"a": [1]} '), json_of("9" * 5000)
    ({'a': [1]}, inf)
    """
    value, end = decoded(lambda whole, _: (DECODER.decode(whole), len(whole)), text, 0)
    if end < 0 or is_deep(value):
        raise ValueError(DEEP)
    return value

"""Decodes any bytes as UTF-8 text whose byte length in the file stays known."""

from __future__ import annotations

import codecs
import re

SURROGATES = "kappa.surrogates"

# Surrogates that represent one invalid byte each, see `_invalid_byte`.
_BYTES = re.compile("[\udc80-\udcff]")


def _invalid_byte(error: UnicodeError) -> tuple[str, int]:
    """Decode a UTF-8 encoded surrogate as a surrogate and any other invalid byte as its own surrogate.

    Both become U+FFFD in stored texts; until then each preserves its number of bytes.
    """
    if not isinstance(error, UnicodeDecodeError):
        raise error
    block = error.object[error.start : error.start + 3]
    try:
        found = block.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return chr(0xDC00 + error.object[error.start]), error.start + 1
    # A surrogate that looks like an invalid byte's is replaced: all become U+FFFD in the end.
    return "\ud800" if _BYTES.match(found) else found, error.start + 3


codecs.register_error(SURROGATES, _invalid_byte)


def byte_length(text: str) -> int:
    r"""Return the number of bytes in the file of a text decoded with `SURROGATES`.

    >>> byte_length("a\u20ac"), byte_length(b"\xff\xed\xa0\x80".decode("utf-8", SURROGATES))
    (4, 4)
    """
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return len(text.encode("utf-8", "surrogatepass")) - 2 * len(_BYTES.findall(text))

"""Text from Parquet in any of its encodings: plain, large, views or dictionary."""

from __future__ import annotations

import pyarrow as pa

from pipelines.io.json_bytes import SURROGATES


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds text.

    >>> is_text(pa.dictionary(pa.int8(), pa.large_string())), is_text(pa.binary()), is_text(pa.int64())
    (True, False, False)
    """
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


class Texts:
    """The texts of one column of a batch, each decoded on access."""

    def __init__(self, column: pa.Array) -> None:
        """Take a column for whose type `is_text` is true; ArrowInvalid where it is damaged."""
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        # Read as bytes: Parquet promises UTF-8 without a check; invalid bytes become U+FFFD, as in JSON.
        self._column = column.cast(pa.large_binary())

    def has(self, place: int) -> bool:
        """Whether a row has a text."""
        return bool(self._column[place].is_valid)

    def __getitem__(self, place: int) -> str | None:
        """Return a text, None where there is none; each invalid byte becomes a lone surrogate."""
        value = self._column[place].as_py()
        return None if value is None else value.decode("utf-8", SURROGATES)

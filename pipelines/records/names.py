"""Which names are those of files of records."""

from __future__ import annotations

SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
PACKED = (".gz", ".zst", ".zip")


def is_data_file(name: str) -> bool:
    """Return whether a file is read where a folder or an archive is named.

    >>> [is_data_file(name) for name in ("a.jsonl", "b.CSV.gz", "logs.zip", "README.md", "part-00000", "part.gz")]
    [True, True, True, False, True, True]
    """
    name = name.lower()
    for suffix in PACKED:
        name = name.removesuffix(suffix)
    return not is_hidden(name) and (name.endswith(SUFFIXES) or "." not in name)


def is_hidden(name: str) -> bool:
    """Return whether a name is hidden, or one that an operating system puts into archives by itself."""
    return name.startswith(".") or name in ("__MACOSX", "_SUCCESS")

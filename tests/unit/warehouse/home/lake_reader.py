"""A reader of a home's lake by path, as another program does it: `python lake_reader.py PATTERN HOW READS`.

It prints one line when it is ready, then one a kind of read that came out: how often, and the rows by workload.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path


def rows_by_workload(pairs: Iterable[tuple[str, int]]) -> str:
    """Return workload, K and number of the rows as a text that compares."""
    return json.dumps(sorted([*pair, count] for pair, count in Counter(pairs).items()))


def by_duckdb(folder: Path, option: str = "hive_partitioning = true", glob: str = "**/*.parquet") -> str:
    """Read by DuckDB's glob."""
    import duckdb  # noqa: PLC0415 - one of three readers

    with duckdb.connect() as connection:
        query = f"SELECT workload, cached_tokens FROM read_parquet('{folder}/{glob}', {option})"  # noqa: S608
        return rows_by_workload(connection.execute(query).fetchall())


def by_pyarrow(folder: Path) -> str:
    """Read by a dataset of pyarrow."""
    import pyarrow.dataset as ds  # noqa: PLC0415 - one of three readers

    data = ds.dataset(folder, partitioning="hive").to_table(columns=["workload", "cached_tokens"])
    return rows_by_workload(zip(data["workload"].to_pylist(), data["cached_tokens"].to_pylist(), strict=True))


def by_pandas(folder: Path) -> str:
    """Read by pandas."""
    import pandas as pd  # noqa: PLC0415 - one of three readers

    frame = pd.read_parquet(folder)
    return rows_by_workload(zip(frame["workload"].astype(str), frame["cached_tokens"].astype(int), strict=True))


READERS: dict[str, Callable[[Path], str]] = {
    "duckdb": by_duckdb,
    "duckdb, lazy": lambda folder: by_duckdb(folder, "hive_partitioning = false"),
    "duckdb, one folder": lambda folder: by_duckdb(folder, "union_by_name = true", "*.parquet"),
    "pyarrow": by_pyarrow,
    "pandas": by_pandas,
}


def main(folder: Path, how: str, reads: int) -> None:
    """Read that often and print what came out."""
    read, seen = READERS[how], Counter[str]()
    print("ready", flush=True)  # noqa: T201
    for _ in range(reads):
        try:
            seen[read(folder)] += 1
        except Exception as error:  # noqa: BLE001 - any error is a right answer
            seen[f"error: {type(error).__name__}"] += 1
    print(json.dumps(seen))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))

"""How long questions take over turns of the published sets' size: `python -m bench.sql_timing [--database D]`.

Without --database a file is generated first: as many sessions and turns as the four sets have, by two tokenizers and
counted two ways, sizes drawn so that medians are near the published ones. Every query runs in DuckDB as `kappa sql`
opens it: read only, two threads, 1 GB.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.measure import table
from warehouse.database.aggregates import percentiles_of, summary_of
from warehouse.database.build import build_database
from warehouse.database.engine import fetch, read_only
from warehouse.declared.fields import TOKENIZER_COUNTINGS
from warehouse.declared.tables import TABLES, TURNS
from warehouse.hardware_rows.rows import load_reference

PAGE = Path(__file__).resolve().parents[1] / "docs" / "sql.md"
TOKENIZERS = ("llama-3.1", "qwen3")
# Sessions, turns, median tokens of a request and of a reply; documents have the document's tokens instead.
CHATS = {"sharegpt": (90_665, 719_155, 19, 303), "sharegpt-v3": (75_000, 690_000, 19, 300)}
DOCUMENTS = {"narrativeqa": (1_572, 46_765, 12, 57_000), "finqa": (801, 7_437, 22, 167_000)}
REPEATS = 3
MORE = {
    "count of all turns": "SELECT count(*) FROM turns",
    "means of every series": "SELECT workload, tokenizer, counting, avg(kappa_ratio) FROM turns GROUP BY ALL",
    "median of one series": "SELECT median(kappa_ratio) FROM turns WHERE workload = 'sharegpt' "
    "AND tokenizer = 'llama-3.1' AND counting = 'text'",
    "percentiles_at(64), all of it": "SELECT count(*), sum(value) FROM percentiles_at(64)",
    "percentiles_at(7), all of it": "SELECT count(*), sum(value) FROM percentiles_at(7)",
    "percentiles_at(64), kappa_ratio of all series": "FROM percentiles_at(64) WHERE metric = 'kappa_ratio'",
    "memory_bound_at(14.3), all of it": "FROM memory_bound_at(14.3)",
    "kappa_ratio_by_turn, all of it": "SELECT count(*), sum(kappa_ratio_p50) FROM kappa_ratio_by_turn",
    "turns_per_session, all of it": "FROM turns_per_session",
    "template_overhead, one series": "SELECT avg(template_tokens) FROM template_overhead WHERE workload = 'sharegpt' "
    "AND tokenizer = 'llama-3.1'",
    "one session": "FROM turns WHERE session_id = 's77' AND workload = 'sharegpt' ORDER BY ALL",
}


def drawn_turns(name: str, tokenizer: str, counting: str) -> pa.Table:
    """Return the turns of a whole set with sizes from log-normal distributions; every call gives the same numbers."""
    draw = np.random.default_rng([len(name), TOKENIZERS.index(tokenizer), TOKENIZER_COUNTINGS.index(counting)])
    sessions, turns, request, second = (CHATS | DOCUMENTS)[name]
    lengths = np.random.default_rng(7).lognormal(0, 1.2, sessions)
    lengths = np.maximum(1, lengths * turns / lengths.sum()).astype(np.int64)
    session = np.repeat(np.arange(sessions), lengths)
    start = np.repeat(np.cumsum(lengths) - lengths, lengths)
    count = len(session)
    prefill = np.maximum(1, draw.lognormal(np.log(request), 1.5, count)).astype(np.int64)
    output = draw.lognormal(np.log(second), 0.8, count).astype(np.int64)
    if name in CHATS:
        before = np.concatenate(([0], np.cumsum(prefill + output)[:-1]))
        cached = before - before[start]
    else:
        cached = np.repeat(draw.lognormal(np.log(second), 0.5, sessions).astype(np.int64), lengths)
    index = np.arange(count) - start
    columns = {
        "workload": pa.repeat(name, count), "tokenizer": pa.repeat(tokenizer, count),
        "counting": pa.repeat(counting, count), "reuse": pa.repeat("history", count),
        "session_id": pa.array([f"s{number}" for number in session.tolist()]),
        "turn_index": pa.array(index.astype(np.int32)), "cached_tokens": pa.array(cached),
        "prefill_tokens": pa.array(prefill), "output_tokens": pa.array(output, mask=np.full(count, name in DOCUMENTS)),
        "kappa_ratio": pa.array(cached / prefill), "is_first_turn": pa.array(index == 0),
    }  # fmt: skip
    return TURNS.conform(pa.table(columns))


def generate(path: Path) -> None:
    """Write a database of the size of the full sets."""
    files: dict[str, list[Path]] = {name: [] for name, declared in TABLES.items() if not declared.is_view}
    parts: dict[str, list[pa.Table]] = {"percentiles": [], "summary": [], "published": [load_reference("published")]}
    series = [(n, t, c) for n in (*CHATS, *DOCUMENTS) for t in TOKENIZERS for c in TOKENIZER_COUNTINGS]
    for names in series:
        turns = path.parent / f"{'.'.join(names)}.parquet"
        pq.write_table(drawn_turns(*names), turns)
        files["turns"].append(turns)
        parts["percentiles"].append(percentiles_of(turns))
        parts["summary"].append(summary_of(turns, special_token_messages=0, is_sample=True))
    for name, tables in parts.items():
        pq.write_table(pa.concat_tables(tables), path.parent / f"{name}.parquet")
        files[name] = [path.parent / f"{name}.parquet"]
    build_database(path, files)


def questions() -> dict[str, str]:
    """Return the queries of docs/sql.md by their headings, and some that read all turns."""
    page = PAGE.read_text("utf8")
    return dict(re.findall(r"^## (.+?)$.*?```sql\n(.*?)```", page, re.MULTILINE | re.DOTALL)) | MORE


def timed(path: Path) -> list[list[str]]:
    """Return the rows of each query, and its first and median time in milliseconds."""
    rows = []
    for name, query in questions().items():
        with read_only(path) as connection:
            spent = []
            for _ in range(REPEATS):
                begin = time.perf_counter()
                result = fetch(connection, query)
                spent.append((time.perf_counter() - begin) * 1000)
        rows.append([name, f"{result.num_rows:,}", f"{spent[0]:,.0f}", f"{statistics.median(spent):,.0f}"])
    return rows


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.sql_timing", description=__doc__)
    parser.add_argument("--database", type=Path, help="a warehouse.duckdb (default: one is generated)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        path = options.database or Path(scratch) / "warehouse.duckdb"
        if options.database is None:
            begin = time.perf_counter()
            generate(path)
            print(f"generated {path.stat().st_size / 1e6:,.0f} MB in {time.perf_counter() - begin:.0f} s\n")
        with read_only(path) as connection:
            turns = fetch(connection, "SELECT count(*) AS n FROM turns")["n"][0].as_py()
        print(f"{turns:,} turns\n\n{table(['question', 'rows', 'first ms', 'median ms'], timed(path))}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

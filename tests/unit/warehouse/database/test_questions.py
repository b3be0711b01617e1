"""Views and macros that answer questions: each equals a slower way, in Python over the rows themselves."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.hardware.boundness import boundness
from pipelines.hardware.ratios import hardware_tables
from warehouse.database.aggregates import percentiles_of, summary_of
from warehouse.database.build import build_database
from warehouse.database.engine import fetch, read_only
from warehouse.declared.fields import BLOCK_TOKENS, METRICS, PERCENTILES
from warehouse.declared.tables import TABLES, TURNS
from warehouse.hardware_rows.rows import FOLDER, load_reference

Row = dict[str, Any]
Rows = Callable[[str], list[Row]]
SERIES = ("workload", "tokenizer", "counting", "reuse")
TOKENIZERS = ("llama-3.1", "qwen3")
NAMES = [(w, t, c, "history") for w in ("books", "chats") for t in TOKENIZERS for c in ("text", "chat")]
NAMES += [("chats", t, "chat", "prefix") for t in TOKENIZERS]
SQL = Path(__file__).parents[4] / "warehouse" / "sql"
QUESTION_VIEWS = (
    "cached_share", "text_against_chat", "kappa_ratio_by_turn", "session_totals", "turns_per_session",
    "tokenizers_compared", "workloads_compared", "figures_met",
)  # fmt: skip


def drawn(names: tuple[str, str, str, str], seed: int) -> pa.Table:
    """Return turns of 40 sessions, 1 to 9 turns each; the second series of a workload adds some tokens."""
    lengths, sizes = np.random.default_rng(len(names[0])), np.random.default_rng(seed)
    rows = []
    for session in range(40):
        context = 0
        for index in range(int(lengths.integers(1, 10))):
            k = context if names[0] == "chats" else 5000 + session
            t, reply = (int(n) for n in sizes.integers(1, 400, 2))
            context = k + t + reply
            rows.append(
                dict(zip(SERIES, names, strict=True)) | {
                    "session_id": f"s{session}", "turn_index": index, "cached_tokens": k, "prefill_tokens": t,
                    "output_tokens": reply if names[0] == "chats" and index < 8 else None, "kappa_ratio": k / t,
                    "is_first_turn": index == 0,
                }
            )  # fmt: skip
    return TURNS.rows(rows)


@pytest.fixture(scope="module")
def turns() -> pa.Table:
    """All turns: two workloads by two tokenizers, counted two ways."""
    return pa.concat_tables([drawn(names, seed) for seed, names in enumerate(NAMES)])


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of these turns with their percentiles and totals, and the published figures."""
    folder = tmp_path_factory.mktemp("questions")
    files: dict[str, list[Path]] = {name: [] for name, table in TABLES.items() if not table.is_view}
    tables: dict[str, list[pa.Table]] = {"turns": [], "percentiles": [], "summary": []}
    for n, part in enumerate(drawn(names, seed) for seed, names in enumerate(NAMES)):
        path = folder / f"turns{n}.parquet"
        pq.write_table(part, path)
        files["turns"].append(path)
        tables["percentiles"].append(percentiles_of(path))
        tables["summary"].append(summary_of(path, special_token_messages=0, is_sample=False))
    for name, rows in {**tables, "published": [load_reference("published")]}.items():
        if rows:
            pq.write_table(pa.concat_tables(rows), folder / f"{name}.parquet")
            files[name] = [folder / f"{name}.parquet"]
    build_database(folder / "warehouse.duckdb", files)
    return folder / "warehouse.duckdb"


@pytest.fixture(scope="module")
def ask(database: Path) -> Iterator[Rows]:
    """Return a function that runs a query."""
    with read_only(database) as connection:
        yield lambda query: list(fetch(connection, query).to_pylist())


def grouped(turns: pa.Table, *columns: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return the turns by these columns."""
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in turns.to_pylist():
        found[tuple(row[name] for name in columns)].append(row)
    return found


def by_key(table: str, rows: list[Row]) -> dict[tuple[Any, ...], Row]:
    """Return rows by the declared key of their table, which must be unique, and check the declared columns."""
    key = TABLES[table].key
    assert {tuple(row) for row in rows} <= {TABLES[table].names}
    found = {tuple(row[name] for name in key): row for row in rows}
    assert len(found) == len(rows)
    return found


def median(turns: list[Row]) -> float:
    """Return the median kappa_ratio over turns with K > 0."""
    return float(np.median([row["kappa_ratio"] for row in turns if row["cached_tokens"] > 0]))


def near(value: float) -> Any:  # noqa: ANN401 - what pytest compares with
    """Return a value that equals others to rounding."""
    return pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("block", [1, 16, 64, 100, 256])
def test_percentiles_at(ask: Rows, turns: pa.Table, block: int) -> None:
    """Every metric and percentile at any block size is NumPy's: K_b = b floor(K / b), T_b = K + T - K_b."""
    found = ask(f"FROM percentiles_at({block})")
    assert {row["block_tokens"] for row in found} == {block}
    assert {row["metric"] for row in found} == set(METRICS)
    values = {(*(row[n] for n in (*SERIES, "population", "metric")), row["percentile"]): row["value"] for row in found}
    assert len(values) == len(found)
    expected = {}
    for names, rows in grouped(turns, *SERIES).items():
        for population, least in (("all", 0), ("reused", 1)):
            some = [row for row in rows if row["cached_tokens"] >= least]
            k = np.array([row["cached_tokens"] // block * block for row in some])
            context = np.array([row["cached_tokens"] + row["prefill_tokens"] for row in some])
            output = np.array([row["output_tokens"] for row in some if row["output_tokens"] is not None])
            columns = zip(METRICS, (k, context - k, context, output, k / (context - k)), strict=True)
            for (metric, column), p in itertools.product(columns, PERCENTILES):
                if len(column):
                    expected[(*names, population, metric, p)] = near(float(np.percentile(column, p)))
    assert values == expected


@pytest.mark.parametrize("macro", ["percentiles_at", "percentiles_of_turns"])
def test_percentiles_at_the_blocks_of_the_table(ask: Rows, macro: str) -> None:
    """At the block sizes that are stored it gives the stored rows, to the last bit."""
    for block in BLOCK_TOKENS:
        stored = ask(f"FROM percentiles WHERE block_tokens = {block} ORDER BY ALL")
        assert stored == ask(f"FROM {macro}({block}) ORDER BY ALL")


def test_percentiles_at_reads_what_is_asked_for(ask: Rows) -> None:
    """A metric and a series named in WHERE reach the scan; K + T, and what the table has, is read from no turn."""
    one = "workload = 'chats' AND tokenizer = 'qwen3' AND counting = 'text'"

    def scans_of_turns(block: int, where: str) -> list[str]:
        (row,) = ask(f"EXPLAIN (FORMAT json) FROM percentiles_at({block}) WHERE {where}")
        return [scan for scan in scanned(json.loads(row["explain_value"])[0]) if "turns" in scan]

    assert scans_of_turns(64, "metric = 'context_tokens'") == []
    assert [scans_of_turns(block, "true") for block in BLOCK_TOKENS] == [[], [], []]
    (scan,) = scans_of_turns(64, f"metric = 'kappa_ratio' AND {one}")
    assert all(value in scan for value in ("chats", "qwen3", "text"))


def scanned(plan: dict[str, Any]) -> list[str]:
    """Return what an execution plan tells of each of its scans of a table."""
    below = [scan for child in plan["children"] for scan in scanned(child)]
    return below + ([json.dumps(plan["extra_info"])] if "Table" in plan["extra_info"] else [])


@pytest.mark.parametrize("threshold", [0.5, 3, 14.3, 1e6])
def test_memory_bound_at(ask: Rows, turns: pa.Table, threshold: float) -> None:
    """Shares of turns, tokens and time above a threshold, summed turn by turn with t_GPU = T, t_PCIe = K / crit."""
    found = {tuple(row[n] for n in SERIES): row for row in ask(f"FROM memory_bound_at({threshold})")}
    assert len(found) == len(NAMES)
    for names, rows in grouped(turns, *SERIES).items():
        bound = [row for row in rows if row["kappa_ratio"] > threshold]

        def tokens(some: list[Row]) -> int:
            return sum(row["cached_tokens"] + row["prefill_tokens"] for row in some)

        def seconds(some: list[Row]) -> float:
            return math.fsum(row["cached_tokens"] / threshold + row["prefill_tokens"] for row in some)

        transfer = math.fsum(row["cached_tokens"] / threshold for row in rows)
        assert found[names] == dict(zip(SERIES, names, strict=True)) | {
            "turns": len(rows),
            "memory_bound_turn_share": near(len(bound) / len(rows)),
            "memory_bound_token_share": near(tokens(bound) / tokens(rows)),
            "memory_bound_time_share": near(seconds(bound) / seconds(rows)),
            "transfer_time_share": near(transfer / seconds(rows)),
        }


def test_memory_bound_at_no_threshold(ask: Rows) -> None:
    """An unknown threshold gives unknown shares; the turns are counted."""
    shares = ("memory_bound_turn_share", "memory_bound_token_share", "memory_bound_time_share", "transfer_time_share")
    found = ask("FROM memory_bound_at(NULL)")
    # 8 series of `history`, 2 of `prefix`
    assert [{row[name] for name in shares} for row in found] == [{None}] * 10
    assert all(row["turns"] > 0 for row in found)


@pytest.mark.parametrize("threshold", ["-1", "-0.5", "'nan'::DOUBLE", "'-inf'::DOUBLE"])
@pytest.mark.parametrize("columns", ["*", "count(*)"])
def test_memory_bound_at_what_is_no_threshold(ask: Rows, threshold: str, columns: str) -> None:
    """kappa_crit is F / R over bytes a token: never below 0, whatever is asked of the rows."""
    with pytest.raises(duckdb.Error, match="a kappa_crit is a number, and not below 0"):
        ask(f"SELECT {columns} FROM memory_bound_at({threshold})")  # noqa: S608 - the test's own


@pytest.mark.parametrize("block", ["0", "-16", "1.5", "NULL", "0.5"])
@pytest.mark.parametrize("macro", ["percentiles_at", "percentiles_of_turns"])
@pytest.mark.parametrize("columns", ["*", "count(*)", "metric"])
@pytest.mark.parametrize("where", ["true", "metric = 'output_tokens'", "metric = 'kappa_ratio'"])
def test_what_is_no_block(ask: Rows, block: str, macro: str, columns: str, where: str) -> None:
    """One message, whichever rows and columns are asked for."""
    with pytest.raises(duckdb.Error, match=r"Error: a block is a whole number of tokens, at least one$"):
        ask(f"SELECT {columns} FROM {macro}({block}) WHERE {where}")  # noqa: S608 - the test's own


def test_a_block_written_with_a_point(ask: Rows) -> None:
    """64.0 is the whole number 64."""
    assert ask("FROM percentiles_at(64.0) ORDER BY ALL") == ask("FROM percentiles_at(64) ORDER BY ALL")


def test_no_macro_has_a_with(ask: Rows) -> None:
    """DuckDB 1.4.0 and 1.4.1 do not find the tables of a WITH in a macro that a later DuckDB stored."""
    found = ask("SELECT function_name, macro_definition FROM duckdb_functions() WHERE macro_definition IS NOT NULL "
                "AND NOT internal")  # fmt: skip
    assert len(found) > 10
    assert [row["function_name"] for row in found if re.search(r"\bWITH\b", row["macro_definition"])] == []


def test_memory_bound_at_is_boundness(ask: Rows) -> None:
    """At the kappa_crit of a model and platform it gives the row of `boundness` by `2n`."""
    (part,) = [drawn(names, seed) for seed, names in enumerate(NAMES) if names == ("chats", "qwen3", "text", "history")]
    tables = boundness(
        [part], workload="chats", tokenizer="qwen3", counting="text", reuse="history", hardware=hardware_tables(FOLDER),
        headlines=load_reference("headlines"),
    ).to_pylist()  # fmt: skip
    rows = [row for row in tables if row["block_tokens"] == 1 and row["kappa_crit"] is not None]
    shares = ("memory_bound_turn_share", "memory_bound_token_share", "memory_bound_time_share", "transfer_time_share")
    assert len(rows) > 10
    for row in rows[:: max(1, len(rows) // 10)]:
        query = f"""FROM memory_bound_at({row["kappa_crit"]!r})
                    WHERE workload = 'chats' AND tokenizer = 'qwen3' AND counting = 'text'"""
        (found,) = ask(query)
        # boundness sorts doubles; the sums here are of integers
        assert [found[name] for name in shares] == pytest.approx([row[name] for name in shares], rel=1e-9, abs=1e-12)


def test_cached_share(ask: Rows, turns: pa.Table) -> None:
    """sum(K) / (sum(K) + sum(T)), and the sums beside it."""
    found = by_key("cached_share", ask("FROM cached_share"))
    for names, rows in grouped(turns, *SERIES).items():
        k, t = (sum(row[name] for row in rows) for name in ("cached_tokens", "prefill_tokens"))
        row = found.pop(names)
        assert (row["cached_tokens_sum"], row["prefill_tokens_sum"], row["cached_share"]) == (k, t, near(k / (k + t)))
    assert found == {}


def test_text_against_chat(ask: Rows, turns: pa.Table) -> None:
    """Means and medians of each counting, and what the template adds to a turn."""
    found = by_key("text_against_chat", ask("FROM text_against_chat"))
    series = grouped(turns, *SERIES)
    assert len(found) == 4
    for (workload, tokenizer), row in found.items():
        text, chat = (series[workload, tokenizer, counting, "history"] for counting in ("text", "chat"))
        context = [sum(turn["cached_tokens"] + turn["prefill_tokens"] for turn in some) for some in (text, chat)]
        pooled = [
            sum(turn["cached_tokens"] for turn in some) / sum(turn["prefill_tokens"] for turn in some)
            for some in (text, chat)
        ]
        assert row["template_tokens_mean"] == near((context[1] - context[0]) / len(chat))
        assert [row["text_pooled_kappa_ratio"], row["chat_pooled_kappa_ratio"]] == near(pooled)  # type: ignore[arg-type]
        assert [row["text_kappa_ratio_p50"], row["chat_kappa_ratio_p50"]] == near([median(text), median(chat)])  # type: ignore[arg-type]
    # the mean over the turn-by-turn view is the same
    means = ask("SELECT workload, tokenizer, avg(template_tokens) AS mean FROM template_overhead GROUP BY ALL")
    assert {(row["workload"], row["tokenizer"]): near(row["mean"]) for row in means} == {
        key: row["template_tokens_mean"] for key, row in found.items()
    }


def test_kappa_ratio_by_turn(ask: Rows, turns: pa.Table) -> None:
    """Quartiles, p90 and means of all turns with one turn_index."""
    found = by_key("kappa_ratio_by_turn", ask("FROM kappa_ratio_by_turn"))
    groups = grouped(turns, *SERIES, "turn_index")
    assert set(found) == set(groups)
    for key, rows in groups.items():
        quartiles = np.percentile([row["kappa_ratio"] for row in rows], [25, 50, 75, 90])
        means = [sum(row[n] for row in rows) / len(rows) for n in ("cached_tokens", "prefill_tokens")]
        assert list(found[key].values())[5:] == [len(rows), *map(near, means), *map(near, quartiles.tolist())]


def test_sessions(ask: Rows, turns: pa.Table) -> None:
    """Totals of sessions, how many turns they have, and the heaviest of each series."""
    found = by_key("session_totals", ask("FROM session_totals"))
    groups = grouped(turns, *SERIES, "session_id")
    assert set(found) == set(groups)
    for key, rows in groups.items():
        sums = [sum(row[n] for row in rows) for n in ("cached_tokens", "prefill_tokens")]
        outputs = [row["output_tokens"] for row in rows if row["output_tokens"] is not None]
        longest = max(row["cached_tokens"] + row["prefill_tokens"] for row in rows)
        assert list(found[key].values())[5:] == [len(rows), *sums, sum(outputs) if outputs else None, longest]
    per_series = by_key("turns_per_session", ask("FROM turns_per_session"))
    for names, row in per_series.items():
        lengths = [len(rows) for key, rows in groups.items() if key[:4] == names]
        spread = np.percentile(lengths, [50, 90, 99]).tolist()
        mean = sum(lengths) / len(lengths)
        assert list(row.values())[4:] == [len(lengths), min(lengths), near(mean), *map(near, spread), max(lengths)]
    heaviest = Counter(tuple(row[n] for n in SERIES) for row in ask("FROM heaviest_sessions(3)"))
    assert heaviest == dict.fromkeys(NAMES, 3)
    for names in NAMES:
        first = sorted((-row["cached_tokens_sum"], key[4]) for key, row in found.items() if key[:4] == names)[:3]
        where = " AND ".join(f"{n} = '{v}'" for n, v in zip(SERIES, names, strict=True))
        rows = ask(f"FROM heaviest_sessions(3) WHERE {where} ORDER BY cached_tokens_sum DESC, session_id")
        assert [(-row["cached_tokens_sum"], row["session_id"]) for row in rows] == first


def test_compared(ask: Rows, turns: pa.Table) -> None:
    """Tokenizers side by side and workload against workload, each pair in both directions."""
    series = grouped(turns, *SERIES)
    context = {key: sum(r["cached_tokens"] + r["prefill_tokens"] for r in rows) for key, rows in series.items()}
    tokenizers = by_key("tokenizers_compared", ask("FROM tokenizers_compared"))
    # (2 workloads x 2 countings + `prefix` of one) x 2 directions
    assert len(tokenizers) == 10
    for (workload, counting, reuse, one, other), row in tokenizers.items():
        a, b = (workload, one, counting, reuse), (workload, other, counting, reuse)
        assert row["context_tokens_ratio"] == near(context[b] / context[a])
        assert row["kappa_ratio_p50_ratio"] == near(median(series[b]) / median(series[a]))
    workloads = by_key("workloads_compared", ask("FROM workloads_compared"))
    # 2 tokenizers x 2 countings x 2 directions; `prefix` has no second workload
    assert len(workloads) == 8
    for (tokenizer, counting, reuse, one, other), row in workloads.items():
        a, b = (median(series[name, tokenizer, counting, reuse]) for name in (one, other))
        assert (row["kappa_ratio_p50"], row["other_kappa_ratio_p50"]) == (near(a), near(b))
        assert row["kappa_ratio_p50_ratio"] == near(b / a)


def test_figures_met(ask: Rows) -> None:
    """The counts are those of the rows of `paper_comparison`."""
    found = by_key("figures_met", ask("FROM figures_met"))
    rows = ask("FROM paper_comparison")
    assert sum(row["figures"] for row in found.values()) == len(rows) > 50
    for (workload,), row in found.items():
        mine = [figure for figure in rows if figure["workload"] == workload]
        compared = [figure["within_tolerance"] for figure in mine if figure["within_tolerance"] is not None]
        asserted = sum(figure["is_asserted"] for figure in mine)
        assert list(row.values())[1:] == [len(mine), asserted, len(compared), sum(compared)]


def test_types_and_null_are_as_declared(ask: Rows) -> None:
    """Views give the declared columns, types and no NULL where none is declared."""
    for name in QUESTION_VIEWS:
        described = {row["column_name"]: row["column_type"] for row in ask(f"DESCRIBE {name}")}
        kinds = {"string": "VARCHAR", "int64": "BIGINT", "int32": "INTEGER", "double": "DOUBLE", "bool": "BOOLEAN"}
        assert described == {field.name: kinds[str(field.type)] for field in TABLES[name].fields}, name
        never = [field.name for field in TABLES[name].fields if not field.nullable]
        nulls = " + ".join(f'count(*) FILTER ("{column}" IS NULL)' for column in never)
        assert ask(f"SELECT {nulls} AS n FROM {name}") == [{"n": 0}], name  # noqa: S608 - declared names


def test_every_macro_says_what_it_is(ask: Rows) -> None:
    """Each question's macro has a comment and is in docs/sql.md; its percentiles are the declared ones."""
    text = (SQL / "percentiles.sql").read_text("utf8") + (SQL / "questions.sql").read_text("utf8")
    names = re.findall(r"^CREATE MACRO (\w+)\(", text, re.MULTILINE)
    assert sorted(names) == ["block_size", "heaviest_sessions", "memory_bound_at", "percentiles_at",
                             "percentiles_of_turns", "turns_in_blocks"]  # fmt: skip
    comments = {
        row["function_name"]: row["comment"]
        for row in ask(
            "SELECT function_name, comment FROM duckdb_functions() WHERE function_type IN ('macro', 'table_macro') "
            "AND NOT internal"
        )
    }
    assert {name: bool(comments[name]) for name in names} == dict.fromkeys(names, True)
    page = (SQL.parents[1] / "docs" / "sql.md").read_text("utf8")
    assert [name for name in (*names, *QUESTION_VIEWS) if name not in page] == []


def test_another_name_of_the_database(database: Path) -> None:
    """Macros and views work in a file that is attached under another name, once it is in use."""
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{database}' AS other (READ_ONLY)")
        connection.execute("USE other")
        # 10 series
        assert connection.sql("SELECT count(*) FROM memory_bound_at(3)").fetchall() == [(10,)]
        assert connection.sql("SELECT count(*) FROM turns_per_session").fetchall() == [(10,)]

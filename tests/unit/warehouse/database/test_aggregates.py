"""Percentiles and totals of turns, against NumPy and against plain sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from warehouse.checks.tables import not_monotone, violations
from warehouse.database import engine
from warehouse.database.aggregates import percentiles_of, summary_of
from warehouse.database.build import build_database
from warehouse.database.engine import fetch, in_memory, read_only
from warehouse.declared.fields import BLOCK_TOKENS, METRICS
from warehouse.declared.fields import PERCENTILES as LEVELS
from warehouse.declared.tables import PERCENTILES, SUMMARY, TABLES, TURNS
from warehouse.home.lake import write_table

SOME = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
TURN = st.tuples(st.integers(0, 10**6), st.integers(1, 5000), st.none() | st.integers(0, 3000))
MakeFile = Callable[..., Path]


@pytest.fixture
def file(tmp_path: Path, turns_table: Callable[..., pa.Table]) -> MakeFile:
    """Return a function that writes turns (K, T, output), two to a session, as Parquet."""

    def write(turns: list[tuple[int, int, int | None]], folder: str = "home") -> Path:
        path = tmp_path / folder / "turns.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [(f"s{n // 2}", n % 2, *turn) for n, turn in enumerate(turns)]
        pq.write_table(turns_table(rows), path, row_group_size=3)
        return path

    return write


def summary(path: Path) -> dict[str, Any]:
    """Return the one row of the summary."""
    table = summary_of(path, special_token_messages=7, is_sample=True)
    assert violations(SUMMARY, table) == []
    (row,) = table.to_pylist()
    return dict(row)


def column(turns: list[tuple[int, int, int | None]], metric: str, block: int) -> list[float]:
    """Return a metric of each turn by the words of the design: K_b = b floor(K / b), T_b = K + T - K_b."""
    found: list[float | None] = []
    for k, t, output in turns:
        k_b = block * (k // block)
        t_b = k + t - k_b
        named = {"cached_tokens": k_b, "prefill_tokens": t_b, "context_tokens": k + t, "output_tokens": output}
        found.append(k_b / t_b if metric == "kappa_ratio" else named[metric])
    return [value for value in found if value is not None]


def test_by_hand(file: MakeFile) -> None:
    """Three turns: percentiles by linear interpolation, for both populations, and blocks of 16."""
    path = file([(0, 3, 2), (5, 1, 4), (100, 30, None)])
    values = {tuple(row.values())[4:8]: row["value"] for row in percentiles_of(path).to_pylist()}
    # K = 0 5 100: the median is 5, p25 at place 0.5 is 2.5, p90 at place 1.8 is 5 + 0.8 x 95 = 81
    assert [values["all", 1, "cached_tokens", p] for p in (25, 50, 90)] == pytest.approx([2.5, 5, 81])
    # reused: K = 5 100, the median is 52.5
    assert values["reused", 1, "cached_tokens", 50] == 52.5
    # outputs 2 and 4 alone
    assert values["all", 1, "output_tokens", 50] == 3
    # at 16: K = 0 0 96, T = 3 6 34; the turn with K_b = 0 stays in `reused`
    assert values["reused", 16, "cached_tokens", 50] == 48
    assert values["reused", 16, "prefill_tokens", 50] == 20
    # 96 / 34 = 2.8235, its half is the median of 0 and it
    assert values["reused", 16, "kappa_ratio", 50] == pytest.approx(96 / 34 / 2)
    # at 256 nothing is reused: K = 0, T = K + T
    assert values["reused", 256, "prefill_tokens", 50] == (6 + 130) / 2


@SOME
@given(turns=st.lists(TURN, min_size=1, max_size=12))
def test_percentiles_against_numpy(file: MakeFile, turns: list[tuple[int, int, int | None]]) -> None:
    """Every population, block, metric and percentile is NumPy's linear one, and a series without values has no row."""
    table = percentiles_of(file(turns))
    assert violations(PERCENTILES, table) == []
    found = {tuple(row.values())[4:8]: row["value"] for row in table.to_pylist()}
    expected = {}
    for population in ("all", "reused"):
        chosen = [turn for turn in turns if population == "all" or turn[0] > 0]
        for block in BLOCK_TOKENS:
            for metric in METRICS:
                values = column(chosen, metric, block)
                points = np.percentile(values, LEVELS).tolist() if values else []
                expected |= {(population, block, metric, p): v for p, v in zip(LEVELS, points, strict=False)}
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        assert found[key] == pytest.approx(value, rel=1e-12, abs=1e-12), key


def exact(values: list[float], percentile: float) -> float:
    """Return the percentile by its definition: the place is a fraction, between two places the line is straight."""
    ordered = sorted(map(float, values))
    place = (len(ordered) - 1) * Fraction(int(10 * percentile), 1000)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return min(low + (high - low) * float(place - math.floor(place)), high)


# Few tokens, so that whole turns and ratios repeat and ties stand at every place.
ALIKE = st.tuples(st.integers(0, 9), st.integers(1, 4), st.none() | st.integers(0, 3))


@SOME
@given(
    turns=st.one_of(st.lists(TURN, min_size=1, max_size=40), st.lists(ALIKE, min_size=1, max_size=40)),
    block=st.integers(1, 300),
)
def test_percentiles_are_exact_to_the_last_bit(
    file: MakeFile, turns: list[tuple[int, int, int | None]], block: int
) -> None:
    """At any block size every value is the one of the definition, bit for bit, with ties and without."""
    table = percentiles_of(file(turns), [block])
    assert violations(PERCENTILES, table) == not_monotone(table) == []
    found = {(row["population"], row["metric"], row["percentile"]): row["value"] for row in table.to_pylist()}
    chosen = {"all": turns, "reused": [turn for turn in turns if turn[0] > 0]}
    expected = {
        (population, metric, level): exact(values, level)
        for population, some in chosen.items()
        for metric in METRICS
        if (values := column(some, metric, block))
        for level in LEVELS
    }
    assert found == expected


def test_percentiles_of_many_turns(file: MakeFile) -> None:
    """Ten thousand turns, so that many whole numbers hold many kappa_ratios: bit for bit, and DuckDB's own beside."""
    draw = np.random.default_rng(5)
    sizes = zip(draw.integers(0, 3000, 10_000), draw.integers(1, 60, 10_000), strict=True)
    turns: list[tuple[int, int, int | None]] = [(int(k) * (n % 7 > 0), int(t), None) for n, (k, t) in enumerate(sizes)]
    path = file(turns)
    rows = percentiles_of(path, [1, 48]).to_pylist()
    for row in rows:
        some = [turn for turn in turns if row["population"] == "all" or turn[0] > 0]
        assert row["value"] == exact(column(some, row["metric"], row["block_tokens"]), row["percentile"])
    query = f"SELECT quantile_cont(kappa_ratio, 0.999) AS p FROM read_parquet('{path}')"  # noqa: S608 - our own file
    with in_memory() as connection:
        (row,) = fetch(connection, query).to_pylist()
    (ours,) = [
        found["value"]
        for found in rows
        if (found["metric"], found["population"], found["block_tokens"], found["percentile"])
        == ("kappa_ratio", "all", 1, 99.9)
    ]
    # place 9999 x 0.999 = 9989.001
    assert ours == pytest.approx(row["p"], rel=1e-12)


@pytest.mark.parametrize("block", [-16, 0])
def test_a_block_has_a_token(file: MakeFile, block: int) -> None:
    """There are no blocks of 0 tokens or less."""
    with pytest.raises(Exception, match="a whole number of tokens, at least one"):
        percentiles_of(file([(5, 3, 2)]), [block])


@pytest.mark.parametrize("turns", [[(1, 1, None), (1, 9, None), (1, 9, None)], [(1, 9, None)] * 20])
def test_percentiles_between_equal_values(file: MakeFile, turns: list[tuple[int, int, int | None]]) -> None:
    """Between two equal values stands that value; a percentile that falls by one bit would block a whole run."""
    table = percentiles_of(file(turns))
    assert not_monotone(table) == []
    # K / T = 1 / 9 at and below the median
    rows = [row for row in table.to_pylist() if row["metric"] == "kappa_ratio" and row["block_tokens"] == 1]
    assert {row["value"] for row in rows if row["percentile"] <= 50} == {1 / 9}


@SOME
@given(turns=st.lists(TURN, min_size=1, max_size=12))
def test_summary_against_sums(file: MakeFile, turns: list[tuple[int, int, int | None]]) -> None:
    """Totals are exact, means are the nearest doubles of exact fractions."""
    row = summary(file(turns))
    cached, prefill = sum(k for k, _, _ in turns), sum(t for _, t, _ in turns)
    outputs = [output for _, _, output in turns if output is not None]
    count = len(turns)
    assert (row["sessions"], row["turns"], row["first_turns"]) == ((count + 1) // 2, count, (count + 1) // 2)
    assert (row["cached_tokens_sum"], row["prefill_tokens_sum"]) == (cached, prefill)
    assert row["output_tokens_sum"] == (sum(outputs) if outputs else None)
    assert row["cached_tokens_mean"] == float(Fraction(cached, count))
    assert row["prefill_tokens_mean"] == float(Fraction(prefill, count))
    assert row["pooled_kappa_ratio"] == float(Fraction(cached, prefill))
    ratios = math.fsum(k / t for k, t, _ in turns) / count
    assert row["kappa_ratio_mean"] == pytest.approx(ratios, rel=1e-14, abs=0)
    assert (row["special_token_messages"], row["is_sample"]) == (7, True)


@SOME
@given(turns=st.lists(TURN, min_size=2, max_size=12))
def test_the_order_of_rows_does_not_matter(file: MakeFile, turns: list[tuple[int, int, int | None]]) -> None:
    """Percentiles of the same turns in another order are the same to the bit."""
    assert percentiles_of(file(turns)).equals(percentiles_of(file(turns[::-1], "other")))


def test_no_turns(file: MakeFile) -> None:
    """An empty series has neither percentiles nor a summary, but the columns."""
    path = file([])
    # 0 rows
    assert (percentiles_of(path).num_rows, summary_of(path, special_token_messages=0, is_sample=False).num_rows) == (
        0,
        0,
    )
    assert percentiles_of(path).schema.equals(PERCENTILES.arrow_schema)


def test_one_turn(file: MakeFile) -> None:
    """Every percentile of one value is that value; nothing reused means no row of `reused`."""
    table = percentiles_of(file([(0, 3, None)]))
    # 1 population x 3 blocks x 4 metrics (no output) x 10 percentiles
    assert table.num_rows == 120
    assert {row["value"] for row in table.to_pylist() if row["metric"] == "prefill_tokens"} == {3}


def test_sums_beyond_64_bits_of_doubles(file: MakeFile) -> None:
    """Sums of large counts are exact where doubles are not."""
    # 2^53 + 1 has no double
    assert summary(file([(2**53, 1, None), (1, 1, None)]))["cached_tokens_sum"] == 2**53 + 1


@pytest.mark.parametrize("folder", ["it's", "a b", "a[b]", "{a,b}", "\u00e9"])
def test_any_folder(file: MakeFile, folder: str) -> None:
    """The name of the home folder does not matter."""
    # 2 turns
    assert summary(file([(0, 3, 2), (5, 1, 4)], folder))["turns"] == 2


@pytest.mark.parametrize("folder", ["workload=other", "a*b"])
def test_folders_that_mean_something_to_duckdb(file: MakeFile, folder: str) -> None:
    """A home below such a folder reads its own file, with the file's own columns."""
    file([(0, 3, 2)], "aXb")
    row = summary(file([(0, 3, 2), (5, 1, 4)], folder))
    # 2 turns of w
    assert (row["turns"], row["workload"]) == (2, "w")


def test_columns_of_the_turns_alone(file: MakeFile) -> None:
    """One series gives one series."""
    table = percentiles_of(file([(5, 3, 2)]))
    # 1 workload, tokenizer and counting
    assert {tuple(row.values())[:4] for row in table.to_pylist()} == {("w", "llama-3.1", "text", "history")}
    assert TURNS.partition_by == ("workload", "tokenizer", "counting", "reuse")


@pytest.mark.parametrize("threads", [1, 7])
def test_the_number_of_threads_does_not_matter(
    file: MakeFile, threads: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Percentiles, totals and the rows of the database, in their order, are the same bytes by any number of threads."""
    draw = np.random.default_rng(9)
    sizes = zip(*(draw.integers(least, 9000, 6_000).tolist() for least in (0, 1, 0)), strict=True)
    path = file(list(sizes))
    # Row groups of many sizes, so that threads have something to share.
    pq.write_table(pq.read_table(path), path, row_group_size=512)
    files: dict[str, list[Path]] = {name: [] for name, table in TABLES.items() if not table.is_view}

    def made(folder: Path) -> list[object]:
        folder.mkdir()
        write_table(percentiles_of(path), folder / "p.parquet")
        write_table(summary_of(path, special_token_messages=0, is_sample=False), folder / "s.parquet")
        parts = {"turns": path, "percentiles": folder / "p.parquet", "summary": folder / "s.parquet"}
        build_database(folder / "w.duckdb", files | {name: [part] for name, part in parts.items()})
        with read_only(folder / "w.duckdb") as connection:
            stored = [fetch(connection, f"FROM {name}") for name in parts]
        return [*stored, *(part.read_bytes() for part in list(parts.values())[1:])]

    expected = made(tmp_path / "usual")
    monkeypatch.setattr(engine, "THREADS", threads)
    assert made(tmp_path / "other") == expected

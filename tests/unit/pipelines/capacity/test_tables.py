"""The tables of capacity in a database: macros against the curve, a log that is read back, declared rules."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from pipelines.capacity.curve import curve_of
from pipelines.capacity.distances import hits_of
from pipelines.capacity.interleaving import SESSIONS_AT_A_TIME
from pipelines.capacity.requests import Requests, requests_of_turns
from pipelines.capacity.tables import capacity_rows, of_log, orders, policy_rows
from tests.unit.pipelines.capacity import brute_force as slow
from tests.unit.pipelines.capacity.log_home import LOG, build, log_tables
from warehouse.checks.tables import violations
from warehouse.database.engine import fetch, read_only
from warehouse.declared.tables import TABLES

Ask = Callable[[str], list[dict[str, Any]]]


def drawn(count: int = 300, seed: int = 1) -> Requests:
    """Return requests over a tree of prompts whose identities are chained, blocks of 512."""
    rng = random.Random(seed)
    paths = [[0, *(rng.randrange(3) for _ in range(rng.randrange(12)))] for _ in range(count)]
    prompts = slow.chained(paths, [rng.randrange(14) for _ in paths])
    return slow.requests_of(prompts, 512, [number % 40 for number in range(count)])


@pytest.fixture(scope="module")
def requests() -> Requests:
    """A log of 300 requests."""
    return drawn()


@pytest.fixture(scope="module")
def ask(requests: Requests, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Return a function that runs a query over the log's database."""
    with read_only(build(tmp_path_factory.mktemp("log"), requests)) as connection:
        yield lambda query: list(fetch(connection, query).to_pylist())


def test_rows_hold_what_is_declared(requests: Requests) -> None:
    """No rule of any table is broken, and each has rows."""
    for name, rows in log_tables(requests).items():
        assert rows.num_rows
        assert violations(TABLES[name], rows.combine_chunks()) == []


def test_hit_ratio_at_blocks_is_the_curve(ask: Ask, requests: Requests) -> None:
    """At every whole number of blocks, and at halves, which are rounded down; beyond the last row nothing more."""
    curve = curve_of(requests, hits_of(requests))
    for blocks in [*range(0, 200, 7), 12.5, 1e30]:
        (row,) = ask(f"FROM hit_ratio_at_blocks({blocks})")
        assert row["hit_ratio"] == float(curve.hit_ratio(blocks))
        assert {name: row[name] for name in LOG} == LOG
        assert (row["block_tokens"], row["interleaving"]) == (512, 0)


def test_an_endless_cache_gives_the_turns(ask: Ask) -> None:
    """Its hit ratio is sum K / (sum K + sum T) of reuse prefix; none is sum T."""
    (row,) = ask("FROM hit_ratio_at_blocks(1e9)")
    (share,) = ask("SELECT sum(cached_tokens) / sum(cached_tokens + prefill_tokens) AS share FROM turns")
    assert row["hit_ratio"] == share["share"] > 0
    assert ask("FROM hit_ratio_at_blocks(0)")[0]["hit_ratio"] == 0


def test_capacity_for_is_the_least(ask: Ask, requests: Requests) -> None:
    """What the curve says; NULL where no cache has it."""
    curve = curve_of(requests, hits_of(requests))
    for ratio in (0, 0.1, 0.2, float(curve.hit_ratio(1e9))):
        assert ask(f"FROM capacity_for({ratio})")[0]["capacity_blocks"] == curve.capacity_for(ratio)
    assert ask("FROM capacity_for(0.999)")[0]["capacity_blocks"] is None


def test_hit_ratio_at_bytes(ask: Ask) -> None:
    """llama-3.1-70b in bf16 takes 327,680 bytes a token, half in fp8: 20 blocks of 512 are 3,355,443,200 bytes."""
    (bf16,) = ask("FROM hit_ratio_at_bytes(3355443200, 'llama-3.1-70b', 'bf16')")
    (fp8,) = ask("FROM hit_ratio_at_bytes(1677721601, 'llama-3.1-70b', 'fp8')")
    (blocks,) = ask("FROM hit_ratio_at_blocks(20)")
    assert bf16["capacity_blocks"] == fp8["capacity_blocks"] == 20
    assert bf16["hit_ratio"] == fp8["hit_ratio"] == blocks["hit_ratio"]
    by_model = ask("FROM capacity_by_model WHERE model = 'llama-3.1-70b' AND kv_dtype = 'fp8' ORDER BY capacity_blocks")
    assert by_model[-1]["capacity_bytes"] == by_model[-1]["capacity_blocks"] * 512 * 163840


@pytest.mark.parametrize(
    "query", ["FROM hit_ratio_at_blocks(-1)", "FROM hit_ratio_at_bytes(1, 'llama-3.1-8b', 'bf17')"]
)
def test_impossible_sizes_are_refused(ask: Ask, query: str) -> None:
    """A capacity is not below 0, and a format is known."""
    with pytest.raises(duckdb.InvalidInputException):
        ask(query)


def test_a_log_is_read_back(requests: Requests) -> None:
    """The hits at any capacity are the same out of the tables."""
    tables = log_tables(requests)
    found, hits = of_log(tables["log_requests"], tables["reuse_distances"])
    for capacity in (0, 5, 50, 10**6):
        expected = hits_of(requests).blocks_at(capacity, len(requests))
        assert hits.blocks_at(capacity, len(found)).tolist() == expected.tolist()
    assert found.context_tokens.tolist() == requests.context_tokens.tolist()
    assert found.arrival_s is not None
    assert found.arrival_s.tolist() == requests.arrival_s.tolist() if requests.arrival_s is not None else False


def test_sessions_are_served_in_every_order() -> None:
    """Without times 1, 16, 256 and 4,096 at a time; one at a time needs least: all its blocks are the youngest."""
    # 40 sessions of 5 turns, each 100 new tokens after all that was said.
    turn = np.tile(np.arange(5), 40)
    ones = np.full(200, 100, np.int64)
    served = orders(requests_of_turns(turn * 150, ones, ones // 2, np.repeat(np.arange(40), 5), 16))
    rows = capacity_rows(LOG, {count: (ordered, hits_of(ordered)) for count, ordered in served.items()}).to_pylist()
    assert {row["interleaving"] for row in rows} == set(SESSIONS_AT_A_TIME)
    ends = {row["interleaving"]: row["hit_ratio"] for row in rows}
    assert len(set(ends.values())) == 1
    at_50 = {count: curve_of(one, hits_of(one)).tokens_at(50) for count, one in served.items()}
    assert at_50[1] == max(at_50.values())


def test_policies_are_ordered() -> None:
    """At each capacity the optimum is the most, eviction by request no more than by block."""
    requests = drawn(120, 3)
    rows = policy_rows(LOG, {0: (requests, hits_of(requests))}).to_pylist()
    found = {(row["policy"], row["capacity_blocks"]): row["hit_blocks"] for row in rows}
    for (policy, capacity), blocks in found.items():
        assert blocks <= found["optimum", capacity], policy
    assert all(row["is_exact"] for row in rows)


def test_a_database_is_somewhere(tmp_path: Path) -> None:
    """A log of one request has a curve with nothing to find."""
    with read_only(build(tmp_path, drawn(1))) as connection:
        (row,) = fetch(connection, "FROM hit_ratio_at_blocks(5)").to_pylist()
    assert row["hit_ratio"] == 0

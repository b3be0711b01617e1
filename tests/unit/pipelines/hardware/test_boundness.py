"""Boundness by hand, and against an implementation that goes turn by turn and machine by machine."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.hardware.boundness import bound_shares, boundness, sort_turns
from pipelines.hardware.ratios import hardware_tables
from warehouse.declared.tables import BOUNDNESS
from warehouse.hardware_rows.rows import load_reference

SHARES = [name for name in BOUNDNESS.names if name.endswith("_share") or name.startswith("pcie_overhead")]

TURN = st.tuples(st.integers(0, 500_000), st.integers(1, 20_000))


@pytest.fixture(scope="module")
def hardware() -> dict[str, pa.Table]:
    """Return the hardware tables, built once."""
    return hardware_tables()


def run(
    turns: list[tuple[int, int]], hardware: dict[str, pa.Table], tokenizer: str = "llama-3.1", batch: int = 10**9
) -> pa.Table:
    """Return the rows of `boundness` with a kappa_crit of (K, T) pairs, handed over `batch` turns at a time."""
    batches = [
        {"cached_tokens": np.array(part)[:, 0], "prefill_tokens": np.array(part)[:, 1]}
        for part in (turns[i : i + batch] for i in range(0, len(turns), batch))
    ]
    names = {"workload": "w", "tokenizer": tokenizer, "counting": "text", "reuse": "history"}
    table = boundness(batches, **names, hardware=hardware, headlines=load_reference("headlines"))
    return table.filter(pc.is_valid(table["kappa_crit"]))


def quantile(values: list[float], q: float) -> float:
    """Return the quantile by linear interpolation between neighbours."""
    ordered = sorted(values)
    place = q * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def naive(turns: list[tuple[int, int]], block: int, crit: float, max_context: int) -> dict[str, float]:
    """Return the shares of one pair, turn by turn, times in units of one computed token."""
    blocked = [(k // block * block, k + t - k // block * block) for k, t in turns]
    bound = [k / t > crit for k, t in blocked]
    times = [k / crit + t for k, t in blocked]
    overheads = [k / t / crit for k, t in blocked]
    return {
        "memory_bound_turn_share": sum(bound) / len(turns),
        "memory_bound_token_share": sum(k + t for (k, t), b in zip(blocked, bound, strict=True) if b)
        / sum(k + t for k, t in blocked),
        "memory_bound_time_share": sum(time for time, b in zip(times, bound, strict=True) if b) / sum(times),
        "transfer_time_share": sum(k / crit for k, _ in blocked) / sum(times),
        "over_context_turn_share": sum(k + t > max_context for k, t in turns) / len(turns),
        "pcie_overhead_p50": quantile(overheads, 0.5),
        "pcie_overhead_p90": quantile(overheads, 0.9),
        "pcie_overhead_p99": quantile(overheads, 0.99),
    }


def test_shares_by_hand() -> None:
    """Four turns, one of them exactly at kappa_crit: that one is not memory bound."""
    turns = sort_turns(np.array([0, 10, 40, 90]), np.array([5, 2, 4, 3]))
    shares = {name: values.tolist() for name, values in bound_shares(turns, np.array([5.0, 100.0])).items()}
    # ratios 0, 5, 10, 30; above 5: two of four turns, above 100: none
    assert shares["memory_bound_turn_share"] == [0.5, 0]
    # (44 + 93) of 5 + 12 + 44 + 93 = 154 tokens
    assert shares["memory_bound_token_share"] == [137 / 154, 0]
    # at 5: times K / 5 + T = 5, 4, 12, 21, so 33 of 42
    assert shares["memory_bound_time_share"] == pytest.approx([33 / 42, 0])
    # transfer 140 / 5 = 28 of 42; at 100: 1.4 of 1.4 + 14
    assert shares["transfer_time_share"] == pytest.approx([28 / 42, 1.4 / 15.4])
    # overheads at 5: 0, 1, 2, 6; median 1.5; p90 at place 2.7: 2 + 0.7 x 4 = 4.8; p99 at 2.97: 2 + 0.97 x 4 = 5.88
    for name, expected in (("pcie_overhead_p50", 1.5), ("pcie_overhead_p90", 4.8), ("pcie_overhead_p99", 5.88)):
        assert shares[name][0] == pytest.approx(expected)


def test_blocks_by_hand() -> None:
    """A block of 16 moves what does not fill it from K to T."""
    turns = sort_turns(np.array([100, 63]), np.array([30, 1]), 16)
    # 96 / 34 = 2.82 and 48 / 16 = 3
    assert turns.kappa_ratio.tolist() == [96 / 34, 3.0]
    # K = 96 + 48, then 48; T = 34 + 16, then 16
    assert turns.cached_from.tolist() == [144, 48, 0]
    assert turns.prefill_from.tolist() == [50, 16, 0]


@settings(deadline=None, max_examples=40)  # the machine may be busy
@given(turns=st.lists(TURN, min_size=1, max_size=60), picks=st.lists(st.integers(0, 10**6), min_size=8, max_size=8))
def test_equal_to_turn_by_turn(hardware: dict[str, pa.Table], turns: list[tuple[int, int]], picks: list[int]) -> None:
    """Random turns, a handful of random rows of the table: all eight figures agree with the naive ones."""
    table = run(turns, hardware)
    context = dict(zip(*(hardware["models"][c].to_pylist() for c in ("model", "max_context_tokens")), strict=True))
    for pick in picks:
        row = table.slice(pick % table.num_rows, 1).to_pylist()[0]
        expected = naive(turns, row["block_tokens"], row["kappa_crit"], context[row["model"]])
        assert {name: row[name] for name in SHARES} == pytest.approx(expected, rel=1e-9, abs=1e-12)


@settings(deadline=None, max_examples=20)  # the machine may be busy
@given(data=st.data(), turns=st.lists(TURN, min_size=2, max_size=30), batch=st.integers(1, 7))
def test_order_and_batches_do_not_matter(
    hardware: dict[str, pa.Table], data: st.DataObject, turns: list[tuple[int, int]], batch: int
) -> None:
    """The table is the same to the last bit however the turns arrive."""
    shuffled = data.draw(st.permutations(turns))
    assert run(turns, hardware).equals(run(shuffled, hardware, batch=batch))


@settings(deadline=None)  # the machine may be busy
@given(turns=st.lists(TURN, min_size=1, max_size=30))
def test_shares_fall_as_kappa_crit_rises(turns: list[tuple[int, int]]) -> None:
    """A faster link never makes more turns memory bound."""
    cached, prefill = np.array(turns)[:, 0], np.array(turns)[:, 1]
    shares = bound_shares(sort_turns(cached, prefill), np.array([0.5, 5.0, 50.0, 500.0]))
    for name in ("memory_bound_turn_share", "memory_bound_token_share", "transfer_time_share"):
        assert np.all(np.diff(shares[name]) <= 0)


def test_no_turn_gives_no_row(hardware: dict[str, pa.Table]) -> None:
    """A share of nothing is no number."""
    assert run([], hardware).equals(BOUNDNESS.rows([]))


def test_one_turn(hardware: dict[str, pa.Table]) -> None:
    """With one turn every percentile is its own overhead and every share is 0 or 1."""
    for row in run([(1000, 10)], hardware).to_pylist():
        assert row["pcie_overhead_p50"] == row["pcie_overhead_p90"] == row["pcie_overhead_p99"]
        assert row["memory_bound_turn_share"] == row["memory_bound_token_share"] == row["memory_bound_time_share"]


def test_duplicates_weigh_as_often_as_they_occur() -> None:
    """Three equal turns at kappa_crit and one above it."""
    turns = sort_turns(np.array([10, 10, 10, 11]), np.array([2, 2, 2, 2]))
    # only 11 / 2 = 5.5 exceeds 5: one of four
    assert bound_shares(turns, np.array([5.0]))["memory_bound_turn_share"].tolist() == [0.25]


def test_rows_are_those_of_the_tokenizer(hardware: dict[str, pa.Table]) -> None:
    """Models join the turns that their vocabulary counts, proxies those of llama-3.1; blocks are for headlines."""
    models = {row["model"]: row for row in hardware["models"].to_pylist()}
    headlines = load_reference("headlines").to_pylist()
    for tokenizer in ("llama-3.1", "qwen3"):
        rows = run([(1000, 10)], hardware, tokenizer).to_pylist()
        assert {models[row["model"]]["tokenizer"] for row in rows} == {tokenizer}
        assert all(row["kappa_crit"] is not None for row in rows)
        coarse = [row for row in rows if row["block_tokens"] > 1]
        assert {row["model"] for row in coarse} <= {row["model"] for row in headlines}
        places = {(row["accelerator"], row["link"], row["basis"]) for row in headlines}
        assert {(row["accelerator"], row["link"], row["basis"]) for row in coarse} <= places
        assert {row["block_tokens"] for row in coarse} == {16, 256}
        known = [
            row
            for row in hardware["kappa_crit"].to_pylist()
            if row["kappa_crit"] is not None and models[row["model"]]["tokenizer"] == tokenizer
        ]
        assert len(rows) - len(coarse) == len(known)
    assert "deepseek-v3" in {row["model"] for row in run([(1000, 10)], hardware).to_pylist()}


def test_context_limit_is_exclusive(hardware: dict[str, pa.Table]) -> None:
    """K + T equal to the model's context fits; one token more does not, whatever the block."""
    # llama-3.1-70b has 131,072: 131,062 + 10 fits, 131,063 + 10 does not: one of two turns
    rows = run([(131_062, 10), (131_063, 10)], hardware).to_pylist()
    assert {row["over_context_turn_share"] for row in rows if row["model"] == "llama-3.1-70b"} == {0.5}


def test_table_is_sorted_out_and_typed(hardware: dict[str, pa.Table]) -> None:
    """Declared schema, unique key, record batches as input."""
    batch = pa.record_batch({"cached_tokens": pa.array([1, 2]), "prefill_tokens": pa.array([3, 4])})
    names = {"workload": "w", "tokenizer": "qwen3", "counting": "chat", "reuse": "history"}
    table = boundness([batch], **names, hardware=hardware, headlines=load_reference("headlines"))
    assert table.schema.equals(BOUNDNESS.arrow_schema)
    keys = {tuple(row[column] for column in BOUNDNESS.key) for row in table.to_pylist()}
    assert len(keys) == table.num_rows

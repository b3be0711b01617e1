"""Turns behind caches of a size: what crosses the link is K_link, and what was evicted is computed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from pipelines.capacity.machines.deployment import Deployment
from pipelines.capacity.machines.question import Tier
from pipelines.hardware.questions.answer import Series
from pipelines.serving.answers.question import ServeQuestion, check
from pipelines.serving.answers.reading import ReadTurns
from pipelines.serving.answers.tiered import split
from pipelines.serving.answers.turns import ServedTurns
from warehouse.errors import ErrorCode, UsageError

# A token takes a byte; a GPU holds 6 blocks of 16.
PLACED = Deployment(gpus=1, pool_bytes=96.0, gpu_token_bytes=1.0, host_token_bytes=1.0)


def read(rows: list[tuple[int, int, int, int]], reuse: str = "history") -> ReadTurns:
    """Return turns (session, K, T, O) in the order of service."""
    session, cached, new, output = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return ReadTurns(
        Series(workload="w", tokenizer="llama-3.1", counting="text", reuse=reuse),
        ServedTurns(session, cached, new, output),
        False,
    )


def test_the_worked_example() -> None:
    """Two sessions leave 4 blocks each; then the first comes back with K = 64 and T = 16.

    Its blocks were touched before those of the other: distances 4, 5, 6, 7. The GPU holds 6 blocks, so that two are
    there: K_gpu = 32. A tier of one block holds the third: K_link = 16. The fourth is gone: T_eff = 80 - 48 = 32.
    """
    found = split(read([(0, 0, 64, 0), (1, 0, 64, 0), (0, 64, 16, 0)]), [Tier("dram", 16.0)], 16, PLACED, 10.0)
    assert found.turns.cached_tokens.tolist() == [0, 0, 48]
    assert found.turns.new_tokens.tolist() == [64, 64, 32]
    assert found.loaded_tokens.tolist() == [0, 0, 16]
    # 32 and 16 of 64 + 64 + 80 tokens
    assert (found.gpu_token_share, found.link_token_share) == (32 / 208, 16 / 208)


def test_a_slow_tier_counts_for_more_tokens() -> None:
    """A tier that gives 2 bytes a second behind a link of 10: each of its tokens takes as long as 5."""
    rows = [(0, 0, 64, 0), (1, 0, 64, 0), (0, 64, 16, 0)]
    found = split(read(rows), [Tier("nvme", 16.0, 2.0)], 16, PLACED, 10.0)
    assert found.loaded_tokens.tolist() == [0, 0, 80]
    # a tier that is faster than the link changes nothing
    assert split(read(rows), [Tier("hbm", 16.0, 1e9)], 16, PLACED, 10.0).loaded_tokens.tolist() == [0, 0, 16]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 90), st.integers(0, 40)), min_size=1, max_size=30),
    st.integers(0, 400), st.integers(0, 400),
)  # fmt: skip
def test_laws(turns: list[tuple[int, int, int]], dram: int, nvme: int) -> None:
    """N stays, T is never 0, a larger tier computes no more, one without an end gives K in whole blocks."""
    past: dict[int, int] = {}
    rows = []
    for session, new, output in turns:
        rows.append((session, past.get(session, 0), new, output))
        past[session] = past.get(session, 0) + new + output
    context = np.array([k + t for _, k, t, _ in rows])
    less, more, endless = (
        split(read(rows), [Tier("dram", float(size)), Tier("nvme", float(nvme))], 16, PLACED, 10.0)
        for size in (dram, dram + 64, 10**9)
    )
    for found in (less, more, endless):
        assert (found.turns.cached_tokens + found.turns.new_tokens == context).all()
        assert found.turns.new_tokens.min() >= 1
        assert (found.loaded_tokens <= found.turns.cached_tokens).all()
    assert (more.turns.new_tokens <= less.turns.new_tokens).all()
    assert endless.turns.cached_tokens.tolist() == [k // 16 * 16 for _, k, _, _ in rows]


def test_without_blocks_there_is_no_tier() -> None:
    """What a server reported, and prefixes whose order is not that of the turns, say nothing of sizes."""
    with refused(ErrorCode.NOT_BUILT, "reported"):
        split(read([(0, 0, 64, 0)], "reported"), [Tier("dram", 16.0)], 16, PLACED, 10.0)


@pytest.mark.parametrize(
    "wrong",
    [{"tiers": (Tier("dram", 1e9), Tier("dram", 2e9))}, {"tiers": (Tier("dram", 1e9),), "is_fleet": True}],
)
def test_tiers_that_cannot_be_meant(wrong: dict[str, object]) -> None:
    """Two of one name, and any for a fleet."""
    with refused(ErrorCode.USAGE, kind=UsageError):
        check(ServeQuestion(**{"workload": "finqa", **wrong}))  # type: ignore[arg-type]

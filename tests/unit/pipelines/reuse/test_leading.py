"""K by prefix against a few lines that hold every prefix as a tuple."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.reuse.identities import chained_blocks, seed_of
from pipelines.reuse.leading import cached_by_blocks, leading_blocks, leading_known

Log = list[tuple[list[int], list[int]]]


def flat(lists: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids of all lists and the end of each."""
    return np.array([n for one in lists for n in one], np.uint32), np.cumsum(
        [len(one) for one in lists], dtype=np.int64
    )


def reference(log: Log, block: int) -> list[int]:
    """Give the answer by search, in the plainest way."""
    held: set[tuple[int, ...]] = set()
    found = []
    for prompt, reply in log:
        h = 0
        while (h + 1) * block <= len(prompt) and tuple(prompt[: (h + 1) * block]) in held:
            h += 1
        found.append(min(block * h, len(prompt) - 1))
        whole = prompt + reply
        held |= {tuple(whole[: (j + 1) * block]) for j in range(len(whole) // block)}
    return found


def ours(log: Log, block: int) -> list[int]:
    """Return K of each request by the code under test."""
    prompts, left = [p for p, _ in log], [p + r for p, r in log]
    asked, kept = (chained_blocks(*flat(some), block_tokens=block) for some in (prompts, left))
    lengths = np.array([len(p) for p in prompts], np.int64)
    return cached_by_blocks(leading_blocks(asked, kept), lengths, block).tolist()


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Requests that continue, branch from, repeat or ignore what was said before; few ids, so that chance matches."""
    log: Log = []
    for _ in range(draw(st.integers(1, 8))):
        start: list[int] = []
        if log and draw(st.booleans()):
            prompt, reply = draw(st.sampled_from(log))
            whole = prompt + reply
            start = whole[: draw(st.integers(0, len(whole)))]
        more = draw(st.lists(st.integers(0, 2), min_size=0 if start else 1, max_size=9))
        log.append((start + more, draw(st.lists(st.integers(0, 2), max_size=9))))
    return log


@settings(max_examples=25 * settings.default.max_examples)
@given(logs(), st.sampled_from([1, 2, 4]))
def test_random_logs_give_what_a_set_of_tuples_gives(log: Log, block: int) -> None:
    """10,000 random logs through both in the thorough profile, a quarter of them in the suite."""
    assert ours(log, block) == reference(log, block)


def test_blocks_of_16_and_the_reply() -> None:
    """A reply is left too, and the last token is always computed."""
    # 20 tokens, then 12 of a reply: two full blocks are left. The second prompt is 32 of them and is all known:
    # h = 2, K = min(32, 32 - 1) = 31. The third differs in its token 17: h = 1, K = 16.
    first, reply = list(range(20)), list(range(100, 112))
    assert ours([(first, reply), (first + reply, []), ([*first[:17], 7, *reply, 1, 2], [])], 16) == [0, 31, 16]


def test_order_and_place_of_blocks_matter() -> None:
    """An identity holds everything before its block."""
    # The same two blocks the other way round share nothing.
    assert ours([([1, 2, 3, 4], []), ([3, 4, 1, 2], [])], 2) == [0, 0]


def test_seeds_part_models() -> None:
    """Models share no block."""
    prompts = [[1, 2, 3], [1, 2, 3], [1, 2, 3]]
    seeds = np.array([seed_of("a"), seed_of("b"), seed_of("a")], np.uint64)
    blocks = chained_blocks(*flat(prompts), seeds=seeds, block_tokens=1)
    assert leading_blocks(blocks, blocks).tolist() == [0, 0, 3]
    assert seed_of("ab", "c") != seed_of("a", "bc")


def test_identities_of_a_trace_count_in_any_position() -> None:
    """Identities of a trace are no chain: any earlier request that holds one counts."""
    # The rule's own example: [1 2 3] then [1 9 3] at B = 512: h = 1; then [3]: held by the first, h = 1.
    ids, ends = np.array([1, 2, 3, 1, 9, 3, 3]), np.array([3, 6, 7])
    assert leading_known(ids, ends, ids, ends).tolist() == [0, 1, 1]


def test_no_blocks_at_all() -> None:
    """Prompts shorter than a block know nothing."""
    asked = chained_blocks(*flat([[1], [1]]), block_tokens=16)
    assert leading_blocks(asked, asked).tolist() == [0, 0]

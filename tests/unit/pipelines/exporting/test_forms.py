"""An exported trace reads back to the same requests: n, K, T and output of each, in the same order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from pipelines.exporting.forms import FORMS, USUAL_BLOCK, Form, Written, first_ordinal, lines
from pipelines.exporting.rows import Row, rows_of_requests, rows_of_turns
from pipelines.reuse.given import chained_codes, dense_codes, leading_left
from pipelines.reuse.leading import cached_by_blocks
from pipelines.reuse.requests import Requests, turn_indices
from pipelines.turns.derivation import Turns
from pipelines.workloads.formats.trace import read
from warehouse.errors import ErrorCode, UsageError

TRACE = Path(__file__).resolve().parents[6] / "shared" / "traces" / "mooncake_conversation.jsonl"


def read_back(rows: Iterator[Row], form: Form, block: int, salt: str | None = None) -> tuple[Requests, Written]:
    """Return the requests that the lines of a trace hold, and what was counted when they were written."""
    written = Written()
    records = [json.loads(line) for line in lines(rows, form, block, salt, written)]
    logged = read((("trace", number, record) for number, record in enumerate(records)), {})
    assert (logged.rejects, logged.requests.block_tokens) == ([], block)
    return logged.requests, written


@st.composite
def requests_with_blocks(draw: st.DrawFn, block: int = 4, *, is_chained: bool = True) -> Requests:
    """Return requests whose prompts and replies have blocks, K by the definition of `prefix`."""
    ids: list[list[int]] = []
    numbers: list[list[int]] = []
    for _ in range(draw(st.integers(1, 12))):
        # Few kinds of blocks, so that requests share some; a request begins as an earlier one does, or anew.
        start = draw(st.sampled_from(ids))[: draw(st.integers(0, 6))] if ids and draw(st.booleans()) else []
        more = draw(st.lists(st.integers(0, 9), max_size=6))
        held = list(dict.fromkeys([*start, *more]))
        context = max(1, draw(st.integers(0, len(held))) * block + draw(st.integers(0, block - 1)))
        lookup = min(context // block, len(held))
        context = min(context, lookup * block + block - 1)
        ids.append(held)
        has_output = draw(st.booleans()) or lookup < len(held)
        # What the blocks behind the prompt's hold, at least.
        output = max(len(held) * block - context, 0) + draw(st.integers(0, 9))
        numbers.append([context, lookup, output, has_output, draw(st.integers(0, 3))])
    context, lookup, output, has, session = np.array(numbers, np.int64).T
    offsets = np.cumsum([0, *map(len, ids)])
    codes, first = dense_codes(np.array([one for request in ids for one in request], np.int64))
    if is_chained:
        codes, first = dense_codes(chained_codes(codes, offsets))
    leading = np.minimum(leading_left(codes, first, offsets), lookup)
    cached = cached_by_blocks(leading, context, block)
    return Requests(
        block_tokens=block, sessions=[f"secret {n}" for n in range(4)], session=session,
        turn_index=turn_indices(session), context_tokens=context, cached_tokens=cached,
        output_tokens=np.where(has == 1, output, 0), has_output=has == 1,
        arrival_s=None if draw(st.booleans()) else np.arange(len(ids)) * 0.5, offsets=offsets, ids=codes,
        lookup_blocks=lookup,
    )  # fmt: skip


def assert_same(found: Requests, expected: Requests) -> None:
    """Every request has the same n, K (so the same T), output and time."""
    for name in ("context_tokens", "cached_tokens", "output_tokens", "has_output"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist(), name
    assert (found.arrival_s is None) == (expected.arrival_s is None)
    if found.arrival_s is not None and expected.arrival_s is not None:
        assert found.arrival_s.tolist() == expected.arrival_s.tolist()


@settings(max_examples=150)
@given(requests_with_blocks(), st.sampled_from(FORMS), st.sampled_from([None, "salt"]))
def test_requests_read_back(requests: Requests, form: Form, salt: str | None) -> None:
    """Chained identities, prompts and replies: equal in both forms at the blocks' own size, whatever the salt."""
    found, written = read_back(rows_of_requests(requests, 4, is_chained=form == "bailian"), form, 4, salt)
    assert_same(found, requests)
    assert found.lookup_blocks.tolist() == requests.lookup_blocks.tolist()
    # Ordinals of first use: dense, in order.
    assert found.ids.tolist() == requests.ids.tolist()
    context = int(requests.context_tokens.sum())
    assert (written.requests, written.lesser, written.lost_tokens) == (len(requests), 0, 0)
    assert written.cached_tokens + written.prefill_tokens == context
    if form == "bailian":
        assert found.turn_index.tolist() == requests.turn_index.tolist()


@settings(max_examples=100)
@given(requests_with_blocks(is_chained=False))
def test_identities_in_any_position(requests: Requests) -> None:
    """Mooncake's form keeps a trace whose identities are held in any position; Bailian's says how many lose K."""
    assert_same(read_back(rows_of_requests(requests, 4, is_chained=False), "mooncake", 4)[0], requests)
    found, written = read_back(rows_of_requests(requests, 4, is_chained=True), "bailian", 4)
    less = requests.cached_tokens - found.cached_tokens
    # A chain of blocks that was held was held block by block.
    assert (less >= 0).all()
    assert (written.lesser, written.lost_tokens) == (int((less > 0).sum()), int(less.sum()))


@settings(max_examples=100)
@given(requests_with_blocks(), st.integers(2, 4), st.sampled_from(FORMS))
def test_larger_blocks(requests: Requests, several: int, form: Form) -> None:
    """K in larger blocks, a second way: compare whole prefixes of identities by sets."""
    block = 4 * several
    found, _ = read_back(rows_of_requests(requests, block, is_chained=form == "bailian"), form, block)
    known: set[tuple[int, ...]] = set()
    cached = []
    for number, context in enumerate(requests.context_tokens.tolist()):
        held = requests.ids[requests.offsets[number] : requests.offsets[number + 1]].tolist()
        leading = 0
        while (leading + 1) * block <= context and tuple(held[: (leading + 1) * several]) in known:
            leading += 1
        cached.append(min(block * leading, context - 1))
        known |= {tuple(held[: end * several]) for end in range(1, len(held) // several + 1)}
    assert found.cached_tokens.tolist() == cached
    assert found.context_tokens.tolist() == requests.context_tokens.tolist()


def chats(numbers: list[tuple[int, int, int, int]]) -> Turns:
    """Return turns of sessions in turn: each K is at most what the turn before it left."""
    left: dict[int, int] = {}
    rows = []
    for session, share, new, output in numbers:
        cached = left.get(session, 0) * share // 4
        rows.append((session, cached, new, output))
        left[session] = cached + new + output
    session, cached, new, output = np.array(rows, np.int64).T
    return Turns(session, turn_indices(session), cached, new, output, output > 0)


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(1, 90), st.integers(0, 60)), min_size=1),
    st.sampled_from([1, 3, 16]),
    st.sampled_from(FORMS),
)
def test_turns_read_back(numbers: list[tuple[int, int, int, int]], block: int, form: Form) -> None:
    """By `history` K is that of the turn in whole blocks, B floor(K / B), for every turn that an earlier one feeds."""
    turns = chats(numbers)
    found, written = read_back(rows_of_turns(turns, block), form, block)
    assert found.cached_tokens.tolist() == (turns.cached // block * block).tolist()
    assert found.context_tokens.tolist() == (turns.cached + turns.prefill).tolist()
    assert found.has_output.tolist() == turns.has_output.tolist()
    assert found.output_tokens.tolist() == turns.output.tolist()
    assert written.lesser == 0


def test_a_document_is_left_by_nobody() -> None:
    """K of a first question is the document, which no earlier request of a trace left: that is counted, not hidden."""
    # a document of 40 tokens and two questions of 5; B = 16: K = 32 in whole blocks
    turns = Turns(*(np.array(column, np.int64) for column in ([0, 0], [0, 1], [40, 40], [5, 5], [0, 0])),
                  np.array([False, False]))  # fmt: skip
    found, written = read_back(rows_of_turns(turns, 16), "mooncake", 16)
    assert found.cached_tokens.tolist() == [0, 32]
    assert (written.lesser, written.lost_tokens) == (1, 32)


def test_nothing_of_the_workload_is_in_a_trace() -> None:
    """Ordinals from 0, or from the range of a salt; the usual size of a block is not named, another one is."""
    requests = Requests(
        block_tokens=16, sessions=["secret"], session=np.zeros(2, np.int64), turn_index=np.arange(2),
        context_tokens=np.array([40, 40]), cached_tokens=np.array([0, 32]), output_tokens=np.array([9, 0]),
        has_output=np.array([True, False]), arrival_s=np.array([1.5, 2.0]), offsets=np.array([0, 3, 5]),
        ids=np.array([0, 1, 2, 0, 1]), lookup_blocks=np.array([2, 2]),
    )  # fmt: skip
    rows = list(rows_of_requests(requests, 16, is_chained=False))
    mooncake = [json.loads(line) for line in lines(rows, "mooncake", 16, None, Written())]
    # 40 tokens: two whole blocks of 16; 40 + 9 = 49 tokens: three
    first = {"timestamp": 1500, "input_length": 40, "output_length": 9, "hash_ids": [0, 1], "reply_hash_ids": [2]}
    assert mooncake[0] == first | {"block_size": 16}
    begin = first_ordinal("salt")
    bailian = [json.loads(line) for line in lines(rows, "bailian", 16, "salt", Written())]
    second: dict[str, Any] = {"chat_id": begin + 1, "parent_chat_id": begin, "timestamp": 2.0, "input_length": 40,
              "output_length": None, "type": "text", "turn": 2, "hash_ids": [begin, begin + 1]}  # fmt: skip
    assert bailian[1] == second
    assert USUAL_BLOCK == {"mooncake": 512, "bailian": 16}


def test_sizes_that_no_block_of_the_workload_fills() -> None:
    """Blocks of 16 make blocks of 32, none of 24 or 8."""
    none = np.zeros(0, np.int64)
    requests = Requests(16, [], *(none,) * 5, none > 0, None, np.zeros(1, np.int64), none, none)  # type: ignore[arg-type]
    assert list(rows_of_requests(replace(requests, block_tokens=16), 32, is_chained=False)) == []
    for size in (8, 24, 0):
        with refused(ErrorCode.USAGE, size, 16, kind=UsageError):
            rows_of_requests(requests, size, is_chained=False)


@pytest.mark.skipif(not TRACE.exists(), reason="needs the trace")
@pytest.mark.parametrize("form", FORMS)
def test_a_public_trace(form: Form) -> None:
    """12,031 requests of Mooncake, through a trace of ours: the sums that three programs computed."""
    records = [("trace", n, json.loads(line)) for n, line in enumerate(TRACE.read_text("utf8").splitlines())]
    found, written = read_back(
        rows_of_requests(read(records, {}).requests, 512, is_chained=form == "bailian"), form, 512
    )
    cached = int(found.cached_tokens.sum())
    assert (len(found), cached, int(found.context_tokens.sum()) - cached) == (12_031, 54_098_293, 90_695_530)
    assert (int(found.output_tokens.sum()), written.lesser) == (4_122_048, 0)

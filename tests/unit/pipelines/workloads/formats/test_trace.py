"""`trace`: three forms by hand, rejects, order, and random traces through a few lines of plain Python."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.workloads.formats.logged import Logged
from pipelines.workloads.formats.trace import BAILIAN_BLOCK, MOONCAKE_BLOCK, looks_like, read
from warehouse.errors import ErrorCode, KappaError

Row = dict[str, Any]


def logged(rows: Iterable[object], fields: Mapping[str, str] | None = None) -> Logged:
    """Read the rows of one file."""
    return read((("a.jsonl", number, row) for number, row in enumerate(rows)), fields or {})


def row(n: int, ids: list[Any], time: object = 0, output: int | None = 1) -> Row:
    """Return a row in Mooncake's form."""
    return {"timestamp": time, "input_length": n, "output_length": output, "hash_ids": ids}


def chat(n: int, ids: list[int], name: int, parent: int = -1, time: float = 0) -> Row:
    """Return a row in Bailian's form."""
    named = {"chat_id": name, "parent_chat_id": parent, "timestamp": time, "turn": 1, "type": "text"}
    return named | {"input_length": n, "output_length": 1, "hash_ids": ids}


def session(name: str, requests: list[Row], scope: str = "local", size: int = 4) -> Row:
    """Return a record that is a session."""
    return {"id": name, "block_size": size, "hash_id_scope": scope, "requests": requests}


def request(t: float, n: int, ids: list[int], **more: object) -> Row:
    """Return a request of a session."""
    return {"t": t, "type": "n", "in": n, "out": 1, "hash_ids": ids} | more


def k_and_t(found: Logged) -> list[tuple[int, int]]:
    """Return (K, T) in order of service."""
    turns = found.turns()
    return list(zip(turns.cached.tolist(), turns.prefill.tolist(), strict=True))


def reasons(found: Logged) -> list[tuple[int, str, str]]:
    """Return (record, level, reason) of the rejects."""
    return [(one.record, one.level, one.reason) for one in found.rejects]


def named(found: Logged) -> list[tuple[str, int]]:
    """Return (session, turn_index) in order of service."""
    of = found.requests
    return [(of.sessions[code], index) for code, index in zip(of.session.tolist(), of.turn_index.tolist(), strict=True)]


def test_the_leading_blocks_count() -> None:
    """[1 2 3] then [1 9 3] at 512: one leading block, K = 512."""
    found = logged([row(1536, [1, 2, 3]), row(1536, [1, 9, 3]), row(1536, [9, 1, 5])])
    # 9 and 1 were held, in whatever position: h = 2, K = 1024
    assert k_and_t(found) == [(0, 1536), (512, 1024), (1024, 512)]
    assert named(found) == [("0", 0), ("1", 0), ("2", 0)]
    assert (found.reuse, found.kept, dict(found.records)) == ("prefix", 3, {"a.jsonl": 3})


def test_the_last_token_is_computed() -> None:
    """N = 655 with [0 1] twice: K = min(2 x 512, 654) = 654."""
    assert k_and_t(logged([row(655, [0, 1]), row(655, [0, 1])])) == [(0, 655), (654, 1)]
    # floor(655 / 512) = 1 identity is as good: K = 512
    assert k_and_t(logged([row(655, [0]), row(655, [0])])) == [(0, 655), (512, 143)]
    # nothing of a block: no identity, K = 0
    assert k_and_t(logged([row(5, []), row(5, [])])) == [(0, 5), (0, 5)]


def test_rejects_leave_nothing() -> None:
    """Each is counted with its reason, and its identities are not there for those after it."""
    wrong: list[object] = [
        row(20, [1, 2]), row(1536, [7, 7, 8]), row(-1, [1]), row(512, [1], output=-3),
        {**row(512, [1]), "input_length": 1.5},
        row(0, []), [1], {"timestamp": 0, "input_length": 5}, {"hash_ids": [1]}, row(512, [1.5]), row(512, [None]),
        {**row(512, [1]), "input_length": True},
    ]  # fmt: skip
    found = logged([*wrong, row(512, [1]), row(1536, [7, 8, 9])])
    expected = ["hash_mismatch"] * 2 + ["bad_number"] * 3 + ["empty_turn", "not_an_object"] + ["missing_field"] * 2
    expected += ["hash_mismatch"] * 2 + ["bad_number"]
    assert reasons(found) == [(number, "record", reason) for number, reason in enumerate(expected)]
    assert k_and_t(found) == [(0, 512), (0, 1536)]
    # 14 read = 2 kept + 12 rejected
    assert (found.records["a.jsonl"], found.kept, len(found.rejects)) == (14, 2, 12)


def test_order_of_service() -> None:
    """By time, file order among equals; numbers above 1e11 are milliseconds, and text is a time with its zone."""
    late = logged([row(512, [1], time=2000), row(1024, [1, 2], time=1000), row(512, [1], time=2000)])
    assert [name for name, _ in named(late)] == ["1", "0", "2"]
    assert k_and_t(late) == [(0, 1024), (511, 1), (511, 1)]
    assert late.requests.arrival_s is not None
    assert late.requests.arrival_s.tolist() == [1.0, 2.0, 2.0]
    # 10:00+02:00 is 08:00, an hour before 09:00
    text = logged([row(512, [1], time="2026-01-01 09:00"), row(512, [2], time="2026-01-01T10:00:00+02:00")])
    assert [name for name, _ in named(text)] == ["1", "0"]


def test_a_time_that_cannot_be_read() -> None:
    """One puts the file in file order, and a note says so; no times at all need none."""
    found = logged([row(512, [1], time=5), row(512, [2], time="soon"), row(512, [3], time=1)])
    assert [name for name, _ in named(found)] == ["0", "1", "2"]
    assert (found.requests.arrival_s, len(found.notes)) == (None, 1)
    assert logged([row(512, [1], time=None)]).notes == []


def test_blocks_that_are_hashed_one_by_one() -> None:
    """Bailian: an identity is the chain up to it; [1 2] and [9 2] share nothing, and one may be there twice."""
    found = logged([chat(32, [1, 2], 0), chat(32, [9, 2], 1), chat(48, [1, 2, 2], 2), chat(48, [1, 2, 2], 3)])
    # the fourth: h = 3, K = min(48, 47)
    assert k_and_t(found) == [(0, 32), (0, 32), (32, 16), (47, 1)]
    assert found.requests.block_tokens == BAILIAN_BLOCK
    # both blocks of 1 2 2, and the third: chains are codes of their own
    assert found.requests.ids.tolist() == [0, 1, 2, 3, 0, 1, 4, 0, 1, 4]


def test_sessions_of_chats() -> None:
    """The session is the oldest ancestor in the file, turn_index the order in time; a circle ends."""
    rows = [chat(16, [1], 5, 4, 3), chat(16, [2], 4, -1, 1), chat(16, [3], 6, 5, 2), chat(16, [4], 8, 99, 4)]
    assert named(logged(rows)) == [("4", 0), ("4", 1), ("4", 2), ("8", 0)]
    circle = logged([chat(16, [1], 1, 2), chat(16, [2], 2, 1)])
    assert len(circle.requests) == 2


def test_sessions_as_records() -> None:
    """Sessions in file order, requests by `t`; local identities are the session's own; blocks as the record says."""
    rows = [
        session("a", [request(2, 8, [1, 2]), request(1, 4, [1])]),
        session("b", [request(0, 8, [1, 2])]),
        session("c", [request(0, 8, [1, 2])], scope="global"),
        session("d", [request(0, 8, [1, 3])], scope="global"),
    ]
    found = logged(rows)
    assert named(found) == [("a", 0), ("a", 1), ("b", 0), ("c", 0), ("d", 0)]
    # a: t = 1 first, then K = 4; b: 1 and 2 are its own; d: global 1 was held by c
    assert k_and_t(found) == [(0, 4), (4, 4), (0, 8), (0, 8), (4, 4)]
    assert found.requests.arrival_s is None


def test_a_subagent() -> None:
    """It is a session `id::sa:agent_id` with the identities of its parent, in order of time among its requests."""
    inner = {"t": 1, "type": "subagent", "agent_id": "x", "requests": [request(1, 12, [1, 2, 3])]}
    found = logged([session("a", [request(0, 8, [1, 2]), inner, request(2, 12, [1, 2, 3])])])
    assert named(found) == [("a", 0), ("a::sa:x", 0), ("a", 1)]
    assert k_and_t(found) == [(0, 8), (8, 4), (11, 1)]


def test_rejects_in_a_session() -> None:
    """A request is left out at level turn; a session without any other is left out as a record."""
    found = logged(
        [
            session("a", [request(0, 8, [1]), request(1, 8, [1, 2])]),
            session("b", [request(0, 8, [1])]),
            session("c", []),
        ]
    )
    assert reasons(found) == [
        (0, "turn", "hash_mismatch"),
        (1, "record", "hash_mismatch"),
        (2, "record", "no_messages"),
    ]
    assert (found.kept, k_and_t(found)) == (1, [(0, 8)])


def test_identities_of_any_size() -> None:
    """Text and hashes of 64 bits without sign are identities too, each its own."""
    big = 2**64 - 1
    found = logged(
        [row(1536, [big, "x", -(2**63)]), row(1536, [big, "x", -(2**63)]), row(512, [str(big)]), row(512, [-1])]
    )
    assert k_and_t(found) == [(0, 1536), (1535, 1), (0, 512), (0, 512)]


def test_cells_of_csv() -> None:
    """A cell that holds a list as JSON is a list, and numbers in text are numbers; fields may be named."""
    found = logged(
        [{"when": "5", "n": "1024", "blocks": "[1, 2]"}] * 2, {"prompt_tokens": "n", "blocks": "blocks", "time": "when"}
    )
    assert k_and_t(found) == [(0, 1024), (1023, 1)]
    assert not found.requests.has_output.any()


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([{"timestamp": 0, "input_length": 5, "output_length": 5}], ErrorCode.LENGTHS_ALONE),
        ([], ErrorCode.NO_RECORD),
        ([row(20, [1, 2])], ErrorCode.NO_RECORD),
        ([row(512, [1]), chat(16, [1], 1)], ErrorCode.BAD_FILE),
    ],
)
def test_what_is_no_trace(rows: list[Row], code: ErrorCode) -> None:
    """Lengths say nothing of reuse; blocks of two sizes cannot meet."""
    with pytest.raises(KappaError) as refused:
        logged(rows)
    assert refused.value.code == code


def test_recognised() -> None:
    """Identities of blocks are what makes records a trace."""
    assert looks_like([row(512, [1])], {})
    assert looks_like([session("a", [request(0, 4, [1])])], {})
    assert not looks_like([{"input_length": 5}], {})
    assert not looks_like([], {})


def plain(rows: list[Row], size: int, *, is_chained: bool) -> list[tuple[int, int]]:
    """Return (K, T) by the rule as it is written, request by request."""
    seen: set[object] = set()
    found = []
    for one in sorted(rows, key=lambda r: r["timestamp"]):
        ids = one["hash_ids"]
        names = [tuple(ids[: i + 1]) if is_chained else ids[i] for i in range(len(ids))]
        h = next((i for i, name in enumerate(names) if name not in seen), len(names))
        k = min(size * h, one["input_length"] - 1)
        found.append((k, one["input_length"] - k))
        seen |= set(names)
    return found


@given(st.randoms(use_true_random=False), st.booleans())
def test_random_traces(draw: random.Random, is_chained: bool) -> None:
    """K and T of random requests are those of the plain rule, in both forms; K + T = n and T >= 1."""
    size = BAILIAN_BLOCK if is_chained else MOONCAKE_BLOCK
    rows = []
    for number in range(draw.randint(1, 12)):
        n = draw.randint(1, 5 * size)
        count = draw.choice([n // size, math.ceil(n / size)])
        ids = [draw.randint(0, 3) for _ in range(count)] if is_chained else draw.sample(range(8), count)
        time = draw.randint(0, 4)
        rows.append(chat(n, ids, number, time=time) if is_chained else row(n, ids, time))
    found = logged(json.loads(json.dumps(rows)))
    assert k_and_t(found) == plain(rows, size, is_chained=is_chained)
    turns = found.turns()
    assert (turns.cached + turns.prefill == found.requests.context_tokens).all()
    assert (turns.prefill >= 1).all()
    # what is looked up is the leading part of what is left
    assert (found.requests.lookup_blocks <= np.diff(found.requests.offsets)).all()

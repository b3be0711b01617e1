"""`usage`: what vendors call prompt and cached tokens, by hand, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.workloads.formats.logged import Logged
from pipelines.workloads.formats.usage import looks_like, read
from warehouse.errors import ErrorCode, KappaError

Row = dict[str, Any]
VENDORS: dict[str, tuple[Row, int, int]] = {
    # within the prompt: n = 100, K = 60
    "openai": ({"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 60}, "completion_tokens": 7}, 60, 40),
    "responses": ({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 60}, "output_tokens": 7}, 60, 40),
    "deepseek": ({"prompt_tokens": 100, "prompt_cache_hit_tokens": 60, "completion_tokens": 7}, 60, 40),
    # in addition: n = 40 + 60 + 10, K = 60
    "anthropic": (
        {"input_tokens": 40, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10, "output_tokens": 7},
        60, 50,
    ),
    # null is 0: n = 40 + 0 + 10
    "anthropic miss": (
        {"input_tokens": 40, "cache_read_input_tokens": None, "cache_creation_input_tokens": 10, "output_tokens": 7},
        0, 50,
    ),
    "plain": ({"cached_tokens": 60, "prefill_tokens": 40, "output_tokens": 7}, 60, 40),
    "cells": ({"prompt_tokens": "100", "prompt_tokens_details.cached_tokens": "60", "completion_tokens": "7"}, 60, 40),
    # a proxy's names in addition to those of the server, which count
    "litellm": (
        {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 60}, "cache_read_input_tokens": 60,
         "cache_creation_input_tokens": 0, "completion_tokens": 7}, 60, 40,
    ),
    # all of it cached: K = 99
    "whole prompt": ({"prompt_tokens": 100, "cached_tokens": 100, "completion_tokens": 7}, 99, 1),
}  # fmt: skip


def logged(rows: list[Any], fields: Mapping[str, str] | None = None) -> Logged:
    """Read the rows of one file."""
    return read((("a.jsonl", number, row) for number, row in enumerate(rows)), fields or {})


def k_and_t(found: Logged) -> list[tuple[int, int]]:
    """Return (K, T) in order of service."""
    turns = found.turns()
    return list(zip(turns.cached.tolist(), turns.prefill.tolist(), strict=True))


@pytest.mark.parametrize("inside", ["", "usage", "response.usage"])
@pytest.mark.parametrize("vendor", VENDORS)
def test_vendors(vendor: str, inside: str) -> None:
    """Each by its own names, in the record or where a response has them."""
    row, k, t = VENDORS[vendor]
    for name in reversed(inside.split(".") if inside else []):
        row = {name: row}
    found = logged([row])
    assert k_and_t(found) == [(k, t)]
    assert found.requests.output_tokens.tolist() == [7]
    assert found.reuse == "reported"
    assert looks_like([row], {})


def test_nothing_beside_others_that_report() -> None:
    """Null and absent are K = 0 where another request reports, and a note says how many."""
    rows = [
        {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 5}},
        {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": None}},
        {"prompt_tokens": 10, "prompt_tokens_details": None},
        {"prompt_tokens": 10},
        {"prompt_tokens": 10, "cached_tokens": float("nan")},
    ]
    found = logged(rows)
    assert k_and_t(found) == [(5, 5), (0, 10), (0, 10), (0, 10), (0, 10)]
    (note,) = found.notes
    assert note.startswith("4 of 5 requests")


@pytest.mark.parametrize("row", [{"prompt_tokens": 10, "prompt_tokens_details": None}, {"prompt_tokens": 10}])
def test_nothing_at_all(row: Row) -> None:
    """A server that reports nothing was not asked to: the error names its switch."""
    with pytest.raises(KappaError) as refused:
        logged([row] * 3)
    assert refused.value.code == ErrorCode.NO_CACHED_TOKENS
    assert "--enable-prompt-tokens-details" in refused.value.remedy


def test_rejects() -> None:
    """More cached than there are, negative, not whole, no prompt; totals reconcile."""
    usable = {"prompt_tokens": 10, "cached_tokens": 3}
    wrong = [
        usable | {"cached_tokens": 11}, usable | {"cached_tokens": -1}, usable | {"cached_tokens": 2.5},
        usable | {"prompt_tokens": "ten"}, usable | {"completion_tokens": -1}, usable | {"prompt_tokens": 10**12},
        usable | {"prompt_tokens": 0, "cached_tokens": 0}, {"cached_tokens": 3}, "text",
    ]  # fmt: skip
    found = logged([*wrong, usable])
    expected = ["bad_number"] * 6 + ["empty_turn", "missing_field", "not_an_object"]
    assert [(one.record, one.reason) for one in found.rejects] == list(enumerate(expected))
    # 10 read = 1 kept + 9 rejected
    assert (found.records["a.jsonl"], found.kept, len(found.rejects)) == (10, 1, 9)


def test_sessions_and_order() -> None:
    """A given session has its requests in order of time; a request without one is a session of its own."""
    rows = [
        {"prompt_tokens": 10, "cached_tokens": 3, "session_id": "s", "timestamp": 9},
        {"prompt_tokens": 10, "cached_tokens": 4, "session_id": "s", "timestamp": 8},
        {"prompt_tokens": 10, "cached_tokens": 5, "timestamp": 7},
    ]
    found = logged(rows)
    of = found.requests
    names = [of.sessions[code] for code in of.session.tolist()]
    assert list(zip(names, of.turn_index.tolist(), found.requests.cached_tokens.tolist(), strict=True)) == [
        ("2", 0, 5), ("s", 0, 4), ("s", 1, 3),
    ]  # fmt: skip


def test_named_fields() -> None:
    """Paths that the user gives go before every vendor's names."""
    row = {"m": {"in": 10, "hit": 4}, "prompt_tokens": 99, "cache_read_input_tokens": 1}
    assert k_and_t(logged([row], {"prompt_tokens": "m.in", "cached_tokens": "m.hit"})) == [(4, 6)]


def test_not_recognised() -> None:
    """Lengths alone are no usage, nor is text."""
    assert not looks_like([{"prompt_tokens": 10, "completion_tokens": 2}], {})
    assert not looks_like(["text"], {})
    assert not looks_like([], {})


@given(st.lists(st.tuples(st.integers(1, 300), st.integers(0, 300)), min_size=1, max_size=20))
def test_random_logs(pairs: list[tuple[int, int]]) -> None:
    """K = min(c, n - 1) and T = n - K for every usable pair; the others are rejected."""
    rows = [{"prompt_tokens": n, "cached_tokens": c} for n, c in pairs]
    usable = [(n, c) for n, c in pairs if c <= n]
    if not usable:
        with pytest.raises(KappaError):
            logged(rows)
        return
    found = logged(rows)
    assert k_and_t(found) == [(min(c, n - 1), n - min(c, n - 1)) for n, c in usable]
    assert len(found.rejects) == len(pairs) - len(usable)

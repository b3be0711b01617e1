"""Codes of given identities against plain sets, and the product `requests` as it was written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.reuse.given import chained_codes, dense_codes, leading_left
from pipelines.reuse.requests import Requests, read_requests, turn_indices, write_requests

LOGS = st.lists(st.lists(st.integers(-3, 3), max_size=6), max_size=8)


def offsets_of(log: list[list[int]]) -> np.ndarray:  # type: ignore[type-arg]
    """Return where each request begins, and the end."""
    return np.cumsum([0, *map(len, log)])


@given(LOGS)
def test_chained(log: list[list[int]]) -> None:
    """Codes are equal where the whole beginnings are, and number them in the order in which they appear."""
    names = [tuple(ids[: i + 1]) for ids in log for i in range(len(ids))]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    flat = np.array([one for ids in log for one in ids], np.int64)
    assert chained_codes(flat, offsets_of(log)).tolist() == [numbers[name] for name in names]


@given(LOGS, st.data())
def test_scopes(log: list[list[int]], data: st.DataObject) -> None:
    """Equal numbers of different scopes are different identities."""
    scopes = data.draw(st.lists(st.integers(0, 2), min_size=len(log), max_size=len(log)))
    names = [(scope, one) for scope, ids in zip(scopes, log, strict=True) for one in ids]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    flat = np.array([one for _, one in names], np.int64)
    codes, first = dense_codes(flat, np.array([scope for scope, _ in names], np.int64))
    assert codes.tolist() == [numbers[name] for name in names]
    assert first.tolist() == [names.index(name) for name in numbers]


@given(LOGS)
def test_leading(log: list[list[int]]) -> None:
    """As with a set of what was held before, whatever the request itself repeats."""
    expected, seen = [], set[int]()
    for ids in log:
        expected.append(next((i for i, one in enumerate(ids) if one not in seen), len(ids)))
        seen |= set(ids)
    codes, first = dense_codes(np.array([one for ids in log for one in ids], np.int64))
    assert leading_left(codes, first, offsets_of(log)).tolist() == expected


@pytest.mark.parametrize("arrival", [None, [0.5, 1.0, 1.0]])
def test_the_product(tmp_path: Path, arrival: list[float] | None) -> None:
    """What is written is read again, with requests that leave nothing and outputs that are not known."""
    session = np.array([0, 1, 0])
    one = Requests(
        block_tokens=16,
        sessions=["a", "b"],
        session=session,
        turn_index=turn_indices(session),
        context_tokens=np.array([40, 5, 33]),
        cached_tokens=np.array([0, 0, 32]),
        output_tokens=np.array([3, 0, 0]),
        has_output=np.array([True, False, True]),
        arrival_s=None if arrival is None else np.array(arrival),
        offsets=np.array([0, 3, 3, 5]),
        ids=np.array([0, 1, 2, 0, 3]),
        lookup_blocks=np.array([3, 0, 2]),
    )
    write_requests(one, tmp_path)
    again = read_requests(tmp_path)
    for name, value in vars(one).items():
        found = getattr(again, name)
        assert (found.tolist() if hasattr(found, "tolist") else found) == (
            value.tolist() if hasattr(value, "tolist") else value
        ), name

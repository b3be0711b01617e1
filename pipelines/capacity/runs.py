"""Runs: consecutive blocks of a request that an earlier request left as consecutive blocks, none touched since.

The blocks of a request fall into few runs, since requests share beginnings. All distances are computed on runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipelines.capacity.requests import Ints, Requests


@dataclass(frozen=True)
class Runs:
    """Runs sorted by request and position; all arrays have the shape (runs,).

    Attributes:
        request: The request that touches the blocks again.
        start: Position of the first of them in it.
        length: How many they are, at least 1.
        last_request: The request that touched them last before.
        last_start: Position of the first of them in that request.
    """

    request: Ints
    start: Ints
    length: Ints
    last_request: Ints
    last_start: Ints


def runs_of(requests: Requests) -> Runs:
    """Return all runs of the requests.

    Raises:
        ValueError: an identity is twice in a request.
    """
    return _runs_of_sessions(requests) if requests.ids is None else _runs_of_ids(requests, requests.ids)


def _runs_of_ids(requests: Requests, ids: Ints) -> Runs:
    before = _reference_before(ids)
    request = np.repeat(np.arange(len(requests)), requests.left_blocks)
    offsets = requests.offsets
    is_hot = before >= 0
    if (before >= offsets[:-1][request]).any():
        raise ValueError("an identity is twice in a request")
    last = np.where(is_hot, request[before], -1)
    goes_on = np.zeros(len(ids), bool)
    goes_on[1:] = is_hot[1:] & (before[1:] == before[:-1] + 1) & (request[1:] == request[:-1]) & (last[1:] == last[:-1])
    starts = np.flatnonzero(is_hot & ~goes_on)
    hot_before = np.cumsum(is_hot)[starts] - 1
    length = np.diff(np.append(hot_before, np.count_nonzero(is_hot)))
    of_run = request[starts]
    last_start = before[starts] - offsets[last[starts]]
    return Runs(of_run, starts - offsets[of_run], length, last[starts], last_start)


def _reference_before(ids: Ints) -> Ints:
    """Return for each reference the place of the one before it to the same block, -1 where there is none."""
    order = np.argsort(ids, kind="stable")
    is_same = ids[order[1:]] == ids[order[:-1]]
    before = np.full(len(ids), -1, np.int64)
    before[order[1:][is_same]] = order[:-1][is_same]
    return before


def _runs_of_sessions(requests: Requests) -> Runs:
    """Return the runs where a block is (session, position): of the turn before, unless sessions lose blocks."""
    order = np.argsort(requests.session, kind="stable")
    session, left = requests.session[order], requests.left_blocks[order]
    follows = np.diff(session, prepend=session[:1] - 1) == 0
    shrinks = follows & (np.diff(left, prepend=left[:1]) < 0)
    is_plain = ~np.isin(session, session[shrinks])
    here = np.flatnonzero(follows & is_plain)
    found = np.stack((order[here], np.zeros(len(here), np.int64), left[here - 1], order[here - 1]), axis=1)
    runs = np.concatenate((found, _of_shrinking_sessions(order[~is_plain], session[~is_plain], left[~is_plain])))
    runs = runs[runs[:, 2] > 0]
    request, start, length, last = runs[np.lexsort((runs[:, 1], runs[:, 0]))].T
    return Runs(request, start, length, last, start)


def _of_shrinking_sessions(requests: Ints, session: Ints, left: Ints) -> Ints:
    """Return runs as rows (request, start, length, last request) of sessions in which a turn leaves fewer blocks."""
    found: list[tuple[int, int, int, int]] = []
    layers: list[tuple[int, int]] = []
    current = None
    for request, owner, blocks in zip(requests.tolist(), session.tolist(), left.tolist(), strict=True):
        if owner != current:
            current, layers = owner, []
        start = 0
        # The youngest layer is last; each holds the blocks up to its end that no younger layer holds.
        while layers and start < blocks:
            end, last = layers[-1]
            found.append((request, start, min(end, blocks) - start, last))
            start = min(end, blocks)
            if end <= blocks:
                layers.pop()
        layers.append((blocks, request))
    return np.array(found, np.int64).reshape(-1, 4)

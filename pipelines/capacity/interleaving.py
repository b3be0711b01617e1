"""The order in which sessions without times are served: S at a time, one turn each in turn."""

from __future__ import annotations

import heapq

import numpy as np

from pipelines.capacity.requests import Ints

SESSIONS_AT_A_TIME = (1, 16, 256, 4096)


def interleaved(session: Ints, sessions_at_a_time: int) -> Ints:
    """Return the order of service of turns, as places in the given arrays; shape (R,).

    Each round serves one turn of each of S sessions. The slot of a session that ended is filled by the next session
    of the file, which is first served in the next round; empty slots close up.
    Lengths A1 B3 C1 D3 E1 F2 with S = 2 give A0 B0 C0 B1 D0 B2 D1 E0 D2 F0 F1.

    Args:
        session: Number of each turn's session, all turns of a session in a row and in order; shape (R,).
        sessions_at_a_time: S, at least 1.
    """
    starts = np.flatnonzero(np.diff(session, prepend=session[:1] - 1))
    turns = np.diff(np.append(starts, len(session)))
    free = [(0, slot) for slot in range(min(sessions_at_a_time, len(starts)))]
    first_round, slot_of = np.zeros(len(starts), np.int64), np.zeros(len(starts), np.int64)
    for number, length in enumerate(turns.tolist()):
        opened, slot = free[0]
        first_round[number], slot_of[number] = opened, slot
        heapq.heapreplace(free, (opened + length, slot))
    rounds = np.repeat(first_round - starts, turns) + np.arange(len(session))
    return np.lexsort((np.repeat(slot_of, turns), rounds))

"""The engine: iterations as vLLM V1 schedules them, with memory, token budget and link."""

from __future__ import annotations

import heapq
import math
from array import array
from collections import deque

import numpy as np

from pipelines.serving.engine.requests import Floats, Limits, Outcome, Requests, Work
from pipelines.serving.policies.spec import PolicySpec
from pipelines.serving.policies.waiting import Waiting

_INSTANTS = (
    "arrival_s", "memory_s", "admitted_s", "load_start_s", "load_end_s",
    "compute_start_s", "first_token_s", "left_s",
)  # fmt: skip
# Tokens decoded in one go, so that a long run of iterations takes little memory.
_AT_ONCE = 65_536


def simulate(requests: Requests, work: Work, limits: Limits, policy: PolicySpec) -> Outcome:
    """Return what happens to requests on one accelerator.

    Whenever the accelerator is idle, those that have begun take their tokens, then those loaded since, then those that
    the policy admits; nothing is admitted inside an iteration. A request holds M = K + T + O of the pool from its
    admission until it leaves, so nothing is preempted. One with M above the pool is a reject.
    Source: the scheduler of vLLM V1 (vllm/v1/core/sched/scheduler.py), with memory reserved at admission.

    Args:
        requests: In order of arrival.
        work: What an iteration costs.
        limits: Memory, budget, link and decode.
        policy: Which of the waiting is admitted.
    """
    return _Engine(requests, work, limits, policy).run()


class _Engine:
    """The state of a run. At most one request has begun and has not all of T, and it is the last that began."""

    def __init__(self, requests: Requests, work: Work, limits: Limits, policy: PolicySpec) -> None:
        size = len(requests.new_tokens)
        self.work, self.limits = work, limits
        self.whole = work.whole_s.tolist()
        self.new, self.held = requests.new_tokens.tolist(), requests.held_tokens.tolist()
        self.cached, self.output = requests.cached_tokens.tolist(), requests.output_tokens.tolist()
        self.load = requests.load_s.tolist()
        self.size, self.pool = size, math.inf if limits.pool_tokens is None else limits.pool_tokens
        self.times: dict[str, array[float]] = {name: array("d", [math.nan]) * size for name in _INSTANTS}
        self.arrival = self.times["arrival_s"]
        if requests.arrival_s is not None:
            self.arrival[:] = array("d", requests.arrival_s.tolist())
        self.ratios = (requests.cached_tokens / requests.new_tokens).tolist() if policy.limit is not None else []
        groups = [] if requests.group is None else requests.group.tolist()
        self.waiting = Waiting(policy, self.held, self.new, self.ratios, groups or [0] * size)
        self.is_rejected, self.ages = bytearray(size), policy.age_s is not None
        self.now, self.link_free, self.free, self.seqs, self.owed = 0.0, 0.0, float(self.pool), 0, 0
        self.came, self.told, self.started = 0, 0.0, 0.0
        self.partial: tuple[int, int] | None = None
        self.cut = -1
        self.loading: deque[int] = deque()
        self.loaded: deque[int] = deque()
        self.decoding: list[int] = []
        self.made = [0] * size if limits.decode == "shared" else []
        self.releases: list[tuple[float, int]] = []
        self.iterations = array("d")
        self.flop_s, self.blocked_s, self.is_blocked = 0.0, 0.0, False

    def run(self) -> Outcome:
        for _ in range(min(self.limits.closed or 0, self.size)):
            self._come(0.0)
        while True:
            self._catch_up()
            if not self._step() and not self._jump():
                break
        columns: dict[str, Floats] = {name: np.array(values) for name, values in self.times.items()}
        iterations = np.array(self.iterations).reshape(-1, 4)
        rejected = np.frombuffer(self.is_rejected, dtype=np.bool_)
        return Outcome(
            **columns, is_rejected=rejected, iteration_s=iterations, flop_s=self.flop_s, memory_wait_s=self.blocked_s
        )

    # What happened until now: releases, arrivals, ends of loads.

    def _catch_up(self) -> None:
        now = self.now
        while self.releases and self.releases[0][0] <= now:
            self._leave(*heapq.heappop(self.releases))
        if self.limits.closed is None:
            while self.came < self.size and self.arrival[self.came] <= now:
                self._come(self.arrival[self.came])
        ends = self.times["load_end_s"]
        while self.loading and ends[self.loading[0]] <= now:
            row = self.loading.popleft()
            self.owed -= self.new[row]
            self.loaded.append(row)
        if self.is_blocked:
            self.blocked_s += now - self.told
        self.told = now

    def _come(self, at_s: float) -> None:
        """Take in the next row; in a closed loop a reject leaves at once and the one after it comes."""
        while self.came < self.size:
            row = self.came
            self.came += 1
            self.arrival[row] = at_s
            if self.held[row] <= self.pool:
                # What it waits for memory is the time of this clock until it is admitted.
                clock = self.blocked_s + (at_s - self.told if self.is_blocked else 0.0)
                self.times["memory_s"][row] = clock
                self.waiting.arrive(row)
                return
            self.is_rejected[row] = 1
            if self.limits.closed is None:
                return

    def _leave(self, at_s: float, row: int) -> None:
        self.times["left_s"][row] = at_s
        self.free += self.held[row]
        self.seqs -= 1
        self.waiting.give_back(row)
        if self.limits.closed is not None:
            self._come(at_s)

    # One iteration: who takes tokens, and how long it lasts.

    def _step(self) -> bool:
        """Schedule and compute one iteration; return whether anything was computed."""
        left = self.limits.token_budget
        decoders = self.decoding[:left]
        left -= len(decoders)
        begun: list[int] = []
        flop = 0.0
        if self.partial is not None:
            left, seconds = self._take(*self.partial, left, begun)
            flop += seconds
        while self.loaded and left > 0:
            left, seconds = self._take(self.loaded.popleft(), 0, left, begun)
            flop += seconds
        left, seconds, loads = self._admit(left, begun)
        tokens = self.limits.token_budget - left
        if tokens == 0:
            return False
        count = self._compute(tokens, flop + seconds, loads, decoders)
        self._finish(begun, decoders, count)
        return True

    def _take(self, row: int, done: int, left: int, begun: list[int]) -> tuple[int, float]:
        """Give a request min(rest of T, left); return what is left and its FLOP seconds."""
        rest = self.new[row] - done
        if done == 0 and rest <= left:
            begun.append(row)
            return left - rest, self.whole[row]
        taken = min(rest, left)
        self.partial = None if taken == rest else (row, done + taken)
        if taken == rest:
            begun.append(row)
        return left - taken, self.work.piece_s(row, done, taken) if taken else 0.0

    def _admit(self, left: int, begun: list[int]) -> tuple[int, float, float]:
        """Admit what the policy names; return what is left, FLOP seconds and seconds of loads of this iteration."""
        flop, loads, waiting, now = 0.0, 0.0, self.waiting, self.now
        self.is_blocked = False
        while left > 0 and self.seqs < self.limits.max_seqs and waiting.count:
            row = waiting.name(self.free, left - self.owed, now, self.arrival)
            if row is None:
                self.is_blocked = True
                break
            waiting.admit(row)
            self.free -= self.held[row]
            self.seqs += 1
            self.times["admitted_s"][row] = now
            self.times["memory_s"][row] = self.blocked_s - self.times["memory_s"][row]
            if self.limits.loading == "async" and self.load[row] > 0:
                self._load(row)
                continue
            self.times["load_start_s"][row] = now + loads
            loads += self.load[row]
            self.times["load_end_s"][row] = now + loads
            left, seconds = self._take(row, 0, left, begun)
            flop += seconds
        return left, flop, loads

    def _load(self, row: int) -> None:
        """Put a request's load at the end of the link's queue."""
        start = max(self.now, self.link_free)
        self.link_free = start + self.load[row]
        self.times["load_start_s"][row] = start
        self.times["load_end_s"][row] = self.link_free
        self.loading.append(row)
        self.owed += self.new[row]

    def _compute(self, tokens: int, flop: float, loads: float, decoders: list[int]) -> int:
        """Let time pass; return the iterations: more than one where all decode and nothing can change meanwhile."""
        memory, self.started = self.work.weights_s(tokens), self.now + loads
        if not decoders:
            seconds = max(flop, memory)
            self.iterations.extend((self.now, loads, seconds, tokens))
            self.flop_s += flop
            self.now = self.started + seconds
            return 1
        contexts = [self.cached[row] + self.new[row] + self.made[row] - 1 for row in decoders]
        most = self._like_this(decoders) if tokens == len(decoders) else 1
        more, read = self.work.decode_s(contexts, most)
        each: Floats = np.maximum(flop + more, memory + read)
        ends = np.cumsum(np.append(self.started, each))
        count = min(int(np.searchsorted(ends[1:], self._next_event(), "left")) + 1, most)
        starts = np.append(self.now, ends[1:count])
        rows = np.column_stack([starts, np.full(count, loads), each[:count], np.full(count, float(tokens))])
        self.iterations.frombytes(rows.tobytes())
        self.flop_s += float((flop + more[:count]).sum())
        self.now = float(ends[count])
        return count

    def _like_this(self, decoders: list[int]) -> int:
        """Return the most iterations in which the same requests decode, unless one comes or is loaded."""
        if self.waiting.count and self.ages:
            return 1
        shortest = min(self.output[row] - self.made[row] for row in decoders)
        return int(max(1, min(shortest, _AT_ONCE // len(decoders))))

    # The end of an iteration: first tokens, and who leaves.

    def _finish(self, begun: list[int], decoders: list[int], count: int) -> None:
        for row in decoders:
            self.made[row] += count
            if self.made[row] >= self.output[row]:
                self._leave_at(self.now, row)
        if decoders:
            self.decoding = [row for row in self.decoding if self.made[row] < self.output[row]]
        first, start, decode = self.times["first_token_s"], self.times["compute_start_s"], self.limits.decode
        if self.partial is not None and self.partial[0] != self.cut:
            self.cut = self.partial[0]
            start[self.cut] = self.started
        for row in begun:
            first[row] = self.now
            if row != self.cut:
                start[row] = self.started
            if decode == "shared" and self.output[row] > 1:
                self.made[row] = 1
                self.decoding.append(row)
            elif decode == "hold":
                self._leave_at(self.now + max(self.output[row] - 1, 0) * self.limits.hold_s, row)
            else:
                self._leave_at(self.now, row)

    def _leave_at(self, at_s: float, row: int) -> None:
        heapq.heappush(self.releases, (at_s, row))

    def _next_event(self) -> float:
        """Return when the next request comes, is loaded or gives its memory back; infinite without any."""
        return min(
            self.arrival[self.came] if self.limits.closed is None and self.came < self.size else math.inf,
            self.times["load_end_s"][self.loading[0]] if self.loading else math.inf,
            self.releases[0][0] if self.releases else math.inf,
        )

    def _jump(self) -> bool:
        """Go to the next event; return whether there is one."""
        self.now = self._next_event()
        return self.now < math.inf

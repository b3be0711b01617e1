"""Runs of turns on one machine: at a rate, in a closed loop, as a backlog; by the engine or the line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipelines.serving.answers.goodput import goodput_per_s
from pipelines.serving.answers.question import JOHNSON, ServeQuestion
from pipelines.serving.answers.summary import RunAnswer, summary
from pipelines.serving.answers.turns import ServedTurns
from pipelines.serving.arrivals.log import read_log
from pipelines.serving.arrivals.times import poisson, stretched
from pipelines.serving.engine.requests import Floats, Ints, Limits, Outcome, Requests
from pipelines.serving.engine.run import simulate
from pipelines.serving.line.johnson import johnson_order
from pipelines.serving.line.ttft import line
from pipelines.serving.machines.served import Served
from pipelines.serving.policies.spec import parse_policy
from warehouse.formulas.serving_load import async_turns_per_s, blocking_turns_per_s

# The knee: the largest rate at which p90 TTFT is within this many times that of an idle machine.
KNEE = 2.0


@dataclass(frozen=True, slots=True)
class Station:
    """Turns on one machine with its limits, ready to be run.

    Attributes:
        question: What is asked.
        turns: In the order of service.
        times: Seconds of each.
        limits: How the accelerator is run.
    """

    question: ServeQuestion
    turns: ServedTurns
    times: Served
    limits: Limits

    @property
    def carried_per_s(self) -> float:
        """The turns a second that link and accelerator carry, one turn an iteration; batches carry more."""
        carried = blocking_turns_per_s if self.limits.loading == "blocking" else async_turns_per_s
        return carried(float(self.times.load_s.mean()), float(self.times.compute_s.mean()))

    def idle_p90_s(self) -> float:
        """Return p90 of x + c: TTFT where nothing else is there."""
        return float(np.quantile(self.times.load_s + self.times.compute_s, 0.9))

    def run(self, policy: str, rate_per_s: float | None, seed: int) -> RunAnswer:
        """Return the figures of one run.

        Args:
            policy: As users write it.
            rate_per_s: Mean arrivals a second; None for the log's own, in a closed loop, and for a backlog.
            seed: Of the arrivals.

        Raises:
            KappaError: every turn is above the pool.
        """
        order = johnson_order(self.times.load_s, self.times.compute_s) if policy == JOHNSON else None
        arrival = np.zeros(len(self.turns.new_tokens)) if policy == JOHNSON else self._arrivals(rate_per_s, seed)
        requests = self._requests(arrival, policy)
        if self.question.engine == "line":
            return self._line(requests, order)
        outcome = simulate(requests, self.times.work, self.limits, parse_policy(policy))
        return summary(requests, self.times.compute_s, self.limits, outcome)

    def largest_rate_per_s(self, policy: str, limit_s: float) -> float | None:
        """Return the largest rate with p90 TTFT within a limit; None where it is above it at any rate."""
        seed = self.question.seed
        return goodput_per_s(lambda rate: self.run(policy, rate, seed).ttft_p90_s, limit_s, self.carried_per_s)

    def knee_per_s(self, policy: str) -> float | None:
        """Return the largest rate with p90 TTFT within KNEE times that of an idle machine.

        None where not even the lowest rate is, and where every rate is: the turns are too few to make a queue.
        """
        found = self.largest_rate_per_s(policy, KNEE * self.idle_p90_s())
        return found if found is not None and np.isfinite(found) else None

    def _arrivals(self, rate_per_s: float | None, seed: int) -> Floats | None:
        size = len(self.turns.new_tokens)
        if self.limits.closed is not None:
            return None
        if self.question.log is not None:
            return stretched(read_log(Path(self.question.log))[:size], rate_per_s)
        assert rate_per_s is not None
        return poisson(size, rate_per_s, seed)

    def _requests(self, arrival: Floats | None, policy: str) -> Requests:
        turns, group = self.turns, self._groups(policy)
        return Requests(arrival, turns.cached_tokens, turns.new_tokens, turns.output_tokens, self.times.load_s, group)

    def _groups(self, policy: str) -> Ints:
        if policy.startswith("fair:session"):
            return self.turns.session
        is_bound: Ints = (self.times.load_s > self.times.compute_s).astype(np.int64)
        return is_bound

    def _line(self, requests: Requests, order: Ints | None) -> RunAnswer:
        """Return the figures of the line; a backlog is served in the given order."""
        size = len(requests.new_tokens)
        places = np.arange(size) if order is None else order
        assert requests.arrival_s is not None
        x, c = requests.load_s[places], self.times.compute_s[places]
        found = line(requests.arrival_s[places], x, c)
        tokens = (column[places] for column in (requests.cached_tokens, requests.new_tokens, requests.output_tokens))
        cached, new, output = tokens
        in_line = Requests(requests.arrival_s[places], cached, new, output, x)
        zero, begin = np.zeros(size), found.first_token_s - c
        steps = np.column_stack([begin, zero, c, new])
        arrival = requests.arrival_s[places]
        outcome = Outcome(
            arrival, zero, arrival, found.load_start_s, found.load_end_s, begin, found.first_token_s,
            found.first_token_s, np.zeros(size, dtype=np.bool_), steps, float(self.times.work.whole_s.sum()),
        )  # fmt: skip
        return summary(in_line, c, Limits(None, self.limits.token_budget), outcome)

"""The question of `kappa serve-sim`, its checks, and what its words mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

from pipelines.capacity.machines.question import Tier, check_tiers
from pipelines.hardware.questions.question import CritQuestion, OneQuestion, one_by_one
from pipelines.serving.arrivals.times import check_rate
from pipelines.serving.engine.requests import MAX_SEQS, TOKEN_BUDGET, DecodeMode, Limits, Loading
from pipelines.serving.fleet.routing import PLANNED_USE
from pipelines.serving.policies.spec import parse_policy
from warehouse.errors import ErrorCode, UsageError

TURNS = 5000
SESSIONS_AT_A_TIME = 16
# Share of what the slower of link and accelerator carries alone.
LOAD_SHARES = (0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1)
JOHNSON = "johnson"


@dataclass(frozen=True, kw_only=True)
class ServeQuestion:
    """A question about turns that meet on one machine, or on a fleet.

    The fields in `SEVERAL` take one value or a sequence; each combination is a machine.

    Attributes:
        model: As in `CritQuestion`, as are `accelerator`, `link`, `basis`, `bandwidth_bytes_per_s`,
            `sustained_fraction`, `kv_dtype`, `workload`, `counting`, `reuse`, `chunk_tokens` and `cost_model`.
        tensor_parallel: GPUs that share each layer; None for the least that hold the weights and some cache.
        cost_model: None for the fullest that is known.
        turns: The first turns in the order of service; 0 for all.
        sessions: Sessions whose turns are interleaved.
        rates_per_s: Mean arrivals a second; empty for `load_shares` of what the machine carries.
        load_shares: Rates where none are given, as shares of what the machine carries.
        has_knee: Whether the knee is looked for.
        arrivals: `poisson`, `closed:N`, or `log:FILE`.
        seed: Of the first run.
        seeds: Runs with seeds one after the other; from two on, intervals are given.
        policies: As in docs/serving.md.
        engine: `engine` of iterations, or the closed-form `line`.
        slo_s: Limit of p90 TTFT: adds the largest rate within it.
        loading: `async` or `blocking`.
        decode: `none`, `shared` or `hold:S`.
        cap_w: Power cap of an accelerator in watts.
        is_fleet: Whether turns are routed between all chosen machines, which need prices.
        prices: `ACCELERATOR=USD` an hour of one accelerator, besides those of HOME/reference/prices.csv.
        hours: `ACCELERATOR=H`, the most hours of a machine.
        use: Planned use of the fleet's machines.
        tiers: Behind the GPUs' own memory, the nearest first: K_link of these sizes crosses the link and not all of K.
    """

    model: str | Sequence[str] | None = None
    accelerator: str | Sequence[str] | None = None
    link: str | Sequence[str] | None = None
    basis: str | None = None
    bandwidth_bytes_per_s: float | None = None
    sustained_fraction: float | None = None
    kv_dtype: str | Sequence[str] | None = None
    tensor_parallel: int | Sequence[int] | None = None
    workload: str | None = None
    counting: str | None = None
    reuse: str | None = None
    chunk_tokens: int = 1
    cost_model: str | None = None
    turns: int = TURNS
    sessions: int = SESSIONS_AT_A_TIME
    rates_per_s: tuple[float, ...] = ()
    load_shares: tuple[float, ...] = LOAD_SHARES
    has_knee: bool = True
    arrivals: str = "poisson"
    seed: int = 0
    seeds: int = 1
    policies: tuple[str, ...] = ("fifo",)
    engine: Literal["engine", "line"] = "engine"
    slo_s: float | None = None
    token_budget: int = TOKEN_BUDGET
    max_seqs: int = MAX_SEQS
    pool_tokens: int | None = None
    loading: Loading = "async"
    decode: str = "none"
    cap_w: float | None = None
    is_fleet: bool = False
    prices: tuple[str, ...] = ()
    hours: tuple[str, ...] = ()
    use: float = PLANNED_USE
    tiers: tuple[Tier, ...] = ()

    def crits(self) -> list[OneQuestion]:
        """Return the questions to `kappa crit` about the same models, machines and workload, one a combination.

        Raises:
            UsageError: a field has an empty sequence, or there are too many combinations.
        """
        names = {field.name for field in fields(CritQuestion)} & {field.name for field in fields(self)}
        return one_by_one(CritQuestion(**{name: getattr(self, name) for name in names - {"pool_tokens"}}))

    @property
    def closed(self) -> int | None:
        """N of `closed:N`."""
        return _whole(self.arrivals, "closed") if self.arrivals.startswith("closed") else None

    @property
    def log(self) -> str | None:
        """The file of `log:FILE`."""
        name, _, path = self.arrivals.partition(":")
        return path if name == "log" and path else None

    def limits(self, pool_tokens: int | None) -> Limits:
        """Return how the accelerator is run, with a pool of so many tokens unless one was given."""
        name, _, seconds = self.decode.partition(":")
        mode: DecodeMode = "hold" if name == "hold" else "shared" if name == "shared" else "none"
        return Limits(
            self.pool_tokens or pool_tokens,
            self.token_budget,
            self.max_seqs,
            self.loading,
            mode,
            float(seconds or 0),
            self.closed,
        )


def check(question: ServeQuestion) -> None:
    """Raise UsageError where an option is impossible, or has no effect together with the others."""
    if question.workload is None:
        raise _no("no workload is named", "the simulation serves real turns", "add --workload NAME")
    for name in ("turns", "seed"):
        _check_least(question, name, 0)
    for name in ("sessions", "seeds", "token_budget", "max_seqs", "pool_tokens", "chunk_tokens"):
        _check_least(question, name, 1)
    for rate in question.rates_per_s:
        check_rate(rate)
    check_tiers(question.tiers)
    for policy in question.policies:
        if policy != JOHNSON:
            parse_policy(policy)
    _check_words(question)
    _check_together(question)
    if not 0 < question.use <= 1:
        raise _no(f"--use {question.use:g} is not possible", "it is a share above 0 and at most 1", "give such a share")
    for name in ("slo_s", "cap_w"):
        value = getattr(question, name)
        if value is not None and not 0 < value < math.inf:
            option = {"slo_s": "slo", "cap_w": "cap-w"}[name]
            raise _no(f"--{option} {value:g} is not possible", "it is above 0", "give such a number")


def _check_least(question: ServeQuestion, name: str, least: int) -> None:
    value = getattr(question, name)
    if value is not None and value < least:
        option = name.replace("chunk_tokens", "chunk").replace("_", "-")
        raise _no(f"--{option} {value} is not possible", f"the least is {least}", f"give {least} or more")


def _check_words(question: ServeQuestion) -> None:
    if question.arrivals != "poisson" and question.closed is None and question.log is None:
        raise _no(
            f"--arrivals {question.arrivals} is not possible",
            "there are poisson, closed:N and log:FILE",
            "give one of them",
        )
    name, _, seconds = question.decode.partition(":")
    is_hold = name == "hold" and _is_number(seconds) and 0 <= float(seconds) < math.inf
    if question.decode not in ("none", "shared") and not is_hold:
        raise _no(
            f"--decode {question.decode} is not possible",
            "there are none, shared and hold:S with S seconds a token",
            "give one of them",
        )


def _check_together(question: ServeQuestion) -> None:
    is_line = question.engine == "line"
    pairs = (
        (question.closed is not None and question.rates_per_s, "--rate has no effect in a closed loop"),
        (question.closed is not None and question.slo_s, "--slo has no effect in a closed loop"),
        (question.closed is not None and is_line, "the line has no closed loop"),
        (
            is_line and any(policy not in ("fifo", JOHNSON) for policy in question.policies),
            "the line is fifo or johnson",
        ),
        (not is_line and JOHNSON in question.policies, "johnson is an order of the line"),
        (JOHNSON in question.policies and question.rates_per_s, "johnson orders a backlog, which has no rate"),
        (question.is_fleet and question.tiers, "--tier has no effect on a fleet"),
        (question.is_fleet and question.cap_w, "--cap-w has no effect on a fleet"),
        (not question.is_fleet and (question.prices or question.hours), "--price and --hours need --fleet"),
    )
    for is_broken, what in pairs:
        if is_broken:
            raise _no(what, "both were given", "leave one out")


def _whole(text: str, name: str) -> int:
    number = text.removeprefix(name).removeprefix(":")
    if not number.isascii() or not number.isdigit() or int(number) < 1:
        raise _no(f"--arrivals {text} is not possible", "a closed loop keeps N requests, at least 1", "give closed:N")
    return int(number)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _no(what: str, why: str, remedy: str) -> UsageError:
    return UsageError(what, why, f"{remedy}; see `kappa serve-sim --help`", code=ErrorCode.USAGE)

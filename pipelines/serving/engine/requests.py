"""What the engine is given: requests, the limits of an accelerator, and what computing costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Loading: TypeAlias = Literal["async", "blocking"]
DecodeMode: TypeAlias = Literal["none", "shared", "hold"]

# vLLM V1's defaults on an H100: max_num_batched_tokens and max_num_seqs of its engine arguments.
TOKEN_BUDGET = 8192
MAX_SEQS = 1024


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests in the order of their arrival, each array of shape (requests,).

    Attributes:
        arrival_s: Not falling; None in a closed loop, where a request comes when another one leaves.
        cached_tokens: K, at least 0.
        new_tokens: T, at least 1.
        output_tokens: O, at least 0.
        load_s: x, seconds to load K by an idle link.
        group: Class of weighted fair queueing.
    """

    arrival_s: Floats | None
    cached_tokens: Ints
    new_tokens: Ints
    output_tokens: Ints
    load_s: Floats
    group: Ints | None = None

    @property
    def held_tokens(self) -> Ints:
        """M = K + T + O, the tokens of the pool that each holds from its admission until it leaves."""
        held: Ints = self.cached_tokens + self.new_tokens + self.output_tokens
        return held


@dataclass(frozen=True, slots=True)
class Work:
    """Seconds of an iteration's parts; it lasts its loads + max(FLOP / rate, bytes / memory rate).

    Attributes:
        whole_s: FLOP seconds of all T of each request in one piece, shape (requests,).
        piece_s: FLOP seconds of `n` new tokens of `row` after `done` of its T.
        decode_s: For so many iterations, each of which adds a token to every context: FLOP seconds of one token each
            after the contexts, and seconds to read their keys and values, each of shape (iterations,).
        weights_s: Seconds to read the weights that `n` tokens touch.
    """

    whole_s: Floats
    piece_s: Callable[[int, int, int], float]
    decode_s: Callable[[Sequence[int], int], tuple[Floats, Floats]]
    weights_s: Callable[[int], float]


@dataclass(frozen=True, slots=True)
class Limits:
    """How an accelerator is run.

    Attributes:
        pool_tokens: Tokens that its memory holds; None for memory without end.
        token_budget: New tokens of an iteration, at least 1.
        max_seqs: Requests that are held together, at least 1.
        loading: `async`, as vLLM's OffloadingConnector, or `blocking`, as LMCache's default.
        decode: `none` leaves at the first token, `shared` makes a token an iteration, `hold` only keeps its memory.
        hold_s: Seconds a token of `hold`.
        closed: Requests that a closed loop keeps in the system; None with arrival times.
    """

    pool_tokens: int | None = None
    token_budget: int = TOKEN_BUDGET
    max_seqs: int = MAX_SEQS
    loading: Loading = "async"
    decode: DecodeMode = "none"
    hold_s: float = 0.0
    closed: int | None = None


@dataclass(slots=True)
class Outcome:
    """What happened to each request, in seconds from the start; NaN where it was rejected.

    Attributes:
        arrival_s: When it came.
        memory_s: Seconds before its admission in which the queue waited for memory.
        admitted_s: When it got its memory.
        load_start_s: When its load began.
        load_end_s: When all of K was loaded.
        compute_start_s: When the first iteration that computes it began to compute.
        first_token_s: When all of T was computed.
        left_s: When it gave its memory back.
        is_rejected: M is above the pool.
        iteration_s: Begin, seconds of loads, seconds of computing, tokens of each iteration, shape (iterations, 4).
        flop_s: Seconds of FLOP at the full rate, over all iterations.
        memory_wait_s: Seconds in which something waited for memory.
    """

    arrival_s: Floats
    memory_s: Floats
    admitted_s: Floats
    load_start_s: Floats
    load_end_s: Floats
    compute_start_s: Floats
    first_token_s: Floats
    left_s: Floats
    is_rejected: npt.NDArray[np.bool_]
    iteration_s: Floats = field(default_factory=lambda: np.empty((0, 4)))
    flop_s: float = 0.0
    memory_wait_s: float = 0.0

    @property
    def ttft_s(self) -> Floats:
        """First token - arrival, shape (requests,); NaN where rejected."""
        ttft: Floats = self.first_token_s - self.arrival_s
        return ttft

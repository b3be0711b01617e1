"""How long 720,000 turns take on one core, by policy and decode, with a quiet link and an overloaded one.

`python -m bench.serving [TURNS]` prints a row a run: CPU seconds, iterations, rejects, and memory at its highest.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from pipelines.serving.engine.requests import Limits, Requests
from pipelines.serving.engine.run import simulate
from pipelines.serving.engine.work import seconds_a_token
from pipelines.serving.policies.spec import parse_policy

POLICIES = ("fifo", "fill", "fair", "fill+age:5", "fill+limit:200:30")
TOKEN_S = 1e-4


def turns(size: int, load: float) -> Requests:
    """Return turns of heavy-tailed K and T at a share of what the slower station carries."""
    draw = np.random.default_rng(0)
    cached = draw.lognormal(7, 1.5, size).astype(np.int64).clip(0, 100_000)
    new = draw.lognormal(4, 1.5, size).astype(np.int64).clip(1, 30_000)
    load_s = cached * (327_680 / 4 / 54e9)
    gap = max(load_s.mean(), new.mean() * TOKEN_S) / load
    group = (cached > 30 * new).astype(np.int64)
    return Requests(draw.exponential(gap, size).cumsum(), cached, new, draw.integers(0, 300, size), load_s, group)


def main() -> None:
    """Print a row a run."""
    size = int(sys.argv[1]) if sys.argv[1:] else 720_000
    for load in (0.5, 3.0):
        asked = turns(size, load)
        for policy in POLICIES:
            for decode in ("none", "hold"):
                limits = Limits(465_980, decode=decode, hold_s=0.02)
                begin = time.process_time()
                found = simulate(asked, seconds_a_token(asked.new_tokens, TOKEN_S), limits, parse_policy(policy))
                seconds = time.process_time() - begin
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
                row = (load, policy, decode, f"{seconds:.1f} s", len(found.iteration_s), int(found.is_rejected.sum()))
                print(*row, f"{peak} MiB", sep="\t", flush=True)


if __name__ == "__main__":
    main()

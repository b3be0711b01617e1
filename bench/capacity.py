"""Reuse distances, beside kvcache-simulator and libcachesim where they are installed: `python -m bench.capacity`.

With a trace in Mooncake's form: hit ratios of LRU, FIFO and the optimum at some capacities, before and after a
warm-up, by each program, with times. Without one: a chat set of full size, 750,000 turns from the published lengths,
in every interleaving, with seconds and memory. The other programs are for comparison alone, no dependency:
`pip install kvcache-simulator==0.1.3 libcachesim==0.3.5`.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import itertools
import json
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from pipelines.capacity.curve import curve_of
from pipelines.capacity.distances import hits_of
from pipelines.capacity.interleaving import SESSIONS_AT_A_TIME, interleaved
from pipelines.capacity.policies import fifo, optimum
from pipelines.capacity.requests import Ints, Requests, in_order, requests_of_ids, requests_of_turns
from pipelines.capacity.tables import MOST_BENDS, TOLERANCE
from pipelines.generated.lengths import REPLY_TOKENS, USER_TOKENS, USER_TURNS, Quantiles

CAPACITIES = (22, 704, 2_818, 5_637, 22_550, 90_200)
SESSIONS = 90_666
T = TypeVar("T")


def timed(step: Callable[[], T]) -> tuple[T, float]:
    """Return the result of a step, and its seconds."""
    begin = time.perf_counter()
    return step(), time.perf_counter() - begin


def read_trace(path: Path, block_tokens: int) -> Requests:
    """Return the requests of a trace with `timestamp`, `input_length` and `hash_ids`, in order of time."""
    rows = sorted(map(json.loads, path.read_text("utf8").splitlines()), key=lambda row: int(row["timestamp"]))
    left = np.array([len(row["hash_ids"]) for row in rows])
    _, ids = np.unique(np.concatenate([np.array(row["hash_ids"], np.int64) for row in rows]), return_inverse=True)
    return requests_of_ids(
        block_tokens=block_tokens, offsets=np.concatenate((np.zeros(1, np.int64), np.cumsum(left))), ids=ids,
        lookup_counts=left, context_tokens=np.array([row["input_length"] for row in rows]),
        session=np.arange(len(rows)),
    )  # fmt: skip


def ours(requests: Requests, capacities: Sequence[int]) -> None:
    """Print our hit ratios in tokens: LRU at all capacities from one pass, the others one by one."""
    half = len(requests) // 2
    hits, seconds = timed(lambda: hits_of(requests))
    for warm_up in (0, half):
        curve, more = timed(lambda warm_up=warm_up: curve_of(requests, hits, warm_up))  # type: ignore[misc]
        ratios = [f"{ratio:.5f}" for ratio in curve.hit_ratio(np.array(capacities))]
        print(f"kappa lru, {warm_up:,} requests as warm-up, all capacities: {' '.join(ratios)}  {seconds + more:.2f} s")
    for name, policy in (
        ("optimum", lambda c: optimum(requests, hits, c).blocks),
        ("fifo", lambda c: fifo(requests, c)),
    ):
        found, seconds = timed(lambda policy=policy: [policy(c) for c in capacities])  # type: ignore[misc]
        for warm_up in (0, half):
            total = requests.context_tokens[warm_up:].sum()
            ratios = [f"{requests.cached_tokens(blocks)[warm_up:].sum() / total:.5f}" for blocks in found]
            print(f"kappa {name}, {warm_up:,} requests as warm-up: {' '.join(ratios)}  {seconds:.2f} s")


def kvcache_simulator(path: Path, block_tokens: int, capacities: Sequence[int]) -> None:
    """Print what kvcache-simulator finds: whole tokens of hit blocks, the second half of the requests measured."""
    trace_module, plan_module, policies = (
        importlib.import_module(f"kvcache_sim.{name}") for name in ("trace", "plan", "policies")
    )
    with path.open(encoding="utf8") as lines:
        trace: Any = trace_module.parse_trace_lines(lines, block_size=block_tokens)
    plan, seconds = timed(lambda: plan_module.build_execution_plan(trace))
    print(f"kvcache-simulator (Python), plan {seconds:.2f} s")
    for policy in ("lru", "optimal", "fifo"):
        found, seconds = timed(lambda policy=policy: [_simulated(policies, plan, policy, c) for c in capacities])  # type: ignore[misc]
        print(f"kvcache-simulator {policy}: {' '.join(f'{ratio:.5f}' for ratio in found)}  {seconds:.2f} s")


def _simulated(policies: Any, plan: Any, policy: str, capacity: int) -> float:  # noqa: ANN401 - another program's
    return float(policies.simulate_policy(plan, policy, capacity).hitRate)


def libcachesim(requests: Requests, capacities: Sequence[int]) -> None:
    """Print block hit ratios of libcachesim: each block is looked up by itself, a hit behind a miss counts."""
    library = importlib.import_module("libcachesim")
    assert requests.ids is not None
    # A prompt's blocks last to first, as ours are touched.
    ends = requests.offsets
    order = np.concatenate([np.arange(high - 1, low - 1, -1) for low, high in itertools.pairwise(ends.tolist())])
    for name in ("LRU", "FIFO", "S3FIFO", "ARC", "LIRS", "Sieve"):
        found, seconds = timed(
            lambda name=name: [_blocks_hit(library, name, requests.ids[order], c) for c in capacities]
        )  # type: ignore[misc, index]
        print(f"libcachesim {name}, blocks: {' '.join(f'{ratio:.5f}' for ratio in found)}  {seconds:.2f} s")


def _blocks_hit(library: Any, name: str, ids: Ints, capacity: int) -> float:  # noqa: ANN401 - another program's
    cache = getattr(library, name)(capacity)
    request, hits = library.Request(), 0
    request.obj_size = 1
    for one in ids.tolist():
        request.obj_id = one
        hits += bool(cache.get(request))
    return hits / max(len(ids), 1)


def chat_set(sessions: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Return K, T, output and session of every turn of a set with the published lengths."""
    rng = np.random.default_rng(1)

    def draw(points: Quantiles, count: int) -> Ints:
        shares, values = np.array(points).T
        return np.exp(np.interp(rng.random(count), shares, np.log(values))).round().astype(np.int64)

    turns = draw(USER_TURNS, sessions)
    session = np.repeat(np.arange(sessions), turns)
    prefill, output = draw(USER_TOKENS, len(session)), draw(REPLY_TOKENS, len(session))
    before = np.cumsum(prefill + output) - prefill - output
    first = np.searchsorted(session, session, side="left")
    return before - before[first], prefill, output, session


def full_size(sessions: int) -> None:
    """Print seconds and memory of a chat set in each interleaving and block size."""
    cached, prefill, output, session = chat_set(sessions)
    print(
        "| block | sessions at a time | turns | block references | bends | rows | CPU s | peak GiB |\n|" + "---:|" * 8
    )
    for block in (16, 256):
        turns = requests_of_turns(cached, prefill, output, session, block)
        for count in SESSIONS_AT_A_TIME:
            begin = time.process_time()
            served = in_order(turns, interleaved(session, count))
            curve = curve_of(served, hits_of(served))
            rows = len(curve.thinned(MOST_BENDS, TOLERANCE).capacity_blocks)
            seconds = time.process_time() - begin
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            print(
                f"| {block} | {count:,} | {len(session):,} | {served.left_blocks.sum():,} | "
                f"{len(curve.capacity_blocks):,} | {rows:,} | {seconds:.1f} | {peak:.2f} |"
            )


def main() -> None:
    """Run the comparison on a trace, or the full-size set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", nargs="?", type=Path, help="JSON lines with timestamp, input_length, hash_ids")
    parser.add_argument("--block-tokens", type=int, default=512)
    parser.add_argument("--capacity", type=int, action="append", help="in blocks (may be repeated)")
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    options = parser.parse_args()
    if options.trace is None:
        full_size(options.sessions)
        return
    capacities = options.capacity or CAPACITIES
    requests = read_trace(options.trace, options.block_tokens)
    ours(requests, capacities)
    if importlib.util.find_spec("kvcache_sim"):
        kvcache_simulator(options.trace, options.block_tokens, capacities)
    if importlib.util.find_spec("libcachesim"):
        libcachesim(requests, capacities)


if __name__ == "__main__":
    main()

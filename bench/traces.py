"""Traces of block identities, read and derived: `python -m bench.traces [--references 1e7] [--trace FILE]`.

A generated trace of the given number of references in each of two forms (Mooncake's, and Bailian's, whose identities
are chained), at half and at all of the size, each in a new process; linear is a ratio of 2. With `--trace` a file of
one's own in either form.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.measure import hand_back, measure, table
from pipelines.reuse.requests import write_requests
from pipelines.workloads.formats.trace import BAILIAN_BLOCK, MOONCAKE_BLOCK, read

FORMS = {"mooncake": MOONCAKE_BLOCK, "bailian": BAILIAN_BLOCK}
SHARED, OWN = 20, 8


def write_trace(path: Path, references: int, form: str) -> int:
    """Write requests of 28 blocks, of which 20 are some earlier request's; return the number of requests."""
    draw, size, fresh = np.random.default_rng(references), FORMS[form], 0
    requests = references // (SHARED + OWN)
    stems = draw.integers(0, max(requests // 20, 1), requests).tolist()
    with path.open("w", encoding="ascii") as file:
        for number in range(requests):
            ids = [*range(stems[number] * SHARED, stems[number] * SHARED + SHARED)]
            ids += range(references + fresh, references + fresh + OWN)
            fresh += OWN
            row = {"timestamp": number, "input_length": len(ids) * size - 1, "output_length": 100, "hash_ids": ids}
            named = {"chat_id": number, "parent_chat_id": -1, "turn": 1, "type": "text"} if form == "bailian" else {}
            file.write(json.dumps(named | row) + "\n")
    return requests


def records(path: Path) -> Iterator[tuple[str, int, object]]:
    """Yield the records of a file of JSON lines."""
    with path.open("rb") as file:
        for number, line in enumerate(file):
            yield path.name, number, json.loads(line)


def run(path: Path) -> dict[str, float]:
    """Read a trace and write its product; return what came out, and the seconds after everything was imported."""
    begin = time.perf_counter()
    requests = read(records(path), {}).requests
    with tempfile.TemporaryDirectory() as folder:
        write_requests(requests, Path(folder))
    cached = int(requests.cached_tokens.sum())
    return {
        "seconds": time.perf_counter() - begin,
        "requests": len(requests),
        "references": len(requests.ids),
        "cached_tokens": cached,
        "prefill_tokens": int(requests.context_tokens.sum()) - cached,
    }


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.traces", description=__doc__)
    parser.add_argument("--references", type=float, default=1e7, help="references to blocks (default: 10 million)")
    parser.add_argument("--trace", type=Path, help="a trace of your own as JSON lines, instead")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        hand_back(run(options.one))
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        cases = {str(options.trace): options.trace} if options.trace else {}
        for form in () if options.trace else FORMS:
            for share in (0.5, 1.0):
                name = f"{form}, {share:g}"
                cases[name] = Path(scratch) / f"{form}-{share}.jsonl"
                write_trace(cases[name], int(options.references * share), form)
        rows = []
        for name, path in cases.items():
            cost = measure("bench.traces", "--one", str(path))
            found = cost.result
            rows.append(
                [name, f"{found['references']:,}", f"{found['requests']:,}", f"{found['seconds']:.1f}",
                 f"{cost.cpu_seconds:.1f}", f"{cost.peak_bytes / 2**30:.2f}"]
            )  # fmt: skip
            print(f"{name}: {json.dumps(found)}", file=sys.stderr)
    print(table(["trace", "references", "requests", "s", "CPU s", "peak GiB"], rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

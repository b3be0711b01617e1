"""Everything after the download, measured: `python -m bench.full_size ROOT [--home H]`.

`kappa run` itself in a new process, over what `bench.generate` wrote; only the generated sample is replaced by ROOT.
What each step took is in Dagster's own history of the run.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from bench.generate import SETS
from bench.measure import Measured, measure, table
from warehouse.home.home import Home

REVISION = "0" * 40
# Step names for the table, by the first part of an asset's key.
STEPS = {
    "raw": "hash the files (part of the download)",
    "tokenizer_files": "tokenizer files",
    "conversations": "read",
    "token_counts": "count",
    "turns": "derive",
    "percentiles": "query",
    "summary": "query",
    "boundness": "query",
    "warehouse": "write",
    "report": "draw",
}
REST, DAGSTER, START = "small tables, publication", "Dagster around the steps", "start, imports, printing, end"
PER_RECORD = ("read", "count", "derive", "write")
LARGEST_RATIO = 4.6


def run_graph(root: Path, home: Path, names: list[str]) -> None:
    """Run `kappa run` in this process over the files under `root`."""
    from assets.commands.cli import main  # noqa: PLC0415 - its cost is measured

    arguments = ["--debug", "run", "--sample", "--home", str(home)]
    for name in names:
        arguments += ["--workload", name]
    with (
        mock.patch("assets.graph.resources.write_sample", return_value=root),
        mock.patch("assets.graph.resources.sample_revision", return_value=REVISION),
    ):
        code = main(arguments)
    if code:
        raise SystemExit(code)


Key = tuple[str, ...]
Span = tuple[float, float]


def step_spans(home: Path) -> tuple[dict[Key, Span], Span]:
    """Return the start and end times of each asset's body, by its key, and those of the run.

    A body runs from the start of a step to its first result; Dagster's own work around it is excluded.
    """
    import dagster as dg  # noqa: PLC0415 - slow to import

    kinds = dg.DagsterEventType
    results = {kinds.ASSET_MATERIALIZATION, kinds.ASSET_CHECK_EVALUATION, kinds.STEP_OUTPUT}
    started: dict[str, float] = {}
    ended: dict[str, float] = {}
    keys: dict[str, Key] = {}
    with dg.DagsterInstance.from_config(str(home / "dagster")) as instance:
        run = instance.get_run_records(limit=1)[0]
        for entry in instance.all_logs(run.dagster_run.run_id):
            event = entry.dagster_event
            if event is None or event.step_key is None:
                continue
            if event.event_type == kinds.STEP_START:
                started[event.step_key] = entry.timestamp
            if event.event_type in results:
                ended.setdefault(event.step_key, entry.timestamp)
            if event.event_type == kinds.ASSET_MATERIALIZATION and event.asset_key:
                keys[event.step_key] = tuple(event.asset_key.path)
        spans = {keys[step]: (start, ended[step]) for step, start in started.items() if step in keys}
        return spans, (run.start_time or 0.0, run.end_time or 0.0)


@dataclass
class Cost:
    """Seconds of wall time and of CPU time, the bytes processed (0: unknown), and the peak memory."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    volume: int = 0
    peak_bytes: int = 0

    def add(self, other: Cost) -> None:
        """Return the sum with another cost."""
        self.seconds += other.seconds
        self.cpu_seconds += other.cpu_seconds
        self.volume += other.volume
        self.peak_bytes = max(self.peak_bytes, other.peak_bytes)

    def row(self, name: str) -> list[str]:
        """Return the row of a table."""
        rate = f"{self.volume / self.seconds / 1e6:,.0f}" if self.volume and self.seconds else ""
        peak = f"{self.peak_bytes / 2**30:.2f}" if self.peak_bytes else ""
        return [name, f"{self.seconds:.1f}", f"{self.cpu_seconds:.1f}", rate, peak]


def costs_of(took: Measured, home: Path) -> dict[str, dict[str, Cost]]:
    """Return the cost of each step and, inside it, of each workload and tokenizer."""
    spans, run = step_spans(home)
    found: dict[str, dict[str, Cost]] = {step: {} for step in [*dict.fromkeys(STEPS.values()), REST]}
    for key, (start, end) in spans.items():
        cost = Cost(end - start, took.cpu_between(start, end), _volume(home, key), took.peak_between(start, end))
        found[step_of(key)].setdefault(" ".join(key[1:]) or key[0], Cost()).add(cost)
    inside = [cost for parts in found.values() for cost in parts.values()]
    seconds, cpu = sum(c.seconds for c in inside), sum(c.cpu_seconds for c in inside)
    found[DAGSTER] = {"": Cost(run[1] - run[0] - seconds, took.cpu_between(*run) - cpu)}
    found[START] = {"": Cost(took.seconds - run[1] + run[0], took.cpu_seconds - took.cpu_between(*run))}
    return found


def step_of(key: Key) -> str:
    """Return the step that an asset belongs to: turns by `chat` are counted, turns by `text` only derived."""
    return "count" if key[0] == "turns" and key[-1] == "chat" else STEPS.get(key[0], REST)


def _volume(home: Path, key: Key) -> int:
    """Return the file bytes for `read`, the text bytes for `count`."""
    staging = Home(home).staging(is_sample=True)
    if key[0] in ("raw", "conversations"):
        return sum(int(file["bytes"]) for file in staging.require(f"raw/{key[1]}").meta["files"])
    return int(staging.require(f"conversations/{key[1]}").meta["text_bytes"]) if step_of(key) == "count" else 0


def report(took: Measured, costs: dict[str, dict[str, Cost]]) -> str:
    """Return the table of a run."""
    rows: list[list[str]] = []
    total = Cost(took.seconds, took.cpu_seconds)
    for step, parts in costs.items():
        rows.append(sum_of(parts).row(f"**{step}**"))
        if len(parts) > 1 and step != REST:
            rows += [cost.row(f"{step.split()[0]} {part}") for part, cost in parts.items()]
    hashing = sum_of(costs[STEPS["raw"]])
    after = Cost(total.seconds - hashing.seconds, total.cpu_seconds - hashing.cpu_seconds)
    rows += [total.row("**all**"), after.row("**all after the download**")]
    peak, peak_all = took.peak_bytes / 2**30, took.peak_all_bytes / 2**30
    memory = f"Peak memory: {peak:.2f} GiB in one process, {peak_all:.2f} GiB in all."
    return table(["step", "s", "CPU s", "MB/s", "peak GiB"], rows) + f"\n\n{memory}"


def sum_of(parts: dict[str, Cost]) -> Cost:
    """Return the sum of costs."""
    total = Cost()
    for cost in parts.values():
        total.add(cost)
    return total


def measure_root(root: Path, home: Path, names: list[str]) -> tuple[str, Cost]:
    """Run over one generated folder in a new process; return the table and the cost of the per-record part."""
    took = measure("bench.full_size", str(root), "--home", str(home), "--child", *names)
    costs = costs_of(took, home)
    return report(took, costs), sum_of({step: sum_of(costs[step]) for step in PER_RECORD})


def main() -> int:
    """Run the measurement with the command-line options."""
    parser = argparse.ArgumentParser(prog="python -m bench.full_size", description=__doc__)
    parser.add_argument("root", type=Path, help="what bench.generate wrote")
    parser.add_argument("--home", type=Path, help="home folder, emptied first (default: a temporary one)")
    parser.add_argument("--quarter", type=Path, help="the same at a quarter of the scale: prints the ratio")
    parser.add_argument("--fixed", type=Path, help="the same at scale 0.01: its cost is the fixed part")
    parser.add_argument("--set", action="append", choices=SETS, help="only this set (may be repeated)")
    parser.add_argument("--child", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        run_graph(options.root, options.home, options.child)
        return 0
    names = options.set or list(SETS)
    with tempfile.TemporaryDirectory() as scratch:
        home = options.home or Path(scratch) / "home"
        costs: dict[str, Cost] = {}
        for label in ("fixed", "quarter", "root"):
            root = getattr(options, label)
            if root is not None:
                shutil.rmtree(home, ignore_errors=True)
                text, costs[label] = measure_root(root, home, names)
                print(f"\n{root.name}:\n\n{text}", flush=True)
        if "quarter" in costs:
            fixed = costs.get("fixed", Cost())
            for what in ("seconds", "cpu_seconds"):
                whole, quarter, least = (getattr(cost, what) for cost in (costs["root"], costs["quarter"], fixed))
                ratio = (whole - least) / (quarter - least)
                print(f"\nPer-record part, {what}: {ratio:.2f} times a quarter's (at most {LARGEST_RATIO}).")
    return 0


if __name__ == "__main__":
    sys.exit(main())

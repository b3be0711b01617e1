"""Runs a module in a new process and measures it from outside: seconds, CPU time, memory, children included.

It reads /proc every 50 ms. Memory is resident set size; the peak of one process is the kernel's own (VmHWM).
CPU time is the better figure where the machine has other work too.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EVERY_S = 0.05
RESULT = "KAPPA_BENCH_RESULT"


@dataclass(frozen=True)
class Measured:
    """The cost of a process.

    Attributes:
        seconds: From start to exit.
        peak_bytes: Largest resident set of any single process.
        result: What the process passed to `hand_back`, {} if nothing.
        cpu: (time of day, CPU seconds used until then) over time, never falling; the last one is the kernel's figure
            at the end of the process.
        memory: (time of day, resident set of all processes) over time.
    """

    seconds: float
    peak_bytes: int
    result: dict[str, Any]
    cpu: list[tuple[float, float]]
    memory: list[tuple[float, int]]

    @property
    def cpu_seconds(self) -> float:
        """CPU time of the process and its children."""
        return self.cpu[-1][1] if self.cpu else 0.0

    @property
    def peak_all_bytes(self) -> int:
        """Largest resident set of the process and its children together."""
        return max((size for _, size in self.memory), default=0)

    def cpu_between(self, start: float, end: float) -> float:
        """Return the CPU seconds used between two times of day."""
        return self._cpu_at(end) - self._cpu_at(start)

    def peak_between(self, start: float, end: float) -> int:
        """Return the largest total resident set between two times of day, 0 without a reading."""
        return max((size for moment, size in self.memory if start <= moment <= end), default=0)

    def _cpu_at(self, moment: float) -> float:
        place = bisect_right(self.cpu, (moment, math.inf))
        if place == 0 or place == len(self.cpu):
            return self.cpu[max(0, place - 1)][1] if self.cpu else 0.0
        (left, low), (right, high) = self.cpu[place - 1 : place + 1]
        return low + (high - low) * (moment - left) / (right - left)


class Watch(threading.Thread):
    """Samples a process and its children until `stop`."""

    def __init__(self, pid: int) -> None:
        """Start with no samples."""
        super().__init__(daemon=True)
        self.pid = pid
        self.peak = 0
        self.cpu: list[tuple[float, float]] = []
        self.memory: list[tuple[float, int]] = []
        self._done = threading.Event()

    def run(self) -> None:
        """Take a sample every `EVERY_S`."""
        while not self._done.wait(EVERY_S):
            self.look()

    def look(self) -> None:
        """Record the CPU time and memory of all processes."""
        pids = family(self.pid)
        self.note_cpu(sum(map(cpu_of, pids)))
        memory = [resident(pid) for pid in pids]
        self.peak = max([self.peak, *(high for _, high in memory)])
        self.memory.append((time.time(), sum(now for now, _ in memory)))

    def note_cpu(self, seconds: float) -> None:
        """Record CPU time; the total never falls when a process ends between two samples."""
        self.cpu.append((time.time(), max(seconds, self.cpu[-1][1] if self.cpu else 0.0)))

    def stop(self) -> None:
        """Stop sampling."""
        self._done.set()
        self.join()


def family(pid: int) -> list[int]:
    """Return a process and all of its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process and its ended children; zero where the process itself has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> tuple[int, int]:
    """Return the resident set of a process in bytes, now and at its peak; zeros where it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    sizes = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith(("VmRSS", "VmHWM"))}
    return int(sizes.get("VmRSS", 0)) * 1024, int(sizes.get("VmHWM", 0)) * 1024


def measure(module: str, *arguments: str, environment: dict[str, str] | None = None) -> Measured:
    """Run `python -m MODULE ARGUMENTS` in a new process and measure it; its output goes to standard error.

    Raises:
        RuntimeError: it failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "result.json"
        begin = time.perf_counter()
        process = subprocess.Popen(  # noqa: S603 - this program itself
            [sys.executable, "-m", module, *arguments],
            env={**os.environ, **(environment or {}), RESULT: str(place)},
            stdout=sys.stderr,
        )
        watch = Watch(process.pid)
        watch.start()
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = code = os.waitstatus_to_exitcode(status)
        watch.stop()
        watch.note_cpu(used.ru_utime + used.ru_stime)
        if code:
            raise RuntimeError(f"{module} {' '.join(arguments)} ended with exit code {code}")
        result = json.loads(place.read_text("utf8")) if place.exists() else {}
    return Measured(seconds, watch.peak, result, watch.cpu, watch.memory)


def hand_back(result: dict[str, Any]) -> None:
    """Pass a result to the measuring process; print it where there is none."""
    text = json.dumps(result)
    if RESULT in os.environ:
        Path(os.environ[RESULT]).write_text(text, "utf8")
    else:
        print(text)


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return rows as a Markdown table, numbers aligned right."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)

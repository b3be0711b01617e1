"""Runs that are killed, interrupted or started twice: the last generation stays readable and the next run finishes."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from hub_stand_in import HubStandIn
from kappa_process import PATIENCE_S, Kappa, errors_of, wait_until

from warehouse.home.home import Home

SMALL = ("--workload", "finqa", "--tokenizer", "qwen3")
TOTALS = "SELECT workload, tokenizer, turns, cached_tokens_sum, prefill_tokens_sum FROM summary WHERE counting = 'text'"
# A question of train has 2 tokens at first (2 + 4 + 1), 3 after the change.
BEFORE, AFTER = [("finqa", "qwen3", 3, 21, 7)], [("finqa", "qwen3", 3, 21, 8)]


INTERRUPTED = "interrupted: the last good state is as it was"


def interrupt(process: subprocess.Popen[str], *, is_twice: bool = False) -> None:
    """Press Ctrl-C, which reaches the process and all that it started: exit code 130 and one line after progress."""
    for _ in range(1 + is_twice):
        os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, told
    assert [line for line in told.splitlines() if not line.startswith("kappa: ")] == [INTERRUPTED]


def has_imported(process: subprocess.Popen[str], library: str) -> Callable[[], bool]:
    """Return whether a process has loaded a library; `_csv` comes with the command line itself."""
    return lambda: library in Path(f"/proc/{process.pid}/maps").read_text()


@pytest.mark.parametrize(
    ("moment", "is_twice"),
    [
        ("_csv", False), ("pyarrow", True), ("run.lock", False), ("drafts", True), ("conversations", False),
        ("turns", True), ("published", False), ("published", True),
    ],
)  # fmt: skip
def test_ctrl_c_at_any_moment(copy: Kappa, changed_finqa: Callable[[], str], moment: str, is_twice: bool) -> None:
    """Ctrl-C while modules are imported, in a step, in Dagster, while it is published: one line, a good state."""
    before = copy.state()
    changed_finqa()
    staging = copy.home / "staging" / "hub"
    heads = {
        name: (staging / name / "HEAD").read_text()
        for name in ("conversations/finqa", "turns/finqa/qwen3/text/history")
    }

    def is_renewed(name: str) -> bool:
        return (staging / name / "HEAD").read_text() not in ("", heads[name])

    with copy.started("run", *SMALL) as process:
        moments: dict[str, Callable[[], bool]] = {
            "run.lock": lambda: Home(copy.home).is_locked("run"),
            "drafts": lambda: any(staging.glob("*/finqa/.draft-*")),
            "conversations": lambda: is_renewed("conversations/finqa"),
            "turns": lambda: is_renewed("turns/finqa/qwen3/text/history"),
            "published": lambda: (
                any((copy.home / "generations").glob(".new-*")) or any(staging.glob("report/.draft-*"))
            ),
        }
        wait_until(moments.get(moment) or has_imported(process, moment), process)
        interrupt(process, is_twice=is_twice)
    assert copy.generation == 2 or copy.state() == before


LONG_QUERY = "SELECT sum(hash(a.range + b.range)) FROM range(1000000) a, range(1000000) b"


@pytest.mark.parametrize(
    ("line", "library"),
    [
        (("sql", LONG_QUERY), "duckdb"), (("sql", LONG_QUERY, "--output", "rows.csv"), "duckdb"), (("crit",), "_csv"),
        (("doctor",), "_csv"), (("report",), "_csv"), (("report",), "duckdb"), (("refresh", "--check"), "_csv"),
        (("measure",), "_csv"),
    ],
)  # fmt: skip
def test_ctrl_c_in_any_command(copy: Kappa, tmp_path: Path, line: tuple[str, ...], library: str) -> None:
    """Commands that only read, draw or ask end in one line too, and leave no file of their own."""
    before, named = copy.state(), [str(tmp_path / part) if part == "rows.csv" else part for part in line]
    with copy.started(*named) as process:
        wait_until(has_imported(process, library), process)
        interrupt(process)
    assert copy.state() == before
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def runs_left_open(kappa: Kappa) -> list[str]:
    """Return the runs of the home's Dagster instance that count as running."""
    with dg.DagsterInstance.from_config(str(kappa.home / "dagster")) as instance:
        open_states = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTING]
        return [run.run_id for run in instance.get_runs(dg.RunsFilter(statuses=open_states))]


def test_killed_at_any_moment(copy: Kappa, hub: HubStandIn, changed_finqa: Callable[[], str]) -> None:
    """SIGKILL at stages of one refresh: each time generation 1 is whole; the run after them finishes the job.

    After it no run of the home's instance counts as running: the queue of the schedules is free.
    """
    before = copy.state()
    changed_finqa()
    hub.faults.held = threading.Event()
    with copy.started("run", *SMALL) as process:
        wait_until(lambda: bool(hub.asked("GET /datasets/kensho")), process)
    hub.faults.held.set()
    assert runs_left_open(copy)
    assert copy.state() == before
    staging, generations = copy.home / "staging" / "hub", copy.home / "generations"

    def renewed(name: str) -> Callable[[], bool]:
        head = staging / name / "HEAD"
        old = head.read_text()
        return lambda: head.is_file() and head.read_text() not in ("", old)

    moments: list[Callable[[], bool]] = [
        renewed("turns/finqa/qwen3/text/history"),
        lambda: any(staging.glob("warehouse/.draft-*")),
        lambda: any(generations.glob(".new-*")) or (generations / "2").exists(),
    ]
    for moment in moments:
        with copy.started("run", *SMALL) as process:
            wait_until(moment, process)
        assert copy.generation in (1, 2)
        if copy.generation == 1:
            assert copy.state() == before
            assert copy.rows(TOTALS) == BEFORE
    process = copy("run", *SMALL)
    assert process.returncode == 0, process.stderr
    assert copy.generation == 2
    assert copy.rows(TOTALS) == AFTER
    assert runs_left_open(copy) == []
    assert sorted(path.name for path in generations.iterdir()) == ["1", "2"]
    assert list(staging.rglob(".draft-*")) == []


def test_killed_before_the_links_of_the_first_generation(copy: Kappa) -> None:
    """A first run that is killed between `current` and the links through it: the next run makes them."""
    links = ("warehouse.duckdb", "lake", "report")
    for link in links:
        (copy.home / link).unlink()
    process = copy("run", *SMALL)
    assert process.returncode == 0, process.stderr
    assert [link for link in links if not (copy.home / link).is_symlink()] == []


def test_ctrl_c(copy: Kappa, hub: HubStandIn, changed_finqa: Callable[[], str]) -> None:
    """Ctrl-C during a download ends with exit code 130 in one line and leaves generation 1; the next run finishes.

    A second run meanwhile is told in one line that the home is in use, at once.
    """
    before = copy.state()
    changed_finqa()
    hub.faults.held = threading.Event()
    with copy.started("run", *SMALL) as process:
        wait_until(lambda: bool(hub.asked("GET /datasets/kensho")), process)
        second = copy("run", *SMALL)
        assert process.poll() is None
        assert second.returncode == 1
        assert len(errors_of(second)) == 1
        assert errors_of(second)[0].startswith("error: ")
        assert "in use" in errors_of(second)[0]
        interrupt(process)
    assert copy.state() == before
    hub.faults.held.set()
    assert copy("run", *SMALL).returncode == 0
    assert copy.rows(TOTALS) == AFTER

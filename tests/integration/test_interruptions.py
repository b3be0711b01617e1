"""Runs that are killed, interrupted or started twice: the last generation stays readable and the next run finishes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

import dagster as dg
from hub_stand_in import HubStandIn
from kappa_process import PATIENCE_S, Kappa, errors_of, wait_until

SMALL = ("--workload", "finqa", "--tokenizer", "qwen3")
TOTALS = "SELECT workload, tokenizer, turns, cached_tokens_sum, prefill_tokens_sum FROM summary WHERE counting = 'text'"
# A question of train has 2 tokens at first (2 + 4 + 1), 3 after the change.
BEFORE, AFTER = [("finqa", "qwen3", 3, 21, 7)], [("finqa", "qwen3", 3, 21, 8)]


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
        renewed("turns/finqa/qwen3/text"),
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
    """SIGINT during a download ends with exit code 130 in one line and leaves generation 1; the next run finishes.

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
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, told
    assert len([line for line in told.splitlines() if not line.startswith("kappa: ")]) == 1, told
    assert copy.state() == before
    hub.faults.held.set()
    assert copy("run", *SMALL).returncode == 0
    assert copy.rows(TOTALS) == AFTER

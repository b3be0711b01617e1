"""Same in, same out: in one process or in many, the same Parquet to the byte and equal tables."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from hub_stand_in import HubStandIn
from kappa_process import ROOT, Kappa, files_below

from warehouse.declared.tables import TABLES

SMALL = ("--workload", "finqa", "--tokenizer", "qwen3")
STEPS = (
    "raw/finqa", "conversations/finqa", "tokenizer_files/qwen3", "token_counts/finqa/qwen3",
    "turns/finqa/qwen3/text/history", "turns/finqa/qwen3/chat/history", "turns/finqa/qwen3/chat/prefix",
    "percentiles", "summary",
)  # fmt: skip
# They alone carry times and run ids.
TIMED = ("sources", "generations")
_OF_A_RUN = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def parquet(kappa: Kappa) -> dict[str, bytes]:
    """Return the Parquet files of staging and lake by their path, but for the tables that carry times."""
    folders = {"staging": kappa.home / "staging" / "hub", "lake": (kappa.home / "lake").resolve()}
    found = {f"{name}/{path}": body for name, folder in folders.items() for path, body in files_below(folder).items()}
    return {
        path: body
        for path, body in found.items()
        if path.endswith(".parquet")
        and "/warehouse/" not in path
        and not any(Path(path).name.startswith((f"{name}.parquet", f"{name}-g")) for name in TIMED)
    }


def rows(kappa: Kappa) -> dict[str, list[tuple[object, ...]]]:
    """Return the rows of every table and view in their order, but for times and run ids."""
    queries = {name: f'FROM "{name}"' for name in TABLES if name != "generations"}
    queries["sources"] = "SELECT * EXCLUDE fetched_at FROM sources"
    queries["generations"] = "SELECT * EXCLUDE (run_id, started_at, finished_at) FROM generations"
    for name in ("session_totals", "turns_per_session", "kappa_ratio_by_turn", "template_overhead"):
        # A view without ORDER BY has its rows in any order.
        queries[name] += " ORDER BY ALL"
    return {name: kappa.rows(query) for name, query in queries.items()}


def test_step_processes_give_the_same_bytes(small: Kappa, hub: HubStandIn, tmp_path: Path) -> None:
    """Steps in processes of their own, three at once, make what `kappa run` makes in one process."""
    del hub
    kappa = Kappa(tmp_path / "home", tmp_path / "cache", small.endpoint)
    (tmp_path / "instance").mkdir()
    (tmp_path / "instance" / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    environment = kappa.environment(DAGSTER_HOME=str(tmp_path / "instance"), PYTHONHASHSEED="5")
    command = [
        sys.executable, "-m", "dagster", "asset", "materialize", "--select", ",".join(STEPS),
        "-f", "tests/integration/three_processes.py", "-a", "three",
    ]  # fmt: skip
    process = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr[-3000:]
    assert process.stderr.count("Launching subprocess for") == len(STEPS)
    made = parquet_of_staging(kappa)
    finished = kappa("run", *SMALL)
    assert finished.returncode == 0, finished.stderr
    ours, expected = parquet(kappa), parquet(small)
    # What the step processes made is what was published: nothing was made a second time.
    assert made.items() <= ours.items()
    assert len(made) >= len(STEPS) - 2
    assert ours.keys() == expected.keys()
    assert [path for path, body in ours.items() if expected[path] != body] == []
    assert rows(kappa) == rows(small)
    drawn, expected_pages = report(kappa), report(small)
    assert [name for name in drawn if name.startswith("figures/")]
    assert drawn.keys() == expected_pages.keys()
    assert [name for name, body in drawn.items() if expected_pages[name] != body] == []


def report(kappa: Kappa) -> dict[str, bytes]:
    """Return figures and pages by their path; times and ids of runs on the pages, which alone may differ, left out."""
    found = files_below((kappa.home / "report").resolve())
    return {path: body if path.startswith("figures/") else _OF_A_RUN.sub(b"", body) for path, body in found.items()}


def parquet_of_staging(kappa: Kappa) -> dict[str, bytes]:
    """Return the staged Parquet files by their path."""
    found = files_below(kappa.home / "staging" / "hub")
    return {f"staging/{path}": body for path, body in found.items() if path.endswith(".parquet")}

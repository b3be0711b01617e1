"""`kappa run`, `kappa refresh` and `kappa report`: run the graph in this process, or check for changes upstream."""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kappa
from assets.commands.screen import showing_steps, text_table
from assets.graph.dagster_errors import in_our_words
from pipelines.vocab.specs import tokenizer_spec, tokenizer_specs
from pipelines.workloads.declaration import Workload
from pipelines.workloads.known import known_workload, known_workloads
from pipelines.workloads.sets import workloads
from warehouse.database.spill import remove_left_spilled
from warehouse.declared.formats import cell, number
from warehouse.errors import ErrorCode, KappaError, UsageError
from warehouse.hardware_rows.tokenizer_names import own_tokenizer_folder
from warehouse.home.generation import REPORT, replace_report
from warehouse.home.home import Home, home_path

if TYPE_CHECKING:
    import dagster as dg

LOG = logging.getLogger("kappa")
CHANGED = 10
INSTANCE = "dagster"
PROCESS_TAG = "kappa/process"
INSTANCE_SETTINGS = {
    "telemetry": {"enabled": False},
    "python_logs": {"managed_python_loggers": ["kappa"], "python_log_level": "INFO"},
}
# To keep what steps print, Dagster starts two processes, which answer Ctrl-C with tracebacks; ours print nothing.
RUN_SETTINGS = {
    **INSTANCE_SETTINGS,
    "compute_logs": {
        "module": "dagster._core.storage.noop_compute_log_manager",
        "class": "NoOpComputeLogManager",
    },
}


def run(options: argparse.Namespace) -> int:
    """Build the workloads and publish them; print the percentile table and the path of the report."""
    home = Home(home_path(options.home))
    names = _chosen_names(home, options)
    own = own_tokenizer_folder(home.path)
    tokenizers = [tokenizer_spec(name, own).name for name in dict.fromkeys(options.tokenizer)]
    tokenizers = tokenizers or list(tokenizer_specs(own=own))
    for name in tokenizers:
        if not tokenizer_spec(name, own).has_chat:
            LOG.info("tokenizer %s has no chat template: it counts `text` only", name)
    build(home, names, tokenizers, is_sample=options.sample)
    print_result(home)
    return 0


def _chosen_names(home: Home, options: argparse.Namespace) -> list[str]:
    """Return the workloads to run: the named ones, else all of the home folder; a sample has the built-in ones only."""
    known = known_workloads(home.path)
    chosen = [known_workload(home.path, name).name for name in dict.fromkeys(options.workload)]
    own = [name for name in chosen if name not in workloads()]
    if options.sample and own:
        raise UsageError(f"{own[0]} has no sample", "it is your own", "leave out --sample", code=ErrorCode.USAGE)
    return chosen or list(workloads() if options.sample else known)


def build(home: Home, names: list[str], tokenizers: list[str], *, is_sample: bool) -> None:
    """Run the graph for these workloads and tokenizers in this process.

    Raises:
        KappaError: the home cannot be used, or another run holds it.
        Exception: any error of a step; the last good generation is unchanged.
    """
    with showing_steps():
        _build(home, names, tokenizers, is_sample=is_sample)


def _build(home: Home, names: list[str], tokenizers: list[str], *, is_sample: bool) -> None:
    home.prepare()
    before = home.current_note()
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    with home.lock("run"):
        remove_left_spilled()
        home.staging(is_sample=is_sample).remove_drafts()
        _materialize(home, names, tokenizers, is_sample=is_sample)
    if before is not None and (home.current_note() or {}).get("generation") == before["generation"]:
        LOG.info("nothing changed: generation %d is as it was", before["generation"])


def _materialize(home: Home, names: list[str], tokenizers: list[str], *, is_sample: bool) -> None:
    import dagster as dg  # noqa: PLC0415 - seconds to import
    from dagster._core.instance.ref import InstanceRef  # noqa: PLC0415

    from assets.graph.definitions import assets_of, selection  # noqa: PLC0415
    from assets.graph.resources import KappaHome, refuse_sample_over_real  # noqa: PLC0415

    if is_sample:
        refuse_sample_over_real(home)
    known = known_workloads(home.path)
    logging.getLogger("dagster").setLevel(logging.ERROR)
    # Given here too: Dagster looks for its file by a pattern, and finds none below a name with * or [].
    settings = InstanceRef.from_dir(str(instance_folder(home)), overrides=RUN_SETTINGS)
    with dg.DagsterInstance.from_ref(settings) as instance, in_our_words():
        _close_dead_runs(instance)
        dg.materialize(
            assets_of(home.path),
            selection=dg.AssetSelection.assets(*selection([known[name] for name in names], tokenizers, home.path)),
            instance=instance,
            tags={PROCESS_TAG: str(os.getpid())},
            resources={"kappa": KappaHome(home=str(home.path), sample=is_sample)},
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )


def _close_dead_runs(instance: dg.DagsterInstance) -> None:
    """Mark the runs of killed `kappa run` processes as failed; otherwise they count as running for ever.

    Every open run with our tag is dead: a live one would hold the lock of the home, which this process holds.
    """
    import dagster as dg  # noqa: PLC0415

    open_states = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
    for run in instance.get_runs(dg.RunsFilter(statuses=open_states)):
        if PROCESS_TAG in run.tags:
            instance.report_run_failed(run, "its process is gone")


def instance_folder(home: Home) -> Path:
    """Return the DAGSTER_HOME inside the home, made on first use; it stores run history and enabled schedules."""
    folder = home.path / INSTANCE
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / "dagster.yaml"
    if not settings.exists():
        settings.write_text(json.dumps(INSTANCE_SETTINGS, indent=2) + "\n", "utf8")  # JSON is YAML
    return folder


PARTS = """
SELECT workload, ours::BIGINT AS counted, value::BIGINT AS published FROM paper_comparison
WHERE metric = 'records' AND NOT is_full_set AND ours IS NOT NULL ORDER BY workload
"""
PERCENTILE_TABLE = """
SELECT workload, tokenizer, counting, reuse, metric,
       max(value) FILTER (percentile = 5) AS p5, max(value) FILTER (percentile = 25) AS p25,
       max(value) FILTER (percentile = 50) AS p50, max(value) FILTER (percentile = 75) AS p75,
       max(value) FILTER (percentile = 90) AS p90, max(value) FILTER (percentile = 99) AS p99
FROM percentiles
WHERE block_tokens = 1 AND ((metric = 'kappa_ratio' AND population = 'reused')
      OR (metric IN ('cached_tokens', 'prefill_tokens') AND population = 'all'))
GROUP BY ALL ORDER BY workload, counting DESC, reuse, metric, tokenizer
"""


def print_result(home: Home) -> None:
    """Print the percentile table of the current generation and the next steps."""
    note = home.current_note() or {}
    with kappa.open(home.path) as warehouse:
        rows = warehouse.sql(PERCENTILE_TABLE).to_arrow_table()
        parts = warehouse.sql(PARTS).to_arrow_table().to_pylist()
    print(text_table(rows, cell, sys.stdout))
    print(
        "kappa_ratio over turns that reuse something (K > 0); cached_tokens (K) and prefill_tokens (T) over all turns."
    )
    if note.get("is_sample"):
        print("sample: generated text, not the data sets")
    elif parts:
        told = ", ".join(f"{row['workload']} {number(row['counted'])} of {number(row['published'])}" for row in parts)
        print(f"only parts of the published sets were counted (records): {told}")
    print(f"generation {note.get('generation')} in {home.path}")
    print(f"report: {home.path / REPORT / 'report.html'}")


def refresh(options: argparse.Namespace) -> int:
    """Rebuild what changed upstream; with --check only report it, with exit code 10 if a used file changed."""
    home = Home(home_path(options.home))
    home.database()
    note = home.current_note() or {}
    if note.get("is_sample"):
        raise KappaError(
            f"{home.path} holds the sample",
            "it has nothing upstream",
            "run `kappa run` for the real data sets",
            code=ErrorCode.IS_SAMPLE,
        )
    known = known_workloads(home.path)
    series: list[tuple[str, str, str]] = [tuple(entry) for entry in note["series"] if entry[0] in known]
    if not series:
        what, why = f"{home.path} has nothing to refresh", "the workloads that it holds were removed"
        raise KappaError(what, why, "declare one with `kappa add`, or run `kappa run`", code=ErrorCode.NOT_BUILT)
    if options.check:
        with showing_steps():
            return CHANGED if changed_files(home) else 0
    build(home, list(dict.fromkeys(s[0] for s in series)), list(dict.fromkeys(s[1] for s in series)), is_sample=False)
    print_result(home)
    return 0


def changed_files(home: Home) -> list[str]:
    """Return the files of the current generation that changed at their source, and print each.

    Raises:
        KappaError: a repository or a file cannot be reached.
    """
    with kappa.open(home.path) as warehouse:
        used = warehouse.table("sources").order("ALL").to_arrow_table().to_pylist()
    known = known_workloads(home.path)
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in used:
        if row["workload"] in known:
            own = row["workload"] if known[row["workload"]].hub is not None else ""
            groups.setdefault((row["repo_id"], own), []).append(row)
    return [path for (repo_id, _), rows in groups.items() for path in _changed_in(repo_id, rows, known)]


def _changed_in(repo_id: str, rows: list[dict[str, Any]], known: dict[str, Workload]) -> list[str]:
    """Return the files of one repository, or of one own workload, that changed, and print what was found."""
    from pipelines.fetch.hub import HuggingFaceHub  # noqa: PLC0415

    names = dict.fromkeys(row["workload"] for row in rows)
    hub = known[rows[0]["workload"]].hub or HuggingFaceHub()
    if hub.is_offline:
        raise KappaError(
            "what changed upstream is unknown",
            "HF_HUB_OFFLINE is set",
            "unset it and ask again",
            code=ErrorCode.OFFLINE,
        )
    revision = hub.revision(repo_id)
    if all(row["revision"] == revision for row in rows):
        print(f"{repo_id}: unchanged at {revision[:12]}")
        return []
    files = hub.files(repo_id, revision)
    chosen = {path for name in names for path in known[name].select(hub, repo_id, revision)}
    now = {path: (files[path].bytes, files[path].sha256) for path in chosen if path in files}
    before = {row["path"]: (row["bytes"], row["sha256"]) for row in rows}
    other = sorted(path for path in now.keys() | before.keys() if not _is_same(now.get(path), before.get(path)))
    what = ", ".join(other) or "no file that is used changed"
    print(f"{repo_id}: {rows[0]['revision'][:12]} -> {revision[:12]}: {what}")
    return [f"{repo_id}/{path}" for path in other]


def _is_same(now: tuple[int, str | None] | None, before: tuple[int, str] | None) -> bool:
    """Return whether size and sha256 are equal; a file without a known sha256 counts as changed."""
    return now is not None and before is not None and now == before


def report(options: argparse.Namespace) -> int:
    """Draw the report again from the current generation, and replace its files."""
    from reports.report import write_report  # noqa: PLC0415 - drawing is slow to import

    home = Home(home_path(options.home))
    database = home.database()
    home.prepare()
    scratch = Path(tempfile.mkdtemp(prefix=".report-", dir=home.path))
    try:
        write_report(database, scratch)
        replace_report(scratch, database.parent)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    page = home.path / REPORT / "report.html"
    print(f"report: {page}")
    if options.open:
        import webbrowser  # noqa: PLC0415

        webbrowser.open(page.resolve().as_uri())
    return 0

"""The Dagster graph: what it shows, that it runs in step processes, that its checks stop and warn as they should."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hub_stand_in import HubStandIn
from kappa_process import ROOT, Kappa, errors_of
from tiny_sets import words

from assets.graph import workloads as assets_of
from assets.graph.definitions import SAMPLE_CONFIG, defs
from assets.graph.resources import KappaHome
from pipelines.counting import engines, verified
from pipelines.steps.turn_products import TURNS_FILE
from pipelines.vocab.files import TokenizerFile
from pipelines.vocab.specs import tokenizer_specs
from pipelines.workloads.sets import workloads
from warehouse.declared.fields import TOKENIZER_COUNTINGS
from warehouse.declared.tables import TABLES
from warehouse.home.contents import contents_of
from warehouse.home.home import Home
from warehouse.home.products import CONTENTS, Product
from warehouse.home.staging import META, Staging

SMALL = ("--workload", "finqa", "--tokenizer", "qwen3")
COUNTS, TURNS = "token_counts/finqa/qwen3", "turns/finqa/qwen3/text/history"
SCHEMA = "dagster/column_schema"


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Keep Dagster's log lines out of the test output."""
    level = logging.getLogger("dagster").level
    logging.getLogger("dagster").setLevel(logging.CRITICAL)
    yield
    logging.getLogger("dagster").setLevel(level)


def specs() -> dict[str, dg.AssetSpec]:
    """Return the graph's assets by name."""
    return {spec.key.to_user_string(): spec for spec in defs.resolve_all_asset_specs()}


def materialize(kappa: Kappa, *names: str) -> dg.ExecuteInProcessResult:
    """Run some assets of the graph in this process on a home."""
    return dg.materialize(
        [asset for asset in defs.assets or [] if isinstance(asset, dg.AssetsDefinition)],
        selection=dg.AssetSelection.assets(*[name.split("/") for name in names]),
        resources={"kappa": KappaHome(home=str(kappa.home))},
        raise_on_error=False,
    )


def made(result: dg.ExecuteInProcessResult) -> set[str]:
    """Return the names of the assets that were materialized."""
    return {
        event.asset_key.to_user_string()
        for event in result.all_events
        if event.is_step_materialization and event.asset_key
    }


def checks(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetCheckEvaluation]:
    """Return the evaluations by `asset:check`."""
    return {f"{e.asset_key.to_user_string()}:{e.check_name}": e for e in result.get_asset_check_evaluations()}


def test_every_workload_tokenizer_and_table_is_an_asset() -> None:
    """The graph holds raw, conversations, counts and turns of every pair, the tables, and the publication."""
    expected = {f"{kind}/{name}" for kind in ("raw", "conversations") for name in workloads()}
    expected |= {f"tokenizer_files/{name}" for name in tokenizer_specs()}
    pairs = [f"{workload}/{tokenizer}" for workload in workloads() for tokenizer in tokenizer_specs()]
    expected |= {f"token_counts/{pair}" for pair in pairs}
    expected |= {f"turns/{pair}/{counting}/history" for pair in pairs for counting in TOKENIZER_COUNTINGS}
    expected |= {f"turns/{pair}/chat/prefix" for pair in pairs}
    expected |= {name for name, table in TABLES.items() if not table.is_view and name != "turns"}
    assert set(specs()) == expected | {"warehouse", "report"}


def test_every_asset_has_a_group_and_a_description() -> None:
    """Nobody has to guess what an asset is."""
    assert {spec.group_name for spec in specs().values()} == {
        "raw", "conversations", "tokenizers", "token_counts", "turns", "statistics", "hardware", "publication",
    }  # fmt: skip
    assert [name for name, spec in specs().items() if not (spec.description or "").strip()] == []


def columns_of(name: str) -> list[tuple[str, str]]:
    """Return names and types of an asset's columns as Dagster shows them."""
    schema: Any = specs()[name].metadata[SCHEMA]
    columns = getattr(schema, "value", schema).columns
    assert all(column.description for column in columns)
    return [(column.name, column.type) for column in columns]


@pytest.mark.parametrize("table", [name for name, table in TABLES.items() if not table.is_view])
def test_tables_show_their_columns(table: str) -> None:
    """Each table asset shows the declared columns with types and descriptions."""
    declared = [(field.name, str(field.type)) for field in TABLES[table].fields]
    assets = [name for name in specs() if name == table or (table == "turns" and name.startswith("turns/"))]
    assert assets
    assert [columns_of(name) for name in assets] == [declared] * len(assets)


def test_jobs_and_schedule() -> None:
    """There is a job for everything, one for the sample, one for each workload, and a daily schedule, switched off."""
    names = {job.name for job in defs.jobs or []}
    assert names == {"everything", "sample", *(name.replace("-", "_") for name in workloads())}
    schedules = {schedule.name: schedule for schedule in defs.schedules or []}
    assert list(schedules) == ["daily"]
    assert isinstance(schedules["daily"], dg.ScheduleDefinition)
    assert schedules["daily"].job_name == "everything"
    assert schedules["daily"].default_status == dg.DefaultScheduleStatus.STOPPED


def test_lineage_leads_from_the_repository_to_the_report() -> None:
    """The report stands behind every raw file and every tokenizer."""
    parents = {name: {dep.asset_key.to_user_string() for dep in spec.deps} for name, spec in specs().items()}
    seen, waiting = set(), ["report"]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += parents[name]
    assert {name for name in parents if not parents[name]} - seen == set()
    assert seen == set(parents) - {"generations"}


def test_declared_checks_block() -> None:
    """Each table has its blocking check; engines that differ and a set that grew upstream only warn."""
    blocking = {
        f"{spec.asset_key.to_user_string()}:{spec.name}": spec.blocking
        for asset in defs.assets or []
        if isinstance(asset, dg.AssetsDefinition)
        for spec in asset.check_specs
    }
    warning = {name for name, is_blocking in blocking.items() if not is_blocking}
    assert {name.split(":")[1] for name in warning} == {"engines_agree", "published_counts"}
    tables = [name for name in specs() if name in TABLES and name != "generations"]
    assert {f"{name}:declared" for name in tables} <= set(blocking)


def dagster(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Dagster's own command with an instance and a home in a folder."""
    (folder / "instance").mkdir(exist_ok=True)
    (folder / "instance" / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    ours = {
        "DAGSTER_HOME": str(folder / "instance"),
        "KAPPA_HOME": str(folder / "home"),
        "HF_ENDPOINT": "http://[::1]:9",
    }
    command = [sys.executable, "-m", "dagster", *arguments]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **ours}, capture_output=True, text=True, check=False)


def test_definitions_are_valid(tmp_path: Path) -> None:
    """`dagster definitions validate` accepts the module that `dagster dev` loads, with and without its name."""
    assert dagster(tmp_path, "definitions", "validate", "-m", "assets.graph.definitions").returncode == 0
    assert dagster(tmp_path, "definitions", "validate").returncode == 0


def test_step_processes_of_the_multiprocess_executor(tmp_path: Path) -> None:
    """Two assets of the sample run each in a process of its own, and the second one finds what the first made."""
    selection = ["--select", "raw/finqa,conversations/finqa", "--config-json", json.dumps(SAMPLE_CONFIG)]
    process = dagster(tmp_path, "asset", "materialize", "-m", "assets.graph.definitions", *selection)
    assert process.returncode == 0, process.stderr[-3000:]
    assert process.stderr.count("Launching subprocess for") == 2
    product = Home(tmp_path / "home").staging(is_sample=True).newest("conversations/finqa")
    assert product is not None
    # records read = kept + rejected
    assert sum(product.meta["records"].values()) == product.meta["kept"] + product.meta["rejected"] > 0


def doubled(product: Product) -> Product:
    """Spoil staged turns: kappa_ratio is no longer K / T."""
    path = product.file(TURNS_FILE)
    turns = pq.read_table(path)
    ratio = turns.schema.get_field_index("kappa_ratio")
    spoilt = pa.array(turns["kappa_ratio"].to_numpy() * 2)
    path.unlink()
    pq.write_table(turns.set_column(ratio, turns.schema.field(ratio), spoilt), path)
    # As if the step had written it.
    return Staging(product.folder).amend(product, **{CONTENTS: contents_of(product.folder, META)})


def test_a_blocking_check_stops_what_depends_on_it(copy: Kappa, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong turns fail their check with the rows that break it; no table is made, nothing is published."""
    before = copy.state()
    derive = assets_of.derive_turns
    monkeypatch.setattr(assets_of, "derive_turns", lambda *given: doubled(derive(*given)))
    result = materialize(copy, TURNS, "summary", "percentiles", "warehouse", "report", "generations")
    assert not result.success
    check = checks(result)[f"{TURNS}:kappa_times_t"]
    assert not check.passed
    # All 3 turns have K > 0, so all 3 break it.
    assert "3 rows" in str(check.description)
    assert made(result) == {TURNS}
    assert copy.state() == before


@pytest.mark.usefixtures("hub")
def test_a_blocking_check_is_told_in_one_line(copy: Kappa) -> None:
    """`kappa run` with a product that breaks a rule names rule and asset in one line, and leaves the generation."""
    before = copy.state()
    product = Home(copy.home).staging(is_sample=False).require(TURNS)
    doubled(product)
    process = copy("run", *SMALL)
    assert copy.state() == before
    assert process.returncode == 1
    assert len(errors_of(process)) == 1, process.stderr
    assert errors_of(process)[0].startswith("error: ")
    assert TURNS in errors_of(process)[0]


def one_more(file: TokenizerFile) -> engines.Counter:
    """Return the exact counter, but the filing of 8 words has one token more."""
    exact = engines.exact_counter(file)

    def count_strings(strings: list[str]) -> engines.Counts:
        return exact.count_strings(strings) + np.array([text == words(8) for text in strings], np.int64)

    return engines.Counter("fastokens", "wrong", count_strings)


def test_engines_that_differ_warn_and_the_run_goes_on(copy: Kappa, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong fast count is counted again by the exact engine; the check warns with hash and position."""
    staging = Home(copy.home).staging(is_sample=False)
    for step in ("token_counts", "turns", "tables"):
        shutil.rmtree(staging.root / step)
    monkeypatch.setattr(verified, "fast_counter", one_more)
    result = materialize(copy, COUNTS, TURNS, "summary", "tokenizers")
    assert result.success
    check = checks(result)[f"{COUNTS}:engines_agree"]
    assert not check.passed
    assert check.severity == dg.AssetCheckSeverity.WARN
    assert not check.blocking
    told = str([value.value for value in check.metadata.values()])
    # The filing is the first message of the first session: row 0; 9 tokens by the wrong count, 8 by the right one.
    assert hashlib.sha256(words(8).encode()).hexdigest() in told
    assert [step["position"] for step in staging.require(COUNTS).meta["differences"]] == [0]
    assert [(step["fast"], step["exact"]) for step in staging.require(COUNTS).meta["differences"]] == [(9, 8)]
    assert checks(result)[f"{COUNTS}:counts_are_exact"].passed
    summary = pq.read_table(staging.require("tables/summary").file("summary.parquet"))
    summary = summary.filter(pc.equal(summary["counting"], "text"))
    # K 8 + 8 + 5, T 2 + 4 + 1
    assert (summary["cached_tokens_sum"].to_pylist(), summary["prefill_tokens_sum"].to_pylist()) == ([21], [7])
    tokenizers = pq.read_table(staging.require("tables/tokenizers").file("tokenizers.parquet"))
    assert tokenizers["engine"].to_pylist() == ["tokenizers"]


def test_a_step_that_runs_elsewhere_keeps_its_draft(copy: Kappa, hub: HubStandIn) -> None:
    """`kappa run` beside a materialization from Dagster's page: refused, or both end well; no draft is taken away."""
    del hub
    staging = Home(copy.home).staging(is_sample=False)
    with staging.build("conversations/finqa", "of-another-process") as draft:
        copy("run", *SMALL)
        assert draft.folder.is_dir()

"""The whole graph: `dagster dev` in the checkout loads this module, with the workloads that KAPPA_HOME declares."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import dagster as dg

from assets.graph import workloads as w
from assets.graph.resources import KappaHome
from assets.graph.tables import generations, report, table_asset, warehouse
from pipelines.steps import product_names
from pipelines.steps.tables import STAGED
from pipelines.vocab.specs import TokenizerSpec, tokenizer_spec, tokenizer_specs
from pipelines.workloads.declaration import Workload
from pipelines.workloads.known import own_workloads
from pipelines.workloads.own.declared import job_name
from pipelines.workloads.sets import workloads
from warehouse.declared.fields import HISTORY, LOGGED, PREFIX
from warehouse.hardware_rows.tokenizer_names import own_tokenizer_folder
from warehouse.home.home import home_path
from warehouse.masking import mask_log_records

# In `dagster dev` every process that runs a step loads this module first.
mask_log_records()

PUBLICATION = ("warehouse", "report", "generations")
SAMPLE_CONFIG = {"resources": {"kappa": {"config": {"sample": True}}}}


def _assets(known: dict[str, Workload], home: Path) -> list[dg.AssetsDefinition]:
    tokenizers = tokenizer_specs(own=own_tokenizer_folder(home))
    found = [w.tokenizer_asset(spec) for spec in tokenizers.values()]
    turns = []
    for workload in known.values():
        found += [w.raw_asset(workload), w.conversations_asset(workload)]
        turns += _turns_keys(workload, list(tokenizers.values()))
        if workload.kind == "requests":
            found += [w.logged_turns_asset(workload)]
            continue
        for tokenizer in tokenizers:
            found += [w.counts_asset(workload, tokenizer)]
            found += [w.turns_asset(workload, tokenizer)]
            if tokenizers[tokenizer].has_chat:
                found += [w.chat_turns_asset(workload, tokenizer), w.prefix_turns_asset(workload, tokenizer)]
    found += [table_asset(name, turns) for name in STAGED]
    return [*found, warehouse, report, generations]


# What a tokenizer counts of texts; without a chat template the first alone.
_SERIES = (("text", HISTORY), ("chat", HISTORY), ("chat", PREFIX))


def _turns_keys(workload: Workload, tokenizers: list[TokenizerSpec]) -> list[dg.AssetKey]:
    """Return the turns of a workload: by each tokenizer and counting, or of its log, by none."""
    if workload.kind == "requests":
        names = [product_names.turns_name(workload.name, LOGGED, LOGGED, workload.reuse)]
    else:
        names = [
            product_names.turns_name(workload.name, spec.name, *series)
            for spec in tokenizers
            for series in _SERIES[: None if spec.has_chat else 1]
        ]
    return [w.key_of(name) for name in names]


def selection(chosen: Iterable[Workload], tokenizers: list[str], home: Path) -> list[dg.AssetKey]:
    """Return the assets that build these workloads with these tokenizers, and the assets published from them."""
    specs = [tokenizer_spec(name, own_tokenizer_folder(home)) for name in tokenizers]
    keys, counted = [], False
    for workload in chosen:
        name, counted = workload.name, counted or workload.kind != "requests"
        keys += [w.key_of(product_names.raw_name(name)), w.key_of(product_names.conversations_name(name))]
        keys += _turns_keys(workload, specs)
        if workload.kind != "requests":
            keys += [w.key_of(product_names.counts_name(name, tokenizer)) for tokenizer in tokenizers]
    # A log that has the tokens itself needs no tokenizer.
    files = [product_names.tokenizer_name(tokenizer) for tokenizer in tokenizers if counted]
    return [*map(w.key_of, files), *keys, *(dg.AssetKey(name) for name in (*STAGED, *PUBLICATION))]


def _jobs(known: dict[str, Workload], home: Path) -> list[dg.UnresolvedAssetJobDefinition]:
    tokenizers = list(tokenizer_specs(own=own_tokenizer_folder(home)))
    one_each = [
        dg.define_asset_job(
            job_name(name),
            selection=dg.AssetSelection.assets(*selection([workload], tokenizers, home)),
            description=f"{workload.title}: from its files to the published report.",
        )
        for name, workload in known.items()
    ]
    return [everything, sample, *one_each]


def _sample_selection() -> dg.AssetSelection:
    return dg.AssetSelection.assets(*selection(workloads().values(), list(tokenizer_specs()), home_path(None)))


everything = dg.define_asset_job(
    "everything",
    selection=dg.AssetSelection.all(),
    description="All workloads, from their files to the published report.",
)
sample = dg.define_asset_job(
    "sample",
    selection=_sample_selection(),
    config=SAMPLE_CONFIG,
    description="The same graph on the generated sample: no network, no account.",
)
daily = dg.ScheduleDefinition(
    name="daily",
    job=everything,
    cron_schedule="17 3 * * *",
    execution_timezone="UTC",
    description="Every night; a step whose inputs did not change does nothing.",
)


def assets_of(home: Path) -> list[dg.AssetsDefinition]:
    """Return the assets of the built-in workloads and of those that a home folder declares."""
    return _assets({**workloads(), **own_workloads(home)}, home)


def _definitions(home: Path) -> dg.Definitions:
    known = {**workloads(), **own_workloads(home)}
    return dg.Definitions(
        assets=_assets(known, home),
        jobs=_jobs(known, home),
        schedules=[daily],
        resources={"kappa": KappaHome()},
        executor=dg.multiprocess_executor.configured({"max_concurrent": 2}),
    )


defs = _definitions(home_path(None))

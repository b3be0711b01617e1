"""The whole graph: `dagster dev` in the checkout loads this module."""

from __future__ import annotations

import re
from pathlib import Path

import dagster as dg

from assets.graph import workloads as w
from assets.graph.resources import KappaHome
from assets.graph.tables import generations, report, table_asset, warehouse
from pipelines.steps import product_names
from pipelines.steps.tables import STAGED
from pipelines.vocab.specs import TokenizerSpec, tokenizer_spec, tokenizer_specs
from pipelines.workloads.declaration import Workload
from pipelines.workloads.sets import workloads
from warehouse.declared.fields import HISTORY, LOGGED, PREFIX
from warehouse.hardware_rows.tokenizer_names import own_tokenizer_folder
from warehouse.home.home import home_path
from warehouse.masking import mask_log_records

# In `dagster dev` every process that runs a step loads this module first.
mask_log_records()

PUBLICATION = ("warehouse", "report", "generations")
# The home that the environment names, for `dagster dev`.
HOME = home_path(None)
SAMPLE_CONFIG = {"resources": {"kappa": {"config": {"sample": True}}}}


def assets_of(home: Path) -> list[dg.AssetsDefinition]:
    """Return the assets of the workloads by every tokenizer, a user's own ones in the home included."""
    tokenizers = tokenizer_specs(own=own_tokenizer_folder(home))
    found = [w.tokenizer_asset(spec) for spec in tokenizers.values()]
    turns = []
    for workload in workloads().values():
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


def selection(names: list[str], tokenizers: list[str], home: Path) -> list[dg.AssetKey]:
    """Return the assets that build these workloads with these tokenizers, and the assets published from them."""
    specs = [tokenizer_spec(name, own_tokenizer_folder(home)) for name in tokenizers]
    keys = [w.key_of(product_names.tokenizer_name(tokenizer)) for tokenizer in tokenizers]
    for name in names:
        keys += [w.key_of(product_names.raw_name(name)), w.key_of(product_names.conversations_name(name))]
        keys += _turns_keys(workloads()[name], specs)
        if workloads()[name].kind != "requests":
            keys += [w.key_of(product_names.counts_name(name, tokenizer)) for tokenizer in tokenizers]
    return keys + [dg.AssetKey(name) for name in (*STAGED, *PUBLICATION)]


def _jobs() -> list[dg.UnresolvedAssetJobDefinition]:
    tokenizers = list(tokenizer_specs(own=own_tokenizer_folder(HOME)))
    one_each = [
        dg.define_asset_job(
            re.sub(r"\W", "_", name),
            selection=dg.AssetSelection.assets(*selection([name], tokenizers, HOME)),
            description=f"{workload.title}: from its files to the published report.",
        )
        for name, workload in workloads().items()
    ]
    return [everything, sample, *one_each]


everything = dg.define_asset_job(
    "everything",
    selection=dg.AssetSelection.all(),
    description="All workloads, from their files to the published report.",
)
sample = dg.define_asset_job(
    "sample",
    selection=dg.AssetSelection.all(),
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

defs = dg.Definitions(
    assets=assets_of(HOME),
    jobs=_jobs(),
    schedules=[daily],
    resources={"kappa": KappaHome()},
    executor=dg.multiprocess_executor.configured({"max_concurrent": 2}),
)

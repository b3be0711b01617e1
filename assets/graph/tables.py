"""Tables over all workloads, the database file, the report, and the published generation."""

from datetime import UTC, datetime
from functools import reduce

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from assets.graph.metadata import DECLARED, check_result, definition_metadata, table_dictionary, table_metadata
from assets.graph.publication import publish, stage_report
from assets.graph.resources import KappaHome
from pipelines.sessions.rejects import REJECTED
from pipelines.steps import tables
from pipelines.steps.building import build_warehouse
from pipelines.steps.forgetting import forget_texts
from pipelines.steps.product_names import table_name
from pipelines.steps.series import series
from pipelines.steps.turn_products import TURNS_FILE
from warehouse.checks.tables import Violation, counted, not_monotone, other_turns, violations
from warehouse.checks.turns import other_contexts
from warehouse.declared.tables import TABLES
from warehouse.declared.turn_tables import SERIES
from warehouse.home.staging import Staging
from warehouse.masking import without_secrets

MORE_CHECKS = {
    "percentiles": {
        "monotone": "percentiles do not fall",
        "context": "context = K + T of the turns, at every block size",
    },
    "summary": {"same_turns": "all tokenizers see the same turns of a workload"},
}
GROUPS = {**dict.fromkeys(tables.HARDWARE, "hardware"), "published": "hardware"}


def table_asset(name: str, turns: list[dg.AssetKey]) -> dg.AssetsDefinition:
    """Return the asset of one table, with the blocking checks of its declaration."""
    table = TABLES[name]
    depends_on = {
        "kappa_crit": [dg.AssetKey("models"), dg.AssetKey("platforms")],
        "boundness": [*turns, dg.AssetKey("kappa_crit")],
        "design_questions": [*turns, dg.AssetKey("kappa_crit")],
        "cache_tiers": [*turns, dg.AssetKey("kappa_crit")],
        # They take their rows from the product that `capacity` makes first.
        **{table: [*turns, dg.AssetKey("capacity")] for table in tables.CAPACITY[1:]},
        **{served: [*turns, dg.AssetKey("kappa_crit")] for served in ("load", "schedule", "fleet")},
    }
    is_reference = name in GROUPS
    rules = {"declared": DECLARED, **MORE_CHECKS.get(name, {})}
    specs = [dg.AssetCheckSpec(check, asset=name, blocking=True, description=rule) for check, rule in rules.items()]

    @dg.asset(
        key=dg.AssetKey(name),
        deps=depends_on.get(name, [] if is_reference else turns),
        group_name=GROUPS.get(name, "statistics"),
        description=f"One row: {table.grain}.",
        metadata=definition_metadata(table) | table_dictionary(table),
        check_specs=specs,
        kinds={"parquet"},
    )
    @without_secrets
    def staged(kappa: KappaHome) -> dg.MaterializeResult:
        data = tables.read_table(tables.stage_table(kappa.staging(), name))
        results = [check_result(name, "declared", violations(table, data))]
        if name == "percentiles":
            results.append(check_result(name, "monotone", not_monotone(data)))
            results.append(check_result(name, "context", differing_contexts(kappa.staging(), data)))
        if name == "summary":
            results.append(check_result(name, "same_turns", differing_turns(kappa.staging())))
        return dg.MaterializeResult(metadata=table_metadata(data), check_results=results)

    return staged


def differing_contexts(staging: Staging, percentiles: pa.Table) -> list[Violation]:
    """Return the percentiles of context_tokens that differ from those of K + T of the staged turns."""
    found = []
    for part in series(staging):
        turns = pq.read_table(part.file(TURNS_FILE), columns=["cached_tokens", "prefill_tokens"])
        masks = [pc.equal(percentiles[name], part.meta[name]) for name in SERIES]
        found += other_contexts(percentiles.filter(reduce(pc.and_, masks)), turns)
    return found


def differing_turns(staging: Staging) -> list[Violation]:
    """Return the turns that some tokenizer of a workload lacks, for each counting and reuse separately."""
    by_workload: dict[tuple[str, ...], dict[str, pa.Table]] = {}
    for part in series(staging):
        turns = pq.read_table(part.file(TURNS_FILE), columns=["session_id", "turn_index"])
        refused = pq.read_table(part.file(REJECTED), columns=["session_id", "turn_index", "reason"])
        # A template may refuse what another one takes: then the turn is a reject, which is no difference.
        refused = refused.filter(pc.equal(refused["reason"], "template")).select(turns.column_names)
        turns = pa.concat_tables([turns, refused.cast(turns.schema)]) if refused.num_rows else turns
        names = tuple(part.meta[name] for name in ("workload", "counting", "reuse"))
        by_workload.setdefault(names, {})[part.meta["tokenizer"]] = turns
    found = [(names, other_turns(by_tokenizer)) for names, by_tokenizer in by_workload.items()]
    return [
        Violation(f"{' by '.join(names)}: {violation.rule}", violation.count, violation.rows)
        for names, violations_of in found
        for violation in violations_of
    ]


@dg.asset(
    deps=[dg.AssetKey(name) for name in tables.STAGED],
    group_name="publication",
    description="The database file and the lake of the next generation, complete but not yet published.",
    check_specs=[
        dg.AssetCheckSpec(
            "complete", asset="warehouse", blocking=True, description="every staged row is in the database"
        )
    ],
    metadata=table_dictionary(*(table for table in TABLES.values() if table.is_view)),
    kinds={"duckdb", "parquet"},
)
@without_secrets
def warehouse(context: dg.AssetExecutionContext, kappa: KappaHome) -> dg.MaterializeResult:
    """Build the database file and the lake from the staged tables."""
    staging = kappa.staging()
    product = build_warehouse(staging, kappa.folder(), context.run.run_id, _started_at(context))
    staged = {name: int(staging.require(table_name(name)).meta["rows"]) for name in tables.STAGED}
    found = [
        Violation(
            f"{name} is complete", abs(rows - there), TABLES[name].rows([]),
            f"{counted(there, 'row')} of {name} in the database, {rows:,} staged",
        )
        for name, rows in staged.items()
        if (there := int(product.meta["rows"][name])) != rows
    ]  # fmt: skip
    return dg.MaterializeResult(
        metadata={"generation": product.meta["generation"], **product.meta["rows"]},
        check_results=[check_result("warehouse", "complete", found)],
    )


@dg.asset(deps=[warehouse], group_name="publication", description="Report page, Markdown and figures.", kinds={"html"})
@without_secrets
def report(kappa: KappaHome) -> dg.MaterializeResult:
    """Draw the report from the warehouse."""
    product = stage_report(kappa.staging())
    return dg.MaterializeResult(metadata={"files": product.meta["files"]})


@dg.asset(
    deps=[warehouse, report],
    group_name="publication",
    description="The published state that readers see.",
    metadata=definition_metadata(TABLES["generations"]) | table_dictionary(TABLES["generations"]),
    kinds={"duckdb"},
)
@without_secrets
def generations(kappa: KappaHome) -> dg.MaterializeResult:
    """Swap the new generation in."""
    home = kappa.folder()
    number = publish(home, kappa.staging())
    forget_texts(kappa.staging())
    return dg.MaterializeResult(metadata={"generation": number, "home": dg.MetadataValue.path(str(home.path))})


def _started_at(context: dg.AssetExecutionContext) -> datetime:
    stats = context.instance.get_run_stats(context.run.run_id)
    return datetime.fromtimestamp(stats.start_time or stats.launch_time or datetime.now(UTC).timestamp(), UTC)

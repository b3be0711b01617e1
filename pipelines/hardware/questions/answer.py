"""The typed answers to a question, and each as a flat row for JSON, CSV and Parquet."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, TypeAlias

import pyarrow as pa

from pipelines.hardware.entities import KappaCrit
from pipelines.hardware.questions.assumptions import Assumptions
from pipelines.hardware.questions.question import CritQuestion
from pipelines.hardware.what_if import TurnCosts
from pipelines.hardware.workload_answers import WorkloadCosts


@dataclass(frozen=True, slots=True)
class CritRow(KappaCrit):
    """kappa_crit of one model on one platform, the confidence of each row, and the sources of its figures."""

    is_tokenizer_proxy: bool
    model_confidence: str | None
    accelerator_confidence: str | None
    link_confidence: str | None
    platform_confidence: str | None
    flops_per_token_source: str | None
    kv_bytes_per_token_source: str | None
    flop_per_s_source: str | None
    bytes_per_s_source: str | None
    why_no_kappa_crit: str | None
    warnings: str | None


@dataclass(frozen=True, kw_only=True)
class About:
    """The subject of an answer, and the rates that its seconds follow from.

    Attributes:
        kappa_crit: At the rate that includes the tier.
        flop_per_s: All GPUs together.
        bytes_per_s: All links together, without bytes that are loaded twice.
        link_bytes_per_s: Each GPU's own link.
        is_as_printed: Whether ratios are products of the paper's rounded figures.
        least_gpus: Least number of GPUs on which weights and pool fit; None where none does, or where it is unknown.
        weight_bytes: Of all weights in their format.
        deployed_pool_tokens: Tokens that the pool holds beside the weights; None where they do not fit.
        copied_bytes: Size of one copy; None where copies are large.
        bands: How far measurements of each class were from the model, in words.
        missing: The costs that are unknown for the model, and why.
    """

    model: str
    accelerator: str
    link: str
    basis: str
    kv_dtype: str
    kappa_crit: float | None
    is_tokenizer_proxy: bool
    tensor_parallel: int
    block_tokens: int
    flop_per_s: float
    bytes_per_s: float
    link_bytes_per_s: float
    sustained_fraction: float | None
    is_as_printed: bool
    least_gpus: int | None
    weight_dtype: str
    compute_dtype: str
    batch: int
    mla_attention: str | None
    weight_bytes: float | None
    deployed_pool_tokens: int | None
    copied_bytes: float | None
    load_band: float | None
    compute_band: float | None
    ttft_band: float | None
    bands: str | None
    why_no_kappa_crit: str | None
    missing: str | None


@dataclass(frozen=True, kw_only=True)
class Asked:
    """K and T of the turn in the question, and how many such requests the pool of the deployment holds."""

    asked_cached_tokens: int
    asked_new_tokens: int
    deployed_pool_requests: int | None


@dataclass(frozen=True, kw_only=True)
class Extras:
    """Answers to optional parts of the question; None where not asked, and where t_GPU is unknown.

    Attributes:
        scheduled_tokens: T_sched; None too where the pool does not hold the turn.
        pool_requests: Requests of K + T + output tokens that the pool holds at once.
    """

    write_back_s: float | None = None
    scheduled_tokens: float | None = None
    pool_requests: int | None = None
    energy_j: float | None = None
    average_power_w: float | None = None


@dataclass(frozen=True, kw_only=True)
class Series:
    """The turns of a home folder in the question."""

    workload: str
    tokenizer: str
    counting: str
    reuse: str


@dataclass(frozen=True, kw_only=True)
class Tier:
    """The slower tier that holds a part of the cache; all None without one.

    Attributes:
        tier_bytes_per_s: Its bandwidth over the link.
        tier_kappa_crit: With all of the cache in the tier.
        link_kappa_crit: With none of the cache in the tier.
    """

    tier: str | None = None
    tier_share: float | None = None
    tier_bytes_per_s: float | None = None
    tier_kappa_crit: float | None = None
    link_kappa_crit: float | None = None


@dataclass(frozen=True, kw_only=True)
class Origins:
    """The confidence of each row in use, and the source of each figure.

    Confidence is that of the row; `printed` on the paper's basis, `given` for a bandwidth, `measured` for results of
    `kappa measure`, `none` for a pair that is no platform, None for a tier that is not in the question.
    """

    model_confidence: str | None
    accelerator_confidence: str | None
    link_confidence: str | None
    platform_confidence: str | None
    tier_confidence: str | None
    flops_per_token_source: str | None
    kv_bytes_per_token_source: str | None
    flop_per_s_source: str | None
    bytes_per_s_source: str | None
    tier_bytes_per_s_source: str | None


# A dataclass takes the fields of its bases from the last base to the first.
@dataclass(frozen=True, kw_only=True)
class TurnAnswer(Origins, Tier, Extras, Assumptions, TurnCosts, Asked, About):
    """The costs of one turn for one model on one platform under one cost model."""

    warnings: str | None = None


@dataclass(frozen=True, kw_only=True)
class WorkloadAnswer(Origins, Tier, Assumptions, WorkloadCosts, Series, About):
    """The costs of all turns of a workload for one model on one platform under one cost model."""

    warnings: str | None
    is_sample: bool


CritAnswer: TypeAlias = CritRow | TurnAnswer | WorkloadAnswer
# Columns of a turn that its flat row has only if the question asks for them.
_WHERE_ASKED = {
    "write_back_s": "output_tokens",
    "scheduled_tokens": "pool_tokens",
    "pool_requests": "pool_tokens",
    "energy_j": "idle_w",
    "average_power_w": "idle_w",
}
_RATES = ("pcie_overhead", "needed_bytes_per_s", "link_needed_bytes_per_s")
_TTFT = ("ttft_s", "ttft_cached_tokens", "ttft_prefill_tokens", "ttft_transfer_s", "ttft_compute_s")
_PAYS = ("prefill_tokens", "load_pays", "load_from_cached_tokens", "load_pays_ranges")
_ARROW = {"str": pa.string(), "float": pa.float64(), "int": pa.int64(), "bool": pa.bool_()}


def flat_row(question: CritQuestion, answer: CritAnswer) -> dict[str, Any]:
    """Return an answer as one row of columns, without optional parts not asked for; percentiles are in column names."""
    row = asdict(answer)
    if isinstance(answer, WorkloadAnswer):
        return _of_workload(row, {label: row.pop(label) for label in answer.percentiles()})
    return {
        name: value
        for name, value in row.items()
        if name not in _WHERE_ASKED or getattr(question, _WHERE_ASKED[name]) is not None
    }


def _of_workload(row: dict[str, Any], at: dict[str, dict[str, Any]]) -> dict[str, Any]:
    rates = {f"{name}_{label}": of[name] for name in _RATES for label, of in at.items()}
    ttft = {_ttft_column(name, label): of[name] for label, of in at.items() for name in _TTFT}
    pays = {f"{name}_{label}": of[name] for label, of in at.items() for name in _PAYS}
    after = {"transfer_time_share": rates | ttft, "load_is_faster_share": pays}
    return {k: v for name, value in row.items() for k, v in ({name: value} | after.get(name, {})).items()}


def _ttft_column(name: str, label: str) -> str:
    return f"{name}_{label}" if name == "ttft_s" else name.replace("ttft_", f"ttft_{label}_")


def arrow_schema(kind: type[CritRow]) -> pa.Schema:
    """Return the Arrow schema of a type's fields."""
    return pa.schema([(f.name, _ARROW[str(f.type).removesuffix(" | None")]) for f in fields(kind)])

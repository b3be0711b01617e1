"""The paper's design questions: what a faster link, one memory, a latent or a smaller cache makes of a workload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.hardware.boundness import Turns, bound_shares, columns_of, sort_turns
from pipelines.hardware.costs import Machine
from pipelines.hardware.machines import Sources, machine_of
from pipelines.hardware.ratios import paper_ratios, printed_kappa_hw, ratios
from warehouse.declared.tables import DESIGN_QUESTIONS
from warehouse.formulas import kappa
from warehouse.formulas import kv_bytes as cache

Row = dict[str, Any]
# The latent of DeepSeek-V2 and V3: rank and rotary part, in elements a layer.
LATENT_RANK, LATENT_ROPE = 512, 64


@dataclass(frozen=True, slots=True)
class Variant:
    """One answer to a design question; the first of a question is what the others are compared with.

    Attributes:
        question: Which question.
        name: What is changed.
        link: The link as the basis has it: sustained, where it was measured.
        bytes_per_s: Bandwidth of one direction in the place of the link's.
        bases: Where it is asked.
        kv_dtype: A key of `cache.KV_ELEMENT_BYTES`.
        is_latent: Whether the cache is a latent of MLA's size in every layer.
    """

    question: str
    name: str
    link: str = "pcie5-x16"
    bytes_per_s: float | None = None
    bases: tuple[str, ...] = ("paper", "physical")
    kv_dtype: str = "bf16"
    is_latent: bool = False


VARIANTS = (
    Variant("nvlink-c2c", "pcie5-x16"),
    Variant("nvlink-c2c", "nvlink-c2c, sustained as in kappa_crit", link="nvlink-c2c", bases=("physical",)),
    Variant("nvlink-c2c", "450 GB/s, one direction as wired", bytes_per_s=450e9),
    Variant("nvlink-c2c", "900 GB/s, as printed", bytes_per_s=900e9),
    Variant("unified-memory", "pcie5-x16"),
    Variant("unified-memory", "8000 GB/s, no link", bytes_per_s=8000e9),
    Variant("mla", "the model's own cache"),
    Variant("mla", "a latent of 512 + 64 in every layer", is_latent=True),
    Variant("kv-quantisation", "bf16"),
    Variant("kv-quantisation", "8 bit", kv_dtype="int8"),
    Variant("kv-quantisation", "4 bit", kv_dtype="int4"),
)
# The accelerator that each question is asked of: the paper's B200 of 5000 TFLOP/s is a GB200.
_ACCELERATORS = {
    ("nvlink-c2c", "paper"): "b200-sxm",
    ("unified-memory", "paper"): "b200-sxm",
    ("nvlink-c2c", "physical"): "gb200",
    ("unified-memory", "physical"): "gb200",
}
_ELSE = "h100-sxm"


def design_questions(  # noqa: PLR0913 - three names of a workload, and what it is asked of
    turns: Iterable[Turns],
    *,
    workload: str,
    tokenizer: str,
    counting: str,
    sources: Sources,
    models: list[str],
) -> pa.Table:
    """Return the table `design_questions` of one workload: no row where there is no turn.

    Shares are over all turns, under cost model `2n`, reuse by single tokens.

    Args:
        turns: As for `boundness.boundness`.
        workload: Its name, as are `tokenizer` and `counting`.
        tokenizer: See `workload`.
        counting: See `workload`.
        sources: The sourced rows.
        models: The headline models; those that `tokenizer` counts are asked about.
    """
    cached, prefill = columns_of(turns)
    rows = list(_rows(sources, [name for name in models if _is_counted(sources, name, tokenizer)]))
    if not len(cached) or not rows:
        return DESIGN_QUESTIONS.rows([])
    ordered = sort_turns(cached, prefill)
    bound = bound_shares(ordered, np.array([row["kappa_crit"] for row in rows]))["memory_bound_turn_share"]
    names = {"workload": workload, "tokenizer": tokenizer, "counting": counting}
    found: list[dict[str, object]] = []
    first = 0.0
    for row, share in zip(rows, 1 - bound, strict=True):
        first = float(share) if row.pop("is_first") else first
        gained = float(share) - first
        found.append({**names, **row, "compute_bound_turn_share": float(share), "gained_turn_share": gained})
    return DESIGN_QUESTIONS.rows(found)


def _is_counted(sources: Sources, name: str, tokenizer: str) -> bool:
    model = sources.named("models", name)
    return model is not None and model["tokenizer"] == tokenizer and model["kv_bytes_per_token"] is not None


def _rows(sources: Sources, models: list[str]) -> Iterator[Row]:
    """Yield the rows without their shares, each question of a model beginning with what it is compared with."""
    for basis in ("paper", "physical"):
        of_basis = [name for name in models if basis == "physical" or sources.named("paper_models", name)]
        for name in of_basis:
            question = ""
            for variant in (v for v in VARIANTS if basis in v.bases):
                yield _answer(sources, name, basis, variant) | {"is_first": variant.question != question}
                question = variant.question


def _answer(sources: Sources, name: str, basis: str, variant: Variant) -> Row:
    shape = sources.named("models", name) or {}
    model = sources.named("paper_models" if basis == "paper" else "models", name) or {}
    accelerator = _ACCELERATORS.get((variant.question, basis), _ELSE)
    platform = {"accelerator": accelerator, "link": variant.link, "basis": basis}
    machine = machine_of(sources, platform, shape, variant.bytes_per_s)
    kv_bytes = model["kv_bytes_per_token"]
    if variant.is_latent:
        element = kappa.ELEMENT_BYTES["bf16"]
        kv_bytes = kappa.mla_kv_bytes_per_token(shape["layers"], LATENT_RANK, LATENT_ROPE, element)
    return {
        "model": name,
        "accelerator": accelerator,
        "basis": basis,
        "question": variant.question,
        "variant": variant.name,
        "link_bytes_per_s": machine.bytes_per_s,
        "kv_bytes_per_token": cache.quantised_kv_bytes(kv_bytes, cache.KV_ELEMENT_BYTES[variant.kv_dtype]),
        "kappa_crit": _kappa_crit(sources, platform, model, machine, variant) * model["kv_bytes_per_token"] / kv_bytes,
    }


def _kappa_crit(sources: Sources, platform: Row, model: Row, machine: Machine, variant: Variant) -> float:
    if platform["basis"] == "paper":
        printed = printed_kappa_hw(sources, platform) if variant.bytes_per_s is None else None
        found = paper_ratios(model, machine, variant.kv_dtype, printed).kappa_crit
    else:
        found = ratios(model, machine, variant.kv_dtype).kappa_crit
    assert found is not None
    return found

"""The paper's design questions: how a faster link, unified memory, a latent or a smaller cache changes a workload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa

from pipelines.hardware.boundness import Turns, bound_shares, columns_of, sort_turns
from pipelines.hardware.entities import Model, Pair, known
from pipelines.hardware.machines import Sources, machine_of, named
from pipelines.hardware.ratios import paper_ratios, printed_kappa_hw, ratios
from warehouse.declared.fields import LOGGED
from warehouse.declared.tables import DESIGN_QUESTIONS
from warehouse.formulas import kappa
from warehouse.formulas import kv_bytes as cache

# The latent of DeepSeek-V2 and V3: rank and rotary part, in elements per layer.
LATENT_RANK, LATENT_ROPE = 512, 64


@dataclass(frozen=True, slots=True)
class Variant:
    """One answer to a design question; the first answer of a question is the baseline of the others.

    Attributes:
        question: The question.
        name: The change.
        link: The link as on the basis: sustained, where it was measured.
        bytes_per_s: Bandwidth of one direction instead of the link's.
        bases: The bases that have this answer.
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
    Variant("nvlink-c2c", "nvlink-c2c, sustained as in kappa_crit", link="nvlink-c2c-gb300", bases=("physical",)),
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
# The accelerator of each question: the paper's B200 of 5000 TFLOP/s is a GB200.
_ACCELERATORS = {
    ("nvlink-c2c", "paper"): "b200-sxm",
    ("unified-memory", "paper"): "b200-sxm",
    ("nvlink-c2c", "physical"): "gb200",
    ("unified-memory", "physical"): "gb200",
}
_ELSE = "h100-sxm"


def design_questions(  # noqa: PLR0913 - the names of a series, and what it is asked of
    turns: Iterable[Turns],
    *,
    workload: str,
    tokenizer: str,
    counting: str,
    reuse: str,
    sources: Sources,
    models: list[str],
) -> pa.Table:
    """Return the table `design_questions` of one workload; it has no row where there is no turn.

    Shares are over all turns, under cost model `2n`, with reuse of single tokens.

    Args:
        turns: As for `boundness.boundness`.
        workload: Its name; `tokenizer`, `counting` and `reuse` are names too.
        tokenizer: See `workload`.
        counting: See `workload`.
        reuse: See `workload`.
        sources: The sourced rows.
        models: The headline models; the table has those that `tokenizer` counts, all where a log has the counts.
    """
    cached, prefill = columns_of(turns)
    asked = list(_asked(sources, [name for name in models if _is_counted(sources, name, tokenizer)]))
    if not len(cached) or not asked:
        return DESIGN_QUESTIONS.rows([])
    ordered = sort_turns(cached, prefill)
    bound = bound_shares(ordered, np.array([row.kappa_crit for row in asked]))["memory_bound_turn_share"]
    names = {"workload": workload, "tokenizer": tokenizer, "counting": counting, "reuse": reuse}
    found: list[dict[str, object]] = []
    first: dict[tuple[str, str, str], float] = {}
    for row, share in zip(asked, (1 - bound).tolist(), strict=True):
        gained = share - first.setdefault((row.model, row.basis, row.question), share)
        found.append(names | asdict(row) | {"compute_bound_turn_share": share, "gained_turn_share": gained})
    return DESIGN_QUESTIONS.rows(found)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A row of `design_questions` without its workload and shares."""

    model: str
    accelerator: str
    basis: str
    question: str
    variant: str
    link_bytes_per_s: float
    kv_bytes_per_token: float
    kappa_crit: float


def _is_counted(sources: Sources, name: str, tokenizer: str) -> bool:
    model = named(sources.models, name)
    return model is not None and tokenizer in (model.tokenizer, LOGGED) and model.kv_bytes_per_token is not None


def _asked(sources: Sources, models: list[str]) -> Iterator[_Asked]:
    """Yield the rows without their shares; each question of a model starts with its baseline."""
    for basis in ("paper", "physical"):
        for name in models:
            if basis == "physical" or name in sources.paper_models:
                yield from (_row(sources, sources.models[name], basis, v) for v in VARIANTS if basis in v.bases)


def _row(sources: Sources, model: Model, basis: str, variant: Variant) -> _Asked:
    accelerator = _ACCELERATORS.get((variant.question, basis), _ELSE)
    platform = Pair(accelerator, variant.link, basis)
    machine = machine_of(sources, platform, model, variant.bytes_per_s)
    if basis == "paper":
        printed = printed_kappa_hw(sources, platform) if variant.bytes_per_s is None else None
        own = sources.paper_models[model.model].kv_bytes_per_token
        crit = known(paper_ratios(sources.paper_models[model.model], machine, variant.kv_dtype, printed).kappa_crit)
    else:
        own, crit = known(model.kv_bytes_per_token), known(ratios(model, machine, variant.kv_dtype).kappa_crit)
    kv_bytes = own
    if variant.is_latent:
        element = kappa.ELEMENT_BYTES["bf16"]
        kv_bytes = kappa.mla_kv_bytes_per_token(model.layers, LATENT_RANK, LATENT_ROPE, element)
    return _Asked(
        model=model.model,
        accelerator=accelerator,
        basis=basis,
        question=variant.question,
        variant=variant.name,
        link_bytes_per_s=machine.bytes_per_s,
        kv_bytes_per_token=cache.quantised_kv_bytes(kv_bytes, cache.KV_ELEMENT_BYTES[variant.kv_dtype]),
        kappa_crit=crit * own / kv_bytes,
    )

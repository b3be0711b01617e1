"""A model served on GPUs: its format, the number of GPUs, and the machine with all of their rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pipelines.hardware import costs
from pipelines.hardware.costs import Machine
from pipelines.hardware.deployment.fitting import Fit, Weights, fit, least_fit, nodes
from pipelines.hardware.deployment.formats import (
    EXPERTS_ONLY,
    QUANTISED_BYTES,
    compute_dtype,
    linear_bytes,
    linear_dtype,
)
from pipelines.hardware.entities import Accelerator, Model, OnPlatform, known
from pipelines.hardware.machines import Sources, machine_of, measured_of, named
from pipelines.hardware.prefill.parts import Rates
from warehouse.formulas import kv_bytes as cache
from warehouse.formulas import timing, weights

# Tokens of a block where reuse is of single tokens: vLLM's block.
BLOCK_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Serving:
    """Choices of a deployment; None for the default.

    Attributes:
        gpus: GPUs that share the model; None for the least on which it fits.
        weight_dtype: Format of the weights; None for the one that the model is served in.
        compute_dtype: Format of the matrix products: bf16, fp8 or fp4; None for the engine's.
        batch: N equal requests in an iteration.
        mla_attention: How GPUs share a latent cache: tensor (each loads all of it), broadcast (one loads it for all),
            data (each has its own requests).
        node_bytes_per_s: What all GPUs of a host load together; None for the link's row, else no limit.
        block_layout: packed (a block of all layers is one copy) or layer (K and V of each layer are copies); None for
            large copies, unless the link's row has a time a copy.
        copy_latency_s: Fixed seconds of one copy; None for the link's row, else the accelerator's number.
        block_tokens: Tokens of a block.
        is_pipelined: Stages of layers over the nodes instead of tensor parallelism over them.
    """

    gpus: int | None = None
    weight_dtype: str | None = None
    compute_dtype: str | None = None
    batch: int = 1
    mla_attention: str = "tensor"
    node_bytes_per_s: float | None = None
    block_layout: str | None = None
    copy_latency_s: float | None = None
    block_tokens: int = BLOCK_TOKENS
    is_pipelined: bool = False


DEFAULT = Serving()


@dataclass(frozen=True, slots=True)
class Served:
    """A model on its GPUs.

    Attributes:
        machine: The rates, all GPUs together, links each.
        gpus: GPUs that share the model.
        weight_dtype: Format of the weights.
        compute_dtype: Format of the matrix products.
        fit: Weights and pool; None where parameters or memory are unknown.
        copied_bytes: S of a copy; None where copies are large.
    """

    machine: Machine
    gpus: int
    weight_dtype: str
    compute_dtype: str
    fit: Fit | None
    copied_bytes: float | None


def serve(  # noqa: PLR0913 - a model, a platform and choices
    sources: Sources,
    platform: OnPlatform,
    model: Model,
    serving: Serving,
    *,
    kv_dtype: str = "bf16",
    bytes_per_s: float | None = None,
) -> Served:
    """Return a model served on a platform; on the paper's basis with the paper's rates and format.

    Args:
        sources: The sourced rows.
        platform: One of `platforms`, or a pair outside it with its basis.
        model: Its sourced row.
        serving: The choices.
        kv_dtype: A key of `cache.KV_ELEMENT_BYTES`.
        bytes_per_s: One direction; None for the bandwidth of the platform's own link.

    Raises:
        KeyError: a name has no sourced row of the basis.
    """
    if not model.attention.startswith("mla"):
        serving = replace(serving, mla_attention="tensor")
    base = machine_of(sources, platform, model, bytes_per_s)
    row = named(sources.accelerators, platform.accelerator)
    weight = serving.weight_dtype or model.weight_dtype or "bf16"
    if platform.basis == "paper" or row is None:
        gpus = serving.gpus or 1
        machine, copied = _linked(sources, platform, model, serving, costs.share_between(base, gpus), kv_dtype)
        return Served(machine, gpus, "bf16", "bf16", None, copied)
    found, compute = fitted(row, model, serving), serving.compute_dtype or compute_dtype(weight, peaks(row))
    gpus = found.gpus if found else serving.gpus or 1
    scale = known(peaks(row)[compute]) / row.dense_bf16_flop_per_s
    shared = costs.share_between(replace(base, flop_per_s=base.flop_per_s * scale), gpus)
    rates = None if base.hbm_bytes_per_s is None else _rates(sources, platform, row, model, serving, gpus, compute)
    machine, copied = _linked(sources, platform, model, serving, replace(shared, rates=rates), kv_dtype)
    return Served(machine, gpus, weight, compute, found, copied)


def peaks(row: Accelerator) -> dict[str, float | None]:
    """Return the dense peak of each format in FLOP/s, None where the accelerator has none."""
    return {"bf16": row.dense_bf16_flop_per_s, "fp8": row.dense_fp8_flop_per_s, "fp4": row.dense_fp4_flop_per_s}


def fitted(row: Accelerator, model: Model, serving: Serving) -> Fit | None:
    """Return the GPUs of a model and what is left on them; None where its parameters are unknown."""
    held = weights_of(model, serving.weight_dtype or model.weight_dtype or "bf16")
    if held is None:
        return None
    is_data = serving.mla_attention == "data"
    if serving.gpus is not None:
        return fit(held, row.hbm_bytes, serving.gpus, is_data=is_data)
    return least_fit(held, row.hbm_bytes, model.heads, is_data=is_data)


def weights_of(model: Model, weight_dtype: str) -> Weights | None:
    """Return the bytes of a model's weights in a format; None where its parameters are unknown.

    Embedding and head keep 2 bytes. Of a mixture MXFP4, NVFP4 and int4 quantise the experts, of a dense model its
    layers.
    """
    total, active, layers, head = model.total_params, model.active_params, model.layer_params, model.head_params
    if total is None or active is None or layers is None or head is None:
        return None if total is None else Weights(total * QUANTISED_BYTES[weight_dtype], 0.0)
    # A tied embedding is the head itself, counted once.
    wide = head + min(head, max(active - layers - head, 0))
    routed = expert_params(model) * (model.experts or 0)
    quantised = routed if model.experts else float(layers)
    element, rest = (
        QUANTISED_BYTES[weight_dtype],
        2.0 if weight_dtype in EXPERTS_ONLY else QUANTISED_BYTES[weight_dtype],
    )
    everything = weights.stored_weight_bytes(total, quantised, wide, element, rest)
    return Weights(everything, routed * element)


def expert_params(model: Model) -> float:
    """Return the parameters of one routed expert over all layers; 0 without experts."""
    if not model.experts:
        return 0.0
    total, active = known(model.total_params), known(model.active_params)
    return weights.expert_params(total, active, model.experts, known(model.experts_per_token))


def numbers_of(sources: Sources, accelerator: str, basis: str = "physical") -> Mapping[str, float]:
    """Return the numbers of the timing model for an accelerator: its own rows, else everyone's.

    A measured matrix product of `accelerators` is its matmul fraction. The basis `measured` takes what
    `kappa calibrate` found.
    """
    own = {row.number: row.value for row in sources.fitted_numbers if row.accelerator == accelerator}
    row = named(sources.accelerators, accelerator)
    measured = {}
    if row and row.measured_bf16_flop_per_s:
        measured = {"matmul_fraction": row.measured_bf16_flop_per_s / row.dense_bf16_flop_per_s}
    calibrated = {}
    if basis == "measured":
        calibrated = {row.number: row.value for row in sources.calibrated if row.accelerator == accelerator}
    everyone = {row.number: row.value for row in sources.fitted_numbers if row.accelerator is None}
    return everyone | own | measured | calibrated


def _rates(  # noqa: PLR0913, PLR0917 - who serves what where
    sources: Sources,
    platform: OnPlatform,
    row: Accelerator,
    model: Model,
    serving: Serving,
    gpus: int,
    compute: str,
) -> Rates:
    n = numbers_of(sources, row.accelerator, platform.basis)
    spanned = nodes(row.accelerator, gpus)
    stages = spanned if serving.is_pipelined else 1
    sharing = gpus // stages
    is_data = serving.mla_attention == "data"
    dense = 1 if is_data else sharing
    weight, is_moe = serving.weight_dtype or model.weight_dtype or "bf16", bool(model.experts)
    linear = linear_dtype(weight, compute, is_moe=is_moe)
    fractions, peak, hbm = _sustained(sources, platform, row, n)
    return Rates(
        linear_flop_per_s=fractions["linear"] * peak[linear] * dense,
        expert_flop_per_s=fractions["expert"] * peak[compute] * sharing,
        head_flop_per_s=fractions["linear"] * peak["bf16"] * dense,
        attention_flop_per_s=fractions["attention"] * peak["bf16"] * dense,
        hbm_bytes_per_s=hbm * dense,
        expert_hbm_bytes_per_s=hbm * sharing,
        linear_weight_bytes=linear_bytes(weight, is_moe=is_moe),
        expert_weight_bytes=QUANTISED_BYTES[weight],
        reduce_bytes_per_s=n["tensor_parallel_bytes_per_s"],
        reducing_gpus=sharing,
        layer_s=n["layer_s"],
        node_layer_s=n["node_layer_s"] if spanned > stages else 0.0,
        token_s=n["token_s"],
        attention_gpus=dense,
        batch=serving.batch,
        local_batch=-(-serving.batch // gpus) if is_data else serving.batch,
    )


def _sustained(
    sources: Sources, platform: OnPlatform, row: Accelerator, n: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, float], float]:
    """Return the fractions of a part, the peak that they are of by format, and the memory's sustained rate.

    A given sustained fraction is of the vendor's peak, for every part. The basis `measured` replaces peak x matmul
    fraction by the measured product, and the memory's by its measured copies.
    """
    parts = {part: n[f"{part}_fraction"] for part in ("linear", "expert", "attention")}
    matmul, hbm = n["matmul_fraction"], n["hbm_fraction"] * row.hbm_bytes_per_s
    if sources.sustained_fraction is not None:
        parts, matmul = dict.fromkeys(parts, sources.sustained_fraction), 1.0
    peak = {dtype: matmul * (rate or 0.0) for dtype, rate in peaks(row).items()}
    is_timed = any(m.accelerator == row.accelerator for m in sources.measured)
    if platform.basis == "measured" and is_timed:
        measured = measured_of(sources, platform)
        peak["bf16"], hbm = measured.bf16_flop_per_s, measured.hbm_bytes_per_s
        peak["fp8"] = measured.fp8_flop_per_s or peak["fp8"]
    return parts, peak, hbm


def _linked(  # noqa: PLR0913, PLR0917 - a machine, its link and the choices
    sources: Sources, platform: OnPlatform, model: Model, serving: Serving, machine: Machine, kv_dtype: str
) -> tuple[Machine, float | None]:
    """Return the machine with the rate of its copies: their size, and the limit of the node; and S."""
    link = named(sources.links, platform.link)
    stages = nodes(platform.accelerator, machine.tensor_parallel) if serving.is_pipelined else 1
    machine = replace(machine, tensor_parallel=machine.tensor_parallel // stages, stages=stages)
    of_row = link if platform.basis != "paper" else None
    rate, node = machine.bytes_per_s, serving.node_bytes_per_s or (of_row.node_bytes_per_s if of_row else None)
    if node is not None:
        together = min(machine.tensor_parallel, 8)
        loaders = together if serving.mla_attention == "tensor" else 1
        rate = timing.link_share_bytes_per_s(rate, node, loaders)
    latency = serving.copy_latency_s or (of_row.copy_latency_s if of_row else None)
    if serving.block_layout is None and latency is None:
        return replace(machine, bytes_per_s=rate), None
    latency = latency or numbers_of(sources, platform.accelerator)["copy_latency_s"]
    copied = copied_bytes(model, serving, machine, kv_dtype)
    if not copied:
        return replace(machine, bytes_per_s=rate), None
    return replace(machine, bytes_per_s=timing.sized_bytes_per_s(copied, latency, rate)), copied


def copied_bytes(model: Model, serving: Serving, machine: Machine, kv_dtype: str) -> float:
    """Return S, the bytes of one copy of a block on a GPU, by its layout."""
    per_token, _ = costs.held_bytes(model, kv_dtype)
    of_gpu = per_token * cache.kv_share_of_gpu(machine.tensor_parallel, model.kv_heads) / machine.stages
    a_layer = model.layers if model.attention.startswith("mla") else 2 * model.layers
    return timing.copied_bytes(serving.block_tokens, of_gpu, a_layer if serving.block_layout == "layer" else 1)

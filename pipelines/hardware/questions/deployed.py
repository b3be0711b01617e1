"""What an answer says of its deployment: caveats, the model as its cache is stored, and how far to trust it."""

from __future__ import annotations

from dataclasses import replace

from pipelines.hardware.deployment.fitting import nodes
from pipelines.hardware.entities import Model, OnPlatform
from pipelines.hardware.machines import Sources, named
from pipelines.hardware.served import Served
from pipelines.hardware.validation.bands import Bands, bands_of
from warehouse.declared.formats import quantity
from warehouse.formulas import kappa

WHOLE_LAYERS = "no hybrid cache manager: the cache of every layer is stored and loaded whole, windows too"


def stored_whole(model: Model) -> Model | None:
    """Return the model with its windowed layers' cache whole; None where it has no windows.

    gpt-oss-120b: 18 of 36 layers have windows, so that a token takes 73,728 bytes instead of 36,864.
    """
    if not model.sliding_window_tokens:
        return None
    heads = model.sliding_kv_heads or model.kv_heads
    width = model.sliding_head_dim or model.head_dim
    wide = model.sliding_head_dim or model.v_head_dim
    windowed = kappa.gqa_kv_bytes_per_token(model.sliding_layers, heads, width, wide, 2)
    per_token = model.marginal_kv_bytes_per_token + windowed
    return replace(
        model,
        attention="gqa",
        kv_bytes_per_token=per_token,
        marginal_kv_bytes_per_token=per_token,
        marginal_fp8_kv_bytes_per_token=None,
        fixed_state_bytes=0,
        sliding_window_tokens=None,
    )


def deployment_caveats(model: Model, platform: OnPlatform, served: Served, mla_attention: str) -> list[str]:
    """Return sentences on GPUs that do not hold the model, that span nodes, and on how they share a latent."""
    found = []
    if served.fit and not served.fit.fits:
        found.append(
            f"{model.model} in {served.weight_dtype} does not fit on {served.gpus:,} of {platform.accelerator}: "
            f"{quantity(max(served.fit.pool_bytes, 0.0), 'B')} a GPU are left for the KV pool"
        )
    spanned = nodes(platform.accelerator, served.gpus)
    if platform.basis != "paper" and spanned > 1:
        how = "stages of layers" if served.machine.stages > 1 else "tensor parallelism"
        found.append(f"{served.gpus:,} GPUs are {spanned:,} nodes: {how} over them")
    if model.attention.startswith("mla") and mla_attention != "tensor":
        ways = {"broadcast": "one GPU loads the latent for all", "data": "each GPU serves its own requests"}
        found.append(f"MLA attention {mla_attention}: {ways[mla_attention]}")
    return found


def bands(sources: Sources, model: Model, served: Served, platform: OnPlatform) -> Bands:
    """Return how far measurements like the answer were from the model."""
    link = named(sources.links, platform.link)
    return bands_of(
        is_moe=model.is_moe,
        is_c2c=bool(link and link.kind == "c2c"),
        is_small=served.copied_bytes is not None,
        is_over_nodes=nodes(platform.accelerator, served.gpus) > 1,
    )

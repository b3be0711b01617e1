"""Caveats of a figure: a context that is too long, heads that GPUs cannot share, missing data."""

from __future__ import annotations

from pipelines.hardware import costs
from pipelines.hardware.entities import Model

_BETWEEN = " | "


def context_caveats(model: Model, context_tokens: int) -> list[str]:
    """Return a sentence where K + T exceeds the model's context limit.

    Args:
        model: Its sourced row.
        context_tokens: K + T.
    """
    longest = model.max_context_tokens
    if context_tokens <= longest:
        return []
    return [f"K + T = {context_tokens:,} is beyond the context of {model.model}, {longest:,} tokens"]


def pool_caveats(pool_tokens: int | None, context_tokens: int) -> list[str]:
    """Return a sentence where the KV pool of the question does not hold the turn.

    Args:
        pool_tokens: The pool; None where it is not in the question.
        context_tokens: K + T, and what is generated.
    """
    if pool_tokens is None or pool_tokens >= context_tokens:
        return []
    return [f"the pool of {pool_tokens:,} tokens does not hold the {context_tokens:,} of this turn: no engine runs it"]


def tensor_parallel_caveats(model: Model, tensor_parallel: int) -> list[str]:
    """Return sentences on how the heads divide over the GPUs: unevenly, or with repeated key-value heads.

    Query heads must be a multiple of the GPUs. Key-value heads are divided, or each is repeated on several GPUs; a
    latent (MLA, one head) is on every GPU.

    Args:
        model: Its sourced row.
        tensor_parallel: GPUs that share each layer.
    """
    heads, kv_heads, name = model.heads, model.kv_heads, model.model
    found = []
    if heads % tensor_parallel:
        found.append(
            f"{tensor_parallel:,} GPUs do not divide the {heads} query heads of {name}: no engine splits it so, "
            "and the figures are those of an even split"
        )
    is_even = kv_heads % tensor_parallel == 0 or tensor_parallel % kv_heads == 0
    if not is_even:
        found.append(
            f"{tensor_parallel:,} GPUs and the {kv_heads} KV heads of {name} do not divide each other: a GPU would "
            "hold more than its even share, so that loading takes longer than shown"
        )
    elif tensor_parallel > kv_heads:
        copies = "its latent is on each GPU" if kv_heads == 1 else f"each is on {tensor_parallel // kv_heads:,} GPUs"
        found.append(f"{tensor_parallel:,} GPUs share {kv_heads} KV head{'s' * (kv_heads > 1)} of {name}: {copies}")
    return found


def format_caveats(model: Model, kv_dtype: str) -> list[str]:
    """Return a sentence where bytes are scaled to a number format although the model has a format of its own.

    Args:
        model: Its sourced row.
        kv_dtype: A key of `cache.KV_ELEMENT_BYTES`.
    """
    if kv_dtype == "bf16" or model.marginal_fp8_kv_bytes_per_token is None:
        return []
    if kv_dtype != "fp8":
        return [f"{kv_dtype} bytes of {model.model} are those of bf16 scaled: no engine stores it so"]
    windows = "; those of its windows are half of bf16's" if model.sliding_window_tokens else ""
    return [f"fp8 bytes of a cached token of {model.model} are its own format's{windows}"]


def together(sentences: list[str]) -> str | None:
    """Return sentences joined into one cell of a row, None for none; `apart` splits it."""
    return _BETWEEN.join(sentences) or None


def apart(cell: str | None) -> list[str]:
    """Return the sentences of a cell.

    >>> apart(together(["one; two", "three"])), apart(None)
    (['one; two', 'three'], [])
    """
    return cell.split(_BETWEEN) if cell else []


def missing(model: Model, basis: str) -> str | None:
    """Return in one line which costs of a model are unknown and why, None where nothing is missing.

    Args:
        model: Its sourced row.
        basis: The platform's basis; the paper's is 2N by definition.
    """
    no_flops = costs.unknown(model, "2n")
    if no_flops:
        return (
            f"without {', '.join(no_flops)} of {model.model} there is no t_GPU and no load or recompute: its load "
            "is told, and the floor that it sets under the TTFT"
        )
    gaps = costs.unknown(model, "attention") if basis != "paper" else ()
    if gaps:
        return f"cost models attention and full of {model.model} need {', '.join(gaps)}, which no row gives"
    return None


def why_no_kappa_crit(model: Model, kv_dtype: str) -> str | None:
    """Return in one line why a model has no kappa_crit, with its known bytes; None where it has one.

    Args:
        model: Its sourced row.
        kv_dtype: A key of `cache.KV_ELEMENT_BYTES`.
    """
    if model.kv_bytes_per_token is not None and model.flops_per_token is not None:
        return None
    per_token, fixed = costs.held_bytes(model, kv_dtype)
    held = f"{per_token:,.0f} bytes a cached token at {kv_dtype}"
    if model.sliding_window_tokens:
        held += f" and {fixed:,.0f} where its windows are full"
    elif fixed:
        held += f" and a state of {fixed:,.0f}"
    if model.indexer_bytes_per_token:
        held += f", {model.indexer_bytes_per_token:,} of them its indexer's keys, which keep their format"
    if model.flops_per_token is None:
        return f"its parameters are in no source that was read; {held}"
    return f"its cache is not one number of bytes a token: {held}; a turn has an answer"

"""The cost of a turn for a model on a machine: the formulae combined for a model, by cost model.

Every function takes K and T as numbers or as float64 arrays of one shape. This module reads no table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pipelines.hardware.entities import Model, known
from pipelines.hardware.prefill.parts import Parts, Rates, Work, parts
from warehouse.formulas import attention, kappa, timing, weights
from warehouse.formulas import kv_bytes as cache
from warehouse.formulas.numbers import Value


@dataclass(frozen=True, slots=True)
class Machine:
    """The rates of one platform.

    Attributes:
        flop_per_s: C_eff, the sustained rate of prefill, all GPUs together.
        bytes_per_s: host to device, one direction, of each GPU's own link.
        hbm_bytes_per_s: peak memory bandwidth of the accelerators together; None where unknown.
        tensor_parallel: GPUs that share each layer.
        stages: Groups of such GPUs, each with its part of the layers.
        rates: Of each part of prefill; None where only `2n` has an answer.
    """

    flop_per_s: float
    bytes_per_s: float
    hbm_bytes_per_s: float | None = None
    tensor_parallel: int = 1
    stages: int = 1
    rates: Rates | None = None

    @property
    def batch(self) -> int:
        """N equal requests in an iteration."""
        return self.rates.batch if self.rates else 1


def share_between(machine: Machine, tensor_parallel: int) -> Machine:
    """Return the machine of `tensor_parallel` GPUs, each with its own link.

    Compute and weight reads are that many times faster. The rate of a link stays; loading is faster only through
    the smaller bytes of each GPU, see `gpu_kv_bytes`.
    """
    hbm = machine.hbm_bytes_per_s
    return replace(
        machine,
        flop_per_s=machine.flop_per_s * tensor_parallel,
        hbm_bytes_per_s=None if hbm is None else hbm * tensor_parallel,
        tensor_parallel=tensor_parallel,
    )


def is_known(model: Model, cost_model: str) -> bool:
    """Return whether the tables have the inputs of the cost model: parameters, and for attention its FLOP a pair."""
    return not unknown(model, cost_model)


def unknown(model: Model, cost_model: str) -> tuple[str, ...]:
    """Return the columns of `models` that a cost model needs and the tables lack.

    An indexer's attention needs its heads, their width and the number of tokens it picks. A compressed cache's compute
    over the context has no formula here, whatever its columns; its `attention` is named.
    """
    if cost_model == "2n":
        return _empty(active_params=model.active_params)
    needed = _empty(
        total_params=model.total_params,
        active_params=model.active_params,
        layer_params=model.layer_params,
        head_params=model.head_params,
        attention_flops_per_token_pair=model.attention_flops_per_token_pair,
    )
    if model.attention.endswith("+indexer"):
        needed += _empty(
            index_heads=model.index_heads,
            index_head_dim=model.index_head_dim,
            index_picked_tokens=model.index_picked_tokens,
        )
    return needed + (("attention",) if model.attention in ("mla+linear", "compressed+swa") else ())


def _empty(**figures: int | None) -> tuple[str, ...]:
    return tuple(name for name, figure in figures.items() if figure is None)


def kv_bytes(model: Model, cached_tokens: Value, kv_dtype: str) -> Value:
    """Return the bytes of K cached tokens, each counted once for any number of GPUs.

    Windows, chunks and fixed states have their own formula, so K tokens are not K times the bytes of one.
    Indexer keys and recurrent states keep their format for any `kv_dtype`.

    Args:
        model: Its sourced row.
        cached_tokens: K.
        kv_dtype: A key of `cache.KV_ELEMENT_BYTES`.
    """
    return gpu_kv_bytes(model, cached_tokens, kv_dtype, 1)


def gpu_kv_bytes(model: Model, cached_tokens: Value, kv_dtype: str, tensor_parallel: int) -> Value:
    """Return the bytes that each of `tensor_parallel` GPUs loads for K cached tokens.

    Keys and values are divided by their heads, a recurrent state by the value heads of linear attention.

    Args:
        model: Its sourced row.
        cached_tokens: K.
        kv_dtype: A key of `cache.KV_ELEMENT_BYTES`.
        tensor_parallel: GPUs that share each layer.
    """
    per_token, state = held_bytes(model, kv_dtype)
    share = cache.kv_share_of_gpu(tensor_parallel, model.kv_heads)
    per_token *= share
    state *= state_share_of_gpu(model, tensor_parallel)
    kind, window = model.attention, model.sliding_window_tokens
    if window:
        formula = cache.chunked_kv_bytes if kind == "gqa+chunked" else cache.windowed_kv_bytes
        return formula(cached_tokens, per_token, state / window, window)
    if kind.endswith("+linear"):
        return cache.stateful_kv_bytes(cached_tokens, per_token, state)
    return cache.cached_kv_bytes(cached_tokens, per_token)


def state_share_of_gpu(model: Model, tensor_parallel: int) -> float:
    """Return the share of windows or recurrent states that each GPU loads, by their heads."""
    heads = known(model.linear_value_heads) if model.linear_layers else model.sliding_kv_heads or model.kv_heads
    return cache.kv_share_of_gpu(tensor_parallel, heads)


def held_bytes(model: Model, kv_dtype: str) -> tuple[float, float]:
    """Return the bytes of one more cached token once every window is full, and the fixed bytes.

    The fixed bytes are full windows or chunks and recurrent states; 0 where every token costs the same.

    Args:
        model: Its sourced row.
        kv_dtype: A key of `cache.KV_ELEMENT_BYTES`.
    """
    element = cache.KV_ELEMENT_BYTES[kv_dtype]
    per_token = cache.quantised_kv_bytes(model.marginal_kv_bytes_per_token, element)
    if kv_dtype == "fp8" and model.marginal_fp8_kv_bytes_per_token is not None:
        per_token = model.marginal_fp8_kv_bytes_per_token
    fixed = float(model.fixed_state_bytes)
    if model.sliding_window_tokens:
        fixed = cache.quantised_kv_bytes(fixed, element)
    return per_token + model.indexer_bytes_per_token, fixed


def context_flops(model: Model, cached_tokens: Value, prefill_tokens: Value) -> Value:
    """Return the attention FLOP of T new tokens after K cached ones, by the model's own kind of attention.

    Args:
        model: A model for which `is_known` is true.
        cached_tokens: K.
        prefill_tokens: T.
    """
    per_pair, kind, window = known(model.attention_flops_per_token_pair), model.attention, model.sliding_window_tokens
    seen = attention.attended_pairs(cached_tokens, prefill_tokens)
    if kind.endswith("+indexer"):
        return _indexed_flops(model, cached_tokens, prefill_tokens)
    if kind == "mla":
        expand = known(model.mla_upprojection_flops_per_cached_token)
        absorbed = known(model.absorbed_attention_flops_per_token_pair)
        return attention.mla_attention_flops(cached_tokens, prefill_tokens, per_pair, expand, absorbed)
    full = attention.attention_flops(seen, per_pair)
    if not window:
        return full
    pairs_of = attention.chunked_pairs if kind == "gqa+chunked" else attention.windowed_pairs
    pairs = pairs_of(cached_tokens, prefill_tokens, window)
    return full + attention.attention_flops(pairs, known(model.sliding_attention_flops_per_token_pair))


def _indexed_flops(model: Model, cached_tokens: Value, prefill_tokens: Value) -> Value:
    """Return the FLOP of attention to picked tokens and of the indexers that score all of them.

    Layers of MLA without an indexer take the picks of an earlier one; those of grouped queries attend to everything.
    """
    seen = attention.attended_pairs(cached_tokens, prefill_tokens)
    picked = attention.windowed_pairs(cached_tokens, prefill_tokens, known(model.index_picked_tokens))
    layers, heads, width = known(model.index_layers), known(model.index_heads), known(model.index_head_dim)
    score, per_pair = (
        attention.indexer_flops_per_pair(layers, heads, width),
        known(model.attention_flops_per_token_pair),
    )
    if model.attention == "mla+indexer":
        expand = known(model.mla_upprojection_flops_per_cached_token)
        absorbed = known(model.absorbed_attention_flops_per_token_pair)
        return attention.sparse_mla_flops(cached_tokens, seen, picked, per_pair, expand, absorbed, score)
    sparse = per_pair * layers / model.full_attention_layers
    all_seen = attention.attention_flops(seen, per_pair - sparse + score)
    return all_seen + attention.attention_flops(picked, sparse)


def transfer_s(model: Model, machine: Machine, cached_tokens: Value, kv_dtype: str) -> Value:
    """Return t_load of one request in seconds."""
    return gpu_kv_bytes(model, cached_tokens, kv_dtype, machine.tensor_parallel) / machine.stages / machine.bytes_per_s


def work_of(model: Model, machine: Machine, cached_tokens: Value, prefill_tokens: Value, kv_dtype: str) -> Work[Value]:
    """Return what one request asks of the GPUs.

    Args:
        model: A model for which `is_known` is true.
        machine: Its rates.
        cached_tokens: K.
        prefill_tokens: T.
        kv_dtype: A key of `cache.KV_ELEMENT_BYTES`.
    """
    experts, k = model.experts or 0, model.experts_per_token or 0
    total, active, layers = known(model.total_params), known(model.active_params), float(known(model.layer_params))
    each = weights.expert_params(total, active, experts, k) if experts else 0.0
    held = gpu_kv_bytes(model, cached_tokens, kv_dtype, machine.tensor_parallel)
    return Work(
        prefill_tokens=prefill_tokens,
        attention_flops=context_flops(model, cached_tokens, prefill_tokens),
        read_bytes=held * float(machine.rates.attention_gpus if machine.rates else 1),
        linear_params=layers - k * each,
        expert_params=each,
        experts=experts,
        experts_per_token=k,
        head_params=float(known(model.head_params)),
        layers=model.layers,
        hidden_size=model.hidden_size,
    )


def prefill_parts(  # noqa: PLR0913, PLR0917 - a request on a machine
    model: Model, machine: Machine, cached_tokens: Value, prefill_tokens: Value, cost_model: str, kv_dtype: str = "bf16"
) -> Parts[Value]:
    """Return the parts of t_GPU of an iteration: `full` as they are, `attention` without reading weights and cache.

    Raises:
        ValueError: the machine has no rates of the parts.
    """
    if machine.rates is None:
        raise ValueError("cost models attention and full need the rates of the parts of prefill")
    work = work_of(model, machine, cached_tokens, prefill_tokens, kv_dtype)
    return parts(work, machine.rates, reads_weights=cost_model == "full")


def compute_s(  # noqa: PLR0913, PLR0917 - a request on a machine
    model: Model, machine: Machine, cached_tokens: Value, prefill_tokens: Value, cost_model: str, kv_dtype: str = "bf16"
) -> Value:
    """Return t_GPU in seconds of an iteration under a cost model for which `is_known` is true.

    `attention` is an iteration that reads its weights for many requests, `full` one that reads them for its own.

    Raises:
        ValueError: `attention` or `full` on a machine without the rates of the parts.
    """
    if cost_model == "2n":
        return kappa.compute_s(prefill_tokens * float(machine.batch), known(model.flops_per_token), machine.flop_per_s)
    return prefill_parts(model, machine, cached_tokens, prefill_tokens, cost_model, kv_dtype).compute_s


def read_s(model: Model, machine: Machine, prefill_tokens: float) -> float:
    """Return the seconds to read the weights of dense layers, head and the experts that T tokens draw.

    Raises:
        ValueError: the machine has no rates of the parts.
    """
    if machine.rates is None:
        raise ValueError("reading weights needs the rates of the parts of prefill")
    work, rates = work_of(model, machine, 0.0, prefill_tokens, "bf16"), machine.rates
    drawn = 0.0
    if work.expert_params:
        drawn = weights.touched_expert_params(work.expert_params, work.experts, work.experts_per_token, prefill_tokens)
    dense = work.linear_params * rates.linear_weight_bytes + 2 * work.head_params
    return dense / rates.hbm_bytes_per_s + drawn * rates.expert_weight_bytes / rates.expert_hbm_bytes_per_s


def prefill_s(  # noqa: PLR0913, PLR0917 - a request on a machine
    model: Model, machine: Machine, cached_tokens: Value, prefill_tokens: Value, cost_model: str, kv_dtype: str = "bf16"
) -> Value:
    """Return the seconds from the loaded cache to the first token: t_GPU, and under `full` the engine's floor.

    Raises:
        ValueError: `attention` or `full` on a machine without the rates of the parts.
    """
    computing = compute_s(model, machine, cached_tokens, prefill_tokens, cost_model, kv_dtype)
    if cost_model != "full" or machine.rates is None:
        return computing
    floor = timing.launch_floor_s(model.layers, machine.rates.layer_s, machine.rates.node_layer_s)
    tokens = float(machine.batch) * (cached_tokens + prefill_tokens)
    return timing.prefill_s(computing, floor, tokens, machine.rates.token_s)


def recompute_s(  # noqa: PLR0913, PLR0917 - a request on a machine
    model: Model, machine: Machine, cached_tokens: Value, prefill_tokens: Value, cost_model: str, kv_dtype: str = "bf16"
) -> Value:
    """Return the seconds to prefill K and T from scratch instead of loading K."""
    nothing: Value = cached_tokens * 0
    return prefill_s(model, machine, nothing, cached_tokens + prefill_tokens, cost_model, kv_dtype)

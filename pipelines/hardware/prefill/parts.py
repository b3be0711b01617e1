"""The parts of an iteration's time on the GPUs: dense layers, experts, head, attention, adding over GPUs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic

from warehouse.formulas import timing, weights
from warehouse.formulas.numbers import Value


@dataclass(frozen=True, slots=True)
class Rates:
    """The sustained rates of the GPUs that serve one model in one format.

    Attributes:
        linear_flop_per_s: f_lin C of the GPUs that share a token's dense layers.
        expert_flop_per_s: f_exp C of the GPUs that share the experts.
        head_flop_per_s: f_lin C16, bf16.
        attention_flop_per_s: f_att C16, bf16.
        hbm_bytes_per_s: H, of the GPUs that share the dense layers.
        expert_hbm_bytes_per_s: H, of the GPUs that share the experts.
        linear_weight_bytes: w of the dense layers, bytes a parameter.
        expert_weight_bytes: w of the experts.
        reduce_bytes_per_s: X_tp.
        reducing_gpus: g of the all-reduce; 1 needs none.
        attention_gpus: GPUs that share the attention of a request.
        layer_s: t_L.
        node_layer_s: t_x; 0 within one node.
        token_s: t_tok.
        batch: N equal requests in an iteration.
        local_batch: Those of them that one group of GPUs with all dense layers computes.
    """

    linear_flop_per_s: float
    expert_flop_per_s: float
    head_flop_per_s: float
    attention_flop_per_s: float
    hbm_bytes_per_s: float
    expert_hbm_bytes_per_s: float
    linear_weight_bytes: float
    expert_weight_bytes: float
    reduce_bytes_per_s: float
    reducing_gpus: int
    layer_s: float
    node_layer_s: float
    token_s: float
    attention_gpus: int = 1
    batch: int = 1
    local_batch: int = 1

    def slowed(self, share: float) -> Rates:
        """Return the rates with that share of the compute, and memory as it is."""
        return replace(
            self,
            linear_flop_per_s=self.linear_flop_per_s * share,
            expert_flop_per_s=self.expert_flop_per_s * share,
            head_flop_per_s=self.head_flop_per_s * share,
            attention_flop_per_s=self.attention_flop_per_s * share,
        )


@dataclass(frozen=True, slots=True)
class Work(Generic[Value]):
    """What one request asks of a model.

    Attributes:
        prefill_tokens: T.
        attention_flops: A(K, T).
        read_bytes: The cache of K tokens as all GPUs of a group read it, copies included.
        linear_params: P_lin.
        expert_params: e; 0 without experts.
        experts: E.
        experts_per_token: k.
        head_params: P_head.
        layers: Layers.
        hidden_size: d_model; None where no row gives it, which only one GPU allows.
    """

    prefill_tokens: Value
    attention_flops: Value
    read_bytes: Value
    linear_params: float
    expert_params: float
    experts: int
    experts_per_token: int
    head_params: float
    layers: int
    hidden_size: int | None


@dataclass(frozen=True, slots=True)
class Parts(Generic[Value]):
    """The seconds of each part of one iteration, and the floor under their sum."""

    linear_s: Value
    expert_s: Value
    head_s: Value
    attention_s: Value
    reduce_s: Value
    floor_s: float

    @property
    def compute_s(self) -> Value:
        """t_GPU: the five parts added."""
        return self.linear_s + self.expert_s + self.head_s + self.attention_s + self.reduce_s


def parts(work: Work[Value], rates: Rates, *, reads_weights: bool = True) -> Parts[Value]:
    """Return the parts of an iteration of N equal requests.

    Args:
        work: One request.
        rates: The GPUs.
        reads_weights: Whether memory bounds a part too; without it the iteration is as long as its arithmetic, as in
            a large batch.
    """
    reads = 1.0 if reads_weights else 0.0
    local = rates.local_batch * work.prefill_tokens
    nothing: Value = work.prefill_tokens * 0.0
    heads = 2.0 * work.head_params
    return Parts(
        linear_s=timing.roofline_s(
            2.0 * work.linear_params * local,
            rates.linear_flop_per_s,
            nothing + reads * work.linear_params * rates.linear_weight_bytes,
            rates.hbm_bytes_per_s,
        ),
        expert_s=_experts(work, rates, reads) if work.expert_params else nothing,
        head_s=timing.roofline_s(
            nothing + heads * rates.local_batch, rates.head_flop_per_s, nothing + reads * heads, rates.hbm_bytes_per_s
        ),
        attention_s=timing.roofline_s(
            rates.local_batch * work.attention_flops,
            rates.attention_flop_per_s,
            reads * rates.local_batch * work.read_bytes,
            rates.hbm_bytes_per_s,
        ),
        reduce_s=_reduce(work, rates) if rates.reducing_gpus > 1 else nothing,
        floor_s=timing.launch_floor_s(work.layers, rates.layer_s, rates.node_layer_s),
    )


def _experts(work: Work[Value], rates: Rates, reads: float) -> Value:
    tokens = rates.batch * work.prefill_tokens
    read = weights.touched_expert_params(work.expert_params, work.experts, work.experts_per_token, tokens)
    flops = 2.0 * work.experts_per_token * work.expert_params * tokens
    read_bytes = reads * read * rates.expert_weight_bytes
    return timing.roofline_s(flops, rates.expert_flop_per_s, read_bytes, rates.expert_hbm_bytes_per_s)


def _reduce(work: Work[Value], rates: Rates) -> Value:
    assert work.hidden_size is not None
    tokens = rates.batch * work.prefill_tokens
    return timing.reduce_s(work.layers, tokens, work.hidden_size, rates.reducing_gpus, rates.reduce_bytes_per_s)

"""A question about models on hardware: kappa_crit, or its effect on a turn or a workload."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from warehouse.errors import ErrorCode, UsageError

# The fields that take several values, in the order of the answers: the first one changes last.
SEVERAL = ("model", "accelerator", "link", "kv_dtype", "tensor_parallel")
# More combinations than anyone reads; each workload's answer takes a second.
MOST_COMBINATIONS = 1000


@dataclass(frozen=True, slots=True)
class CritQuestion:
    """A question: about a turn with K and T, about all turns of a workload, else kappa_crit only.

    The fields in `SEVERAL` take one value or a sequence; each combination is answered.

    Attributes:
        model: Its name in any case, the id of its repository on the Hub, or the path of its config.json; None for the
            headline ones.
        accelerator: None for every one that fits, as for `link` and `basis`.
        link: See `accelerator`.
        basis: paper, physical or measured.
        bandwidth_bytes_per_s: One direction, instead of the link's.
        sustained_fraction: Share of the dense peak that prefill sustains, above 0 and at most 1.
        kv_dtype: A key of `kv_bytes.KV_ELEMENT_BYTES`; None for bf16.
        tensor_parallel: GPUs that share the model, each with its own link; None for the least on which it fits.
        cached_tokens: K of a turn, with `new_tokens`.
        new_tokens: T of a turn, at least 1.
        workload: A workload of the home folder, with all of its turns.
        tokenizer: Whose counts of the workload answer; None for those of each model's tokenizer, and where there are
            none for those of another one as a proxy. The counts of a log answer whatever is asked for.
        counting: Way of counting the workload; None for the first of text, chat, logged that it has.
        reuse: What K is; None for the first of history, prefix, reported that the workload has.
        chunk_tokens: Reuse granularity in tokens.
        cost_model: The cost model of t_GPU; None for every known one.
        tier: Slower link to the part of the cache in `tier_share`.
        tier_share: That part, 0 to 1; None for all of it.
        output_tokens: Generated tokens: adds the time to write back.
        pool_tokens: Capacity of the KV pool in tokens: adds T_sched, and how many such requests it holds.
        idle_w: Power of one GPU while loading; with `busy_w` adds the energy.
        busy_w: Power of one GPU while computing.
        weight_dtype: Format of the weights; None for the one that each model is served in.
        compute_dtype: Format of the matrix products: bf16, fp8, fp4; None for the engine's choice.
        batch: N equal requests in an iteration.
        node_bandwidth_bytes_per_s: What all GPUs of a host load together.
        block_layout: packed or layer: the size of a copy is a block of all layers, or K or V of one.
        copy_latency_s: Fixed seconds of one copy.
        mla_attention: How GPUs share a latent cache: tensor, broadcast or data.
        pipeline: Stages of layers over the nodes.
        whole_layers: Every layer's cache is stored whole, as by an engine without a hybrid cache manager.
    """

    model: str | Sequence[str] | None = None
    accelerator: str | Sequence[str] | None = None
    link: str | Sequence[str] | None = None
    basis: str | None = None
    bandwidth_bytes_per_s: float | None = None
    sustained_fraction: float | None = None
    kv_dtype: str | Sequence[str] | None = None
    tensor_parallel: int | Sequence[int] | None = None
    cached_tokens: int | None = None
    new_tokens: int | None = None
    workload: str | None = None
    tokenizer: str | None = None
    counting: str | None = None
    reuse: str | None = None
    chunk_tokens: int = 1
    cost_model: str | None = None
    tier: str | None = None
    tier_share: float | None = None
    output_tokens: int | None = None
    pool_tokens: int | None = None
    idle_w: float | None = None
    busy_w: float | None = None
    weight_dtype: str | None = None
    compute_dtype: str | None = None
    batch: int = 1
    node_bandwidth_bytes_per_s: float | None = None
    block_layout: str | None = None
    copy_latency_s: float | None = None
    mla_attention: str = "tensor"
    pipeline: bool = False
    whole_layers: bool = False

    @property
    def is_about_turns(self) -> bool:
        """Whether the question is about a turn or a workload."""
        return any(value is not None for value in (self.cached_tokens, self.new_tokens, self.workload))


@dataclass(frozen=True, slots=True)
class OneQuestion(CritQuestion):
    """A question with one value in each field."""

    model: str | None = None
    accelerator: str | None = None
    link: str | None = None
    kv_dtype: str | None = None
    tensor_parallel: int | None = None


def one_by_one(question: CritQuestion) -> list[OneQuestion]:
    """Return a question for each combination of the values in the fields that take several.

    Raises:
        UsageError: a field has an empty sequence, or there are more than `MOST_COMBINATIONS`.

    >>> [(one.model, one.link) for one in one_by_one(CritQuestion(model=["a", "b"], link="x"))]
    [('a', 'x'), ('b', 'x')]
    """
    values = {name: _values(name, getattr(question, name)) for name in SEVERAL}
    given = {field.name: getattr(question, field.name) for field in fields(question)}
    combinations: list[dict[str, Any]] = [
        dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())
    ]
    if len(combinations) > MOST_COMBINATIONS:
        why = f"{len(combinations):,} combinations, at most {MOST_COMBINATIONS:,} are answered"
        raise UsageError("too much is asked at once", why, "name fewer values", code=ErrorCode.USAGE)
    return [OneQuestion(**given | one) for one in combinations]


def _values(name: str, given: object) -> tuple[object, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        return (given,)
    if not given:
        what = f"--{name.replace('_', '-')} is empty"
        raise UsageError(
            what, "a sequence of values has one at least", "leave it out, or name one", code=ErrorCode.USAGE
        )
    return tuple(given)

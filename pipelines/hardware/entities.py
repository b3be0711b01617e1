"""Sourced rows as types: a field for each declared column, with its unit in its name. No field is computed from two.

mypy cannot read a declaration made at run time, so the columns are repeated here; `typed` fails where a row has
others, and a test compares names, types and NULLs with the declarations of `warehouse`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
# The confidence of a row that was quoted and never read at its origin.
SECOND_HAND = "secondary"


@dataclass(frozen=True, slots=True)
class Model:
    """A row of `models`, with the figures that are worked out from its shape."""

    model: str
    repo_id: str
    attention: str
    total_params: int | None
    active_params: int | None
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    kv_bytes_per_token: float | None
    flops_per_token: float | None
    max_context_tokens: int
    tokenizer: str
    is_tokenizer_proxy: bool
    is_moe: bool
    experts: int | None
    experts_per_token: int | None
    layer_params: int | None
    head_params: int | None
    full_attention_layers: int
    sliding_layers: int
    linear_layers: int
    kv_shared_layers: int | None
    sliding_window_tokens: int | None
    sliding_kv_heads: int | None
    sliding_head_dim: int | None
    v_head_dim: int
    kv_lora_rank: int | None
    qk_rope_head_dim: int | None
    linear_key_heads: int | None
    linear_key_head_dim: int | None
    linear_value_heads: int | None
    linear_value_head_dim: int | None
    linear_conv_kernel: int | None
    marginal_kv_bytes_per_token: float
    marginal_fp8_kv_bytes_per_token: float | None
    fixed_state_bytes: int
    indexer_bytes_per_token: int
    index_layers: int | None
    index_heads: int | None
    index_head_dim: int | None
    index_picked_tokens: int | None
    attention_flops_per_token_pair: int | None
    sliding_attention_flops_per_token_pair: int | None
    absorbed_attention_flops_per_token_pair: int | None
    mla_upprojection_flops_per_cached_token: int | None
    hidden_size: int | None
    weight_dtype: str | None
    note: str | None
    retrieved: str
    confidence: str
    source: str


@dataclass(frozen=True, slots=True)
class Accelerator:
    """A row of `accelerators`."""

    accelerator: str
    dense_bf16_flop_per_s: float
    sparse_bf16_flop_per_s: float | None
    dense_fp8_flop_per_s: float | None
    sparse_fp8_flop_per_s: float | None
    dense_fp4_flop_per_s: float | None
    hbm_bytes: float
    hbm_bytes_per_s: float
    tdp_w: float | None
    measured_bf16_flop_per_s: float | None
    note: str | None
    retrieved: str
    confidence: str
    source: str


@dataclass(frozen=True, slots=True)
class Link:
    """A row of `links`."""

    link: str
    kind: str
    peak_bytes_per_s: float
    sustained_bytes_per_s: float | None
    to_host_bytes_per_s: float | None
    duplex_bytes_per_s: float | None
    copy_latency_s: float | None
    node_bytes_per_s: float | None
    note: str | None
    retrieved: str
    confidence: str
    source: str

    @property
    def bytes_per_s(self) -> float:
        """Bandwidth of one direction: as measured on large pinned copies, or the peak where there is no measurement."""
        return self.sustained_bytes_per_s or self.peak_bytes_per_s


class OnPlatform(Protocol):
    """An object that names an accelerator, a link and a basis."""

    @property
    def accelerator(self) -> str: ...  # noqa: D102 - the column
    @property
    def link(self) -> str: ...  # noqa: D102
    @property
    def basis(self) -> str: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Pair:
    """An accelerator with a link on a basis, whether or not such a product exists."""

    accelerator: str
    link: str
    basis: str


@dataclass(frozen=True, slots=True)
class Platform(Pair):
    """A row of `platforms`."""

    note: str | None
    retrieved: str
    confidence: str
    source: str


@dataclass(frozen=True, slots=True)
class Measured:
    """A row of `measured`."""

    accelerator: str
    link: str
    device_name: str
    bf16_flop_per_s: float
    fp16_flop_per_s: float | None
    fp8_flop_per_s: float | None
    pinned_to_device_bytes_per_s: float
    pinned_to_host_bytes_per_s: float
    pageable_to_device_bytes_per_s: float
    pageable_to_host_bytes_per_s: float
    hbm_bytes_per_s: float
    torch_version: str
    runtime_version: str | None
    retrieved: str
    is_example: bool
    source: str


@dataclass(frozen=True, slots=True)
class PaperModel:
    """A row of `paper_models`."""

    model: str
    active_params: int
    kv_bytes_per_token: float
    printed_kappa_m_flop_per_byte: float
    retrieved: str
    source: str


@dataclass(frozen=True, slots=True)
class PaperAccelerator:
    """A row of `paper_accelerators`."""

    accelerator: str
    effective_flop_per_s: float
    retrieved: str
    source: str


@dataclass(frozen=True, slots=True)
class PaperLink:
    """A row of `paper_links`."""

    link: str
    bytes_per_s: float
    retrieved: str
    source: str


@dataclass(frozen=True, slots=True)
class FittedNumber:
    """A row of `fitted_numbers`: of one accelerator, or of every other one."""

    number: str
    accelerator: str | None
    value: float
    least: float | None
    most: float | None
    trust: str
    retrieved: str
    confidence: str
    source: str


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A row of `calibrated`: a number of the model as `kappa calibrate` fitted it on one accelerator."""

    accelerator: str
    number: str
    value: float
    least: float
    most: float
    is_identifiable: bool
    points: int
    retrieved: str
    source: str


@dataclass(frozen=True, slots=True)
class Headline:
    """A row of `headlines`: a model or a platform."""

    model: str | None
    accelerator: str | None
    link: str | None
    basis: str | None


@dataclass(frozen=True, slots=True)
class KappaCrit:
    """A row of `kappa_crit`."""

    model: str
    accelerator: str
    link: str
    basis: str
    kv_dtype: str
    kappa_m_flop_per_byte: float | None
    kappa_hw_byte_per_flop: float
    kappa_crit: float | None
    tokenizer: str
    tensor_parallel: int
    weight_dtype: str
    compute_dtype: str


def typed(kind: Callable[..., T], rows: Iterable[Mapping[str, Any]]) -> list[T]:
    """Return rows of a table as objects of their type.

    Raises:
        TypeError: a row has a column that the type lacks, or lacks one of its columns.
    """
    return [kind(**row) for row in rows]


def known(figure: T | None) -> T:
    """Return a figure that the caller knows to be present."""
    assert figure is not None
    return figure

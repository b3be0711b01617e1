"""What the model predicts for a public measurement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pipelines.hardware import costs
from pipelines.hardware.entities import Model, Pair, known
from pipelines.hardware.machines import GIVEN_LINK, Sources
from pipelines.hardware.served import DEFAULT, Served, Serving, numbers_of, serve
from pipelines.hardware.what_if import Setting, kappa_crit_of
from warehouse.formulas import timing


@dataclass(frozen=True, slots=True)
class Point:
    """A row of `validation`."""

    point: str
    error_class: str
    model: str | None
    accelerator: str | None
    gpus: int | None
    link: str | None
    weight_dtype: str | None
    cached_tokens: int | None
    new_tokens: int | None
    quantity: str
    measured: float
    bytes_per_s: float | None
    node_bytes_per_s: float | None
    copied_bytes: float | None
    copy_latency_s: float | None
    is_scored: bool
    origin: str
    note: str | None
    retrieved: str
    confidence: str
    source: str


def predicted(point: Point, sources: Sources) -> float | None:
    """Return the prediction of a measurement in its own unit; None where no formula or no row answers."""
    answer = _OF.get(point.quantity)
    if answer is None or (point.model is not None and point.model not in sources.models):
        return None
    return float(answer(point, sources))


def _rate(point: Point, sources: Sources) -> float:
    rate = point.bytes_per_s or numbers_of(sources, point.accelerator or "").get("link_bytes_per_s", 1.0)
    if point.node_bytes_per_s is not None:
        rate = timing.link_share_bytes_per_s(rate, point.node_bytes_per_s, known(point.gpus))
    if point.copied_bytes is not None:
        rate = timing.sized_bytes_per_s(point.copied_bytes, known(point.copy_latency_s), rate)
    return rate


def _model(point: Point, sources: Sources) -> Model:
    return sources.models[known(point.model)]


def _setting(point: Point, sources: Sources) -> Setting:
    serving = replace(
        DEFAULT, gpus=point.gpus or 1, weight_dtype=point.weight_dtype, node_bytes_per_s=point.node_bytes_per_s
    )
    served = _served(point, sources, serving)
    return Setting(_model(point, sources), served.machine, "bf16", "full")


def _served(point: Point, sources: Sources, serving: Serving) -> Served:
    pair = Pair(known(point.accelerator), point.link or GIVEN_LINK, "physical")
    return serve(sources, pair, _model(point, sources), serving, bytes_per_s=point.bytes_per_s or 1.0)


def _load_s(point: Point, sources: Sources) -> float:
    model, cached = _model(point, sources), float(known(point.cached_tokens))
    return float(costs.gpu_kv_bytes(model, cached, "bf16", point.gpus or 1)) / _rate(point, sources)


def _prefill_s(point: Point, sources: Sources) -> float:
    cached = float(point.cached_tokens or 0)
    return float(_setting(point, sources).prefill_s(cached, float(known(point.new_tokens))))


def _ttft_s(point: Point, sources: Sources) -> float:
    return _load_s(point, sources) + _prefill_s(point, sources)


def _gain(point: Point, sources: Sources) -> float:
    missed = _setting(point, sources).prefill_s(0.0, float(known(point.cached_tokens)))
    return float(missed) / _ttft_s(point, sources)


def _overhead(point: Point, sources: Sources) -> float:
    setting, cached, new = _setting(point, sources), float(known(point.cached_tokens)), float(known(point.new_tokens))
    return float(setting.transfer_s(cached) / setting.compute_s(cached, new))


def _crit(point: Point, sources: Sources) -> float:
    return known(kappa_crit_of(_setting(point, sources), known(point.new_tokens)))


def _token_bytes(point: Point, sources: Sources) -> float:
    return float(costs.kv_bytes(_model(point, sources), 1.0, "bf16"))


def _gpu_token_bytes(point: Point, sources: Sources) -> float:
    return float(costs.gpu_kv_bytes(_model(point, sources), 1.0, "bf16", known(point.gpus)))


def _loaded_bytes(point: Point, sources: Sources) -> float:
    """Return the bytes that all GPUs load of whole blocks of 64 tokens (FlashMLA's), fp8."""
    blocks, gpus = known(point.cached_tokens) // 64 * 64, known(point.gpus)
    return float(costs.gpu_kv_bytes(_model(point, sources), float(blocks), "fp8", gpus)) * gpus


_OF: dict[str, Callable[[Point, Sources], float]] = {
    "load_s": _load_s,
    "prefill_s": _prefill_s,
    "ttft_s": _ttft_s,
    "ttft_gain": _gain,
    "host_to_device_bytes_per_s": _rate,
    "pcie_overhead": _overhead,
    "kappa_crit": _crit,
    "kv_bytes_per_token": _token_bytes,
    "gpu_kv_bytes_per_token": _gpu_token_bytes,
    "loaded_bytes": _loaded_bytes,
}

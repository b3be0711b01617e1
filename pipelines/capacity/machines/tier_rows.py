"""Rows of `cache_tiers`: the headline models on the headline platforms, at sizes of host memory that are sold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipelines.capacity.distances import Hits
from pipelines.capacity.machines.deployment import Deployment, deployment
from pipelines.capacity.machines.loads import Load, load
from pipelines.capacity.requests import Bools, Floats, Requests
from pipelines.capacity.tiers import TierTokens
from pipelines.hardware import costs
from pipelines.hardware.entities import Model, Pair, known
from pipelines.hardware.machines import Sources
from pipelines.hardware.ratios import kappa_crit_row
from pipelines.hardware.served import Serving, serve
from pipelines.hardware.what_if import Setting
from warehouse.declared.capacity_tables import CACHE_TIERS

HOST_BYTES = tuple(size * 1e9 for size in (0, 128, 256, 512, 1024, 2048))
KV_DTYPE = "bf16"
LOGGED = "logged"
# The paper's first.
COST_MODELS = ("2n", "attention")
Machines = list["ModelOnMachine"]


@dataclass(frozen=True, slots=True)
class ModelOnMachine:
    """A model on the fewest accelerators of a platform that hold it.

    Attributes:
        kappa_crit: Of all of them together, as `kappa crit` has it; None where no single number is.
        setting: The same with its rates and cost model; None where no cost model is known.
    """

    model: Model
    platform: Pair
    deployment: Deployment
    kappa_crit: float | None
    setting: Setting | None

    def waits(self, loaded_tokens: Floats, tokens: TierTokens) -> Bools:
        """Return which turns load longer than they compute; shape (R,)."""
        setting = known(self.setting)
        cached, new = (tokens.gpu_tokens + tokens.k_link).astype(np.float64), tokens.computed_tokens.astype(np.float64)
        return np.asarray(setting.transfer_s(loaded_tokens) > setting.compute_s(cached, new))


def machines_of(sources: Sources) -> Machines:
    """Return the headline models on the headline platforms, but for the paper's, which have no memory."""
    found = []
    for row in sources.headlines:
        for model in (sources.models[one.model] for one in sources.headlines if one.model):
            if row.accelerator and row.link and row.basis not in (None, "paper"):
                pair = Pair(row.accelerator, row.link, str(row.basis))
                found.append(model_on_machine(sources, model, pair, KV_DTYPE))
    return [one for one in found if one is not None]


def model_on_machine(  # noqa: PLR0913, PLR0917 - a deployment, and what a user may say of it
    sources: Sources,
    model: Model,
    pair: Pair,
    kv_dtype: str,
    gpus: int | None = None,
    bytes_per_s: float | None = None,
) -> ModelOnMachine | None:
    """Return a model on the fewest accelerators that hold it, or on `gpus`; None where none do or a size is unknown.

    Turns wait by the first of `COST_MODELS` that is known.
    """
    placed = deployment(model, sources.accelerators[pair.accelerator], kv_dtype, gpus)
    if placed is None:
        return None
    serving = Serving(gpus=placed.gpus)
    row = kappa_crit_row(sources, pair, model.model, kv_dtype, bytes_per_s=bytes_per_s, serving=serving)
    served = serve(sources, pair, model, serving, kv_dtype=kv_dtype, bytes_per_s=bytes_per_s)
    cost_model = next((name for name in COST_MODELS if costs.is_known(model, name)), None)
    setting = None if cost_model is None else Setting(model, served.machine, kv_dtype, cost_model)
    return ModelOnMachine(model, pair, placed, row.kappa_crit, setting)


def tier_rows(
    names: Mapping[str, str], interleaving: int, requests: Requests, hits: Hits, machines: Machines
) -> pa.Table:
    """Return the rows of one series in one order of service; models of another tokenizer are left out."""
    chosen = [one for one in machines if names["tokenizer"] in (one.model.tokenizer, LOGGED)]
    if not len(requests):
        return CACHE_TIERS.rows([])
    of_series = {**names, "block_tokens": requests.block_tokens, "interleaving": interleaving}
    return CACHE_TIERS.rows([{**of_series, **row} for one in chosen for row in _rows_of(one, requests, hits)])


def _rows_of(one: ModelOnMachine, requests: Requests, hits: Hits) -> Iterator[dict[str, object]]:
    placed, size = one.deployment, requests.block_tokens
    names = {"model": one.model.model, "accelerator": one.platform.accelerator, "link": one.platform.link,
             "basis": one.platform.basis, "kv_dtype": KV_DTYPE}  # fmt: skip
    for host_bytes in HOST_BYTES:
        blocks = (placed.gpu_blocks(size), placed.host_blocks(host_bytes, size))
        found = load(requests, hits, blocks, one.waits if one.setting else None)
        yield {
            **names, "host_bytes": host_bytes, "gpus": placed.gpus, "gpu_capacity_blocks": blocks[0],
            "host_capacity_blocks": blocks[1], "kappa_crit": one.kappa_crit,
            **load_columns(found), "link_bytes_per_request": found.tokens_per_request * placed.host_token_bytes,
            "link_bytes_per_s": link_rate(requests, found, placed),
        }  # fmt: skip


def load_columns(found: Load) -> dict[str, object]:
    """Return the columns of a load that no machine is needed for."""
    tokens = found.tokens
    sums: Sequence[int] = [int(one.sum()) for one in (tokens.gpu_tokens, tokens.k_link, tokens.computed_tokens)]
    percentiles = zip(("kappa_link_p50", "kappa_link_p90", "kappa_link_p99"), found.kappa_link, strict=True)
    return {
        **dict(zip(("gpu_tokens_sum", "link_tokens_sum", "computed_tokens_sum"), sums, strict=True)),
        "link_bound_turn_share": found.link_bound_turn_share,
        "compute_bound_turn_share": found.compute_bound_turn_share,
        "no_link_turn_share": found.no_link_turn_share,
        **dict(percentiles),
    }


def link_rate(requests: Requests, found: Load, placed: Deployment) -> float | None:
    """Return the bytes that cross the links a second at the log's own rate; None without a clock."""
    if requests.arrival_s is None or not (span := float(requests.arrival_s.max() - requests.arrival_s.min())):
        return None
    return float(found.tokens.k_link.sum()) * placed.host_token_bytes / span

"""The hardware tables and kappa_crit from the sourced rows. The formulae are in `kappa`, the rates in `machines`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.hardware.costs import Machine
from pipelines.hardware.entities import KappaCrit, Model, OnPlatform, Pair, PaperModel
from pipelines.hardware.machines import GIVEN_LINK, Sources, named, read_sources
from pipelines.hardware.served import DEFAULT, Served, Serving, serve
from warehouse.declared.schema import Table
from warehouse.declared.tables import ACCELERATORS, KAPPA_CRIT, LINKS, MODELS, PLATFORMS
from warehouse.formulas import kappa
from warehouse.formulas import kv_bytes as cache
from warehouse.hardware_rows.names import find_name
from warehouse.hardware_rows.reference_tables import CALIBRATED, FITTED_NUMBERS, MEASURED
from warehouse.hardware_rows.rows import FOLDER, ReferenceKey, reference_key


@dataclass(frozen=True, slots=True)
class Ratios:
    """The ratios of one model on one platform: kappa_M in FLOP/byte, kappa_HW in byte/FLOP, kappa_crit."""

    kappa_m: float | None
    kappa_hw: float
    kappa_crit: float | None


def hardware_tables(folder: Path = FOLDER, user: Path | None = None) -> dict[str, pa.Table]:
    """Return the tables `models`, `accelerators`, `links`, `platforms`, `measured` and `kappa_crit`.

    Args:
        folder: Folder of kappa's CSV files of sourced rows.
        user: Folder of the user's, see `warehouse.hardware_rows.rows.load_reference`.

    Raises:
        KappaError: A sourced row is not usable.
    """
    return dict(_tables(reference_key(folder, user)))


# They follow from the sourced rows alone, and five steps of a run each ask for one or all of them.
@lru_cache(maxsize=8)
def _tables(key: ReferenceKey) -> Mapping[str, pa.Table]:
    sources = read_sources(key.folder, key.user)
    rows: dict[Table, Iterable[Any]] = {
        MODELS: sources.models.values(),
        ACCELERATORS: sources.accelerators.values(),
        LINKS: sources.links.values(),
        PLATFORMS: sources.platforms,
        MEASURED: sources.measured,
        FITTED_NUMBERS: sources.fitted_numbers,
        CALIBRATED: sources.calibrated,
        KAPPA_CRIT: [row for platform in sources.platforms for row in kappa_crit_rows(sources, platform)],
    }
    return {table.name: table.rows([asdict(row) for row in found]) for table, found in rows.items()}


def ratios(model: Model, machine: Machine, kv_dtype: str) -> Ratios:
    """Return the ratios of a model on a machine: exact bytes, 2 x active parameters.

    Args:
        model: Its sourced row.
        machine: Its rates.
        kv_dtype: A key of `cache.KV_ELEMENT_BYTES`.
    """
    hw = kappa.kappa_hw(machine.bytes_per_s, machine.flop_per_s)
    if model.kv_bytes_per_token is None or model.flops_per_token is None:
        return Ratios(None, hw, None)
    kv_bytes = cache.quantised_kv_bytes(model.kv_bytes_per_token, cache.KV_ELEMENT_BYTES[kv_dtype])
    m = kappa.kappa_m(model.flops_per_token, kv_bytes)
    return Ratios(m, hw, kappa.kappa_crit(m, hw))


def paper_ratios(model: PaperModel, machine: Machine, kv_dtype: str, printed_kappa_hw: float | None = None) -> Ratios:
    """Return the ratios of the paper's basis from the paper's inputs only.

    kappa_M and kappa_HW follow from the inputs. kappa_crit is the product of both as printed, because the paper's own
    kappa_crit are products of printed entries: 0.42 x 34 = 14.28. Two printed kappa_M are misprints (llama-3.1-70b,
    llama-3.1-405b). A rate without a printed kappa_HW (15, 900, 8000 GB/s) is multiplied unrounded.

    Args:
        model: The paper's figures of it.
        machine: Rates from the paper's inputs.
        kv_dtype: A key of `cache.KV_ELEMENT_BYTES`; the paper prints bf16, another format scales the bytes per token.
        printed_kappa_hw: The result of `printed_kappa_hw` for the platform, byte/FLOP.
    """
    element = cache.KV_ELEMENT_BYTES[kv_dtype]
    hw = kappa.kappa_hw(machine.bytes_per_s, machine.flop_per_s)
    flops = kappa.flops_per_token(model.active_params)
    m = kappa.kappa_m(flops, cache.quantised_kv_bytes(model.kv_bytes_per_token, element))
    printed = model.printed_kappa_m_flop_per_byte / cache.quantised_kv_bytes(1.0, element)
    return Ratios(m, hw, kappa.kappa_crit(printed, hw if printed_kappa_hw is None else printed_kappa_hw))


def printed_kappa_hw(sources: Sources, platform: OnPlatform) -> float | None:
    """Return kappa_HW of a platform in byte/FLOP as printed in the paper; None where it is not printed.

    Args:
        sources: The sourced rows.
        platform: One of `platforms`, or a pair outside it with its basis.
    """
    if platform.basis != "paper":
        return None
    return sources.printed_kappa_hw.get(f"/{platform.accelerator}/{platform.link}")


def kappa_crit_rows(
    sources: Sources,
    platform: OnPlatform,
    *,
    bytes_per_s: float | None = None,
    kv_dtypes: tuple[str, ...] = tuple(kappa.ELEMENT_BYTES),
    serving: Serving = DEFAULT,
) -> Iterator[KappaCrit]:
    """Yield kappa_crit for every model of a platform's basis.

    Args:
        sources: The sourced rows.
        platform: One of `platforms`, or a pair outside it with its basis.
        bytes_per_s: Replaces the link's bandwidth, one direction.
        kv_dtypes: Keys of `cache.KV_ELEMENT_BYTES`.
        serving: How the models are served; by default on the least GPUs that hold them, in the served format.
    """
    names = sources.paper_models if platform.basis == "paper" else sources.models
    for name in names:
        for kv_dtype in kv_dtypes:
            yield kappa_crit_row(sources, platform, name, kv_dtype, bytes_per_s=bytes_per_s, serving=serving)


def kappa_crit_row(  # noqa: PLR0913 - a model, a platform, and how it is served
    sources: Sources,
    platform: OnPlatform,
    name: str,
    kv_dtype: str,
    *,
    bytes_per_s: float | None = None,
    serving: Serving = DEFAULT,
) -> KappaCrit:
    """Return kappa_crit of one model on a platform; see `kappa_crit_rows`."""
    model = sources.models[name]
    served = serve(sources, platform, model, serving, kv_dtype=kv_dtype, bytes_per_s=bytes_per_s)
    factor = _loaded_once(served, model, serving)
    machine = replace(served.machine, flop_per_s=served.machine.flop_per_s / served.gpus)
    if platform.basis == "paper":
        printed = printed_kappa_hw(sources, platform) if bytes_per_s is None else None
        found = paper_ratios(sources.paper_models[name], machine, kv_dtype, printed)
    else:
        found = ratios(model, machine, kv_dtype)
    m, crit = _times(found.kappa_m, factor), _times(found.kappa_crit, factor)
    return KappaCrit(
        model=name,
        accelerator=platform.accelerator,
        link=platform.link,
        basis=platform.basis,
        kv_dtype=kv_dtype,
        kappa_m_flop_per_byte=m,
        kappa_hw_byte_per_flop=found.kappa_hw,
        kappa_crit=crit,
        tokenizer=model.tokenizer,
        tensor_parallel=served.gpus,
        weight_dtype=served.weight_dtype,
        compute_dtype=served.compute_dtype,
    )


def fitting_platforms(
    sources: Sources, accelerator: str | None, link: str | None, *, is_bandwidth_given: bool = False
) -> list[Pair]:
    """Return the platforms that fit; a sourced pair that is no platform on the physical basis is added.

    A given bandwidth is a link of its own. A question that names both accelerator and link also gets an answer on the
    physical basis, whether or not the paper pairs them, so that it never depends on the paper's inputs only. Names
    match in any case, see `warehouse.hardware_rows.names.find_name`.
    """
    places = sources.platforms
    accelerator = _spelled(accelerator, [*sources.accelerators, *(p.accelerator for p in places)])
    link = _spelled(link, [*sources.links, *(p.link for p in places)])
    of_link = [p for p in places if link in (None, p.link)]
    fits: list[Pair] = [p for p in of_link if accelerator in (None, p.accelerator)]
    is_physical = any(p.basis == "physical" for p in fits)
    if accelerator and not is_physical and _are_sourced(sources, accelerator, link, is_bandwidth_given):
        fits += [Pair(accelerator, link or GIVEN_LINK, "physical")]
    if is_bandwidth_given and link is None:
        pairs = dict.fromkeys((p.accelerator, p.basis) for p in fits)
        fits = [Pair(accelerator, GIVEN_LINK, basis) for accelerator, basis in pairs]
    return fits


def _spelled(name: str | None, names: list[str]) -> str | None:
    """Return a name in the tables' spelling; an unknown name is returned unchanged."""
    return name if name is None else find_name(name, sorted(set(names))) or name


def _are_sourced(sources: Sources, accelerator: str, link: str | None, is_bandwidth_given: bool) -> bool:
    """Return whether both rows of a pair exist, or a bandwidth replaces the link's."""
    is_rate_known = is_bandwidth_given or (link is not None and named(sources.links, link) is not None)
    return is_rate_known and named(sources.accelerators, accelerator) is not None


def _loaded_once(served: Served, model: Model, serving: Serving) -> float:
    """Return the share of the bytes that all links carry together which are not copies of others."""
    if serving.mla_attention == "data" and model.attention.startswith("mla"):
        return 1.0
    return kappa.tensor_parallel_factor(served.machine.tensor_parallel, model.kv_heads)


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor

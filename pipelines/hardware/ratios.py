"""The hardware tables and kappa_crit out of the sourced rows. The formulae are in `kappa`, the rates in `machines`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.hardware.costs import Machine
from pipelines.hardware.machines import GIVEN_LINK, Sources, machine_of, read_sources
from warehouse.declared.tables import ACCELERATORS, KAPPA_CRIT, LINKS, MODELS, PLATFORMS
from warehouse.formulas import kappa
from warehouse.formulas import kv_bytes as cache
from warehouse.hardware_rows.reference_tables import MEASURED
from warehouse.hardware_rows.rows import FOLDER

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ratios:
    """What one model gives on one platform: kappa_M in FLOP/byte, kappa_HW in byte/FLOP, kappa_crit."""

    kappa_m: float | None
    kappa_hw: float
    kappa_crit: float | None


def hardware_tables(folder: Path = FOLDER, user: Path | None = None) -> dict[str, pa.Table]:
    """Return the tables `models`, `accelerators`, `links`, `platforms`, `kappa_crit`, and `measured` beside them.

    Args:
        folder: Where the CSV files of sourced rows are.
        user: Where those of a user are, see `warehouse.hardware_rows.rows.load_reference`.

    Raises:
        KappaError: A sourced row cannot be used.
    """
    sources = read_sources(folder, user)
    return {
        "models": MODELS.rows(sources.rows["models"]),
        "accelerators": ACCELERATORS.rows(sources.rows["accelerators"]),
        "links": LINKS.rows(sources.rows["links"]),
        "platforms": PLATFORMS.rows(sources.rows["platforms"]),
        "measured": MEASURED.rows(sources.rows["measured"]),
        "kappa_crit": KAPPA_CRIT.rows([row for p in sources.rows["platforms"] for row in kappa_crit_rows(sources, p)]),
    }


def ratios(model: Row, machine: Machine, kv_dtype: str) -> Ratios:
    """Return the ratios of a model on a machine: exact bytes, 2 x active parameters.

    Args:
        model: A row of `models`.
        machine: Its rates.
        kv_dtype: A key of `cache.KV_ELEMENT_BYTES`.
    """
    hw = kappa.kappa_hw(machine.bytes_per_s, machine.flop_per_s)
    if model["kv_bytes_per_token"] is None or model["flops_per_token"] is None:
        return Ratios(None, hw, None)
    kv_bytes = cache.quantised_kv_bytes(model["kv_bytes_per_token"], cache.KV_ELEMENT_BYTES[kv_dtype])
    m = kappa.kappa_m(model["flops_per_token"], kv_bytes)
    return Ratios(m, hw, kappa.kappa_crit(m, hw))


def paper_ratios(model: Row, machine: Machine, kv_dtype: str, printed_kappa_hw: float | None = None) -> Ratios:
    """Return the ratios of the paper's basis, out of its own inputs alone.

    kappa_M and kappa_HW come from the inputs. kappa_crit is the product of both as the paper printed them, because its
    own kappa_crit are products of printed entries: 0.42 x 34 = 14.28. Two printed kappa_M are misprints
    (llama-3.1-70b, llama-3.1-405b). A rate of which no kappa_HW is printed (15, 900, 8000 GB/s) is multiplied as it is.

    Args:
        model: A row of `paper_models`.
        machine: Rates out of the paper's inputs.
        kv_dtype: A key of `cache.KV_ELEMENT_BYTES`; the paper prints bf16, another one scales the bytes per token.
        printed_kappa_hw: What `printed_kappa_hw` says of the platform, byte/FLOP.
    """
    element = cache.KV_ELEMENT_BYTES[kv_dtype]
    hw = kappa.kappa_hw(machine.bytes_per_s, machine.flop_per_s)
    flops = kappa.flops_per_token(model["active_params"])
    m = kappa.kappa_m(flops, cache.quantised_kv_bytes(model["kv_bytes_per_token"], element))
    printed = model["printed_kappa_m_flop_per_byte"] / cache.quantised_kv_bytes(1.0, element)
    return Ratios(m, hw, kappa.kappa_crit(printed, hw if printed_kappa_hw is None else printed_kappa_hw))


def printed_kappa_hw(sources: Sources, platform: Row) -> float | None:
    """Return kappa_HW of a platform in byte/FLOP as the paper prints it; None where it prints none.

    Args:
        sources: The sourced rows.
        platform: A row of `platforms`, or a pair that is none with its basis.
    """
    cell = ("kappa_hw_byte_per_flop", f"/{platform['accelerator']}/{platform['link']}")
    rows = sources.rows["published"] if platform["basis"] == "paper" else []
    return next((row["value"] for row in rows if (row["metric"], row["statistic"]) == cell), None)


def kappa_crit_rows(
    sources: Sources,
    platform: Row,
    *,
    bytes_per_s: float | None = None,
    kv_dtypes: tuple[str, ...] = tuple(kappa.ELEMENT_BYTES),
    tensor_parallel: int = 1,
) -> Iterator[Row]:
    """Yield rows of `kappa_crit` for every model of a platform's basis.

    Args:
        sources: The sourced rows.
        platform: A row of `platforms`, or a pair that is none with its basis.
        bytes_per_s: Takes the place of the link's bandwidth, one direction.
        kv_dtypes: Keys of `cache.KV_ELEMENT_BYTES`.
        tensor_parallel: GPUs that share each layer, each over its own link.
    """
    is_paper = platform["basis"] == "paper"
    printed = printed_kappa_hw(sources, platform) if bytes_per_s is None else None
    for model in sources.rows["paper_models" if is_paper else "models"]:
        shape = sources.named("models", model["model"]) or {}
        machine = machine_of(sources, platform, shape, bytes_per_s)
        factor = kappa.tensor_parallel_factor(tensor_parallel, shape["kv_heads"])
        for kv_dtype in kv_dtypes:
            of_model = paper_ratios(model, machine, kv_dtype, printed) if is_paper else ratios(model, machine, kv_dtype)
            yield {column: platform[column] for column in ("accelerator", "link", "basis")} | {
                "model": model["model"],
                "kv_dtype": kv_dtype,
                "kappa_m_flop_per_byte": _times(of_model.kappa_m, factor),
                "kappa_hw_byte_per_flop": of_model.kappa_hw,
                "kappa_crit": _times(of_model.kappa_crit, factor),
            }


def crit_rows(  # noqa: PLR0913 - every question is optional
    *,
    accelerator: str | None = None,
    link: str | None = None,
    bandwidth_bytes_per_s: float | None = None,
    tensor_parallel: int = 1,
    kv_dtypes: tuple[str, ...] = tuple(kappa.ELEMENT_BYTES),
    folder: Path = FOLDER,
    user: Path | None = None,
) -> list[Row]:
    """Return rows as of `kappa_crit` for the platforms that fit, or for a pair or a bandwidth that is not among them.

    Args:
        accelerator: only this one; None for every accelerator that has a platform.
        link: only this one; a pair that is in no platform is computed on the physical basis.
        bandwidth_bytes_per_s: takes the place of each link's bandwidth, one direction, bytes/s.
        tensor_parallel: GPUs that share each layer; each loads its own share of the cache over its own link.
        kv_dtypes: keys of `cache.KV_ELEMENT_BYTES`.
        folder: Where the CSV files of sourced rows are.
        user: Where those of a user are.
    """
    sources = read_sources(folder, user)
    fits = fitting_platforms(sources, accelerator, link, is_bandwidth_given=bandwidth_bytes_per_s is not None)
    options: dict[str, Any] = {"kv_dtypes": kv_dtypes, "tensor_parallel": tensor_parallel}
    return [row for p in fits for row in kappa_crit_rows(sources, p, bytes_per_s=bandwidth_bytes_per_s, **options)]


def fitting_platforms(
    sources: Sources, accelerator: str | None, link: str | None, *, is_bandwidth_given: bool = False
) -> list[Row]:
    """Return the platforms that fit; a pair that is none on the physical basis, whose rows are there, is added to it.

    A given bandwidth is a link of its own. What is asked for by both names is answered on the physical basis too,
    whether or not the paper pairs them, so that no question about a machine is left with the paper's inputs alone.
    Names are found whatever their case, see `warehouse.hardware_rows.names.find_name`.
    """
    accelerator, link = sources.spelled("accelerator", accelerator), sources.spelled("link", link)
    of_link = [p for p in sources.rows["platforms"] if link in (None, p["link"])]
    fits = [p for p in of_link if accelerator in (None, p["accelerator"])]
    is_physical = any(p["basis"] == "physical" for p in fits)
    if accelerator and not is_physical and _are_sourced(sources, accelerator, link, is_bandwidth_given):
        fits += [{"accelerator": accelerator, "link": link or GIVEN_LINK, "basis": "physical", "confidence": None}]
    if is_bandwidth_given and link is None:
        pairs = dict.fromkeys((p["accelerator"], p["basis"]) for p in fits)
        fits = [{"accelerator": a, "link": GIVEN_LINK, "basis": basis, "confidence": None} for a, basis in pairs]
    return fits


def _are_sourced(sources: Sources, accelerator: str, link: str | None, is_bandwidth_given: bool) -> bool:
    """Return whether the rows of a pair are there, or a bandwidth instead of the link's."""
    is_rate_known = is_bandwidth_given if link is None else is_bandwidth_given or sources.named("links", link)
    return bool(is_rate_known) and sources.named("accelerators", accelerator) is not None


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor

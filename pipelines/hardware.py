"""The hardware tables and kappa_crit out of the sourced rows. The formulae are in `kappa`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines import kappa
from warehouse.reference_rows import FOLDER, load_reference
from warehouse.tables import ACCELERATORS, KAPPA_CRIT, LINKS, MODELS, PLATFORMS

# Assumptions of the physical basis, not measurements of one machine: the share of the dense bf16 peak that prefill
# sustains. Reported are 0.5 to 0.63 for dense models and 0.16 to 0.36 for mixtures of experts.
SUSTAINED_FRACTION_DENSE = 0.55
SUSTAINED_FRACTION_MOE = 0.25

# What `kappa crit` calls the link whose bandwidth a person gave.
GIVEN_LINK = "given"

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ratios:
    """What one model gives on one platform: kappa_M in FLOP/byte, kappa_HW in byte/FLOP, kappa_crit."""

    kappa_m: float | None
    kappa_hw: float
    kappa_crit: float | None


def hardware_tables(folder: Path = FOLDER) -> dict[str, pa.Table]:
    """Return the tables `models`, `accelerators`, `links`, `platforms` and `kappa_crit`, each as declared.

    Args:
        folder: Where the CSV files of sourced rows are.

    Raises:
        KappaError: A sourced row cannot be used.
    """
    read = _read(folder)
    return {
        "models": MODELS.rows(read["models"]),
        "accelerators": ACCELERATORS.rows(read["accelerators"]),
        "links": LINKS.rows(read["links"]),
        "platforms": PLATFORMS.rows(read["platforms"]),
        "kappa_crit": KAPPA_CRIT.rows(_kappa_crit_rows(read)),
    }


def sustained_flop_per_s(dense_bf16_flop_per_s: float, *, is_moe: bool) -> float:
    """Return C_eff of the physical basis in FLOP/s: the dense bf16 peak x the fraction that prefill sustains.

    The fractions are assumptions, see `SUSTAINED_FRACTION_DENSE` and `SUSTAINED_FRACTION_MOE`. They hold for every
    kv_dtype: the matrices stay in bf16 whatever the cache is stored in.
    """
    return dense_bf16_flop_per_s * (SUSTAINED_FRACTION_MOE if is_moe else SUSTAINED_FRACTION_DENSE)


def physical_ratios(model: Row, accelerator: Row, link: Row, kv_dtype: str) -> Ratios:
    """Return the ratios of the physical basis: sustained compute, one direction, exact bytes.

    The bandwidth is what was measured on large pinned copies, or the peak where nothing was (`links.note` says so).

    Args:
        model: A row of `models`.
        accelerator: A row of `accelerators`.
        link: A row of `links`.
        kv_dtype: A key of `kappa.ELEMENT_BYTES`.
    """
    flop_per_s = sustained_flop_per_s(accelerator["dense_bf16_flop_per_s"], is_moe=model["is_moe"])
    hw = kappa.kappa_hw(link["sustained_bytes_per_s"] or link["peak_bytes_per_s"], flop_per_s)
    if model["kv_bytes_per_token"] is None or model["flops_per_token"] is None:
        return Ratios(None, hw, None)
    m = kappa.kappa_m(model["flops_per_token"], _at_dtype(model["kv_bytes_per_token"], kv_dtype))
    return Ratios(m, hw, kappa.kappa_crit(m, hw))


def paper_ratios(model: Row, accelerator: Row, link: Row, kv_dtype: str) -> Ratios:
    """Return the ratios of the paper's basis, out of its own inputs alone.

    kappa_M and kappa_HW come from the inputs. kappa_crit is the product with kappa_M as the paper printed it, because
    its own kappa_crit are products of printed entries; two of those are misprints (llama-3.1-70b, llama-3.1-405b).

    Args:
        model: A row of `paper_models`.
        accelerator: A row of `paper_accelerators`.
        link: A row of `paper_links`.
        kv_dtype: A key of `kappa.ELEMENT_BYTES`; the paper prints bf16, another one scales the bytes per token.
    """
    hw = kappa.kappa_hw(link["bytes_per_s"], accelerator["effective_flop_per_s"])
    flops = kappa.flops_per_token(model["active_params"])
    m = kappa.kappa_m(flops, _at_dtype(model["kv_bytes_per_token"], kv_dtype))
    printed = model["printed_kappa_m_flop_per_byte"] / _at_dtype(1.0, kv_dtype)
    return Ratios(m, hw, kappa.kappa_crit(printed, hw))


def _at_dtype(bf16_bytes: float, kv_dtype: str) -> float:
    return bf16_bytes * kappa.ELEMENT_BYTES[kv_dtype] / kappa.ELEMENT_BYTES["bf16"]


def _flops(model: Row) -> float | None:
    return None if model["active_params"] is None else kappa.flops_per_token(model["active_params"])


def _kappa_crit_rows(read: dict[str, list[Row]]) -> list[Row]:
    return [row for platform in read["platforms"] for row in _platform_rows(read, platform)]


def _platform_rows(read: dict[str, list[Row]], platform: Row, bytes_per_s: float | None = None) -> Iterator[Row]:
    """Yield the rows of `kappa_crit` for every model on one platform, by its own bandwidth or by a given one."""
    prefix, ratios_of = ("paper_", paper_ratios) if platform["basis"] == "paper" else ("", physical_ratios)
    accelerator = _named(read, f"{prefix}accelerators", "accelerator", platform["accelerator"])
    if bytes_per_s is None:
        link = _named(read, f"{prefix}links", "link", platform["link"])
    else:
        link = {"sustained_bytes_per_s": bytes_per_s, "peak_bytes_per_s": bytes_per_s, "bytes_per_s": bytes_per_s}
    for model in read[f"{prefix}models"]:
        for kv_dtype in kappa.ELEMENT_BYTES:
            ratios = ratios_of(model, accelerator, link, kv_dtype)
            yield {column: platform[column] for column in ("accelerator", "link", "basis")} | {
                "model": model["model"],
                "kv_dtype": kv_dtype,
                "kappa_m_flop_per_byte": ratios.kappa_m,
                "kappa_hw_byte_per_flop": ratios.kappa_hw,
                "kappa_crit": ratios.kappa_crit,
            }


def _named(read: dict[str, list[Row]], table: str, column: str, name: str) -> Row:
    return next(row for row in read[table] if row[column] == name)


def crit_rows(
    *,
    accelerator: str | None = None,
    link: str | None = None,
    bandwidth_bytes_per_s: float | None = None,
    tensor_parallel: int = 1,
    folder: Path = FOLDER,
) -> list[Row]:
    """Return rows as of `kappa_crit` for the platforms that fit, or for a pair or a bandwidth that is not among them.

    Args:
        accelerator: only this one; None for every accelerator that has a platform.
        link: only this one; a pair that is in no platform is computed on the physical basis.
        bandwidth_bytes_per_s: takes the place of each link's bandwidth, one direction, bytes/s.
        tensor_parallel: GPUs that share each layer; each loads its own share of the cache over its own link.
        folder: Where the CSV files of sourced rows are.
    """
    read = _read(folder)
    fits = [p for p in read["platforms"] if accelerator in (None, p["accelerator"]) and link in (None, p["link"])]
    if not fits and accelerator and (link or bandwidth_bytes_per_s):
        fits = [{"accelerator": accelerator, "link": link or GIVEN_LINK, "basis": "physical"}]
    if bandwidth_bytes_per_s and link is None:
        pairs = {(p["accelerator"], p["basis"]): None for p in fits}
        fits = [{"accelerator": name, "link": GIVEN_LINK, "basis": basis} for name, basis in pairs]
    rows = [row for platform in fits for row in _platform_rows(read, platform, bandwidth_bytes_per_s)]
    kv_heads = {row["model"]: row["kv_heads"] for row in read["models"]}
    is_mla = {row["model"]: row["attention"].startswith("mla") for row in read["models"]}
    return [_shared(row, tensor_parallel, 1 if is_mla[row["model"]] else kv_heads[row["model"]]) for row in rows]


def _shared(row: Row, tensor_parallel: int, kv_heads: int) -> Row:
    factor = kappa.tensor_parallel_factor(tensor_parallel, kv_heads)
    scaled = {
        name: None if row[name] is None else row[name] * factor for name in ("kappa_m_flop_per_byte", "kappa_crit")
    }
    return row | scaled


def _read(folder: Path) -> dict[str, list[Row]]:
    names = ("models", "accelerators", "links", "platforms", "paper_models", "paper_accelerators", "paper_links")
    read: dict[str, list[Row]] = {name: load_reference(name, folder).to_pylist() for name in names}
    return read | {"models": [row | {"flops_per_token": _flops(row)} for row in read["models"]]}

"""The rates behind a platform: which compute and which bandwidth each basis takes, as a `costs.Machine`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipelines.hardware.costs import Machine
from warehouse.declared.hardware_fields import INDEXER
from warehouse.formulas import kappa
from warehouse.hardware_rows.names import find_name
from warehouse.hardware_rows.rows import FOLDER, load_reference

# Assumptions of the physical basis, not measurements of one machine: the share of the dense bf16 peak that prefill
# sustains. Reported are 0.5 to 0.63 for dense models and 0.16 to 0.36 for mixtures of experts.
SUSTAINED_FRACTION_DENSE = 0.55
SUSTAINED_FRACTION_MOE = 0.25

# What `kappa crit` calls the link whose bandwidth a person gave.
GIVEN_LINK = "given"

Row = dict[str, Any]
_TABLES = (
    "models", "indexers", "accelerators", "links", "platforms", "measured",
    "paper_models", "paper_accelerators", "paper_links", "published",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sources:
    """The sourced rows by table, and what a person put in the place of an assumption.

    Attributes:
        rows: By table; `models` with FLOP a token and indexer, `platforms` with what was measured.
        sustained_fraction: Of the dense peak on the physical basis, above 0 and at most 1; None for the assumptions.
    """

    rows: dict[str, list[Row]]
    sustained_fraction: float | None = None

    def fraction(self, model: Row) -> float:
        """Return the share of the dense bf16 peak that prefill of a model sustains on the physical basis."""
        if self.sustained_fraction is not None:
            return self.sustained_fraction
        return SUSTAINED_FRACTION_MOE if model["is_moe"] else SUSTAINED_FRACTION_DENSE

    def named(self, table: str, name: str) -> Row | None:
        """Return the row of that name, the first column of the table, whatever its case; or None."""
        rows = self.rows[table]
        found = find_name(name, (next(iter(row.values())) for row in rows))
        return next((row for row in rows if next(iter(row.values())) == found), None)

    def spelled(self, column: str, name: str | None) -> str | None:
        """Return a model, accelerator or link in the tables' own spelling; a name that they do not know as it is."""
        known = {row[column] for row in (*self.rows[f"{column}s"], *self.rows["platforms"]) if column in row}
        return name if name is None else find_name(name, sorted(known)) or name


def read_sources(folder: Path = FOLDER, user: Path | None = None) -> Sources:
    """Return the sourced rows of kappa and of a user.

    Args:
        folder: Where the CSV files of kappa are.
        user: Where those of a user are, see `warehouse.hardware_rows.rows.load_reference`.

    Raises:
        KappaError: A sourced row cannot be used.
    """
    rows: dict[str, list[Row]] = {name: load_reference(name, folder, user).to_pylist() for name in _TABLES}
    indexers = {row["model"]: row for row in rows["indexers"]}
    rows["models"] = [
        row | {"flops_per_token": _flops(row)} | _indexer(indexers.get(row["model"], {})) for row in rows["models"]
    ]
    rows["platforms"] += [_measured_platform(row) for row in rows["measured"]]
    return Sources(rows)


def _flops(model: Row) -> float | None:
    return None if model["active_params"] is None else kappa.flops_per_token(model["active_params"])


def _indexer(row: Row) -> Row:
    return {field.name: row.get(field.name) for field in INDEXER}


def _measured_platform(row: Row) -> Row:
    runtime = f" ({row['runtime_version']})" if row["runtime_version"] else ""
    return {
        "accelerator": row["accelerator"],
        "link": row["link"],
        "basis": "measured",
        "note": f"{row['device_name']}, PyTorch {row['torch_version']}{runtime}",
        "retrieved": row["retrieved"],
        "confidence": "high",
        "source": row["source"],
    }


def physical_machine(accelerator: Row, link: Row, sustained_fraction: float) -> Machine:
    """Return the machine of the physical basis: dense bf16 peak x the fraction that prefill sustains, one direction.

    The fraction holds for every kv_dtype: the matrices stay in bf16 whatever the cache is stored in. The bandwidth is
    what was measured on large pinned copies, or the peak where nothing was (`links.note` says so).

    Args:
        accelerator: A row of `accelerators`.
        link: A row of `links`.
        sustained_fraction: See `Sources.fraction`.
    """
    return Machine(
        accelerator["dense_bf16_flop_per_s"] * sustained_fraction,
        link["sustained_bytes_per_s"] or link["peak_bytes_per_s"],
        accelerator["hbm_bytes_per_s"],
    )


def machine_of(sources: Sources, platform: Row, model: Row, bytes_per_s: float | None = None) -> Machine:
    """Return the machine of a platform for one model, by its basis; `bytes_per_s` takes the place of its link.

    Basis `measured` takes the measured matrix products as they are: an upper bound of what prefill sustains.

    Args:
        sources: The sourced rows.
        platform: A row of `platforms`, or a pair that is none with its basis.
        model: A row of `models`.
        bytes_per_s: One direction; None for what the platform's own link brings.
    """
    machine = _of_basis(sources, platform, model, bytes_per_s)
    return machine if bytes_per_s is None else replace(machine, bytes_per_s=bytes_per_s)


def _of_basis(sources: Sources, platform: Row, model: Row, bytes_per_s: float | None) -> Machine:
    accelerator, link = platform["accelerator"], platform["link"]
    if platform["basis"] == "paper":
        compute = _row(sources, "paper_accelerators", accelerator)["effective_flop_per_s"]
        rate = bytes_per_s or _row(sources, "paper_links", link)["bytes_per_s"]
        return Machine(compute, rate)
    if platform["basis"] == "measured":
        fits = [row for row in sources.rows["measured"] if row["accelerator"] == accelerator]
        row = next((row for row in fits if row["link"] == link), fits[0])
        return Machine(row["bf16_flop_per_s"], row["pinned_to_device_bytes_per_s"], row["hbm_bytes_per_s"])
    of_link = _row(sources, "links", link) if bytes_per_s is None else {"sustained_bytes_per_s": bytes_per_s}
    return physical_machine(_row(sources, "accelerators", accelerator), of_link, sources.fraction(model))


def _row(sources: Sources, table: str, name: str) -> Row:
    row = sources.named(table, name)
    if row is None:
        raise KeyError(f"{name} is not in {table}")
    return row

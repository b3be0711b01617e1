"""The rates of a platform: the compute and bandwidth of each basis as a `costs.Machine`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from pipelines.hardware.costs import Machine
from pipelines.hardware.entities import (
    Accelerator,
    Calibrated,
    FittedNumber,
    Headline,
    Link,
    Measured,
    Model,
    OnPlatform,
    PaperAccelerator,
    PaperLink,
    PaperModel,
    Platform,
    typed,
)
from warehouse.hardware_rows.names import find_name
from warehouse.hardware_rows.rows import FOLDER, ReferenceKey, load_reference, reference_key

# Assumptions of the physical basis, not measurements of one machine: the share of the dense bf16 peak that prefill
# sustains. Reports give 0.5 to 0.63 for dense models and 0.16 to 0.36 for mixtures of experts.
SUSTAINED_FRACTION_DENSE = 0.55
SUSTAINED_FRACTION_MOE = 0.25

# The name of a link whose bandwidth the user gave in `kappa crit`.
GIVEN_LINK = "given"

_TABLES = (
    "models", "accelerators", "links", "platforms", "measured",
    "paper_models", "paper_accelerators", "paper_links", "published", "headlines", "fitted_numbers", "calibrated",
)  # fmt: skip
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sources:
    """The sourced rows, by name where they have one, and the user's values for assumptions.

    Attributes:
        models: With the figures that are worked out.
        platforms: With the measured ones.
        printed_kappa_hw: In byte/FLOP as printed in the paper, by accelerator and link.
        sustained_fraction: Share of the dense peak on the physical basis, above 0 and at most 1; None for the
            assumptions.
    """

    models: Mapping[str, Model]
    accelerators: Mapping[str, Accelerator]
    links: Mapping[str, Link]
    measured: Sequence[Measured] = ()
    platforms: Sequence[Platform] = ()
    headlines: Sequence[Headline] = ()
    paper_models: Mapping[str, PaperModel] = field(default_factory=dict)
    paper_accelerators: Mapping[str, PaperAccelerator] = field(default_factory=dict)
    paper_links: Mapping[str, PaperLink] = field(default_factory=dict)
    printed_kappa_hw: Mapping[str, float] = field(default_factory=dict)
    sustained_fraction: float | None = None
    fitted_numbers: Sequence[FittedNumber] = ()
    calibrated: Sequence[Calibrated] = ()

    def fraction(self, model: Model) -> float:
        """Return the share of the dense bf16 peak that prefill of a model sustains on the physical basis."""
        if self.sustained_fraction is not None:
            return self.sustained_fraction
        return SUSTAINED_FRACTION_MOE if model.is_moe else SUSTAINED_FRACTION_DENSE


def named(rows: Mapping[str, T], name: str) -> T | None:
    """Return the row of that name in any case, or None."""
    found = find_name(name, rows)
    return None if found is None else rows[found]


def read_sources(folder: Path = FOLDER, user: Path | None = None) -> Sources:
    """Return the sourced rows of kappa and of a user.

    Args:
        folder: Folder of kappa's CSV files.
        user: Folder of the user's, see `warehouse.hardware_rows.rows.load_reference`.

    Raises:
        KappaError: A sourced row is not usable.
    """
    return _sources(reference_key(folder, user))


# Each table that is joined with hardware asks for them.
@lru_cache(maxsize=8)
def _sources(key: ReferenceKey) -> Sources:
    rows = {name: load_reference(name, key.folder, key.user).to_pylist() for name in _TABLES}
    measured = typed(Measured, rows["measured"])
    return Sources(
        models=by_name(typed(Model, rows["models"])),
        accelerators=by_name(typed(Accelerator, rows["accelerators"])),
        links=by_name(typed(Link, rows["links"])),
        measured=measured,
        platforms=[
            *typed(Platform, rows["platforms"]),
            *map(_measured_platform, measured),
            *_calibrated_platforms(typed(Calibrated, rows["calibrated"]), rows["platforms"], measured),
        ],
        headlines=typed(Headline, rows["headlines"]),
        fitted_numbers=typed(FittedNumber, rows["fitted_numbers"]),
        calibrated=typed(Calibrated, rows["calibrated"]),
        paper_models=by_name(typed(PaperModel, rows["paper_models"])),
        paper_accelerators=by_name(typed(PaperAccelerator, rows["paper_accelerators"])),
        paper_links=by_name(typed(PaperLink, rows["paper_links"])),
        printed_kappa_hw={
            row["statistic"]: row["value"] for row in rows["published"] if row["metric"] == "kappa_hw_byte_per_flop"
        },
    )


def by_name(rows: Iterable[T]) -> dict[str, T]:
    """Return rows by their first column, the name."""
    return {getattr(row, next(iter(row.__dataclass_fields__))): row for row in rows}  # type: ignore[attr-defined]


def _measured_platform(row: Measured) -> Platform:
    runtime = f" ({row.runtime_version})" if row.runtime_version else ""
    note = f"{row.device_name}, PyTorch {row.torch_version}{runtime}"
    return Platform(row.accelerator, row.link, "measured", note, row.retrieved, "high", row.source)


def _calibrated_platforms(
    calibrated: list[Calibrated], platforms: list[dict[str, Any]], measured: list[Measured]
) -> Iterable[Platform]:
    """Yield the links of each accelerator that was calibrated and not timed."""
    timed = {row.accelerator for row in measured}
    first = {row.accelerator: row for row in calibrated if row.accelerator not in timed}
    for row in platforms:
        if row["basis"] == "physical" and row["accelerator"] in first:
            of = first[row["accelerator"]]
            note = f"numbers fitted by `kappa calibrate` on {of.points} points"
            yield Platform(row["accelerator"], row["link"], "measured", note, of.retrieved, "high", of.source)


def measured_of(sources: Sources, platform: OnPlatform) -> Measured:
    """Return the measurement of an accelerator: over the named link, or over the first one."""
    fits = [row for row in sources.measured if row.accelerator == platform.accelerator]
    return next((row for row in fits if row.link == platform.link), fits[0])


def physical_machine(accelerator: Accelerator, bytes_per_s: float, sustained_fraction: float) -> Machine:
    """Return the machine of the physical basis: dense bf16 peak x the fraction that prefill sustains, one direction.

    The fraction is the same for every kv_dtype: the matrices stay in bf16 for any format of the cache.

    Args:
        accelerator: Its sourced row.
        bytes_per_s: One direction, see `Link.bytes_per_s`.
        sustained_fraction: See `Sources.fraction`.
    """
    return Machine(accelerator.dense_bf16_flop_per_s * sustained_fraction, bytes_per_s, accelerator.hbm_bytes_per_s)


def machine_of(sources: Sources, platform: OnPlatform, model: Model, bytes_per_s: float | None = None) -> Machine:
    """Return the machine of a platform for one model, by its basis; `bytes_per_s` replaces the link's bandwidth.

    Basis `measured` uses the measured matrix products unchanged: an upper bound of the sustained rate of prefill.

    Args:
        sources: The sourced rows.
        platform: One of `platforms`, or a pair outside it with its basis.
        model: Decides the sustained fraction.
        bytes_per_s: One direction; None for the bandwidth of the platform's own link.

    Raises:
        KeyError: a name has no sourced row of the basis.
    """
    accelerator, link = platform.accelerator, platform.link
    if platform.basis == "paper":
        compute = _row(sources.paper_accelerators, accelerator).effective_flop_per_s
        return Machine(compute, bytes_per_s or _row(sources.paper_links, link).bytes_per_s)
    if platform.basis == "measured" and any(row.accelerator == accelerator for row in sources.measured):
        row = measured_of(sources, platform)
        return Machine(row.bf16_flop_per_s, bytes_per_s or row.pinned_to_device_bytes_per_s, row.hbm_bytes_per_s)
    rate = bytes_per_s or _calibrated_rate(sources, platform) or _row(sources.links, link).bytes_per_s
    return physical_machine(_row(sources.accelerators, accelerator), rate, sources.fraction(model))


def _calibrated_rate(sources: Sources, platform: OnPlatform) -> float | None:
    fits = (row.value for row in sources.calibrated if row.accelerator == platform.accelerator
            and row.number == "link_bytes_per_s" and platform.basis == "measured")  # fmt: skip
    return next(fits, None)


def _row(rows: Mapping[str, T], name: str) -> T:
    row = named(rows, name)
    if row is None:
        raise KeyError(f"{name} is in no sourced row")
    return row

"""A user's figures beside those that kappa knows: what differs by just a unit's factor is refused, and says which."""

from __future__ import annotations

from typing import Any

from warehouse.hardware_rows.cells import failure
from warehouse.hardware_rows.files import Placed
from warehouse.hardware_rows.names import find_name, folded
from warehouse.hardware_rows.pcie import named_slot, slots
from warehouse.hardware_rows.shapes import figure
from warehouse.hardware_rows.units import mix_up

Row = dict[str, Any]

_RATES = ("dense_bf16_flop_per_s", "sparse_bf16_flop_per_s", "dense_fp8_flop_per_s", "sparse_fp8_flop_per_s")
_COMPARED = {
    "accelerators": (*_RATES, "dense_fp4_flop_per_s", "hbm_bytes", "hbm_bytes_per_s"),
    "links": ("peak_bytes_per_s",),
    "models": ("total_params", "active_params", "kv_bytes_per_token"),
}
_UNITS = {"hbm_bytes": "bytes", "total_params": "1", "active_params": "1", "kv_bytes_per_token": "bytes/token"}
_NEAR = 0.01
# A measurement may exceed a data sheet a little, where a chip boosts above its stated clock.
_BOOST = 1.25
_NOISE = 1.02


def check_against_known(name: str, theirs: list[Placed], own: list[Placed]) -> None:
    """Compare a user's rows with those of kappa whose names they begin with, and with figures that are known mix-ups.

    Args:
        name: The table.
        theirs: The user's rows.
        own: Those of kappa.

    Raises:
        KappaError: A figure differs by the factor of a mix-up.
    """
    for row in theirs if name in _COMPARED else ():
        known = _namesake(name, row, own)
        if known is not None:
            _check_namesake(name, row, known)
        if name == "accelerators":
            _check_sparse(row, own)
        if name == "links":
            _check_both_directions(row, own)


def _namesake(name: str, row: Placed, own: list[Placed]) -> Placed | None:
    """Return kappa's row with the longest name that the row's own begins with: h100-sxm for h100-sxm-ours."""
    key = name.removesuffix("s")
    given = folded(str(row.values[key]))
    fits = [other for other in own if given.startswith(folded(str(other.values[key])) + "-")]
    return max(fits, key=lambda other: len(str(other.values[key])), default=None)


def _check_namesake(name: str, row: Placed, known: Placed) -> None:
    key = name.removesuffix("s")
    for column in _COMPARED[name]:
        value, theirs = figure(row.values, column), figure(known.values, column)
        unit = _UNITS.get(column, "FLOP/s" if column.endswith("flop_per_s") else "bytes/s")
        # Half or twice the memory or the parameters is another product; half or twice a peak is a mix-up.
        is_doubled = column.startswith(("dense", "sparse", "peak"))
        why = mix_up(value, theirs, unit, is_doubled=is_doubled) if value and theirs else ""
        if why:
            raise failure(
                row.path, row.number, column,
                f"{value:g} is {why}; {known.values[key]!r} has {theirs:g}. If it is right, choose a name that "
                f"does not begin with {known.values[key]!r}",
            )  # fmt: skip


def _check_sparse(row: Placed, own: list[Placed]) -> None:
    """Refuse a dense peak that is some accelerator's peak with sparsity, unless the sparse one stands beside it."""
    for dtype in ("bf16", "fp8"):
        dense, sparse = f"dense_{dtype}_flop_per_s", f"sparse_{dtype}_flop_per_s"
        value = figure(row.values, dense)
        if value is None or figure(row.values, sparse) is not None:
            continue
        if any(_is_near(value, figure(other.values, dense)) for other in own):
            continue
        of = next((other for other in own if _is_near(value, figure(other.values, sparse))), None)
        if of is not None:
            raise failure(
                row.path, row.number, dense,
                f"{value:g} is the peak of {of.values['accelerator']} with sparsity; dense is half of it. "
                f"If it is dense, give {sparse} too",
            )  # fmt: skip


def _check_both_directions(row: Placed, own: list[Placed]) -> None:
    """Refuse what may be the sum of both directions, unless a measurement shows that one direction carries it."""
    peak = figure(row.values, "peak_bytes_per_s") or 0.0
    measured = max(figure(row.values, name) or 0.0 for name in ("sustained_bytes_per_s", "to_host_bytes_per_s"))
    if measured > peak / 2:
        return
    kind, is_named = row.values["kind"], named_slot(str(row.values["link"])) is not None
    doubled = {"c2c": _doubled_c2c, "pcie": _doubled_pcie}.get("" if is_named else str(kind))
    of = doubled and doubled(peak, [other.values for other in own if other.values["kind"] == kind])
    if of:
        named = ", or name its slot, like pcie5-x16-ours" if kind == "pcie" else ""
        raise failure(
            row.path, row.number, "peak_bytes_per_s",
            f"{peak:g} is twice the {of[0]:g} of {of[1]}: the sum of both directions for one? If one direction "
            f"carries it, show it by a measured sustained_bytes_per_s{named}",
        )  # fmt: skip


def _doubled_c2c(peak: float, own: list[Row]) -> tuple[float, str] | None:
    """Return the peak of a known link between chips that is half of this one, and its name."""
    return next(
        ((row["peak_bytes_per_s"], row["link"]) for row in own if _is_near(peak, 2 * row["peak_bytes_per_s"])), None
    )


def _doubled_pcie(peak: float, own: list[Row]) -> tuple[float, str] | None:
    """Return the rate of PCIe that is half of this one, and whose it is; None where this one is a rate itself.

    After coding a rate is one direction's. Before it, the 64 or 128 GB/s of a data sheet are one direction of a
    generation or both of the one before: they count as doubled. So do twice the measured rates, where the peak is
    above every link that was measured.
    """
    if any(_is_near(peak, rate) for rate in (*(s.coded for s in slots()), *(row["peak_bytes_per_s"] for row in own))):
        return None
    rates = [of for s in slots() for of in ((s.coded, f"{s.name} after coding"), (s.raw, f"{s.name} before coding"))]
    measured = [row for row in own if row["sustained_bytes_per_s"]]
    if peak > max(row["peak_bytes_per_s"] for row in measured):
        rates += [(row["sustained_bytes_per_s"], row["link"]) for row in measured]
    return next((of for of in rates if _is_near(peak, 2 * of[0])), None)


def _is_near(value: float, known: float | None) -> bool:
    return known is not None and abs(value - known) <= _NEAR * known


_BOUNDED = (
    ("bf16_flop_per_s", "accelerator", "dense_bf16_flop_per_s", _BOOST),
    ("fp8_flop_per_s", "accelerator", "dense_fp8_flop_per_s", _BOOST),
    ("hbm_bytes_per_s", "accelerator", "hbm_bytes_per_s", _BOOST),
    ("pinned_to_device_bytes_per_s", "link", "peak_bytes_per_s", _NOISE),
    ("pinned_to_host_bytes_per_s", "link", "peak_bytes_per_s", _NOISE),
)


def check_measured(rows: list[Placed], accelerators: list[Row], links: list[Row]) -> None:
    """Check measured rates against the peaks of the accelerator and the link that they are named after.

    A name in another case is put into the spelling of the tables.

    Args:
        rows: Rows of `measured`; machines that no table knows are not bounded.
        accelerators: Rows of `accelerators`.
        links: Rows of `links`.

    Raises:
        KappaError: A rate is above the peak.
    """
    known = {
        "accelerator": {row["accelerator"]: row for row in accelerators},
        "link": {row["link"]: row for row in links},
    }
    for path, number, values, _ in rows:
        for kind, names in known.items():
            values[kind] = find_name(str(values[kind]), names) or values[kind]
        for column, kind, peak_column, most in _BOUNDED:
            found = str(values[kind])
            peak = known[kind].get(found, {}).get(peak_column)
            value = figure(values, column)
            if value is not None and peak is not None and value > most * peak:
                unit = "FLOP/s" if column.endswith("flop_per_s") else "bytes/s"
                mixed = mix_up(value, peak, unit)
                why = f"{value:g} is above the peak {peak:g} of {found}" + (f"; it is {mixed}" if mixed else "")
                raise failure(path, number, column, f"{why}. Is it another {kind}, or another unit?")

"""The section on caches of a size: what they find, where tokens come from, and what then waits for the link."""

from __future__ import annotations

from reports.data import ReportData, Row, platform_of
from reports.figures import cache
from reports.format import listing, percent, percent_range
from reports.page import Grid
from warehouse.declared.formats import number, quantity

HOST_BYTES = 512e9
COLUMNS = (
    "workload", "model", "GPUs", "host memory", "hit ratio", "K_gpu", "K_link", "T_eff", "kappa_link p50",
    "kappa_link p99", "kappa_crit", "link bound turns", "compute bound", "nothing to load", "link bytes a request",
)  # fmt: skip


def sentence(data: ReportData) -> str:
    """Return what holds with 512 GB of host memory, next to the upper bound; empty where nothing is known of it."""
    found = {workload: _at(data, workload) for workload in cache.workloads_of(data)}
    parts = [
        f"{percent_range(shares)} of the turns of {workload}"
        for workload, rows in found.items()
        if (shares := [row["link_bound_turn_share"] for row in rows if row["link_bound_turn_share"] is not None])
    ]
    if not parts:
        return ""
    return (
        f"That is the upper bound of reuse: with {quantity(HOST_BYTES, 'B')} of host memory for the fewest GPUs that "
        f"hold a model, and what those GPUs still hold, it is {listing(parts)}."
    )


def _at(data: ReportData, workload: str) -> list[Row]:
    """Return the rows at 512 GB on the reference platform, of every headline model."""
    hardware = None if data.reference is None else data.reference.hardware
    return [
        row
        for row in data.cache.tiers
        if (row["workload"], row["host_bytes"], platform_of(row).hardware) == (workload, HOST_BYTES, hardware)
    ]


def intro(data: ReportData) -> str:
    """Return how a cache of a size is modelled."""
    served = listing([f"{workload} {_order(data, workload)}" for workload in cache.workloads_of(data)])
    return (
        "A cache of a size keeps blocks and evicts the least recently used; a prompt finds leading blocks up to the "
        "first that is gone. Tokens that the GPUs' own memory still holds (K_gpu) need no link, those in host memory "
        "(K_link) cross it, the rest (T_eff) is computed; the three add up to the prompts. A turn is link bound where "
        f"kappa_link = K_link / T_eff exceeds kappa_crit of the GPUs together. Served: {served}."
    )


def _order(data: ReportData, workload: str) -> str:
    row = next(row for row in data.cache.curves if row["workload"] == workload)
    if row["interleaving"] == 0:
        return f"in the order of its log, blocks of {row['block_tokens']} tokens"
    return f"{row['interleaving']} sessions at a time, a turn each in turn, blocks of {row['block_tokens']} tokens"


def capacity_caption(data: ReportData) -> str:
    """Return the caption of the curves."""
    where = data.reference.hardware if data.reference else "-"
    return (
        "Share of all prompt tokens that a cache of that many bytes finds. Thin lines: the optimum, which knows all "
        f"later prompts. Dots: the memory that a model's GPUs have left beside its weights on {where}, the fewest GPUs "
        "that hold it."
    )


def tiers_caption(data: ReportData) -> str:
    """Return the caption of the tiers."""
    where = data.reference.hardware if data.reference else "-"
    return (
        f"Of each workload the headline model that loads most on {where}, with its number of GPUs. Left: shares of all "
        "prompt tokens by origin. Right: K_link / T_eff over all turns; above kappa_crit a turn waits for the link."
    )


def grid(data: ReportData) -> Grid:
    """Return the table of headline models on the reference platform with 512 GB."""
    rows = [_cells(data, row) for workload in cache.workloads_of(data) for row in _at(data, workload)]
    caption = f"With {quantity(HOST_BYTES, 'B')} of host memory"
    return Grid("cache", caption, COLUMNS, rows, words=2)


def _cells(data: ReportData, row: Row) -> tuple[str, ...]:
    sums = [row[name] for name in cache.ORIGINS]
    total = max(sum(sums), 1)
    shares = ("link_bound_turn_share", "compute_bound_turn_share", "no_link_turn_share")
    return (
        row["workload"], data.model_label(row["model"], row["workload"]), number(row["gpus"]),
        quantity(row["host_bytes"], "B"), percent((sums[0] + sums[1]) / total), *(percent(one / total) for one in sums),
        number(row["kappa_link_p50"]), number(row["kappa_link_p99"]), number(row["kappa_crit"]),
        *(percent(row[name]) for name in shares), quantity(row["link_bytes_per_request"], "B"),
    )  # fmt: skip

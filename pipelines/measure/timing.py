"""The measurements of `kappa measure`: the sizes to time, and the resulting rows. It imports no device library."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any, Protocol

Row = dict[str, Any]

# Copies from 64 KiB, a small block of keys and values, to 1 GiB, where every link has reached its full rate.
COPY_BYTES = tuple(2**power for power in range(16, 31, 2))
PAGEABLE_BYTES = COPY_BYTES[:-1]
MATMUL_ROWS = 8192
DTYPES = ("bf16", "fp16", "fp8")
REPETITIONS = 7
HOST_LINK = "host-link"

# Names that drivers give to accelerators in the tables; the first match counts.
DEVICE_NAMES = (
    (r"A100-SXM4-40GB", "a100-sxm-40gb"),
    (r"A100-SXM", "a100-sxm-80gb"),
    (r"A100-PCIE-40GB", "a100-pcie-40gb"),
    (r"A100.*PCIe", "a100-pcie-80gb"),
    (r"GH200.*(144|141)", "gh200-144gb"),
    (r"GH200", "gh200-96gb"),
    (r"H200", "h200-sxm"),
    (r"H100 PCIe", "h100-pcie"),
    (r"H100.*HBM3", "h100-sxm"),
    (r"GB200", "gb200"),
    (r"B200", "b200-sxm"),
    (r"GB300", "gb300"),
    (r"B300", "b300-sxm"),
    (r"L40S", "l40s"),
    (r"\bL4\b", "l4"),
    (r"A10G", "a10g"),
    (r"\bA10\b", "a10"),
    (r"RTX 4090", "rtx-4090"),
    (r"RTX 5090", "rtx-5090"),
    (r"RTX PRO 6000", "rtx-pro-6000"),
    (r"MI300X", "mi300x"),
    (r"MI325X", "mi325x"),
    (r"MI355X", "mi355x"),
)


class Device(Protocol):
    """An accelerator that the command can time."""

    name: str
    library_version: str
    runtime_version: str | None

    def copy_seconds(self, memory: str, direction: str, size: int, repetitions: int) -> list[float]:
        """Return the seconds of copies of `size` bytes: memory pinned, pageable or device, direction to_device, ...."""

    def matmul_seconds(self, dtype: str, rows: int, repetitions: int) -> list[float] | None:
        """Return the seconds of products of two square matrices, warm and sustained; None without `dtype` support."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The results: the row of `measured`, and its rows of `measurements`."""

    summary: Row
    details: list[Row]


def accelerator_of(device_name: str) -> str:
    """Return the name of a device in the tables, or its own in lower case with hyphens.

    >>> accelerator_of("NVIDIA H100 80GB HBM3"), accelerator_of("Acme Cruncher 9")
    ('h100-sxm', 'acme-cruncher-9')
    """
    for pattern, name in DEVICE_NAMES:
        if re.search(pattern, device_name):
            return name
    return re.sub(r"[^a-z0-9.]+", "-", device_name.lower()).strip("-")


def measure(
    device: Device, *, accelerator: str, link: str, day: str, tell: Callable[[str], None] = lambda _: None
) -> Measured:
    """Time copies by size and matrix products by number format, and return the rows.

    A rate is that of the median repetition. The summary uses the largest copies; the details have the smaller ones.

    Args:
        device: The device to time.
        accelerator: Its name in the tables.
        link: The name of its link.
        day: Today, YYYY-MM-DD.
        tell: Called with the name of each measurement.
    """
    source = f"kappa measure on {device.name}, {day}"
    about = {
        "accelerator": accelerator, "link": link, "device_name": device.name, "retrieved": day, "source": source,
    }  # fmt: skip
    details = [about | row for row in (*_copies(device, tell), *_products(device, tell))]
    summary = {
        **about,
        **{f"{dtype}_flop_per_s": _matmul_rate(details, dtype) for dtype in DTYPES},
        "pinned_to_device_bytes_per_s": _copy_rate(details, "pinned", "to_device"),
        "pinned_to_host_bytes_per_s": _copy_rate(details, "pinned", "to_host"),
        "pageable_to_device_bytes_per_s": _copy_rate(details, "pageable", "to_device"),
        "pageable_to_host_bytes_per_s": _copy_rate(details, "pageable", "to_host"),
        "hbm_bytes_per_s": _copy_rate(details, "device", "inside"),
        "torch_version": device.library_version,
        "runtime_version": device.runtime_version,
        "is_example": False,
    }
    return Measured(summary, details)


def _copies(device: Device, tell: Callable[[str], None]) -> Iterator[Row]:
    ways = (
        ("pinned", "to_device", COPY_BYTES),
        ("pinned", "to_host", COPY_BYTES),
        ("pageable", "to_device", PAGEABLE_BYTES),
        ("pageable", "to_host", PAGEABLE_BYTES),
        ("device", "inside", COPY_BYTES[-1:]),
    )
    for memory, direction, sizes in ways:
        tell(f"copies, {memory} memory, {direction.replace('_', ' ')}")
        for size in sizes:
            seconds = median(device.copy_seconds(memory, direction, size, REPETITIONS))
            # A copy inside the accelerator reads and writes its memory.
            moved = 2 * size if memory == "device" else size
            names = {"quantity": "copy", "memory": memory, "direction": direction, "dtype": "bytes", "size": size}
            yield names | {"rate": moved / seconds, "rate_unit": "bytes/s"}


def _products(device: Device, tell: Callable[[str], None]) -> Iterator[Row]:
    for dtype in DTYPES:
        tell(f"matrix products, {dtype}")
        seconds = device.matmul_seconds(dtype, MATMUL_ROWS, REPETITIONS)
        if seconds is None:
            continue
        names = {"quantity": "matmul", "memory": "device", "direction": "inside", "dtype": dtype, "size": MATMUL_ROWS}
        # n^3 multiplications and n^3 additions.
        yield names | {"rate": 2 * MATMUL_ROWS**3 / median(seconds), "rate_unit": "FLOP/s"}


def _copy_rate(details: list[Row], memory: str, direction: str) -> float:
    fits = [row for row in details if (row["memory"], row["direction"], row["quantity"]) == (memory, direction, "copy")]
    return float(max(fits, key=lambda row: row["size"])["rate"])


def _matmul_rate(details: list[Row], dtype: str) -> float | None:
    return next((row["rate"] for row in details if (row["quantity"], row["dtype"]) == ("matmul", dtype)), None)

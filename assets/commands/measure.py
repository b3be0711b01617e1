"""`kappa measure`: times this machine's link and matrix products, and stores the row for the basis `measured`."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime

from pipelines.measure import timing
from pipelines.measure.timing import HOST_LINK, Device, Measured, accelerator_of
from pipelines.measure.torch_device import open_device
from warehouse.declared.formats import quantity
from warehouse.hardware_rows.rows import user_folder
from warehouse.hardware_rows.user_rows import put_rows
from warehouse.home.home import Home, home_path

_LINES = (
    ("host to device, pinned", "pinned_to_device_bytes_per_s", "B/s"),
    ("device to host, pinned", "pinned_to_host_bytes_per_s", "B/s"),
    ("host to device, pageable", "pageable_to_device_bytes_per_s", "B/s"),
    ("device to host, pageable", "pageable_to_host_bytes_per_s", "B/s"),
    ("device memory, read + write", "hbm_bytes_per_s", "B/s"),
    ("matrix products, bf16", "bf16_flop_per_s", "FLOP/s"),
    ("matrix products, fp16", "fp16_flop_per_s", "FLOP/s"),
    ("matrix products, fp8", "fp8_flop_per_s", "FLOP/s"),
)


def measure(options: argparse.Namespace) -> int:
    """Measure, store the rows in the home folder, and print them.

    Raises:
        KappaError: there is no accelerator, or the home folder is not writable.
    """
    device = open_device()
    home = Home(home_path(options.home))
    home.prepare()
    found = run(device, options.accelerator, options.link)
    user = user_folder(home.path)
    path = put_rows(user, "measured", [found.summary], ("accelerator", "link"))
    put_rows(user, "measurements", found.details, ("accelerator", "link"))
    then = f"kappa crit --accelerator {found.summary['accelerator']} --basis measured"
    sys.stdout.write(f"{summary_text(found)}\nkept in {path}; it answers to\n{then}\n")
    return 0


def run(device: Device, accelerator: str | None, link: str | None) -> Measured:
    """Measure a device under the given names, or under its own."""
    name = accelerator or accelerator_of(device.name)
    day = datetime.now(UTC).date().isoformat()
    return timing.measure(device, accelerator=name, link=link or HOST_LINK, day=day, tell=_tell)


def _tell(what: str) -> None:
    sys.stderr.write(f"kappa: {what}\n")


def summary_text(found: Measured) -> str:
    """Return the measurements as lines of text."""
    row = found.summary
    head = f"{row['device_name']} as {row['accelerator']} over {row['link']}, PyTorch {row['torch_version']}"
    return "\n".join([head, *(f"{label:<28} {quantity(row[name], unit):>14}" for label, name, unit in _LINES)])

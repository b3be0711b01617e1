"""`kappa calibrate`: fits the timing model's numbers to a user's measurements, for the basis `measured`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from pipelines.hardware.machines import read_sources
from pipelines.hardware.validation.calibrating import Calibration, read_points
from pipelines.hardware.validation.calibrating import calibrate as fitted
from warehouse.declared.formats import number
from warehouse.hardware_rows.rows import FOLDER, user_folder
from warehouse.hardware_rows.user_rows import put_rows
from warehouse.home.home import Home, home_path


def calibrate(options: argparse.Namespace) -> int:
    """Fit, store the numbers in the home folder, and print which of them the measurements settle.

    Raises:
        KappaError: the file is not usable, or the home folder is not writable.
    """
    home, path = Home(home_path(options.home)), Path(options.file)
    user = user_folder(home.path)
    sources = read_sources(FOLDER, user)
    found = fitted(read_points(path, sources), sources)
    home.prepare()
    day = datetime.now(UTC).date().isoformat()
    rows = [
        {
            "accelerator": of.accelerator,
            "number": fit.number,
            "value": fit.value,
            "least": fit.least,
            "most": fit.most,
            "is_identifiable": fit.is_identifiable,
            "points": of.points,
            "retrieved": day,
            "source": f"kappa calibrate: {path.name}",
        }
        for of in found
        for fit in of.numbers
    ]
    kept = put_rows(user, "calibrated", rows, ("accelerator",))
    sys.stdout.write(f"{calibration_text(found)}\nkept in {kept}; it answers to\n")
    for of in found:
        sys.stdout.write(f"kappa crit --accelerator {of.accelerator} --basis measured\n")
    return 0


def calibration_text(found: Sequence[Calibration]) -> str:
    """Return the numbers of each accelerator as lines of text."""
    lines = []
    for of in found:
        off = f"at most {number(of.worst_before)} times off before, {number(of.worst_after)} now"
        lines.append(f"{of.accelerator}: {of.points} measurements, {off}")
        for fit in of.numbers:
            settled = (
                "identifiable" if fit.is_identifiable else "not identifiable: more kinds of measurements are needed"
            )
            between = f"{number(fit.least)} to {number(fit.most)}"
            lines.append(f"  {fit.number:<20} {number(fit.value):>12}  {between}, {settled}")
    return "\n".join(lines)

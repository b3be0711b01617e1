"""The tables of sourced rows and what follows from them, a user's own rows included. No turn is read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from pipelines.hardware.machines import read_sources
from pipelines.hardware.ratios import hardware_tables
from pipelines.hardware.validation.table import validation
from pipelines.steps.product_names import home_of
from warehouse.hardware_rows.rows import FOLDER, load_reference, user_folder
from warehouse.home.staging import Staging


def user_rows(staging: Staging) -> Path:
    """Return the folder of the user's own rows, in the home folder that the products rest in."""
    return user_folder(home_of(staging))


def hardware(staging: Staging) -> dict[str, pa.Table]:
    """Return models, accelerators, links, platforms and kappa_crit."""
    return hardware_tables(FOLDER, user_rows(staging))


def validations(staging: Staging) -> pa.Table:
    """Return the public measurements with what the model predicts for them."""
    return validation(read_sources(FOLDER, user_rows(staging)))


def headlines(staging: Staging) -> pa.Table:
    """Return which models and platforms the report shows first."""
    return load_reference("headlines", FOLDER, user_rows(staging))


def published() -> pa.Table:
    """Return the figures that were published elsewhere."""
    return load_reference("published")

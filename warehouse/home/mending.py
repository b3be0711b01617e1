"""The note of a published generation, made again where it is missing or damaged: it says what readers have there."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from typing import Any

from warehouse.declared.tables import tables_identity
from warehouse.errors import KappaError
from warehouse.home.generation import NOTE, read_note, write_note
from warehouse.home.products import CONTENTS, Product
from warehouse.home.staging import Staging

WAREHOUSE = "warehouse"


def mend_note(folder: Path, real: Staging, sample: Staging) -> None:
    """Make the note of a generation again where it is missing or damaged.

    Args:
        folder: the generation.
        real: the products of the real data sets.
        sample: those of the sample.
    """
    with contextlib.suppress(KappaError):
        if not folder.is_dir() or read_note(folder) is not None:
            return
    number = int(folder.name)
    staged = [staging.newest(WAREHOUSE) for staging in (real, sample)]
    product = next((one for one in staged if one is not None and one.meta.get("generation") == number), None)
    if product is not None:
        note = {**note_of(product), "report": "", "files": product.meta[CONTENTS]}
    else:
        # Its contents are unknown: the next publication replaces it, and only a run of the same kind may.
        note = dict.fromkeys(("warehouse", "report", "content"), "")
        note |= {"generation": number, "is_sample": not real.names(WAREHOUSE), "series": []}
    write_note(folder, note)
    logging.getLogger("kappa").warning("%s was damaged or missing: it was made again", folder / NOTE)


def note_of(warehouse: Product) -> dict[str, Any]:
    """Return what a generation notes of the warehouse that it holds."""
    names = ("generation", "content", "is_sample", "series")
    noted = {name: warehouse.meta[name] for name in names}
    own_rows = warehouse.meta.get("own_rows", "")
    return {**noted, "warehouse": warehouse.identity, "tables": tables_identity(), "own_rows": own_rows}

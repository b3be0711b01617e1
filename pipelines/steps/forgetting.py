"""Removes the texts of own workloads that are not to be kept, once they are counted; a later count reads them again."""

from __future__ import annotations

import logging

from pipelines.sessions.messages import TEXTS
from pipelines.sessions.structures import STRUCTURES
from pipelines.steps.conversations import read_conversations
from pipelines.steps.product_names import conversations_name, home_of
from pipelines.workloads.declaration import Workload
from pipelines.workloads.known import own_workloads
from warehouse.home.products import CONTENTS, Product
from warehouse.home.staging import Staging

LOG = logging.getLogger("kappa")
HAS_TEXT = "has_text"


def forget_texts(staging: Staging) -> list[str]:
    """Remove the texts of own workloads with `keep_text = false` from staging; return the names of those workloads."""
    forgotten = []
    for name, workload in own_workloads(home_of(staging)).items():
        product = staging.newest(conversations_name(name))
        if (
            workload.keep_text
            or product is None
            or not any(product.file(file).exists() for file in (TEXTS, STRUCTURES))
        ):
            continue
        # The note first: a product whose noted files are gone would be read again.
        contents = {path: note for path, note in product.meta[CONTENTS].items() if path not in (TEXTS, STRUCTURES)}
        staging.amend(product, **{CONTENTS: contents, HAS_TEXT: False})
        for file in (TEXTS, STRUCTURES):
            product.file(file).unlink(missing_ok=True)
        LOG.info("%s: its texts are removed from the home folder", name)
        forgotten.append(name)
    return forgotten


def with_text(staging: Staging, workload: Workload) -> Product:
    """Return the conversations of a workload with their texts, which are read again where they were removed."""
    product = staging.require(conversations_name(workload.name))
    if product.meta.get(HAS_TEXT, True):
        return product
    staging.discard(product)
    return read_conversations(staging, workload)

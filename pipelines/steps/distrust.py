"""The note that the fast engine miscounted with a tokenizer; from then on the exact one counts everything."""

from __future__ import annotations

import logging

from pipelines.steps.inputs import ENGINES
from pipelines.steps.product_names import distrusted_name
from warehouse.home.products import Inputs, identity_of
from warehouse.home.staging import Staging
from warehouse.versions.installed import library_version

LOG = logging.getLogger("kappa")


def is_distrusted(staging: Staging, tokenizer: str, fingerprint: str) -> bool:
    """Whether a miscount by these versions of the engines is on record for a tokenizer."""
    return staging.find(distrusted_name(tokenizer), identity_of(**_distrusted_inputs(fingerprint))) is not None


def distrust(staging: Staging, tokenizer: str, fingerprint: str) -> None:
    """Put a miscount on record."""
    with staging.build(distrusted_name(tokenizer), inputs=_distrusted_inputs(fingerprint)):
        LOG.warning("%s: the fast engine is not used any more for this tokenizer", tokenizer)


def _distrusted_inputs(fingerprint: str) -> Inputs:
    engines = {name: library_version(name) for name in ENGINES}
    return {"step": "distrusted", "fingerprint": fingerprint, "engines": engines}

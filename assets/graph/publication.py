"""Report and publication, the two steps that need both the warehouse and the report pages."""

from __future__ import annotations

import logging

from pipelines.steps.building import WAREHOUSE
from pipelines.steps.inputs import inputs_of
from warehouse.home.generation import DATABASE
from warehouse.home.home import Home
from warehouse.home.products import Product, identity_of
from warehouse.home.staging import Staging

REPORT = "report"
LOG = logging.getLogger("kappa")


def stage_report(staging: Staging) -> Product:
    """Draw the report of the staged warehouse; reuse it if warehouse and code are unchanged."""
    from reports.report import write_report  # noqa: PLC0415 - drawing is slow to import

    warehouse = staging.require(WAREHOUSE)
    inputs = inputs_of(REPORT, warehouse=warehouse.identity)
    if (product := staging.reuse_whole(REPORT, identity_of(**inputs))) is not None:
        return product
    LOG.info("drawing the report")
    with staging.build(REPORT, inputs=inputs) as draft:
        files = write_report(warehouse.file(DATABASE), draft.folder)
        draft.meta.update(warehouse=warehouse.identity, files=[str(path.relative_to(draft.folder)) for path in files])
    return staging.require(REPORT)


def publish(home: Home, staging: Staging) -> int:
    """Publish the staged warehouse with its report as the current generation; return its number."""
    report = staging.require(REPORT)
    warehouse = staging.require(WAREHOUSE)
    if report.meta["warehouse"] != warehouse.identity:
        report = stage_report(staging)
    return home.publish(warehouse, report)

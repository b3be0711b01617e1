"""Dagster metadata of a table: its declared columns, row count, preview and check results."""

from __future__ import annotations

import logging
from typing import Any

import dagster as dg
import pyarrow as pa

from assets.graph.dictionary import dictionary
from reports.markdown import escape
from warehouse.checks.tables import Violation, counted
from warehouse.declared.formats import raw
from warehouse.declared.schema import Table

PREVIEW_ROWS = 8
DECLARED = "schema, NULLs, bounds and key as declared"
LOG = logging.getLogger("kappa")


def column_schema(table: Table) -> dg.TableSchema:
    """Return the declared columns with types, units and descriptions."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                field.name,
                str(field.type),
                description=field.comment(),
                constraints=dg.TableColumnConstraints(nullable=field.nullable),
                tags={"unit": field.unit.replace("/", "-per-").replace(" ", "-")}
                if field.unit not in ("", "%")
                else {},
            )
            for field in table.fields
        ]
    )


def table_dictionary(*tables: Table) -> dict[str, Any]:
    """Return the sections of docs/tables.md on these tables, as metadata of the asset that makes them."""
    return {"dictionary": dg.MetadataValue.md(dictionary(*tables))}


def definition_metadata(table: Table) -> dict[str, Any]:
    """Return the metadata of a table before it is made."""
    return {"dagster/column_schema": column_schema(table), "grain": table.grain, "key": ", ".join(table.key)}


def table_metadata(data: pa.Table) -> dict[str, Any]:
    """Return the row count and the first rows of a table."""
    return {"dagster/row_count": data.num_rows, "preview": dg.MetadataValue.md(markdown(data.slice(0, PREVIEW_ROWS)))}


def markdown(data: pa.Table) -> str:
    """Return rows as a Markdown table with markup escaped."""
    lines = ["| " + " | ".join(data.column_names) + " |", "|" + "---|" * data.num_columns]
    lines += ["| " + " | ".join(_cell(value) for value in row.values()) + " |" for row in data.to_pylist()]
    return "\n".join(lines)


def _cell(value: object) -> str:
    return escape(raw(value))[:400]


def check_result(
    where: str, name: str, found: list[Violation], severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR
) -> dg.AssetCheckResult:
    """Return the result of a check of the product `where`, with the rows that break it, and log a line if it fails."""
    metadata: dict[str, Any] = {
        f"{violation.rule} ({counted(violation.count, 'row')})": dg.MetadataValue.md(markdown(violation.rows))
        for violation in found
    }
    summary = "; ".join(violation.sentence for violation in found)
    if found:
        LOG.warning("%s: %s", where, summary)
    return dg.AssetCheckResult(
        passed=not found, check_name=name, severity=severity, metadata=metadata, description=summary or "holds"
    )

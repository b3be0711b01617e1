"""The data dictionary as Markdown, for docs/tables.md and Dagster."""

from __future__ import annotations

from warehouse.declared.fields import REASON
from warehouse.declared.schema import Table


def dictionary(*tables: Table) -> str:
    """Return a section for each table, and the reject reasons if a table has that column."""
    parts = [_section(table) for table in tables]
    if any(REASON in table.fields for table in tables):
        parts.append(_reasons())
    return "\n".join(parts)


def _section(table: Table) -> str:
    key = ", ".join(f"`{name}`" for name in table.key) or "none"
    kind = "View. " if table.is_view else ""
    lines = [f"## {table.name}\n", f"{kind}One row: {table.grain}. Key: {key}.\n"]
    return "\n".join([*lines, table.dictionary()]) + "\n"


def _reasons() -> str:
    lines = [f"| `{reason}` | {meaning} |" for reason, meaning in zip(REASON.values, REASON.meanings, strict=True)]
    return "\n".join(["## Reasons in `rejects`\n\n| reason | meaning |\n|---|---|", *lines])

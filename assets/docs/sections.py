"""The generated sections of docs/kappa-crit.md: the printed values of the paper, as in the report, and the formulae."""

from __future__ import annotations

import inspect
import re
import tempfile
from pathlib import Path
from typing import Any


def with_sections(text: str) -> str:
    """Return the page with its generated sections replaced; each is between `<!-- name -->` and `<!-- end -->`."""
    sections = {"printed values": printed_values, "formulae": formulae}

    def section(match: re.Match[str]) -> str:
        return f"<!-- {match[1]} -->\n{sections[match[1]]()}\n<!-- end -->"

    return re.sub(rf"<!-- ({'|'.join(sections)}) -->\n.*?<!-- end -->", section, text, flags=re.DOTALL)


def printed_values() -> str:
    """Return the report's tables of printed values, for a warehouse without workloads."""
    from reports.markdown import table  # noqa: PLC0415 - the other pages need none of it
    from reports.sections.paper import READING, grids_of  # noqa: PLC0415

    return "\n\n".join([READING, *map(table, grids_of(paper_values()))])


def paper_values() -> list[dict[str, Any]]:
    """Return the view `paper_values` of a database with only the sourced tables."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    from pipelines.hardware.machines import read_sources  # noqa: PLC0415
    from pipelines.hardware.ratios import hardware_tables  # noqa: PLC0415
    from pipelines.hardware.validation.table import validation  # noqa: PLC0415
    from warehouse.database.build import build_database  # noqa: PLC0415
    from warehouse.database.engine import fetch, read_only  # noqa: PLC0415
    from warehouse.declared.tables import TABLES  # noqa: PLC0415
    from warehouse.hardware_rows.rows import load_reference  # noqa: PLC0415

    tables = {
        **hardware_tables(),
        "published": load_reference("published"),
        "validation": validation(read_sources()),
    }
    with tempfile.TemporaryDirectory() as folder:
        files: dict[str, list[Path]] = {name: [] for name, table in TABLES.items() if not table.is_view}
        for name in files.keys() & tables.keys():
            files[name] = [Path(folder) / f"{name}.parquet"]
            pq.write_table(tables[name], files[name][0])
        path = Path(folder) / "warehouse.duckdb"
        build_database(path, files)
        with read_only(path) as connection:
            return list(fetch(connection, "FROM paper_values").to_pylist())


def formulae() -> str:
    """Return the table of formulae: call, result, source."""
    from warehouse.formulas.catalogue import first_words, formulas, source_of  # noqa: PLC0415

    lines = ["| formula | what it returns | source |", "|---|---|---|"]
    for name, function in formulas().items():
        call = f"{name}({', '.join(inspect.signature(function).parameters)})"
        lines.append(f"| `{call}` | {first_words(function)} | {source_of(function)} |")
    return "\n".join(lines)

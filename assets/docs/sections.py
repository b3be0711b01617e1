"""The generated sections of docs/kappa-crit.md: the printed values of the paper, as in the report, and the formulae."""

from __future__ import annotations

import inspect
import math
import re
import tempfile
from pathlib import Path
from typing import Any

_POINTS = (
    "| point | class | model | accelerator | GPUs | K | T | quantity | measured | predicted / measured | held out "
    "| source |"
)


def with_sections(text: str) -> str:
    """Return the page with its generated sections replaced; each is between `<!-- name -->` and `<!-- end -->`."""
    sections = {"printed values": printed_values, "formulae": formulae, "errors": errors, "points": points}

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


def errors() -> str:
    """Return the errors of each class, and how many points are within factors of 1.5 and 2."""
    from warehouse.declared.formats import number  # noqa: PLC0415

    scored = [row for row in _validation() if row["is_scored"]]
    lines = ["| class | points | mean factor | worst | held out: mean | worst |", "|---|---:|---:|---:|---:|---:|"]
    for name in dict.fromkeys(row["error_class"] for row in scored):
        rows = [row for row in scored if row["error_class"] == name]
        cells = []
        for column in ("factor", "held_out_factor"):
            values = [row[column] for row in rows]
            cells += [math.exp(sum(map(math.log, values)) / len(values)), max(values)]
        lines.append(f"| {name} | {len(rows)} | {' | '.join(number(cell) for cell in cells)} |")
    counts = {(column, limit): sum(row[column] <= limit for row in scored)
              for column in ("factor", "held_out_factor") for limit in (1.5, 2.0)}  # fmt: skip
    ours, held = ([counts[column, limit] for limit in (1.5, 2.0)] for column in ("factor", "held_out_factor"))
    total = number(len(scored))
    within = (
        f"Within a factor of 1.5 and of 2, of {total} points: {ours[0]} and {ours[1]}; "
        f"held out {held[0]} and {held[1]}."
    )
    return "\n".join([*lines, "", within])


def points() -> str:
    """Return every public measurement with its prediction."""
    from warehouse.declared.formats import number  # noqa: PLC0415

    lines = [
        _POINTS,
        "|---|---|---|---|---:|---:|---:|---|---:|---:|---:|---|",
    ]
    for row in _validation():
        ratios = [number(row[name] / row["measured"]) if row[name] is not None else "-"
                  for name in ("predicted", "held_out")]  # fmt: skip
        about = (row["point"], row["error_class"], row["model"] or "-", row["accelerator"] or "-")
        counts = (number(row[name]) for name in ("gpus", "cached_tokens", "new_tokens"))
        cells = (*about, *counts, row["quantity"], number(row["measured"]), *ratios, row["source"])
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _validation() -> list[dict[str, Any]]:
    from pipelines.hardware.machines import read_sources  # noqa: PLC0415
    from pipelines.hardware.validation.table import validation  # noqa: PLC0415

    return list(validation(read_sources()).to_pylist())


def formulae() -> str:
    """Return the table of formulae: call, result, source."""
    from warehouse.formulas.catalogue import first_words, formulas, source_of  # noqa: PLC0415

    lines = ["| formula | what it returns | source |", "|---|---|---|"]
    for name, function in formulas().items():
        call = f"{name}({', '.join(inspect.signature(function).parameters)})"
        lines.append(f"| `{call}` | {first_words(function)} | {source_of(function)} |")
    return "\n".join(lines)

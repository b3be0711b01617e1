"""Writes rows that kappa itself adds to a user's own, so that they are read like any other."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from warehouse.errors import KappaError
from warehouse.hardware_rows.reference_tables import REFERENCE
from warehouse.hardware_rows.rows import check_new_rows, load_reference
from warehouse.home.atomic import whole


def put_rows(user: Path, name: str, rows: list[dict[str, Any]], replacing: tuple[str, ...]) -> Path:
    """Add rows to HOME/reference/`name`.csv, in the place of those with the same `replacing` columns.

    The file is whole at any moment. Rows of a user that stand there already are kept. All are checked before they are
    written, so that a file that kappa writes can be read again.

    Args:
        user: The folder of a user's own rows.
        name: A key of `REFERENCE`.
        rows: What to add, one value a column.
        replacing: Columns that tell whose rows are replaced.

    Raises:
        KappaError: the file that is there cannot be used, a new row cannot, or the file cannot be written.
    """
    table, path = REFERENCE[name], user / f"{name}.csv"
    news = {tuple(row[column] for column in replacing) for row in rows}
    kept = [row for row in load_reference(name, user=user).to_pylist() if tuple(row[c] for c in replacing) not in news]
    lines = [[_cell(row[column]) for column in table.names] for row in (*kept, *rows)]
    check_new_rows(name, path, [dict(zip(table.names, line, strict=True)) for line in lines], user)
    try:
        user.mkdir(parents=True, exist_ok=True)
        with whole(path) as raw, io.TextIOWrapper(raw, encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([table.names, *lines])
    except OSError as error:
        raise KappaError(
            f"{path} could not be written", error.strerror or str(error), "choose another --home, or free disk space"
        ) from error
    return path


def _cell(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)

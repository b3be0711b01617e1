"""Writes rows that kappa adds to a user's own; they are read like any other row."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from warehouse.errors import KappaError, write_code
from warehouse.hardware_rows.reference_tables import REFERENCE
from warehouse.hardware_rows.rows import check_file, load_reference
from warehouse.home.atomic import whole


def put_rows(user: Path, name: str, rows: list[dict[str, Any]], replacing: tuple[str, ...]) -> Path:
    """Add rows to HOME/reference/`name`.csv; they replace rows with the same values in the `replacing` columns.

    The file is replaced atomically. A user's other rows are kept. The new content is checked before it is written.

    Args:
        user: The folder of a user's own rows.
        name: A key of `REFERENCE`.
        rows: The rows to add, with a value for each column.
        replacing: The columns that identify the rows to replace.

    Raises:
        KappaError: the existing file or a new row is invalid, or the file cannot be written.
    """
    columns, path = REFERENCE[name].names, user / f"{name}.csv"
    news = {tuple(row[column] for column in replacing) for row in rows}
    kept = [row for row in load_reference(name, user=user).to_pylist() if tuple(row[c] for c in replacing) not in news]
    text = io.StringIO(newline="")
    lines = ([_cell(row[column]) for column in columns] for row in (*kept, *rows))
    csv.writer(text, lineterminator="\n").writerows([columns, *lines])
    data = text.getvalue().encode()
    check_file(name, path, data, user)
    try:
        user.mkdir(parents=True, exist_ok=True)
        with whole(path) as file:
            file.write(data)
    except OSError as error:
        why = error.strerror or str(error)
        raise KappaError(
            f"{path} could not be written", why, "choose another --home, or free disk space", code=write_code(error)
        ) from error
    return path


def _cell(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value

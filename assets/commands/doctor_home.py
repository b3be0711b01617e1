"""The checks of `kappa doctor` on a home folder: generations, staging, leftovers of killed runs. Read only."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pipelines.hardware.machines import read_sources
from warehouse.database.engine import fetch, first_line, read_only
from warehouse.database.spill import left_spilled
from warehouse.declared.formats import quantity
from warehouse.declared.tables import TABLES
from warehouse.errors import ErrorCode, KappaError
from warehouse.hardware_rows.files import waiting_rows
from warehouse.hardware_rows.reference_tables import USER_TABLES
from warehouse.hardware_rows.rows import FOLDER, load_reference, unread_files, user_files, user_folder
from warehouse.home.generation import DATABASE, LAKE, NOTE, REPORT
from warehouse.home.home import Home
from warehouse.home.locks import is_held
from warehouse.home.publishing import KEPT_GENERATIONS, KEPT_S

HISTORY = Path("dagster") / "history" / "runs.db"
OPEN_RUNS = """
SELECT count(DISTINCT r.run_id) FROM runs r JOIN run_tags t ON r.run_id = t.run_id
WHERE t.key = 'kappa/process' AND r.status IN ('STARTING', 'STARTED', 'CANCELING')
"""


def usable(home: Home) -> str:
    """Return a line that the folder is writable, or will be created.

    Raises:
        KappaError: it holds another layout.
        PermissionError: it cannot be written.
    """
    parent = next(path for path in (home.path, *home.path.parents) if path.exists())
    if not os.access(parent, os.W_OK):
        raise PermissionError(13, "cannot be written", str(parent))
    home.check_layout()
    return f"{home.path} {'can be written' if home.path.exists() else 'will be created'}"


def own_rows(home: Home) -> str:
    """Return the files of a user's own rows, after reading and checking every row.

    Raises:
        KappaError: a file is invalid; the message is that of `kappa run` and `kappa crit`.
    """
    user = user_folder(home.path)
    read_sources(FOLDER, user)
    for name in USER_TABLES:
        load_reference(name, FOLDER, user)
    files = ", ".join(path.name for path in user_files(user)) or "none"
    with contextlib.suppress(KappaError):
        files += f"; {waiting}" if (waiting := waiting_rows(home.path, home.current_note())) else ""
    return files


def beside_own_rows(home: Home) -> str:
    """Return a line that no file among a user's own rows is ignored.

    Raises:
        KappaError: one or more are ignored.
    """
    unread = unread_files(user_folder(home.path))
    if unread:
        what = ", ".join(error.what.removesuffix(" is not read") for error in unread)
        raise KappaError(
            f"{what} {'is' if len(unread) == 1 else 'are'} not read",
            unread[0].why,
            unread[0].remedy,
            code=unread[0].code,
        )
    return "nothing"


def warehouse(home: Home) -> str:
    """Return a description of the current generation, after reading all its tables.

    Raises:
        KappaError: it is missing, damaged, open for writing, or of another version of kappa.
    """
    note = home.current_note()
    if note is None:
        if home.current.is_symlink():
            why, remedy = "its generation or note is gone", "run `kappa run` again"
            raise KappaError(f"{home.current} leads nowhere", why, remedy, code=ErrorCode.MISSING)
        return "none yet: `kappa run --sample` or `kappa run` builds one"
    _whole(home, note, DATABASE)
    kind = "sample" if note["is_sample"] else "real data sets"
    rows = _rows(home, note)
    return f"generation {note['generation']} ({kind}), {len(note['series'])} series, {rows['turns']:,} turns"


def _whole(home: Home, note: dict[str, Any], part: str) -> None:
    """Raise KappaError if files of that part differ from those published; the message names each."""
    if found := home.faults(part):
        raise KappaError(
            f"{home.current.resolve()} is not whole", "; ".join(found), _again(note), code=ErrorCode.DAMAGED
        )


def _again(note: dict[str, Any]) -> str:
    return f"run `kappa run{' --sample' if note['is_sample'] else ''}`, which publishes it anew"


def _rows(home: Home, note: dict[str, Any]) -> dict[str, int]:
    """Return the number of rows of each stored table."""
    path = home.database()
    try:
        with read_only(path) as connection:
            names = [name for name, table in TABLES.items() if not table.is_view]
            # The hash reads every value; count(*) reads only the file's metadata.
            query = 'SELECT count(*) AS n, bit_xor(hash(t)) AS h FROM "{}" t'
            counts = [fetch(connection, query.format(name)) for name in names]
        return {name: count["n"][0].as_py() for name, count in zip(names, counts, strict=True)}
    except KappaError:
        raise
    except Exception as error:
        raise KappaError(f"{path} is damaged", first_line(error), _again(note), code=ErrorCode.DAMAGED) from error


def lake(home: Home) -> str:
    """Return the number of Parquet files in the lake and their size.

    Raises:
        KappaError: a Parquet file is missing, differs from the published one, or was added.
    """
    return _part(home, LAKE, "*.parquet", "Parquet files")


def report(home: Home) -> str:
    """Return the number of files of the report and their size.

    Raises:
        KappaError: a file is missing or differs from the published one.
    """
    return _part(home, REPORT, "*", "files")


def _part(home: Home, part: str, pattern: str, kind: str) -> str:
    note = home.current_note()
    if note is None:
        return "none yet"
    _whole(home, note, part)
    files = [path for path in (home.current / part).resolve().rglob(pattern) if path.is_file()]
    return f"{len(files)} {kind}, {_size(files)}"


def generations(home: Home) -> str:
    """Return the stored generations with their sizes, and which of them the next publication keeps.

    Raises:
        KappaError: a generation has no note, so it is incomplete.
    """
    parts = []
    for number in home.numbers():
        folder = home.generations / str(number)
        if not (folder / NOTE).is_file():
            raise KappaError(f"{folder} is not whole", f"it has no {NOTE}", "move it away", code=ErrorCode.DAMAGED)
        parts.append(f"{number} ({_size(folder.rglob('*'))})")
    if not parts:
        return "none yet"
    return f"{', '.join(parts)}; the last {KEPT_GENERATIONS} stay, and what was replaced within {KEPT_S // 60} minutes"


def staging(home: Home) -> str:
    """Return the number of products in staging and their size."""
    parts = []
    for name, is_sample in (("real data sets", False), ("sample", True)):
        products = home.staging(is_sample=is_sample)
        if names := products.names(""):
            parts.append(f"{name}: {len(names)} products, {_size(products.root.rglob('*'))}")
    return "; ".join(parts) or "empty"


def left_over(home: Home) -> str:
    """Return a line that killed runs left nothing, or that a run is going on.

    Raises:
        KappaError: a killed run left something; the next run removes it.
    """
    drafts = [path for is_sample in (False, True) for path in home.staging(is_sample=is_sample).drafts()]
    working = [path for path in drafts if is_held(path)]
    if working or home.is_locked("run"):
        return f"a run is going on ({len(working)} steps write)"
    stale, runs = [*drafts, *home.left_over(), *left_spilled()], _open_runs(home)
    if stale or runs:
        what = f"{len(stale)} stale folders and files ({_size(stale)}) and {runs} unfinished runs are left"
        remedy = "the next `kappa run` takes them away and goes on from there"
        raise KappaError(what, "a run was killed", remedy, code=ErrorCode.LEFT_OVER)
    return "nothing"


def _open_runs(home: Home) -> int:
    """Return the number of runs of `kappa run` marked as running in Dagster's history, opened read only."""
    path = home.path / HISTORY
    if not path.is_file():
        return 0
    # SQLite creates a file next to a journalled database even to read it; `immutable` also works in a read-only home.
    for mode in ("mode=ro", "immutable=1"):
        with (
            contextlib.suppress(sqlite3.OperationalError),
            contextlib.closing(sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True)) as connection,
        ):
            return int(connection.execute(OPEN_RUNS).fetchone()[0])
    raise KappaError(
        f"{path} cannot be read",
        "SQLite does not open it",
        "mend permissions, or move it away",
        code=ErrorCode.NOT_READABLE,
    )


def _size(paths: Iterable[Path]) -> str:
    """Return the size of files, and of all files in folders, each counted once."""
    files = {file for path in paths for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file()}
    return quantity(sum(file.stat().st_size for file in files), "B")

"""What `kappa doctor` finds in a home folder: generations, staging, what killed runs left. It only looks."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pipelines.hardware.machines import read_sources
from warehouse.database.engine import fetch, read_only
from warehouse.database.spill import left_spilled
from warehouse.declared.formats import quantity
from warehouse.declared.tables import TABLES
from warehouse.errors import ErrorCode, KappaError
from warehouse.hardware_rows.reference_tables import USER_TABLES
from warehouse.hardware_rows.rows import FOLDER, load_reference, unread_files, user_files, user_folder
from warehouse.home.generation import DATABASE, LAKE, NOTE, REPORT, SPILL, WAL, is_open
from warehouse.home.home import KEPT_GENERATIONS, KEPT_S, Home
from warehouse.home.locks import is_held

HISTORY = Path("dagster") / "history" / "runs.db"
OPEN_RUNS = """
SELECT count(DISTINCT r.run_id) FROM runs r JOIN run_tags t ON r.run_id = t.run_id
WHERE t.key = 'kappa/process' AND r.status IN ('STARTING', 'STARTED', 'CANCELING')
"""


def usable(home: Home) -> str:
    """Return that the folder can be written, or will be created.

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
    """Return which files of a user's own rows there are, after reading and checking every row.

    Raises:
        KappaError: one cannot be used, in the words of `kappa run` and `kappa crit`.
    """
    user = user_folder(home.path)
    read_sources(FOLDER, user)
    for name in USER_TABLES:
        load_reference(name, FOLDER, user)
    return ", ".join(path.name for path in user_files(user)) or "none"


def beside_own_rows(home: Home) -> str:
    """Return that every file beside a user's own rows is read.

    Raises:
        KappaError: one or more are not.
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
    """Return what the current generation is, after reading every table of it.

    Raises:
        KappaError: it is not there any more, damaged, open for writing, or of another kappa.
    """
    note = home.current_note()
    if note is None:
        if home.current.is_symlink():
            why, remedy = "its generation or note is gone", "run `kappa run` again"
            raise KappaError(f"{home.current} leads nowhere", why, remedy, code=ErrorCode.MISSING)
        return "none yet: `kappa run --sample` or `kappa run` builds one"
    path = home.current.resolve() / DATABASE
    if is_open(path, for_writing=True):
        raise KappaError(
            f"{path} is open for writing", "another program holds it", "close that program", code=ErrorCode.IN_USE
        )
    _whole(home, note, DATABASE)
    kind = "sample" if note["is_sample"] else "real data sets"
    rows = _rows(home, note)
    return f"generation {note['generation']} ({kind}), {len(note['series'])} series, {rows['turns']:,} turns"


def _whole(home: Home, note: dict[str, Any], part: str) -> None:
    """Raise KappaError where files of that part are not as they were published; it names each."""
    if found := home.faults(part):
        raise KappaError(
            f"{home.current.resolve()} is not whole", "; ".join(found), _again(note), code=ErrorCode.DAMAGED
        )


def _again(note: dict[str, Any]) -> str:
    return f"run `kappa run{' --sample' if note['is_sample'] else ''}`, which publishes it anew"


def _rows(home: Home, note: dict[str, Any]) -> dict[str, int]:
    """Return how many rows each stored table has."""
    path = home.database()
    try:
        with read_only(path) as connection:
            names = [name for name, table in TABLES.items() if not table.is_view]
            # The hash reads every value: a count alone stands in the file's head.
            query = 'SELECT count(*) AS n, bit_xor(hash(t)) AS h FROM "{}" t'
            counts = [fetch(connection, query.format(name)) for name in names]
        return {name: count["n"][0].as_py() for name, count in zip(names, counts, strict=True)}
    except Exception as error:
        why = error.why if isinstance(error, KappaError) else str(error).strip().splitlines()[0]
        raise KappaError(f"{path} is damaged", why, _again(note), code=ErrorCode.DAMAGED) from error


def lake(home: Home) -> str:
    """Return how large the lake is.

    Raises:
        KappaError: a Parquet file is missing or is not as it was published, or another one lies there.
    """
    return _part(home, LAKE, "*.parquet", "Parquet files")


def report(home: Home) -> str:
    """Return how large the report is.

    Raises:
        KappaError: a file of it is missing or is not as it was drawn.
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
    """Return the generations that are kept, with their sizes, and which ones the next publication keeps.

    Raises:
        KappaError: one has no note, so it is not whole.
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
    """Return how many products of steps rest in staging, and their size."""
    parts = []
    for name, is_sample in (("real data sets", False), ("sample", True)):
        products = home.staging(is_sample=is_sample)
        if names := products.names(""):
            parts.append(f"{name}: {len(names)} products, {_size(products.root.rglob('*'))}")
    return "; ".join(parts) or "empty"


def left_over(home: Home) -> str:
    """Return that nothing was left by killed runs.

    Raises:
        KappaError: something was; the next run takes it away.
    """
    drafts = [path for is_sample in (False, True) for path in home.staging(is_sample=is_sample).drafts()]
    working = [path for path in drafts if is_held(path)]
    if working or home.is_locked("run"):
        return f"a run is going on ({len(working)} steps write)"
    stale, runs = [*drafts, *home.left_over()], _open_runs(home)
    if stale or runs:
        what = f"{len(stale)} stale folders and files ({_size(stale)}) and {runs} unfinished runs are left"
        remedy = "the next `kappa run` takes them away and goes on from there"
        raise KappaError(what, "a run was killed", remedy, code=ErrorCode.LEFT_OVER)
    return "nothing"


def beside(home: Home) -> str:
    """Return that no other program left files beside the published ones.

    Raises:
        KappaError: one did, or has them there now.
    """
    logs, spilled = (sorted(home.generations.glob(f"*/{name}")) for name in (WAL, SPILL))
    if not (found := [*logs, *spilled]):
        if killed := left_spilled():
            what = f"{', '.join(map(str, killed))} ({_size(killed)}) is left"
            raise KappaError(
                what, "a query that spilled was killed", "the next `kappa run` removes it", code=ErrorCode.LEFT_OVER
            )
        return "nothing"
    names = ", ".join(f"{path} ({_size([path])})" for path in found)
    is_used = any(is_open(path.with_suffix(""), for_writing=path in logs) for path in found)
    remedy = "the next `kappa run` removes what lies there"
    why = "a program has the database open" if is_used else "a program that was killed left it"
    raise KappaError(
        f"{names} is not kappa's",
        why,
        f"close that program: {remedy}" if is_used else remedy,
        code=ErrorCode.IN_THE_WAY,
    )


def _open_runs(home: Home) -> int:
    """Return how many runs of `kappa run` count as running in Dagster's history, which is read as it is."""
    path = home.path / HISTORY
    if not path.is_file():
        return 0
    # SQLite writes a file beside a journalled history even to read it; `immutable` reads what a read-only home has.
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
    """Return the size of files and of those below folders, each counted once."""
    files = {file for path in paths for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file()}
    return quantity(sum(file.stat().st_size for file in files), "B")

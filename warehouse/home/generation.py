"""One published generation: its note, its report, and whether its files are as they were published."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path
from typing import Any

from warehouse.errors import ErrorCode, KappaError
from warehouse.home.contents import contents_of, differences

NOTE = "generation.json"
DATABASE, LAKE, REPORT = "warehouse.duckdb", "lake", "report"
WAL = f"{DATABASE}.wal"
_NOTED = ("generation", "warehouse", "report", "content", "is_sample", "series")


def read_note(folder: Path) -> dict[str, Any] | None:
    """Return what a generation notes of itself, None where it has no note.

    Raises:
        KappaError: the note is damaged.
    """
    try:
        note = json.loads((folder / NOTE).read_text("utf8"))
        missing = [name for name in _NOTED if name not in note]
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise _damaged(folder, str(error)) from error
    if missing or not isinstance(note, dict):
        raise _damaged(folder, f"it lacks {', '.join(missing)}")
    return note


def _damaged(folder: Path, why: str) -> KappaError:
    return KappaError(
        f"{folder.resolve() / NOTE} is damaged", why, "run `kappa run`, which makes it again", code=ErrorCode.DAMAGED
    )


def write_note(folder: Path, note: dict[str, Any]) -> None:
    """Put a note in its place by one rename."""
    temporary = folder / f".{NOTE}-{uuid.uuid4().hex[:8]}"
    temporary.write_text(json.dumps(note, indent=1), "utf8")
    temporary.replace(folder / NOTE)


def faults(folder: Path, note: dict[str, Any], *parts: str) -> list[str]:
    """Return what is not as it was published, in words that begin with the file's path; reads every byte.

    Args:
        folder: the generation.
        note: its note.
        parts: the names in the generation that are asked for, such as `lake`.
    """
    noted = note.get("files", {})
    found = []
    for part in parts:
        of_part = {path: noted[path] for path in noted if Path(path).parts[0] == part}
        found += differences(folder, of_part, is_deep=True) if of_part else [f"{part} is not in {NOTE}"]
    if LAKE in parts:
        there = {str(path.relative_to(folder)) for path in (folder / LAKE).rglob("*.parquet")}
        found += [f"{path} is not kappa's" for path in sorted(there - noted.keys())]
    if DATABASE in parts and (folder / WAL).exists():
        found.append(f"{WAL} holds changes of another program")
    return found


def replace_report(source: Path, generation: Path, **notes: object) -> None:
    """Put the report in `source` in the place of a generation's, file by file; each file is whole at any moment."""
    target = generation / REPORT
    fresh = {path.relative_to(source) for path in source.rglob("*") if path.is_file()} - {Path("meta.json")}
    for path in sorted(fresh):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        temporary = target / path.parent / f".new-{path.name}"
        temporary.unlink(missing_ok=True)
        shutil.copyfile(source / path, temporary)
        temporary.chmod(0o444)
        temporary.replace(target / path)
    for path in [path for path in target.rglob("*") if path.is_file()]:
        if path.relative_to(target) not in fresh:
            path.unlink()
    note = read_note(generation)
    if note is not None and "files" in note:
        others = {path: noted for path, noted in note["files"].items() if Path(path).parts[0] != REPORT}
        drawn = {f"{REPORT}/{path}": noted for path, noted in contents_of(target).items()}
        write_note(generation, {**note, "files": others | drawn, **notes})

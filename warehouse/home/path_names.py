"""Which paths a home folder may have: DuckDB and SQLite take some characters of a path for something else."""

from __future__ import annotations

from pathlib import Path

from warehouse.errors import ErrorCode, KappaError

# DuckDB reads a backslash as a slash and looks for its log at a question mark; SQLite, in which Dagster keeps its
# history, ends a path at a question mark and decodes a percent sign.
BAD = "\\?%"
# SQLite opens no path above 512 bytes, with 69 for dagster/history/runs/UUID.db-journal.
MOST_BYTES = 443


def check_name(path: Path) -> None:
    """Refuse a home folder that DuckDB or Dagster could not keep files in, by its own name or behind links.

    Raises:
        KappaError: a name has a character of `BAD` or is not UTF-8, or the path is too long.
    """
    for place in (path.absolute(), path.resolve()):
        why = _why(str(place))
        if why:
            shown = place if len(str(place)) <= MOST_BYTES else f"{str(place)[:60]}..."
            raise KappaError(
                f"home folder {shown} cannot be used",
                why,
                "choose another one with --home or KAPPA_HOME",
                code=ErrorCode.BAD_PATH,
            )


def _why(place: str) -> str:
    if bad := [character for character in BAD if character in place]:
        return f"DuckDB and Dagster's run history keep no files below a name with {' or '.join(bad)}"
    try:
        length = len(place.encode("utf8"))
    except UnicodeEncodeError:
        return "DuckDB keeps no files below a name that is not UTF-8"
    return f"its path has {length:,} bytes, more than {MOST_BYTES:,}" if length > MOST_BYTES else ""

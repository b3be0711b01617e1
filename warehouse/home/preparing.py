"""Whether a folder can be a home: its name, its layout, that it can be written, and that nothing is in the way."""

from __future__ import annotations

import uuid
from pathlib import Path

from warehouse.errors import ErrorCode, KappaError, write_code
from warehouse.home.layout import check_layout, write_mark
from warehouse.home.path_names import check_name
from warehouse.home.publishing import CURRENT, LINKS


def prepare(home: Path) -> None:
    """Create the folder and check that it can be used.

    Raises:
        KappaError: it cannot be written, was made by another layout, or has something in the place of a link.
    """
    check_name(home)
    _check_writable(home)
    check_layout(home)
    check_links(home)
    write_mark(home)


def _check_writable(home: Path) -> None:
    try:
        home.mkdir(parents=True, exist_ok=True)
        probe = home / f".probe-{uuid.uuid4().hex[:8]}"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise _unwritable(home, error) from error


def check_links(home: Path) -> None:
    """Raise KappaError where something else is in the place of a link that publishing swaps."""
    for link in (home / CURRENT, *(home / name for name in LINKS)):
        if link.exists() and not link.is_symlink():
            raise KappaError(
                f"{link} is in the way",
                "kappa keeps a link there",
                "move it away and run again",
                code=ErrorCode.IN_THE_WAY,
            )


def _unwritable(path: Path, error: OSError) -> KappaError:
    other = "choose another one with --home or KAPPA_HOME"
    code = write_code(error)
    return KappaError(
        f"home folder {path} cannot be written",
        error.strerror or str(error),
        f"free disk space, or {other}" if code is ErrorCode.DISK_FULL else other,
        code=code,
    )

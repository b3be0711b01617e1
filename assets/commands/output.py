"""Where rows go: `--output F`, which may be a file, a link to one, a FIFO or a device, and never one of kappa's own."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from warehouse.errors import ErrorCode, KappaError, write_code
from warehouse.home.atomic import whole
from warehouse.home.home import home_path


def output_path(options: argparse.Namespace) -> Path | None:
    """Return what --output names, None without it.

    Raises:
        KappaError: it is in the home folder, by its name or behind links.
    """
    if not options.output:
        return None
    output, home = Path(options.output), home_path(options.home)
    for place in (os.path.abspath, os.path.realpath):
        if Path(place(output)).is_relative_to(place(home)):
            why = f"it is in the home folder {home}, which is kappa's own"
            raise KappaError(f"{output} cannot be written", why, "choose another --output", code=ErrorCode.BAD_PATH)
    return output


@contextlib.contextmanager
def written(output: Path) -> Iterator[IO[bytes]]:
    """Yield a stream whose bytes are `output` at the end; after a failure a file is as it was.

    Raises:
        KappaError: it cannot be written.
    """
    try:
        with whole(output) as stream:
            yield stream
    except OSError as error:
        why = error.strerror or str(error)
        raise KappaError(
            f"{output} cannot be written", why, "choose another --output", code=write_code(error)
        ) from error

"""The file of `--output F`: a file, a link to one, a FIFO or a device, never a file in the home folder."""

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
    """Return the path of --output; None without the option.

    Raises:
        KappaError: it is in the home folder, directly or through links.
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
    """Yield a stream that replaces `output` at the end; a failure leaves an existing file unchanged.

    Raises:
        KappaError: the output cannot be written.
    """
    try:
        with whole(output) as stream:
            yield stream
    except OSError as error:
        why = error.strerror or str(error)
        raise KappaError(
            f"{output} cannot be written", why, "choose another --output", code=write_code(error)
        ) from error

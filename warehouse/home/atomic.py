"""A file that is whole at any moment: what was there stays until the new one is complete, with its links and mode."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_OPEN = re.compile(r"/dev/(fd/|std(in|out|err)$)|/proc/.*/fd/")


@contextlib.contextmanager
def whole(path: Path) -> Iterator[IO[bytes]]:
    """Yield a stream whose bytes are the file `path` at the end; after a failure the file is as it was.

    What is behind symbolic links is replaced, not the links, and it keeps its mode. A FIFO or a device is no file that
    could be replaced: it is given the bytes as they come, and so is what a process has open (/dev/stdout).

    Raises:
        OSError: it cannot be written.
    """
    mode = _mode(path)
    if _is_open_already(path) or (mode is not None and not stat.S_ISREG(mode)):
        # Behind what it holds: nothing is created and nothing cut off.
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND), "wb") as stream:
            yield stream
        return
    target = Path(os.path.realpath(path))
    if mode is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    draft = target.with_name(f".kappa-{uuid.uuid4().hex[:8]}")
    try:
        flags, private = os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600
        with os.fdopen(os.open(draft, flags, 0o666 if mode is None else private), "wb") as stream:
            if mode is not None:
                os.fchmod(stream.fileno(), stat.S_IMODE(mode))
            yield stream
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _is_open_already(path: Path) -> bool:
    """Whether a name such as /dev/stdout names something that is open; the shell may have it open on a file."""
    return _OPEN.match(os.path.abspath(path)) is not None  # noqa: PTH100 - links are not followed

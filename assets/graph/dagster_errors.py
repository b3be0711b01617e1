"""What Dagster raises and prints by itself, in our words: one line for a person, whatever failed below it."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator

from warehouse.errors import KappaError

# What Dagster prints before it raises the same error.
ALSO_RAISED = "Exception while writing logger call to event log"


class _Told(io.TextIOBase):
    """Passes on what is printed, but for what is raised too."""

    def __init__(self, stream: io.TextIOBase) -> None:
        super().__init__()
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text, or drop it."""
        return len(text) if text.startswith(ALSO_RAISED) else self.stream.write(text)

    def flush(self) -> None:
        """Flush the stream below."""
        self.stream.flush()

    def fileno(self) -> int:
        """Return the descriptor of the stream below."""
        return self.stream.fileno()

    def isatty(self) -> bool:
        """Return whether a person reads the stream below."""
        return self.stream.isatty()


@contextlib.contextmanager
def in_our_words() -> Iterator[None]:
    """Turn Dagster's own interrupt into Python's, a failed check into an error of ours, and let it print nothing twice.

    Raises:
        KeyboardInterrupt: the run was interrupted.
        KappaError: a blocking check failed.
    """
    from dagster import DagsterExecutionInterruptedError  # noqa: PLC0415 - seconds to import
    from dagster._core.errors import DagsterAssetCheckFailedError  # noqa: PLC0415 - Dagster exports every other error

    try:
        with contextlib.redirect_stderr(_Told(sys.stderr)):  # type: ignore[arg-type]
            yield
    except DagsterExecutionInterruptedError as error:
        raise KeyboardInterrupt from error
    except DagsterAssetCheckFailedError as error:
        raise KappaError(
            "a blocking check failed", str(error), "nothing was published; look at the rows in `make dev`"
        ) from error

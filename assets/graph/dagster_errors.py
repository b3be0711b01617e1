"""Turns Dagster's own errors and output into ours: one line for the user, whatever failed in the graph."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from warehouse.errors import ErrorCode, KappaError
from warehouse.masking import MaskedStream

# Dagster prints this before it raises the same error.
ALSO_RAISED = "Exception while writing logger call to event log"


class _Told(MaskedStream):
    """A masked stream that drops output that is also raised."""

    def write(self, text: str) -> int:
        """Write a text, or drop it."""
        return len(text) if text.startswith(ALSO_RAISED) else super().write(text)


@contextlib.contextmanager
def in_our_words() -> Iterator[None]:
    """Handle Ctrl-C ourselves, turn a failed check into a KappaError, and drop output that Dagster also raises.

    Raises:
        KeyboardInterrupt: the run was interrupted.
        KappaError: a blocking check failed.
    """
    from dagster import DagsterExecutionInterruptedError  # noqa: PLC0415 - seconds to import
    from dagster._core.errors import DagsterAssetCheckFailedError  # noqa: PLC0415 - Dagster exports every other error

    try:
        with contextlib.redirect_stderr(_Told(sys.stderr)), _our_handler():
            yield
    except DagsterExecutionInterruptedError as error:
        raise KeyboardInterrupt from error
    except DagsterAssetCheckFailedError as error:
        raise KappaError(
            "a blocking check failed",
            str(error),
            "nothing was published; look at the rows in `make dev`",
            code=ErrorCode.CHECK_FAILED,
        ) from error


@contextlib.contextmanager
def _our_handler() -> Iterator[None]:
    """Keep Dagster from replacing our SIGINT handler around each step."""
    from dagster._utils import interrupts  # noqa: PLC0415

    replace = interrupts._replace_interrupt_signal  # noqa: SLF001 - no setting turns it off
    interrupts._replace_interrupt_signal = lambda new_signal_handler: None  # noqa: SLF001, ARG005
    try:
        yield
    finally:
        interrupts._replace_interrupt_signal = replace  # noqa: SLF001

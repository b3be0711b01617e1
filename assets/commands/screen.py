"""Output for a terminal: tables in its width, colours, progress bars. Other outputs get plain text, without rich."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Literal

import pyarrow as pa

from pipelines.io import progress
from warehouse.declared.formats import printable, raw

if TYPE_CHECKING:
    from rich.console import Console

LOG = logging.getLogger("kappa")
LEAST_WIDTH = 12  # least width of a column of words on a narrow terminal
Cells = list[list[str]]


def is_terminal(stream: IO[str] | None) -> bool:
    """Return whether the stream is a terminal."""
    return stream is not None and stream.isatty()


def text_table(data: pa.Table, form: Callable[[object], str] = raw, stream: IO[str] | None = None) -> str:
    """Return an aligned table, numbers right-aligned, names and values without control characters.

    On a terminal (`stream`) words wrap to its width, numbers never do; elsewhere each row is one line.

    >>> print(text_table(pa.table({"name": ["a", "bb"], "n": [1, 22]})))
    name   n
    a      1
    bb    22
    """
    names = [printable(name) for name in data.column_names]
    columns = [[form(value) for value in column.to_pylist()] for column in data.columns]
    numeric = [is_number(kind) for kind in data.schema.types]
    if stream is not None and is_terminal(stream):
        return _folded(names, columns, numeric, stream)
    widths = [max(map(len, [name, *column])) for name, column in zip(names, columns, strict=True)]
    lines = [
        "  ".join(c.rjust(w) if n else c.ljust(w) for c, w, n in zip(row, widths, numeric, strict=True)).rstrip()
        for row in [names, *zip(*columns, strict=True)]
    ]
    return "\n".join(lines)


def is_number(kind: pa.DataType) -> bool:
    """Return whether values of an Arrow type are numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _folded(names: list[str], columns: Cells, numeric: list[bool], stream: IO[str]) -> str:
    from rich.cells import cell_len  # noqa: PLC0415 - only a terminal needs rich
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), collapse_padding=True, header_style="bold")
    least = -2
    for name, column, is_number in zip(names, columns, numeric, strict=True):
        widest = max(map(cell_len, [name, *column]))
        width = widest if is_number else min(widest, LEAST_WIDTH)
        least += width + 2
        justify: Literal["left", "right"] = "right" if is_number else "left"
        table.add_column(Text(name), justify=justify, overflow="fold", no_wrap=is_number, min_width=width)
    for row in zip(*columns, strict=True):
        table.add_row(*map(Text, row))
    buffer = io.StringIO()
    # If the table is still too wide, the terminal wraps the lines; nothing is cut off.
    console(buffer, max(console(stream).width, least)).print(table)
    return buffer.getvalue().removesuffix("\n")


def is_coloured() -> bool:
    """Return whether to use colours on a terminal: NO_COLOR is not set, and the terminal is not dumb."""
    return not os.environ.get("NO_COLOR") and not is_dumb()


def is_dumb() -> bool:
    """Return whether the terminal supports no control sequences."""
    return os.environ.get("TERM", "dumb") in ("dumb", "unknown", "")


def console(stream: IO[str], width: int | None = None) -> Console:
    """Return rich's console for a terminal, with its width or the given one; it does not interpret markup."""
    from rich.console import Console  # noqa: PLC0415

    return Console(
        file=stream, force_terminal=True, color_system="auto" if is_coloured() else None, width=width,
        highlight=False, markup=False, emoji=False,
    )  # fmt: skip


def write_line(parts: Sequence[tuple[str, str]], stream: IO[str]) -> None:
    """Write a line of parts, each in its colour if the stream is a terminal."""
    if not is_terminal(stream):
        stream.write("".join(text for text, _ in parts) + "\n")
        return
    from rich.text import Text  # noqa: PLC0415

    console(stream).print(Text.assemble(*((printable(text), style) for text, style in parts)), soft_wrap=True)


class _Lines(logging.Formatter):
    """Formats a log record as one line without control characters."""

    def format(self, record: logging.LogRecord) -> str:
        return "kappa: " + "\n".join(map(printable, super().format(record).split("\n")))


@contextlib.contextmanager
def showing_steps(stream: IO[str] | None = None) -> Iterator[None]:
    """Show the log of the steps on standard error: lines, and on a terminal a progress bar of the current step."""
    stream = stream or sys.stderr
    is_drawn = is_terminal(stream) and not is_dumb()
    with _bar(stream) if is_drawn else contextlib.nullcontext(logging.StreamHandler(stream)) as handler:
        handler.setFormatter(_Lines())
        before = LOG.level, LOG.propagate
        LOG.addHandler(handler)
        LOG.setLevel(logging.INFO)
        LOG.propagate = False
        try:
            yield
        finally:
            LOG.removeHandler(handler)
            LOG.setLevel(before[0])
            LOG.propagate = before[1]


@contextlib.contextmanager
def _bar(stream: IO[str]) -> Iterator[logging.Handler]:
    """Yield a handler that writes log lines above a bar; the bar shows the step that reported last."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    # Dagster redirects the descriptor of standard error while a step runs.
    with os.fdopen(os.dup(stream.fileno()), "w", encoding="utf8") as own:
        words = TextColumn("{task.description}", markup=False)
        # The output of commands is not redirected.
        bars = Progress(
            words, BarColumn(), TimeRemainingColumn(), console=console(own), transient=True, redirect_stdout=False,
            redirect_stderr=False,
        )  # fmt: skip
        task = bars.add_task("", visible=False)

        def draw(step: progress.Progress) -> None:
            share = step.share()
            is_open = share is None or share < 1
            total = None if share is None else 1
            bars.update(task, description=step.line(), completed=share or 0, total=total, visible=is_open)

        class Above(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                bars.console.print(Text(self.format(record)), soft_wrap=True)

        with bars, progress.drawn_by(draw):
            yield Above()

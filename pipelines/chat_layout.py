"""How the messages of a conversations product lie in its file: whose they are and what stands around them. No text."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.sessions import TOOL

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
_BATCH = 8192


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    """One element a message, in the order of the file, but for `order`.

    Attributes:
        session: Number of the session.
        role: As in `pipelines.sessions`.
        order: Rows by session and position: `session[order]` is sorted.
        is_first: The message is the first of its session.
        after_tool: The message before it in its session is a tool's.
        before_tool: The message behind it in its session is a tool's.
    """

    session: Ints
    role: npt.NDArray[np.int8]
    order: Ints
    is_first: Bools
    after_tool: Bools
    before_tool: Bools

    @property
    def sorted_session(self) -> Ints:
        """The sessions' numbers by session and position."""
        return self.session[self.order]

    @property
    def sorted_role(self) -> npt.NDArray[np.int8]:
        """The roles by session and position."""
        return self.role[self.order]


def layout_of(session: npt.NDArray[np.int32], position: npt.NDArray[np.int32], role: npt.NDArray[np.int8]) -> Layout:
    """Return how messages lie that are given in the order of the file."""
    order = np.lexsort((position, session))
    ordered, is_tool = session[order], role[order] == TOOL
    starts = np.diff(ordered, prepend=-1) != 0
    after = np.concatenate(([False], is_tool[:-1])) & ~starts
    before = np.concatenate((is_tool[1:] & ~starts[1:], [False]))[: len(order)]
    flags = np.empty((3, len(order)), np.bool_)
    flags[:, order] = starts, after[: len(order)], before
    return Layout(session.astype(np.int64), role, order, flags[0], flags[1], flags[2])


def read_layout(messages: Path) -> Layout:
    """Return how the messages of a `messages.parquet` lie."""
    columns = pq.read_table(messages, columns=["session", "position", "role"])
    return layout_of(*(columns[name].to_numpy() for name in columns.column_names))


def texts_of(messages: Path, batch: int = _BATCH) -> Iterator[pa.Array]:
    """Yield the texts of a `messages.parquet` in the order of the file, at most `batch` of one row group at a time.

    A row group ends after some megabytes of text; across row groups so many documents would be half a gigabyte.
    """
    file = pq.ParquetFile(messages)
    for group in range(file.num_row_groups):
        for rows in file.iter_batches(batch_size=batch, row_groups=[group], columns=["text"], use_threads=False):
            yield rows.column(0)


def texts_at(messages: Path, rows: Ints) -> list[str]:
    """Return the texts at some rows of a `messages.parquet`; only row groups that hold one are read."""
    file = pq.ParquetFile(messages)
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    ends = np.cumsum([0, *sizes])
    groups = np.searchsorted(ends, rows, side="right") - 1
    texts = [""] * len(rows)
    for group in np.unique(groups).tolist():
        column = file.read_row_group(group, columns=["text"], use_threads=False)["text"].combine_chunks()
        for at in np.flatnonzero(groups == group).tolist():
            texts[at] = column[int(rows[at] - ends[group])].as_py()
    return texts

"""The layout of a conversations product: the session, role and neighbours of every message. No text."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from pipelines.sessions.messages import Messages
from pipelines.sessions.writing import ASSISTANT, REASONING, TOOL

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    """One element a message in file order, except `order`.

    Attributes:
        session: Number of the session.
        role: As in `pipelines.sessions.writing`; reasoning counts as its assistant's.
        order: Row numbers by session and position: `session[order]` is sorted.
        is_first: The message is the first of its session.
        after_tool: The message before it in its session is a tool's.
        before_tool: The message after it in its session is a tool's.
    """

    session: Ints
    role: npt.NDArray[np.int8]
    order: Ints
    is_first: Bools
    after_tool: Bools
    before_tool: Bools

    @property
    def sorted_session(self) -> Ints:
        """Session numbers by session and position."""
        return self.session[self.order]

    @property
    def sorted_role(self) -> npt.NDArray[np.int8]:
        """Roles by session and position."""
        return self.role[self.order]


def layout_of(session: npt.NDArray[np.int32], position: npt.NDArray[np.int32], role: npt.NDArray[np.int8]) -> Layout:
    """Return the layout of messages that are given in file order."""
    role = np.where(role == REASONING, np.int8(ASSISTANT), role)
    order = np.lexsort((position, session))
    ordered, is_tool = session[order], role[order] == TOOL
    starts = np.diff(ordered, prepend=-1) != 0
    after = np.concatenate(([False], is_tool[:-1])) & ~starts
    before = np.concatenate((is_tool[1:] & ~starts[1:], [False]))[: len(order)]
    flags = np.empty((3, len(order)), np.bool_)
    flags[:, order] = starts, after[: len(order)], before
    return Layout(session.astype(np.int64), role, order, flags[0], flags[1], flags[2])


def read_layout(messages: Messages) -> Layout:
    """Return the layout of a workload's messages."""
    return layout_of(*(column.to_numpy() for column in messages.owners.columns))

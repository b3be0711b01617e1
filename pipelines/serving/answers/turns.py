"""The turns of a workload in the order in which a server meets them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipelines.capacity.interleaving import interleaved
from pipelines.serving.engine.requests import Ints
from warehouse.formulas import kappa


@dataclass(frozen=True, slots=True)
class ServedTurns:
    """Turns in the order of service, each array of shape (turns,).

    Attributes:
        session: Number of the session.
        cached_tokens: K in whole blocks.
        new_tokens: T, with what of K is recomputed.
        output_tokens: O; 0 where it is unknown.
    """

    session: Ints
    cached_tokens: Ints
    new_tokens: Ints
    output_tokens: Ints


def in_order(  # noqa: PLR0913, PLR0917 - four columns, and how they are taken
    session: Ints, cached: Ints, new: Ints, output: Ints, sessions: int, block: int = 1, most: int = 0
) -> ServedTurns:
    """Return turns in the order of service: sessions are interleaved, one turn each in turn.

    Turns of a session do not wait for each other.

    Args:
        session: Number of each turn's session, turns of a session in a row and in order, shape (turns,).
        cached: K, shape (turns,).
        new: T, shape (turns,).
        output: O, shape (turns,).
        sessions: Sessions at a time.
        block: Tokens that are reused together.
        most: Turns that are kept, from the first served; 0 for all.
    """
    places = interleaved(session, sessions)[: most or len(session)]
    reused, computed = kappa.block_tokens(cached[places], new[places], block)
    return ServedTurns(session[places], np.asarray(reused), np.asarray(computed), output[places])

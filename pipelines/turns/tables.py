"""Derived turns as rows of the `turns` and `rejects` tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pipelines.turns.derivation import Turns
from warehouse.declared.tables import REJECTS, TURNS
from warehouse.declared.turn_tables import SERIES


def turns_table(turns: Turns, sessions: pa.Table, series: Sequence[str]) -> pa.Table:
    """Return the turns with K + T > 0 as rows of the `turns` table; `series` has the values of `SERIES`."""
    keep = ~turns.is_empty
    cached, prefill, index = turns.cached[keep], turns.prefill[keep], turns.turn_index[keep]
    count = len(cached)
    columns = {
        **{name: _constant(value, count) for name, value in zip(SERIES, series, strict=True)},
        "session_id": sessions["session_id"].combine_chunks().take(pa.array(turns.session[keep])),
        "turn_index": pa.array(index.astype(np.int32)),
        "cached_tokens": pa.array(cached),
        "prefill_tokens": pa.array(prefill),
        "output_tokens": pa.array(turns.output[keep], mask=~turns.has_output[keep]),
        "kappa_ratio": pa.array(cached / prefill),
        "is_first_turn": pa.array(index == 0),
    }
    return TURNS.conform(pa.table(columns))


def empty_turns(turns: Turns, sessions: pa.Table, workload: str, tokenizer: str) -> pa.Table:
    """Return the turns with K + T = 0 as rows of the `rejects` table."""
    where = np.flatnonzero(turns.is_empty)
    refused = np.zeros(len(where), np.bool_) if turns.refused is None else turns.refused[where]
    whys = np.where(refused, f"the chat template of {tokenizer} refuses it", "no token in the turn and none before it")
    of_session = sessions.take(pa.array(turns.session[where]))
    columns = {
        "workload": _constant(workload, len(where)),
        **{name: of_session[name] for name in ("path", "record", "session_id")},
        "level": _constant("turn", len(where)),
        "turn_index": pa.array(turns.turn_index[where].astype(np.int32)),
        "reason": pa.array(np.where(refused, "template", "empty_turn").tolist(), pa.string()),
        "detail": pa.array(whys.tolist(), pa.string()),
    }
    return REJECTS.conform(pa.table(columns))


def _constant(value: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.string()), count)

"""Checks of turns: rules for K, T and kappa_ratio of one turn, and rules between a turn and the next.

Each rule finds the rows that break it. A rule is stated once, in `RULES`; the checks of the graph are made from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.checks.tables import Violation, violation
from warehouse.declared.fields import COUNTINGS, HISTORY, REUSES

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
KINDS = ("chat", "documents", "requests")


@dataclass(frozen=True)
class Ordered:
    """The turns of one series, sorted by session and turn_index, with the number of each turn's session."""

    turns: pa.Table
    session: Ints

    @classmethod
    def of(cls, turns: pa.Table) -> Ordered:
        """Sort the turns of one series, given in any order."""
        encoded = pa.concat_arrays(turns["session_id"].chunks or [pa.array([], pa.string())]).dictionary_encode()
        session = encoded.indices.to_numpy().astype(np.int64)
        order = np.lexsort((turns["turn_index"].to_numpy(), session))
        return cls(turns.take(pa.array(order)), session[order])

    def column(self, name: str) -> Ints:
        """Return one column, with 0 for NULL."""
        column: Ints = pc.fill_null(self.turns[name], 0).to_numpy()
        return column

    @property
    def follows(self) -> Bools:
        """Whether the previous row belongs to the same session."""
        same: Bools = np.concatenate(([False], self.session[1:] == self.session[:-1]))
        return same


def _not_finite(ordered: Ordered) -> Bools:
    broken: Bools = ~np.isfinite(ordered.turns["kappa_ratio"].to_numpy())
    return broken


def _not_k(ordered: Ordered) -> Bools:
    product = ordered.turns["kappa_ratio"].to_numpy() * ordered.column("prefill_tokens")
    broken: Bools = ~np.isclose(product, ordered.column("cached_tokens"), rtol=1e-12, atol=0)
    return broken


def _not_below_context(ordered: Ordered) -> Bools:
    broken: Bools = (ordered.column("cached_tokens") < 0) | (ordered.column("prefill_tokens") <= 0)
    return broken


def _first_is_cached(ordered: Ordered) -> Bools:
    broken: Bools = (ordered.column("turn_index") == 0) & (ordered.column("cached_tokens") > 0)
    return broken


def _index_jumps(ordered: Ordered) -> Bools:
    index = ordered.column("turn_index")
    broken: Bools = ordered.follows & (np.diff(index, prepend=index[:1]) != 1)
    return broken


def _context_jumps(ordered: Ordered) -> Bools:
    cached, prefill = ordered.column("cached_tokens"), ordered.column("prefill_tokens")
    grown = cached + prefill + ordered.column("output_tokens")
    expected = np.concatenate((cached[:1], grown[:-1]))
    broken: Bools = ordered.follows & (cached != expected) & ~_is_moved(cached, prefill, expected)
    return broken


def _context_overgrows(ordered: Ordered) -> Bools:
    cached, prefill = ordered.column("cached_tokens"), ordered.column("prefill_tokens")
    grown = cached + prefill + ordered.column("output_tokens")
    broken: Bools = ordered.follows & (cached > np.concatenate((cached[:1], grown[:-1])))
    return broken


def _document_changes(ordered: Ordered) -> Bools:
    cached, prefill = ordered.column("cached_tokens"), ordered.column("prefill_tokens")
    expected = _document_tokens(ordered.session, cached, prefill)[ordered.session]
    broken: Bools = (cached != expected) & ~_is_moved(cached, prefill, expected)
    return broken


def _is_moved(cached: Ints, prefill: Ints, expected: Ints) -> Bools:
    """Return the turns in which one token moved from K to T to avoid T = 0 (docs/turns.md, "T is never 0")."""
    moved: Bools = (cached == expected - 1) & (prefill == 1)
    return moved


def _document_tokens(session: Ints, cached: Ints, prefill: Ints) -> Ints:
    """Return the most frequent K of each document's questions with T > 1; only T = 1 may have one token less.

    The largest K is taken if no question has T > 1, and among equally frequent ones.
    """
    tells = prefill > 1
    tells |= ~np.isin(session, session[tells])
    pairs, counts = np.unique(np.stack((session[tells], cached[tells])), axis=1, return_counts=True)
    is_unclear = ~np.isin(pairs[0], session[prefill > 1])
    order = np.lexsort((pairs[1], np.where(is_unclear, 1, counts), pairs[0]))
    found = np.zeros(session.max(initial=-1) + 1, np.int64)
    # The last assignment wins: a session's most frequent pair is sorted last.
    found[pairs[0][order]] = pairs[1][order]
    return found


@dataclass(frozen=True)
class TurnRule:
    """A rule of the derivation: its name, its words, and the kinds of workload, countings and reuses it holds for."""

    name: str
    rule: str
    broken: Callable[[Ordered], Bools]
    kinds: tuple[str, ...] = KINDS
    countings: tuple[str, ...] = COUNTINGS
    reuses: tuple[str, ...] = tuple(REUSES)


# See docs/turns.md. Under `chat` a template may drop earlier text, so only `text` adds up from turn to turn.
RULES = (
    TurnRule("finite", "kappa_ratio is finite", _not_finite),
    TurnRule("kappa_times_t", "kappa_ratio x prefill_tokens = cached_tokens", _not_k),
    TurnRule("cached_below_context", "0 <= K < K + T", _not_below_context),
    TurnRule("first_turn", "a first turn has nothing cached", _first_is_cached, ("chat",), reuses=(HISTORY,)),
    TurnRule("turn_index", "turn_index grows by 1", _index_jumps, ("chat", "requests")),
    TurnRule("context_grows", "context grows by T and the reply", _context_jumps, ("chat",), ("text",)),
    TurnRule(
        "document_cached", "K is the same for all questions of a document", _document_changes, ("documents",), ("text",)
    ),
)


def rules_of(kind: str, counting: str, reuse: str) -> tuple[TurnRule, ...]:
    """Return the rules for a kind of workload (`chat`, `documents`, `requests`), a counting and a reuse."""
    return tuple(r for r in RULES if kind in r.kinds and counting in r.countings and reuse in r.reuses)


def turn_violations(
    turns: pa.Table, kind: str, counting: str, reuse: str, *, has_reasoning: bool = False
) -> dict[str, list[Violation]]:
    """Return the violations of each rule by the rule's name; an empty list if it holds.

    Args:
        turns: rows of one series, in any order.
        kind: kind of the workload, `chat` or `documents`.
        counting: `text`, `chat` or `logged`.
        reuse: `history`, `prefix` or `reported`.
        has_reasoning: some replies hold reasoning, which is output and in no later prompt: then the context grows by
            T and the reply at most.
    """
    ordered = Ordered.of(turns)
    found: dict[str, list[Violation]] = {}
    for rule in rules_of(kind, counting, reuse):
        broken = _context_overgrows(ordered) if has_reasoning and rule.name == "context_grows" else rule.broken(ordered)
        found[rule.name] = [violation(rule.rule, ordered.turns.filter(pa.array(broken)))] if broken.any() else []
    return found


def other_contexts(percentiles: pa.Table, turns: pa.Table) -> list[Violation]:
    """Return the percentiles of context_tokens, at any block size, that differ from those of K + T.

    Args:
        percentiles: rows of `percentiles` of one series.
        turns: rows of `turns` of that series.
    """
    cached = turns["cached_tokens"].to_numpy()
    context = cached + turns["prefill_tokens"].to_numpy()
    by_population = {"all": context, "reused": context[cached > 0]}
    rows = percentiles.filter(pc.equal(percentiles["metric"], "context_tokens"))
    expected = np.zeros(rows.num_rows)
    for population, values in by_population.items():
        mine = rows["population"].to_numpy(zero_copy_only=False) == population
        if mine.any():
            expected[mine] = np.percentile(values, rows["percentile"].to_numpy()[mine]) if len(values) else np.nan
    broken = ~np.isclose(rows["value"].to_numpy(), expected, rtol=1e-9, atol=0)
    return [violation("context = K + T", rows.filter(pa.array(broken)))] if broken.any() else []

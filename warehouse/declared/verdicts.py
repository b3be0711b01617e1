"""The words of a verdict that holds under every assumption, or under some."""

from __future__ import annotations

from collections.abc import Mapping

LINK, GPU = "link bound whatever the assumptions", "GPU bound whatever the assumptions"
DEPENDS = "depends on"


def whatever(figures: Mapping[tuple[str, int], float], limit: float) -> str:
    """Return whether a machine is bound by its link under every cost model and block, or which of them decides.

    Args:
        figures: By cost model and block, at least one: load / t_GPU of a turn, or the share of memory-bound turns.
        limit: Above it the link is the limit: 1 for a turn, 0.5 for a workload.

    >>> whatever({("2n", 1): 2.0, ("full", 1): 0.5}, 1.0)
    'depends on: cost model (link bound under 2n; GPU bound under full)'
    """
    bound = {case: value > limit for case, value in figures.items()}
    if len({*bound.values()}) == 1:
        return LINK if all(bound.values()) else GPU
    flips = [_flip("cost model", bound, 0), _flip("block", bound, 1)]
    return f"{DEPENDS}: {' and '.join(flip for flip in flips if flip)}"


def _flip(name: str, bound: Mapping[tuple[str, int], bool], place: int) -> str:
    """Return the values of an assumption that change the verdict where the other one stays; empty where none does."""
    other = 1 - place
    groups: dict[object, dict[object, bool]] = {}
    for case, is_bound in bound.items():
        groups.setdefault(case[other], {})[case[place]] = is_bound
    flipped = next((group for group in groups.values() if len({*group.values()}) > 1), None)
    if flipped is None:
        return ""
    sides = {side: [str(value) for value, is_bound in flipped.items() if is_bound == side] for side in (True, False)}
    words = f"link bound under {', '.join(sides[True])}; GPU bound under {', '.join(sides[False])}"
    return f"{name} ({words})"

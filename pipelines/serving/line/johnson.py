"""Johnson's order of a backlog in the line: the earliest end of all, not the lowest mean TTFT."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def johnson_order(load_s: Floats, compute_s: Floats) -> npt.NDArray[np.intp]:
    """Return the order in which a backlog ends earliest: x <= c first by rising x, the rest by falling c.

    Ties keep the order of the arrays.
    Source: S. M. Johnson, Optimal two- and three-stage production schedules, Naval Research Logistics Quarterly 1954.

    Args:
        load_s: x in seconds, shape (requests,).
        compute_s: c in seconds, shape (requests,).

    >>> johnson_order(np.array([4.0, 4, 30, 6, 2]), np.array([5.0, 1, 4, 30, 3])).tolist()
    [4, 0, 3, 2, 1]
    """
    is_late = load_s > compute_s
    return np.lexsort((np.where(is_late, -compute_s, load_s), is_late))

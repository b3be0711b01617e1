"""Minimum and maximum of numbers or arrays: the formulae take either and return the same kind."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Value = TypeVar("Value", float, Floats)


def least(first: Any, second: Any) -> Any:  # noqa: ANN401 - a number or an array, whichever comes in
    """Return the smaller of two, element by element for arrays."""
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return np.minimum(first, second)
    return min(first, second)


def greatest(first: Any, second: Any) -> Any:  # noqa: ANN401 - a number or an array, whichever comes in
    """Return the larger of two, element by element for arrays."""
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return np.maximum(first, second)
    return max(first, second)

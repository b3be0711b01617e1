"""A policy as users write it: `fifo`, `fill+age:6`, `fair:session+limit:2:30`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from warehouse.errors import ErrorCode, UsageError

PolicyName: TypeAlias = Literal["fifo", "fill", "fair"]
# A policy sees this many of the oldest that wait.
WINDOW = 64


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """A policy with what may be added to any.

    Attributes:
        name: `fifo`, `fill` (utilisation-aware) or `fair` (weighted fair queueing).
        by: Classes of `fair`: `crit`, above kappa_crit or not, or `session`.
        weights: Of `fair`, by class; 1 for a class beyond them.
        age_s: Once the oldest has waited so long, only it is named; None for never.
        limit: Most requests above `limit_kappa` that hold memory together; None for any number.
        limit_kappa: A kappa_ratio.
    """

    name: PolicyName = "fifo"
    by: Literal["crit", "session"] = "crit"
    weights: tuple[float, ...] = ()
    age_s: float | None = None
    limit: int | None = None
    limit_kappa: float = math.inf


def parse_policy(text: str) -> PolicySpec:
    """Return the policy that a text names.

    Args:
        text: `fifo`, `fill`, `fair`, `fair:session` or `fair:crit`, then any of `+age:SECONDS`, `+limit:N:KAPPA`,
            and for `fair` `+weights:W:W`.

    Raises:
        UsageError: it is none of these, or a number is impossible.
    """
    first, *more = text.strip().lower().split("+")
    spec = _named(first, text)
    for part in more:
        name, *values = part.split(":")
        spec = _added(spec, name, _numbers(values, text), text)
    return spec


def _named(first: str, text: str) -> PolicySpec:
    name, _, by = first.partition(":")
    if name == "fair" and by in ("", "crit", "session"):
        return PolicySpec("fair", by="session" if by == "session" else "crit")
    if by or name not in ("fifo", "fill"):
        raise _bad(text, "it is none of fifo, fill, fair, fair:session")
    return PolicySpec("fill" if name == "fill" else "fifo")


def _added(spec: PolicySpec, name: str, values: list[float], text: str) -> PolicySpec:
    match name, values:
        case "age", [seconds] if seconds >= 0:
            return replace(spec, age_s=seconds)
        case "limit", [most, above] if most >= 1 and most == int(most) and above >= 0:
            return replace(spec, limit=int(most), limit_kappa=above)
        case "weights", [_, *_] if spec.name == "fair" and all(value > 0 for value in values):
            return replace(spec, weights=tuple(values))
    raise _bad(text, "after + comes age:SECONDS, limit:N:KAPPA with N at least 1, or for fair weights:W:W above 0")


def _numbers(values: list[str], text: str) -> list[float]:
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        raise _bad(text, "a number was expected") from None
    if not all(math.isfinite(number) for number in numbers):
        raise _bad(text, "a number is not finite")
    return numbers


def _bad(text: str, why: str) -> UsageError:
    return UsageError(f"policy {text!r} is not possible", why, "see docs/serving.md", code=ErrorCode.USAGE)

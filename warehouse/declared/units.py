"""The units that a column can have: a closed set, so that a misspelt one is a type error."""

from __future__ import annotations

from typing import Literal

# A column with quantities of several kinds takes its unit from another column: `metric`, `rate_unit`, `dtype`.
Unit = Literal[
    "", "1", "%", "UTC", "tokens", "bytes", "bytes/s", "bytes/token", "FLOP", "FLOP/s", "FLOP/token", "FLOP/byte",
    "byte/FLOP", "W", "J", "s", "1/s", "USD", "USD/h", "h", "blocks", "of the metric", "of rate_unit", "bytes or rows",
]  # fmt: skip

"""Published figures, and views that compare ours with them."""

from __future__ import annotations

from warehouse.declared import fields as f
from warehouse.declared import hardware_fields as h
from warehouse.declared.question_views import view
from warehouse.declared.schema import Table

PUBLISHED = Table(
    "published",
    "one published figure",
    ("quantity", "source"),
    (
        f.QUANTITY,
        f.WORKLOAD.or_null("NULL for a figure of hardware"),
        f.PUBLISHED_METRIC,
        f.STATISTIC,
        f.POPULATION.or_null("NULL for a figure of hardware"),
        f.TOKENIZER.or_null("NULL for a figure of hardware"),
        f.COUNTING.or_null("NULL for a figure of hardware"),
        f.BLOCK.or_null("NULL for a figure of hardware"),
        f.PUBLISHED_VALUE,
        f.TOLERANCE,
        f.IS_ASSERTED,
        f.SOURCE,
        h.PRINTED_DIGIT,
        h.WHY,
        h.RETRIEVED,
    ),
)
PAPER_COMPARISON = Table(
    "paper_comparison",
    "one published figure with ours",
    ("quantity", "source"),
    (
        *(field for field in PUBLISHED.fields if field not in (h.PRINTED_DIGIT, h.WHY, h.RETRIEVED)),
        f.OURS,
        f.RATIO,
        f.IS_FULL_SET,
        f.WITHIN_TOLERANCE,
    ),
    is_view=True,
)
PAPER_VALUES = Table(
    "paper_values",
    "one number that the paper prints, with what reproduces it",
    ("quantity",),
    (
        f.QUANTITY,
        f.WORKLOAD.or_null("NULL for a figure of hardware"),
        f.PUBLISHED_METRIC,
        f.STATISTIC,
        h.PRINTED,
        h.REPRODUCED,
        h.RESIDUAL,
        h.VERDICT,
        f.IS_ASSERTED,
        h.WHY,
    ),
    is_view=True,
)
FIGURES_MET = view(
    "figures_met", "the published figures of one workload, or of hardware", ("workload",),
    (f.WORKLOAD.or_null("NULL for figures of hardware"), f.FIGURES, f.ASSERTED, f.COMPARED, f.MET),
)  # fmt: skip

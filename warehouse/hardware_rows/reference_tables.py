"""The tables of sourced rows, the names that their rows refer to, and the tables that a user may extend."""

from __future__ import annotations

from dataclasses import replace

from warehouse.declared import fields as f
from warehouse.declared import hardware_fields as h
from warehouse.declared import reference_fields as r
from warehouse.declared.schema import Table
from warehouse.declared.serving import fields as s
from warehouse.declared.tables import ACCELERATORS, HEADLINES, LINKS, MODELS, PLATFORMS, PUBLISHED
from warehouse.hardware_rows.worked_out import ASSUMED

# Columns of `models` that `worked_out` adds to a row.
_WORKED_OUT = {
    field.name
    for field in (
        h.FLOPS_PER_TOKEN, h.KV_BYTES_PER_TOKEN, h.MARGINAL_KV_BYTES, h.MARGINAL_FP8_KV_BYTES, h.FIXED_STATE_BYTES,
        h.INDEXER_BYTES, h.ATTENTION_FLOPS, h.SLIDING_ATTENTION_FLOPS, h.ABSORBED_ATTENTION_FLOPS,
        h.MLA_UPPROJECTION_FLOPS,
    )
}  # fmt: skip
_TYPED_MODELS = tuple(
    replace(field, nullable=True) if field.name in ASSUMED else field
    for field in MODELS.fields
    if field.name not in _WORKED_OUT
)
# Measured platforms come from `measured`, with their figures.
_TYPED_PLATFORMS = tuple(
    replace(field, values=("paper", "physical")) if field is h.BASIS else field for field in PLATFORMS.fields
)
PAPER_MODELS = Table(
    "paper_models", "one model as the paper puts it into its formulae", ("model",),
    (
        h.MODEL, replace(h.ACTIVE_PARAMS, nullable=False), replace(h.KV_BYTES_PER_TOKEN, nullable=False),
        h.PRINTED_KAPPA_M, h.RETRIEVED, f.SOURCE,
    ),
)  # fmt: skip
PAPER_ACCELERATORS = Table(
    "paper_accelerators", "one accelerator as the paper puts it into its formulae", ("accelerator",),
    (h.ACCELERATOR, h.EFFECTIVE_FLOP_PER_S, h.RETRIEVED, f.SOURCE),
)  # fmt: skip
PAPER_LINKS = Table(
    "paper_links", "one link as the paper puts it into its formulae", ("link",),
    (h.LINK, h.BYTES_PER_S, h.RETRIEVED, f.SOURCE),
)  # fmt: skip
MEASURED = Table(
    "measured", "one accelerator with its link as `kappa measure` found it", ("accelerator", "link"),
    (
        h.ACCELERATOR, h.LINK, h.DEVICE_NAME, h.MATMUL_BF16, h.MATMUL_FP16, h.MATMUL_FP8, h.PINNED_TO_DEVICE,
        h.PINNED_TO_HOST, h.PAGEABLE_TO_DEVICE, h.PAGEABLE_TO_HOST, h.DEVICE_COPY, h.TORCH_VERSION, h.RUNTIME_VERSION,
        h.RETRIEVED, h.IS_EXAMPLE, f.SOURCE,
    ),
)  # fmt: skip
MEASUREMENTS = Table(
    "measurements", "one size or number format that `kappa measure` tried",
    ("accelerator", "link", "quantity", "memory", "direction", "dtype", "size"),
    (
        h.ACCELERATOR, h.LINK, h.DEVICE_NAME, h.RETRIEVED, h.MEASURED_QUANTITY, h.MEMORY, h.DIRECTION, h.DTYPE, h.SIZE,
        h.RATE, h.RATE_UNIT, f.SOURCE,
    ),
)  # fmt: skip
FITTED_NUMBERS = Table(
    "fitted_numbers", "one number of the timing model, of one accelerator or of every other one",
    ("number", "accelerator"),
    (
        r.NUMBER, h.ACCELERATOR.or_null("name of the accelerator; NULL for every one without its own row"), r.VALUE,
        r.LEAST, r.MOST, r.TRUST, h.RETRIEVED, h.CONFIDENCE, f.SOURCE,
    ),
)  # fmt: skip
CALIBRATED = Table(
    "calibrated", "one number of the timing model as `kappa calibrate` fitted it on one accelerator",
    ("accelerator", "number"),
    (
        h.ACCELERATOR, r.NUMBER, r.VALUE, replace(r.LEAST, nullable=False), replace(r.MOST, nullable=False),
        r.IS_IDENTIFIABLE, r.POINTS, h.RETRIEVED, f.SOURCE,
    ),
)  # fmt: skip
VALIDATION_POINTS = Table(
    "validation", "one public measurement of bytes, load, prefill or TTFT, with what a prediction needs", ("point",),
    (
        r.POINT, r.ERROR_CLASS, h.MODEL.or_null(), h.ACCELERATOR.or_null(), r.POINT_GPUS, h.LINK.or_null(),
        h.SERVED_DTYPE, r.POINT_CACHED, r.POINT_NEW, r.POINT_QUANTITY, r.MEASURED_AT, r.POINT_RATE, h.NODE_BYTES_PER_S,
        r.COPIED, h.COPY_LATENCY, r.IS_SCORED, r.POINT_ORIGIN, h.NOTE, h.RETRIEVED, h.CONFIDENCE, f.SOURCE,
    ),
)  # fmt: skip
HELD_OUT = Table(
    "held_out", "one measurement as numbers predict it that were fitted without its origin; `bench/held_out.py`",
    ("point",), (r.POINT, r.HELD_OUT),
)  # fmt: skip
TRANSFER_RULES = Table(
    "transfer_rules",
    "one rule of thumb about copies: it is no measurement of a machine and never makes a link by itself",
    ("rule",),
    (
        r.RULE, r.ABOUT, r.LEAST_COPY, r.MOST_COPY, r.LEAST_RATE, r.MOST_RATE, r.LEAST_SHARE, r.MOST_SHARE,
        h.NOTE, h.RETRIEVED, h.CONFIDENCE, f.SOURCE,
    ),
)  # fmt: skip
TRACES = Table(
    "traces",
    "one trace or data set as others measured it: kappa reads none of these figures into its own",
    ("trace",),
    (
        r.TRACE, r.ORIGIN, r.REQUESTS, r.INPUT_MEAN, r.INPUT_P50, r.INPUT_P90, r.INPUT_P99, r.REPLY_MEAN, r.REPLY_P50,
        r.REUSE, r.NEW_P50, r.REUSED_P50, r.TRACE_BLOCK, h.NOTE, h.RETRIEVED, h.CONFIDENCE, f.SOURCE,
    ),
)  # fmt: skip
PRICES = Table(
    "prices",
    "the price of one accelerator: kappa has none of its own",
    ("accelerator",),
    (h.ACCELERATOR, s.USD_PER_HOUR, f.SOURCE, h.RETRIEVED),
)
_TABLES = (
    replace(MODELS, fields=_TYPED_MODELS), ACCELERATORS, LINKS, replace(PLATFORMS, fields=_TYPED_PLATFORMS),
    HEADLINES, MEASURED, MEASUREMENTS, FITTED_NUMBERS, CALIBRATED, VALIDATION_POINTS, HELD_OUT, TRANSFER_RULES, TRACES,
    PAPER_MODELS, PAPER_ACCELERATORS, PAPER_LINKS, PUBLISHED, PRICES,
)  # fmt: skip
REFERENCE = {table.name: table for table in _TABLES}
# Tables that a user may extend in HOME/reference/<name>.csv.
USER_TABLES = (
    "models", "accelerators", "links", "platforms", "headlines", "measured", "measurements", "calibrated",
    "prices",
)  # fmt: skip
# Columns that hold a name from another table: `link` a name of `links`.
NAMES_FROM = {
    "models": ("tokenizer",),
    "platforms": ("accelerator", "link"),
    "prices": ("accelerator",),
    "headlines": ("model", "accelerator", "link"),
    "measured": ("accelerator", "link"),
    "fitted_numbers": ("accelerator",),
    "calibrated": ("accelerator",),
    "paper_models": ("model",),
    "paper_accelerators": ("accelerator",),
    "paper_links": ("link",),
}

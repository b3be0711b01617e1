"""The tables of the warehouse as code. Names and columns are public; people write SQL against them."""

from __future__ import annotations

import hashlib

from warehouse import fields as f
from warehouse import hardware_fields as h
from warehouse.schema import Field, Table

_SERIES = ("workload", "tokenizer", "counting")
_PLATFORM = (h.ACCELERATOR, h.LINK, h.BASIS)

SOURCES = Table(
    "sources",
    "one file fetched",
    ("workload", "path"),
    (f.WORKLOAD, f.REPO_ID, f.REVISION, f.PATH, f.BYTES, f.SHA256, f.RECORDS, f.LICENCE, f.FETCHED_AT, f.IS_SAMPLE),
)
TOKENIZERS = Table(
    "tokenizers",
    "one tokenizer used, by one engine",
    ("tokenizer", "engine"),
    (
        f.TOKENIZER,
        f.REPO_ID,
        f.REVISION,
        f.PATH,
        f.SHA256,
        f.FINGERPRINT,
        f.ENGINE,
        f.ENGINE_VERSION,
        f.MAX_CONTEXT_TOKENS,
    ),
)
GENERATIONS = Table(
    "generations",
    "one workload and tokenizer in one published state",
    ("generation", "workload", "tokenizer"),
    (
        f.GENERATION,
        f.RUN_ID,
        f.STARTED_AT,
        f.FINISHED_AT,
        f.CODE_VERSION,
        f.WORKLOAD,
        f.REVISION,
        f.TOKENIZER,
        f.FINGERPRINT,
    ),
)
REJECTS = Table(
    "rejects",
    "one record or turn left out",
    (),
    (
        f.WORKLOAD,
        f.PATH,
        f.RECORD,
        f.LEVEL,
        f.SESSION_ID.or_null("conversation or document; NULL where the record names none"),
        f.TURN_INDEX.or_null("number of the turn left out; NULL for a record"),
        f.REASON,
        f.DETAIL,
    ),
    partition_by=("workload",),
)
TURNS = Table(
    "turns",
    "one turn of one session, counted one way by one tokenizer",
    (*_SERIES, "session_id", "turn_index"),
    (
        f.WORKLOAD,
        f.TOKENIZER,
        f.COUNTING,
        f.SESSION_ID,
        f.TURN_INDEX,
        f.CACHED_TOKENS,
        f.PREFILL_TOKENS,
        f.OUTPUT_TOKENS,
        f.KAPPA_RATIO,
        f.IS_FIRST_TURN,
    ),
    partition_by=_SERIES,
)
MODELS = Table(
    "models",
    "one model",
    ("model",),
    (
        h.MODEL, f.REPO_ID, h.ATTENTION, h.TOTAL_PARAMS, h.ACTIVE_PARAMS, h.LAYERS, h.HEADS, h.KV_HEADS,
        h.HEAD_DIM, h.KV_BYTES_PER_TOKEN, h.FLOPS_PER_TOKEN, h.MODEL_CONTEXT, f.TOKENIZER,
        h.IS_TOKENIZER_PROXY, h.IS_MOE, h.EXPERTS, h.EXPERTS_PER_TOKEN, h.LAYER_PARAMS, h.HEAD_PARAMS,
        h.FULL_LAYERS, h.SLIDING_LAYERS, h.LINEAR_LAYERS, h.SLIDING_WINDOW, h.V_HEAD_DIM, h.KV_LORA_RANK,
        h.QK_ROPE_HEAD_DIM, h.MARGINAL_KV_BYTES, h.MARGINAL_FP8_KV_BYTES, h.FIXED_STATE_BYTES, h.INDEXER_BYTES,
        *(field.or_null() for field in h.INDEXER), h.ATTENTION_FLOPS,
        h.SLIDING_ATTENTION_FLOPS, h.ABSORBED_ATTENTION_FLOPS, h.MLA_UPPROJECTION_FLOPS, h.NOTE, h.RETRIEVED,
        h.CONFIDENCE, f.SOURCE,
    ),
)  # fmt: skip
ACCELERATORS = Table(
    "accelerators",
    "one accelerator",
    ("accelerator",),
    (
        h.ACCELERATOR,
        h.DENSE_BF16,
        h.SPARSE_BF16,
        h.DENSE_FP8,
        h.SPARSE_FP8,
        h.DENSE_FP4,
        h.HBM_BYTES,
        h.HBM_BYTES_PER_S,
        h.TDP_W,
        h.MEASURED_BF16,
        h.NOTE,
        h.RETRIEVED,
        h.CONFIDENCE,
        f.SOURCE,
    ),
)
LINKS = Table(
    "links",
    "one way between host memory and accelerator",
    ("link",),
    (
        h.LINK,
        h.KIND,
        h.PEAK_BYTES_PER_S,
        h.SUSTAINED_BYTES_PER_S,
        h.TO_HOST_BYTES_PER_S,
        h.DUPLEX_BYTES_PER_S,
        h.NOTE,
        h.RETRIEVED,
        h.CONFIDENCE,
        f.SOURCE,
    ),
)
PLATFORMS = Table(
    "platforms",
    "one accelerator with a link that it is really built with, or that the paper assumes",
    ("accelerator", "link", "basis"),
    (*_PLATFORM, h.NOTE, h.RETRIEVED, h.CONFIDENCE, f.SOURCE),
)
KAPPA_CRIT = Table(
    "kappa_crit",
    "one model on one platform with one kv_dtype",
    ("model", "accelerator", "link", "basis", "kv_dtype"),
    (h.MODEL, *_PLATFORM, h.KV_DTYPE, h.KAPPA_M, h.KAPPA_HW, h.KAPPA_CRIT),
)
HEADLINES = Table(
    "headlines",
    "one model, or one platform, that figures and coarse blocks are made for",
    ("model", "accelerator", "link", "basis"),
    (h.MODEL.or_null(), h.ACCELERATOR.or_null(), h.LINK.or_null(), h.BASIS.or_null()),
)
PERCENTILES = Table(
    "percentiles",
    "one percentile of one metric",
    (*_SERIES, "population", "block_tokens", "metric", "percentile"),
    (f.WORKLOAD, f.TOKENIZER, f.COUNTING, f.POPULATION, f.BLOCK, f.METRIC, f.PERCENTILE, f.VALUE),
    partition_by=_SERIES,
)
SUMMARY = Table(
    "summary",
    "one workload counted one way by one tokenizer",
    _SERIES,
    (
        f.WORKLOAD,
        f.TOKENIZER,
        f.COUNTING,
        f.SESSIONS,
        f.TURNS,
        f.FIRST_TURNS,
        f.CACHED_TOKENS_SUM,
        f.PREFILL_TOKENS_SUM,
        f.OUTPUT_TOKENS_SUM,
        f.CACHED_TOKENS_MEAN,
        f.PREFILL_TOKENS_MEAN,
        f.KAPPA_RATIO_MEAN,
        f.POOLED_KAPPA_RATIO,
        f.SPECIAL_TOKEN_MESSAGES,
        f.IS_SAMPLE,
    ),
)
BOUNDNESS = Table(
    "boundness",
    "one workload on one model and platform",
    (*_SERIES, "block_tokens", "model", "accelerator", "link", "basis", "kv_dtype", "cost_model"),
    (
        f.WORKLOAD,
        f.TOKENIZER,
        f.COUNTING,
        f.BLOCK,
        h.MODEL,
        *_PLATFORM,
        h.KV_DTYPE,
        h.COST_MODEL,
        h.KAPPA_CRIT,
        f.TURN_SHARE,
        f.TOKEN_SHARE,
        f.TIME_SHARE,
        f.TRANSFER_SHARE,
        f.OVER_CONTEXT_SHARE,
        f.POH_P50,
        f.POH_P90,
        f.POH_P99,
    ),
    partition_by=_SERIES,
)
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
    "one published figure with ours beside it",
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
DESIGN_QUESTIONS = Table(
    "design_questions",
    "one variant of a design question for one workload and model",
    (*_SERIES, "model", "basis", "question", "variant"),
    (
        f.WORKLOAD,
        f.TOKENIZER,
        f.COUNTING,
        h.MODEL,
        h.ACCELERATOR,
        h.BASIS,
        h.QUESTION,
        h.VARIANT,
        h.LINK_BYTES_PER_S,
        h.KV_BYTES_PER_TOKEN,
        h.KAPPA_CRIT,
        h.COMPUTE_BOUND_SHARE,
        h.GAINED_SHARE,
    ),
    partition_by=_SERIES,
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
TEMPLATE_OVERHEAD = Table(
    "template_overhead",
    "one turn by chat with the same turn by text beside it",
    ("workload", "tokenizer", "session_id", "turn_index"),
    (
        f.WORKLOAD,
        f.TOKENIZER,
        f.SESSION_ID,
        f.TURN_INDEX,
        f.TEXT_CONTEXT,
        f.CHAT_CONTEXT,
        f.TEMPLATE_TOKENS,
        f.TEXT_KAPPA_RATIO,
        f.CHAT_KAPPA_RATIO,
    ),
    is_view=True,
)


def _view(name: str, grain: str, key: tuple[str, ...], fields: tuple[Field, ...]) -> Table:
    return Table(name, grain, key, fields, is_view=True)


_SERIES_FIELDS = (f.WORKLOAD, f.TOKENIZER, f.COUNTING)
CACHED_SHARE = _view(
    "cached_share", "one workload counted one way by one tokenizer", _SERIES,
    (*_SERIES_FIELDS, f.CACHED_TOKENS_SUM, f.PREFILL_TOKENS_SUM, f.CACHED_SHARE),
)  # fmt: skip
TEXT_AGAINST_CHAT = _view(
    "text_against_chat", "one workload by one tokenizer, counted by text and by chat", ("workload", "tokenizer"),
    (f.WORKLOAD, f.TOKENIZER, f.TEMPLATE_TOKENS_MEAN, f.TEXT_POOLED, f.CHAT_POOLED,
     f.TEXT_KAPPA_RATIO_P50, f.CHAT_KAPPA_RATIO_P50),
)  # fmt: skip
KAPPA_RATIO_BY_TURN = _view(
    "kappa_ratio_by_turn", "all turns of a series with one turn_index", (*_SERIES, "turn_index"),
    (*_SERIES_FIELDS, f.TURN_INDEX, f.TURNS, f.CACHED_TOKENS_MEAN, f.PREFILL_TOKENS_MEAN,
     f.KAPPA_RATIO_P25, f.KAPPA_RATIO_P50, f.KAPPA_RATIO_P75),
)  # fmt: skip
SESSION_TOTALS = _view(
    "session_totals", "one session counted one way by one tokenizer", (*_SERIES, "session_id"),
    (*_SERIES_FIELDS, f.SESSION_ID, f.TURNS, f.CACHED_TOKENS_SUM, f.PREFILL_TOKENS_SUM, f.OUTPUT_TOKENS_SUM,
     f.LONGEST_CONTEXT),
)  # fmt: skip
TURNS_PER_SESSION = _view(
    "turns_per_session", "the sessions of one series", _SERIES,
    (*_SERIES_FIELDS, f.SESSIONS, f.TURNS_MIN, f.TURNS_MEAN, f.TURNS_P50, f.TURNS_P90, f.TURNS_P99, f.TURNS_MAX),
)  # fmt: skip
TOKENIZERS_COMPARED = _view(
    "tokenizers_compared", "one workload counted by one tokenizer, another one beside it",
    ("workload", "counting", "tokenizer", "other_tokenizer"),
    (f.WORKLOAD, f.COUNTING, f.TOKENIZER, f.OTHER_TOKENIZER, f.CONTEXT_TOKENS_RATIO, f.REUSED_P50, f.OTHER_REUSED_P50,
     f.P50_RATIO),
)  # fmt: skip
WORKLOADS_COMPARED = _view(
    "workloads_compared", "one workload, another one beside it, counted alike",
    ("tokenizer", "counting", "workload", "other_workload"),
    (f.TOKENIZER, f.COUNTING, f.WORKLOAD, f.OTHER_WORKLOAD, f.REUSED_P50, f.OTHER_REUSED_P50, f.P50_RATIO),
)  # fmt: skip
FIGURES_MET = _view(
    "figures_met", "the published figures of one workload, or of hardware", ("workload",),
    (f.WORKLOAD.or_null("NULL for figures of hardware"), f.FIGURES, f.ASSERTED, f.COMPARED, f.MET),
)  # fmt: skip

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        SOURCES,
        TOKENIZERS,
        GENERATIONS,
        REJECTS,
        TURNS,
        MODELS,
        ACCELERATORS,
        LINKS,
        PLATFORMS,
        KAPPA_CRIT,
        HEADLINES,
        PERCENTILES,
        SUMMARY,
        BOUNDNESS,
        DESIGN_QUESTIONS,
        PUBLISHED,
        PAPER_COMPARISON,
        PAPER_VALUES,
        TEMPLATE_OVERHEAD,
        CACHED_SHARE,
        TEXT_AGAINST_CHAT,
        KAPPA_RATIO_BY_TURN,
        SESSION_TOTALS,
        TURNS_PER_SESSION,
        TOKENIZERS_COMPARED,
        WORKLOADS_COMPARED,
        FIGURES_MET,
    )
}


def tables_identity() -> str:
    """Return 12 hex digits over names, types, units and NULLs of all columns: other tables have another value.

    Descriptions and bounds are not in it: a clearer word makes no older warehouse.
    """
    columns = [
        f"{table.name} {table.is_view} {field.name} {field.type} {field.unit} {field.nullable}"
        for table in TABLES.values()
        for field in table.fields
    ]
    return hashlib.sha256("\n".join(columns).encode()).hexdigest()[:12]

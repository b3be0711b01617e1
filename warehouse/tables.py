"""The tables of the warehouse as code. Names and columns are public; people write SQL against them."""

from __future__ import annotations

from warehouse import fields as f
from warehouse import hardware_fields as h
from warehouse.schema import Table

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
        h.MODEL,
        f.REPO_ID,
        h.ATTENTION,
        h.TOTAL_PARAMS,
        h.ACTIVE_PARAMS,
        h.LAYERS,
        h.HEADS,
        h.KV_HEADS,
        h.HEAD_DIM,
        h.KV_BYTES_PER_TOKEN,
        h.FLOPS_PER_TOKEN,
        f.MAX_CONTEXT_TOKENS,
        f.TOKENIZER,
        h.IS_TOKENIZER_PROXY,
        h.IS_MOE,
        h.EXPERTS,
        h.EXPERTS_PER_TOKEN,
        h.LAYER_PARAMS,
        h.HEAD_PARAMS,
        h.FULL_LAYERS,
        h.SLIDING_LAYERS,
        h.LINEAR_LAYERS,
        h.SLIDING_WINDOW,
        h.V_HEAD_DIM,
        h.KV_LORA_RANK,
        h.QK_ROPE_HEAD_DIM,
        h.MARGINAL_KV_BYTES,
        h.FIXED_STATE_BYTES,
        h.INDEXER_BYTES,
        h.ATTENTION_FLOPS,
        h.SLIDING_ATTENTION_FLOPS,
        h.ABSORBED_ATTENTION_FLOPS,
        h.MLA_UPPROJECTION_FLOPS,
        h.NOTE,
        h.RETRIEVED,
        h.CONFIDENCE,
        f.SOURCE,
    ),
)
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
    ),
)
PAPER_COMPARISON = Table(
    "paper_comparison",
    "one published figure with ours beside it",
    ("quantity", "source"),
    (*PUBLISHED.fields, f.OURS, f.RATIO, f.IS_FULL_SET, f.WITHIN_TOLERANCE),
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
        PERCENTILES,
        SUMMARY,
        BOUNDNESS,
        PUBLISHED,
        PAPER_COMPARISON,
        TEMPLATE_OVERHEAD,
    )
}

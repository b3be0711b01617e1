"""Tables of sources, rejects, counts, turns and their statistics."""

from __future__ import annotations

from warehouse.declared import fields as f
from warehouse.declared.schema import Table

SERIES_FIELDS = (f.WORKLOAD, f.TOKENIZER, f.COUNTING, f.REUSE)
SERIES = tuple(field.name for field in SERIES_FIELDS)
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
    (*SERIES, "session_id", "turn_index"),
    (
        *SERIES_FIELDS,
        f.SESSION_ID,
        f.TURN_INDEX,
        f.CACHED_TOKENS,
        f.PREFILL_TOKENS,
        f.OUTPUT_TOKENS,
        f.KAPPA_RATIO,
        f.IS_FIRST_TURN,
    ),
    partition_by=SERIES,
)
PERCENTILES = Table(
    "percentiles",
    "one percentile of one metric",
    (*SERIES, "population", "block_tokens", "metric", "percentile"),
    (*SERIES_FIELDS, f.POPULATION, f.BLOCK, f.METRIC, f.PERCENTILE, f.VALUE),
    partition_by=SERIES,
)
SUMMARY = Table(
    "summary",
    "one workload counted one way by one tokenizer",
    SERIES,
    (
        *SERIES_FIELDS,
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
        f.UNCOUNTED_PARTS,
        f.IS_SAMPLE,
    ),
)

"""Views that answer questions about turns and sessions; their SQL is in `sql/NAME.sql`."""

from __future__ import annotations

from warehouse.declared import fields as f
from warehouse.declared.schema import Field, Table
from warehouse.declared.turn_tables import SERIES, SERIES_FIELDS


def view(name: str, grain: str, key: tuple[str, ...], fields: tuple[Field, ...]) -> Table:
    """Return the declaration of a view."""
    return Table(name, grain, key, fields, is_view=True)


TEMPLATE_OVERHEAD = Table(
    "template_overhead",
    "one turn by chat with the same turn by text",
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
CACHED_SHARE = view(
    "cached_share", "one workload counted one way by one tokenizer", SERIES,
    (*SERIES_FIELDS, f.CACHED_TOKENS_SUM, f.PREFILL_TOKENS_SUM, f.CACHED_SHARE),
)  # fmt: skip
TEXT_AGAINST_CHAT = view(
    "text_against_chat", "one workload by one tokenizer, counted by text and by chat", ("workload", "tokenizer"),
    (f.WORKLOAD, f.TOKENIZER, f.TEMPLATE_TOKENS_MEAN, f.TEXT_POOLED, f.CHAT_POOLED,
     f.TEXT_KAPPA_RATIO_P50, f.CHAT_KAPPA_RATIO_P50),
)  # fmt: skip
KAPPA_RATIO_BY_TURN = view(
    "kappa_ratio_by_turn", "all turns of a series with one turn_index", (*SERIES, "turn_index"),
    (*SERIES_FIELDS, f.TURN_INDEX, f.TURNS, f.CACHED_TOKENS_MEAN, f.PREFILL_TOKENS_MEAN,
     f.KAPPA_RATIO_P25, f.KAPPA_RATIO_P50, f.KAPPA_RATIO_P75, f.KAPPA_RATIO_P90),
)  # fmt: skip
SESSION_TOTALS = view(
    "session_totals", "one session counted one way by one tokenizer", (*SERIES, "session_id"),
    (*SERIES_FIELDS, f.SESSION_ID, f.TURNS, f.CACHED_TOKENS_SUM, f.PREFILL_TOKENS_SUM, f.OUTPUT_TOKENS_SUM,
     f.LONGEST_CONTEXT),
)  # fmt: skip
TURNS_PER_SESSION = view(
    "turns_per_session", "the sessions of one series", SERIES,
    (*SERIES_FIELDS, f.SESSIONS, f.TURNS_MIN, f.TURNS_MEAN, f.TURNS_P50, f.TURNS_P90, f.TURNS_P99, f.TURNS_MAX),
)  # fmt: skip
TOKENIZERS_COMPARED = view(
    "tokenizers_compared", "one workload counted by two tokenizers",
    ("workload", "counting", "reuse", "tokenizer", "other_tokenizer"),
    (f.WORKLOAD, f.COUNTING, f.REUSE, f.TOKENIZER, f.OTHER_TOKENIZER, f.CONTEXT_TOKENS_RATIO, f.REUSED_P50,
     f.OTHER_REUSED_P50, f.P50_RATIO),
)  # fmt: skip
WORKLOADS_COMPARED = view(
    "workloads_compared", "two workloads, counted alike",
    ("tokenizer", "counting", "reuse", "workload", "other_workload"),
    (f.TOKENIZER, f.COUNTING, f.REUSE, f.WORKLOAD, f.OTHER_WORKLOAD, f.REUSED_P50, f.OTHER_REUSED_P50, f.P50_RATIO),
)  # fmt: skip

"""All tables of the warehouse as code. Names and columns are public; people write SQL against them."""

from __future__ import annotations

import hashlib

from warehouse.declared.capacity_tables import (
    CACHE_POLICIES,
    CACHE_TIERS,
    CAPACITY,
    CAPACITY_BY_MODEL,
    LOG_REQUESTS,
    REUSE_DISTANCES,
    REUSE_TIMES,
    TOP_PREFIXES,
)
from warehouse.declared.hardware_tables import (
    ACCELERATORS,
    BOUNDNESS,
    DESIGN_QUESTIONS,
    HEADLINES,
    KAPPA_CRIT,
    LINKS,
    MODELS,
    PLATFORMS,
    VALIDATION,
    VALIDATION_BY_CLASS,
)
from warehouse.declared.published_tables import FIGURES_MET, PAPER_COMPARISON, PAPER_VALUES, PUBLISHED
from warehouse.declared.question_views import (
    CACHED_SHARE,
    KAPPA_RATIO_BY_TURN,
    SESSION_TOTALS,
    TEMPLATE_OVERHEAD,
    TEXT_AGAINST_CHAT,
    TOKENIZERS_COMPARED,
    TURNS_PER_SESSION,
    WORKLOADS_COMPARED,
)
from warehouse.declared.schema import Table
from warehouse.declared.serving.tables import FLEET, LOAD, SCHEDULE
from warehouse.declared.turn_tables import GENERATIONS, PERCENTILES, REJECTS, SOURCES, SUMMARY, TOKENIZERS, TURNS

__all__ = [
    "ACCELERATORS",
    "BOUNDNESS",
    "CACHED_SHARE",
    "CACHE_POLICIES",
    "CACHE_TIERS",
    "CAPACITY",
    "CAPACITY_BY_MODEL",
    "DESIGN_QUESTIONS",
    "FIGURES_MET",
    "FLEET",
    "GENERATIONS",
    "HEADLINES",
    "KAPPA_CRIT",
    "KAPPA_RATIO_BY_TURN",
    "LINKS",
    "LOAD",
    "LOG_REQUESTS",
    "MODELS",
    "PAPER_COMPARISON",
    "PAPER_VALUES",
    "PERCENTILES",
    "PLATFORMS",
    "PUBLISHED",
    "REJECTS",
    "REUSE_DISTANCES",
    "REUSE_TIMES",
    "SCHEDULE",
    "SESSION_TOTALS",
    "SOURCES",
    "SUMMARY",
    "TABLES",
    "TEMPLATE_OVERHEAD",
    "TEXT_AGAINST_CHAT",
    "TOKENIZERS",
    "TOKENIZERS_COMPARED",
    "TOP_PREFIXES",
    "TURNS",
    "TURNS_PER_SESSION",
    "VALIDATION",
    "VALIDATION_BY_CLASS",
    "WORKLOADS_COMPARED",
    "tables_identity",
]

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
        VALIDATION,
        PERCENTILES,
        SUMMARY,
        BOUNDNESS,
        DESIGN_QUESTIONS,
        CAPACITY,
        CACHE_POLICIES,
        REUSE_TIMES,
        TOP_PREFIXES,
        LOG_REQUESTS,
        REUSE_DISTANCES,
        CACHE_TIERS,
        LOAD,
        SCHEDULE,
        FLEET,
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
        VALIDATION_BY_CLASS,
        CAPACITY_BY_MODEL,
    )
}


def tables_identity() -> str:
    """Return a hash (12 hex digits) of the names, types, units and nullability of all columns.

    Descriptions and bounds are left out: a reworded description does not make a warehouse outdated.
    """
    columns = [
        f"{table.name} {table.is_view} {field.name} {field.type} {field.unit} {field.nullable}"
        for table in TABLES.values()
        for field in table.fields
    ]
    return hashlib.sha256("\n".join(columns).encode()).hexdigest()[:12]

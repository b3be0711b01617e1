"""Tables of provenance: source files, tokenizers, rejects, and the code that made each series."""

from __future__ import annotations

from reports.data import ReportData, Row
from reports.format import shown
from reports.page import Grid
from warehouse.declared.formats import cell, number
from warehouse.declared.schema import Table
from warehouse.declared.tables import GENERATIONS, REJECTS, SOURCES, SUMMARY, TOKENIZERS
from warehouse.declared.turn_tables import SERIES


def source_grids(data: ReportData) -> list[Grid]:
    """Return the files that were read, with their identities."""
    facts = ("workload", "repo_id", "path", "bytes", "records", "licence", "fetched_at")
    identity = ("workload", "path", "revision", "sha256")
    return [
        Grid("sources", "Files read", _labels(SOURCES, facts), _cells(data.sources, facts), words=-1),
        Grid(
            "files", "Their revisions and hashes", _labels(SOURCES, identity), _cells(data.sources, identity), words=-1
        ),
    ]


def tokenizer_grid(data: ReportData) -> Grid:
    """Return the tokenizers that counted."""
    names = ("tokenizer", "repo_id", "path", "revision", "sha256", "fingerprint", "engine", "engine_version")
    return Grid("tokenizers", "Tokenizers used", _labels(TOKENIZERS, names), _cells(data.tokenizers, names), words=-1)


def generation_grid(data: ReportData) -> Grid:
    """Return the run and code that made each series."""
    names = ("generation", "workload", "tokenizer", "revision", "code_version", "run_id", "started_at", "finished_at")
    return Grid(
        "generations", "Generation and code", _labels(GENERATIONS, names), _cells(data.generations, names), words=-1
    )


def reject_grid(data: ReportData) -> Grid:
    """Return the rejects: a row per workload, level and reason, with the first example."""
    names = ("workload", "level", "reason")
    example = ("path", "record", "session_id", "detail")
    columns = (*_labels(REJECTS, names), "left out", *(f"first: {label}" for label in _labels(REJECTS, example)))
    rows = [
        (*(shown(row[name]) for name in names), number(row["things"]), *(_cell(row[name]) for name in example))
        for row in data.rejects
    ]
    note = (
        "Level record: the whole element of the file; level turn: one turn of a session that was kept; "
        "level file: what a cut file lost behind its last whole element, which is no record."
    )
    return Grid("rejects", "What was left out, by reason", columns, rows, words=-1, note=note)


def totals_grid(data: ReportData) -> Grid:
    """Return totals and means of each series, and the number of messages that contain a special token's string."""
    names = (
        *SERIES,
        "first_turns",
        "cached_tokens_sum",
        "prefill_tokens_sum",
        "output_tokens_sum",
        "cached_tokens_mean",
        "prefill_tokens_mean",
        "kappa_ratio_mean",
        "special_token_messages",
    )
    rows = [
        (*(row[name] for name in SERIES), *(number(row[name]) for name in names[len(SERIES) :])) for row in data.summary
    ]
    return Grid("totals", "Totals and means of each series", _labels(SUMMARY, names), rows, words=3)


def _labels(table: Table, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(table.field(name).label() for name in names)


def _cells(rows: list[Row], names: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [tuple(_cell(row[name]) for name in names) for row in rows]


def _cell(value: object) -> str:
    """Return a formatted cell, with text from outside on one line."""
    return shown(cell(value))

"""Reads all data of the report from the database at once. It is small: turns are read as histogram bins."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from reports.cache_data import CacheData, read_cache
from reports.histogram import BINS_PER_DECADE, SQL, Histogram, Key, histograms
from warehouse.database.engine import read_only
from warehouse.declared.fields import COUNTINGS, HISTORY, LOGGED, REUSES

Row = dict[str, Any]
COST_MODEL, KV_DTYPE, BLOCK_TOKENS = "2n", "bf16", 1
TEXT, CHAT = "text", "chat"


@dataclass(frozen=True)
class Platform:
    """An accelerator and its link, on one basis."""

    accelerator: str
    link: str
    basis: str

    @property
    def hardware(self) -> str:
        """Accelerator and link."""
        return f"{self.accelerator} + {self.link}"

    def __str__(self) -> str:
        """Return accelerator, link and basis."""
        return f"{self.hardware} ({self.basis})"


def platform_of(row: Row) -> Platform:
    """Return the platform of a row."""
    return Platform(row["accelerator"], row["link"], row["basis"])


class Shown(NamedTuple):
    """Which series of a workload figures and verdicts show."""

    counting: str
    reuse: str

    def __str__(self) -> str:
        """Return both in words."""
        return self.counting if self.reuse == HISTORY else f"{self.counting}, reuse {self.reuse}"


def is_shown(shown: dict[str, Shown], row: Row) -> bool:
    """Return whether a row is of the series of its workload that is shown."""
    return shown.get(row["workload"]) == (row["counting"], row["reuse"])


@dataclass(frozen=True)
class ReportData:
    """The rows that the report shows. `boundness` and `kappa_crit` hold only the headline models and platforms.

    Attributes:
        tokenizer: the tokenizer whose counts the figures show.
        counting: the counting that figures and verdicts show.
        shown: the series of each workload that figures and verdicts show: its counting and reuse.
        models: headline models by name, in the order of the headline list.
        platforms: headline platforms, in the order of the headline list.
        boundness: rows at bf16, reuse by single tokens, each model with its tokenizer; every counting and cost_model.
        in_blocks: rows at bf16 of every block and cost_model, of the `shown` series on the reference platform.
        errors: how far public measurements are from the model, a row a class.
        design_questions: rows of the `shown` series and of the headline models; the baseline of a question comes first.
        load: TTFT over the request rate, of the headline models, each with its tokenizer; of history where there is it.
        fleet: the cheapest fleet, of the same; empty without prices.
        paper_values: the values that the paper prints, of every workload.
        template_tokens: mean tokens that the chat template adds to a turn, by workload and tokenizer.
        rejects: one row per workload, level and reason, with the number and the first example.
        histograms: turns of the `shown` series, by `tokenizer` or as logged, by workload, metric and whether they are
            first turns.
        cache: rows about caches of a size, of the `shown` series and the headline models.
    """

    tokenizer: str
    counting: str
    shown: dict[str, Shown]
    models: dict[str, Row]
    platforms: list[Platform]
    summary: list[Row]
    percentiles: list[Row]
    boundness: list[Row]
    kappa_crit: list[Row]
    comparison: list[Row]
    design_questions: list[Row]
    load: list[Row]
    fleet: list[Row]
    paper_values: list[Row]
    template_tokens: dict[tuple[str, str], float]
    sources: list[Row]
    tokenizers: list[Row]
    rejects: list[Row]
    generations: list[Row]
    histograms: dict[Key, Histogram]
    in_blocks: list[Row] = field(default_factory=list)
    errors: list[Row] = field(default_factory=list)
    cache: CacheData = field(default_factory=CacheData)

    @property
    def is_sample(self) -> bool:
        """Whether any text was generated."""
        return any(row["is_sample"] for row in (*self.summary, *self.sources))

    @cached_property
    def workloads(self) -> list[str]:
        """Workloads with turns, sorted by name."""
        return sorted({row["workload"] for row in self.summary})

    @cached_property
    def drawn_workloads(self) -> list[str]:
        """Workloads that the shown tokenizer counted."""
        return sorted({workload for workload, _, _ in self.histograms})

    @cached_property
    def reference(self) -> Platform | None:
        """The platform of the first screen: the first whose hardware is on both bases, else the first."""
        on_paper = {p.hardware for p in self.platforms if p.basis == "paper"}
        both = [p for p in self.platforms if p.basis == "physical" and p.hardware in on_paper]
        return next(iter(both + self.platforms), None)

    @cached_property
    def crit(self) -> dict[tuple[str, Platform], float | None]:
        """kappa_crit by model and platform, bf16; None if the bytes/token are not constant."""
        return {(row["model"], platform_of(row)): row["kappa_crit"] for row in self.kappa_crit}

    @cached_property
    def bound(self) -> dict[tuple[str, str, Platform], Row]:
        """Rows of boundness of the shown series at cost_model 2n, by workload, model and platform."""
        return self.bound_by(COST_MODEL)

    def bound_by(self, cost_model: str) -> dict[tuple[str, str, Platform], Row]:
        """Return the rows of boundness of the shown series at a cost_model, by workload, model and platform."""
        chosen = [row for row in self.boundness if row["cost_model"] == cost_model and is_shown(self.shown, row)]
        return {(row["workload"], row["model"], platform_of(row)): row for row in chosen}

    @cached_property
    def how_counted(self) -> str:
        """The counting of what is shown, and that and the reuse of each workload that has another."""
        alike = set(self.shown.values())
        if len(alike) == 1:
            return str(alike.pop())
        usual = Shown(self.counting, HISTORY)
        others = [f"{workload}: {shown}" for workload, shown in sorted(self.shown.items()) if shown != usual]
        return f"{self.counting} ({'; '.join(others)})" if others else self.counting

    @property
    def whose_counts(self) -> str:
        """Whose token counts the figures show."""
        return "token counts of the log" if self.tokenizer == LOGGED else f"counts of {self.tokenizer}"

    def model_label(self, model: str, workload: str = "") -> str:
        """Return the model's name, marked if counts of another vocabulary, or of the workload's log, stand in."""
        is_logged = workload in self.shown and self.shown[workload].counting == LOGGED
        return f"{model} (proxy)" if is_logged or self.models[model]["is_tokenizer_proxy"] else model


_REJECTS = """
SELECT workload, level, reason, things, unnest(example) FROM (
  SELECT workload, level, reason, count(*) AS things,
         arg_min({path: path, record: record, session_id: session_id, detail: detail},
                 (path, record, coalesce(turn_index, -1))) AS example
  FROM rejects GROUP BY workload, level, reason
) ORDER BY workload, level, reason
"""
_IN_BLOCKS = """
SELECT * FROM boundness
WHERE kv_dtype = $kv_dtype AND list_contains($models, model)
ORDER BY ALL
"""
# Table order: the first variant of a question is the baseline of the others.
_DESIGN_QUESTIONS = """
SELECT * FROM design_questions WHERE list_contains($models, model) ORDER BY rowid
"""
_SERVING = """
SELECT * FROM {table} WHERE list_contains($models, model)
QUALIFY reuse = min(reuse) OVER (PARTITION BY workload) ORDER BY ALL
"""
_TEMPLATE_TOKENS = """
SELECT workload, tokenizer, avg(template_tokens) AS mean FROM template_overhead GROUP BY ALL ORDER BY ALL
"""
_TABLES = {
    "summary": "SELECT * FROM summary ORDER BY workload, tokenizer, counting, reuse",
    "percentiles": "SELECT * FROM percentiles ORDER BY ALL",
    "comparison": "SELECT * FROM paper_comparison ORDER BY workload NULLS LAST, quantity, source",
    "paper_values": "SELECT * FROM paper_values ORDER BY workload NULLS FIRST, quantity",
    "sources": "SELECT * FROM sources ORDER BY workload, path",
    "tokenizers": "SELECT * FROM tokenizers ORDER BY tokenizer, engine",
    "generations": "SELECT * FROM generations ORDER BY workload, tokenizer",
    "rejects": _REJECTS,
    "errors": "FROM validation_by_class",
}


def read_report_data(database: Path) -> ReportData:
    """Return the data of the report.

    Raises:
        KappaError: the file cannot be opened as a database.
    """
    with read_only(database) as connection:

        def rows(sql: str, **values: object) -> list[Row]:
            return list(connection.sql(sql, params=values or None).to_arrow_table().to_pylist())

        names, platforms = _headlines(rows("FROM headlines"))
        tables = {name: rows(sql) for name, sql in _TABLES.items()}
        tokenizer, counting = shown_series(tables["summary"], tables["comparison"])
        shown = shown_of(tables["summary"], counting)
        known = {row["model"]: row for row in rows("SELECT * FROM models")}
        models = {name: known[name] for name in names if name in known}
        chosen = {"models": list(models), "kv_dtype": KV_DTYPE}
        in_blocks = rows(_IN_BLOCKS, **chosen)
        bound = [row for row in in_blocks if row["block_tokens"] == BLOCK_TOKENS]
        questions = rows(_DESIGN_QUESTIONS, models=list(models))
        served = {table: rows(_SERVING.format(table=table), models=list(models)) for table in ("load", "fleet")}
        template = {(row["workload"], row["tokenizer"]): row["mean"] for row in rows(_TEMPLATE_TOKENS)}
        crit_sql = "SELECT * FROM kappa_crit WHERE kv_dtype = $kv_dtype AND list_contains($models, model) ORDER BY ALL"
        crit = [row for row in rows(crit_sql, **chosen) if platform_of(row) in platforms]
        present = {platform_of(row) for row in crit}
        series = {name: [getattr(one, name) for one in shown.values()] for name in Shown._fields}
        bins = rows(
            SQL, tokenizers=[tokenizer, LOGGED], workloads=list(shown), bins_per_decade=BINS_PER_DECADE, **series
        )
        cache = read_cache(rows, models, lambda row: is_shown(shown, row))
    return ReportData(
        tokenizer=tokenizer,
        counting=counting,
        shown=shown,
        models=models,
        platforms=[platform for platform in platforms if platform in present],
        boundness=[row for row in bound if platform_of(row) in platforms],
        kappa_crit=crit,
        design_questions=[row for row in questions if is_shown(shown, row)],
        template_tokens=template,
        histograms=histograms(bins),
        in_blocks=[row for row in in_blocks if platform_of(row) in platforms and is_shown(shown, row)],
        cache=cache,
        **served,
        **tables,
    )


def _headlines(rows: list[Row]) -> tuple[list[str], list[Platform]]:
    models = [row["model"] for row in rows if row["model"] is not None]
    return models, [platform_of(row) for row in rows if row["model"] is None]


def shown_series(summary: list[Row], comparison: list[Row]) -> tuple[str, str]:
    """Return the tokenizer and counting for the figures: `text` if present, and the one that counted most workloads.

    Among equals a tokenizer of published figures is preferred, then the first by name. Both names are empty if there
    are no turns.
    """
    countings = {row["counting"] for row in summary}
    counting = min(countings, key=COUNTINGS.index, default="")
    tokenizers = [row["tokenizer"] for row in summary if row["counting"] == counting]
    published = {row["tokenizer"] for row in comparison}
    order = {name: (-tokenizers.count(name), name not in published, name) for name in tokenizers}
    return min(order, key=order.__getitem__, default=""), counting


def shown_of(summary: list[Row], counting: str) -> dict[str, Shown]:
    """Return the series of each workload to show: the first reuse as declared, in this counting where there is one."""
    reuses = list(REUSES)
    order = sorted(
        summary,
        key=lambda row: (reuses.index(row["reuse"]), row["counting"] != counting, COUNTINGS.index(row["counting"])),
        reverse=True,
    )
    return {row["workload"]: Shown(row["counting"], row["reuse"]) for row in order}

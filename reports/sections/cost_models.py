"""Compares three cost models, and the countings `text` and `chat`, on the same workloads."""

from __future__ import annotations

from reports.data import CHAT, COST_MODEL, TEXT, Platform, ReportData, Row
from reports.format import percent
from reports.page import Grid
from reports.sections.result import STARS, bound_range
from warehouse.declared.fields import HISTORY
from warehouse.declared.formats import number
from warehouse.declared.hardware_fields import COST_MODELS
from warehouse.declared.tables import MODELS

_SHOWN = (("memory_bound_turn_share", "memory bound turns"), ("transfer_time_share", "transfer time share"))


def cost_model_words(data: ReportData) -> str:
    """Return the explanation of t_GPU under each cost model, and the cost model of the headlines."""
    return (
        f"The headlines use cost_model {COST_MODEL}. Three cost models say what t_GPU counts. "
        "2n: 2 x active parameters for each new token and nothing else, as the source paper does. "
        "attention: 2 x the parameters of the layers for each new token, the output head once a turn, and attention of "
        "the new tokens over everything before them. "
        "full: the same, but never less than the time to read the weights that the turn needs out of the "
        "accelerator's memory once, for a batch of one. "
        "Attention over a long context and the reading of weights for a short question make t_GPU longer, and fewer "
        "turns memory bound; the head counted once makes it a little shorter, which shows with small models. "
        "Batching shares the reading: a busy server lies between attention and full."
    ) + ("" if has_other_models(data) else " This warehouse holds only one of them.")


def has_other_models(data: ReportData) -> bool:
    """Return whether any row has another cost model than the headlines."""
    return any(row["cost_model"] != COST_MODEL for row in data.boundness)


def cost_model_grid(data: ReportData) -> Grid:
    """Return the cost models side by side on the reference platform, a row per workload and model; empty if only 2n."""
    by_cost = {name: data.bound_by(name) for name in COST_MODELS}
    columns = ("workload", "model", *(f"{label}, {name}" for _, label in _SHOWN for name in COST_MODELS))
    rows = [
        (workload, data.model_label(model, workload), *cells)
        for workload in data.workloads
        for model in data.models
        if (cells := _cells(by_cost, (workload, model, data.reference)))
    ]
    caption = f"Three cost models on {data.reference}, counting {data.how_counted}, bf16"
    note = (
        "Memory bound turns: share of all turns, first ones included. Transfer time share: the sum of t_PCIe over that "
        "of t_PCIe + t_GPU. A dash: the tables do not hold what the cost model needs."
    )
    return Grid("cost-models", caption, columns, rows if has_other_models(data) else [], words=2, note=note)


def _cells(
    by_cost: dict[str, dict[tuple[str, str, Platform], Row]], key: tuple[str, str, Platform | None]
) -> tuple[str, ...]:
    workload, model, platform = key
    if platform is None:
        return ()
    found = [by_cost[name].get((workload, model, platform)) for name in COST_MODELS]
    return tuple(percent(row[name] if row else None) for name, _ in _SHOWN for row in found) if any(found) else ()


def counting_grid(data: ReportData) -> Grid:
    """Return `text` against `chat`: a row per workload and tokenizer that was counted both ways."""
    medians = _medians(data)
    turns = {
        (row["workload"], row["tokenizer"], row["counting"]): row["turns"]
        for row in data.summary
        if row["reuse"] == HISTORY
    }
    platform = data.reference
    columns = (
        "workload",
        MODELS.field("tokenizer").label(),
        *(f"{label}, {counting}" for label in ("turns", "kappa ratio p50, reused turns") for counting in (TEXT, CHAT)),
        "template tokens of a turn, mean",
        *(f"memory bound turns on {platform}, {counting}" for counting in (TEXT, CHAT) if platform),
    )
    rows = [
        (
            *series,
            *(number(turns[*series, counting]) for counting in (TEXT, CHAT)),
            *(number(medians.get((*series, counting))) for counting in (TEXT, CHAT)),
            number(mean),
            *(bound_range(data, (*series, counting, HISTORY), platform) for counting in (TEXT, CHAT) if platform),
        )
        for series, mean in data.template_tokens.items()
        if (*series, TEXT) in turns
    ]
    note = (
        "Template tokens: K + T by chat less K + T by text. Memory bound turns: the range over the headline models. "
        f"A turn with no token in it and none before it is left out by text and not by chat. {STARS}"
    )
    caption = f"Text against chat, cost_model {COST_MODEL}, reuse by single tokens"
    return Grid("text-chat", caption, columns, rows, words=2, note=note)


def _medians(data: ReportData) -> dict[tuple[str, str, str], float]:
    """Return the median kappa_ratio of the turns with K > 0, by workload, tokenizer and counting."""
    chosen = ("kappa_ratio", "reused", 50, 1, HISTORY)
    keys = ("metric", "population", "percentile", "block_tokens", "reuse")
    rows = [row for row in data.percentiles if tuple(row[key] for key in keys) == chosen]
    return {(row["workload"], row["tokenizer"], row["counting"]): row["value"] for row in rows}

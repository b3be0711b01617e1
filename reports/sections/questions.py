"""Tables of the paper's design questions: kappa_crit, and the compute bound share of each workload."""

from __future__ import annotations

from reports.data import COST_MODEL, ReportData, Row
from reports.design_answers import Answers, answers, crit_of, share_of, title, workloads_of
from reports.format import percent, percent_range, value_range
from reports.page import Grid
from warehouse.declared.formats import MISSING, number, points
from warehouse.declared.hardware_fields import KAPPA_CRIT


def intro(data: ReportData) -> str:
    """Return the introduction to the tables and the figure: their content and basis."""
    return (
        "What a faster link, one memory, a latent cache or a smaller one makes of each workload: kappa_crit, and the "
        "share of all turns that is compute bound (t_PCIe <= t_GPU). "
        f"Cost_model {COST_MODEL}, reuse by single tokens, counting {data.how_counted}, bf16 keys and values unless "
        "the variant says otherwise; each model with the counts of its own tokenizer. "
        "Basis paper: the source paper's inputs, its B200 and H100. Basis physical: dense peak times a stated "
        "sustained fraction, and sustained PCIe and NVLink-C2C as in the table kappa_crit; 450 GB/s is the peak of one "
        "direction as wired, 900 the sum of both as printed, and one memory a peak. The first variant of a question is "
        "what the others are compared with: PCIe 5, also where the accelerator, a GB200, is built with NVLink-C2C; "
        "the latent and the fewer bits change only the bytes to load, not the work."
    )


def summary_grid(data: ReportData) -> Grid:
    """Return one row per basis and variant: ranges over the headline models."""
    workloads = workloads_of(data)
    columns = (
        "basis", "question", "variant", "accelerator", f"{KAPPA_CRIT.label()}, range over the models",
        *(f"compute bound turns of {workload}" for workload in workloads),
    )  # fmt: skip
    rows = []
    for (basis, question, variant), found in answers(data).items():
        shares = [[r["compute_bound_turn_share"] for r in found if r["workload"] == name] for name in workloads]
        crit = value_range([row["kappa_crit"] for row in found])
        rows.append((basis, title(question), variant, found[0]["accelerator"], crit, *map(percent_range, shares)))
    caption = f"Design questions: kappa_crit and compute bound turns, cost_model {COST_MODEL}"
    note = "Ranges are over the headline models; on basis paper those that the source paper gives inputs for."
    return Grid("design-questions", caption, columns, rows, words=4, note=note)


def model_grids(data: ReportData) -> list[Grid]:
    """Return a table for each question: a row per basis, model and variant, a column per workload."""
    found = answers(data)
    return [_model_grid(data, question, found) for question in dict.fromkeys(key[1] for key in found)]


def _model_grid(data: ReportData, question: str, found: Answers) -> Grid:
    workloads = workloads_of(data)
    columns = (
        "basis", "model", "variant", KAPPA_CRIT.label(),
        *(f"compute bound turns of {workload}" for workload in workloads),
    )  # fmt: skip
    of_question = {(basis, variant): rows for (basis, asked, variant), rows in found.items() if asked == question}
    rows = [
        (
            basis,
            data.model_label(model),
            variant,
            number(crit_of(answered, model)),
            *_shares(answered, model, workloads),
        )
        for basis in dict.fromkeys(basis for basis, _ in of_question)
        for model in data.models
        for (of_basis, variant), answered in of_question.items()
        if of_basis == basis and crit_of(answered, model) is not None
    ]
    note = "In brackets: percentage points gained over the first variant."
    caption = f"Design question by model: {title(question)}, cost_model {COST_MODEL}"
    return Grid(f"design-{question}", caption, columns, rows, words=3, note=note)


def _shares(answered: list[Row], model: str, workloads: list[str]) -> list[str]:
    return [_share(share_of(answered, model, workload)) for workload in workloads]


def _share(row: Row | None) -> str:
    if row is None:
        return MISSING
    gained = points(row["gained_turn_share"])
    return percent(row["compute_bound_turn_share"]) + (f" ({gained})" if gained != "0" else "")

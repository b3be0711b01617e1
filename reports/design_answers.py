"""The answers to the design questions by basis, question and variant, shared by their tables and their figure."""

from __future__ import annotations

from reports.data import ReportData, Row

QUESTIONS = {
    "nvlink-c2c": "NVLink-C2C instead of PCIe 5",
    "unified-memory": "one memory for host and accelerator",
    "mla": "a latent cache (MLA)",
    "kv-quantisation": "keys and values in fewer bits",
}
Answers = dict[tuple[str, str, str], list[Row]]


def title(question: str) -> str:
    """Return the title of a design question.

    >>> title("mla"), title("something-new")
    ('a latent cache (MLA)', 'something-new')
    """
    return QUESTIONS.get(question, question)


def answers(data: ReportData) -> Answers:
    """Return the rows by basis, question and variant; basis physical first, variants in table order."""
    found: Answers = {}
    for row in sorted(data.design_questions, key=_place):
        found.setdefault((row["basis"], row["question"], row["variant"]), []).append(row)
    return found


def _place(row: Row) -> tuple[bool, int]:
    names = list(QUESTIONS)
    question = row["question"]
    return row["basis"] == "paper", names.index(question) if question in names else len(names)


def workloads_of(data: ReportData) -> list[str]:
    """Return the workloads that have an answer, sorted by name."""
    return sorted({row["workload"] for row in data.design_questions})


def crit_of(answered: list[Row], model: str) -> float | None:
    """Return kappa_crit of a model in the rows of one variant, the same for every workload; None without rows."""
    return next((float(row["kappa_crit"]) for row in answered if row["model"] == model), None)


def share_of(answered: list[Row], model: str, workload: str) -> Row | None:
    """Return the row of a model and workload in the rows of one variant."""
    return next((row for row in answered if (row["model"], row["workload"]) == (model, workload)), None)

"""Design questions, cost models and printed values of the report, from rows written by hand: no database is needed."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from reports.data import ReportData, Shown
from reports.figures import questions as figure_questions
from reports.figures.style import theme
from reports.markdown import markdown
from reports.page import Grid, Page, Section
from reports.sections import cost_models, paper, questions

Row = dict[str, Any]
HARDWARE = {"accelerator": "h100-sxm", "link": "pcie5-x16", "basis": "physical"}
VARIANTS = {
    "nvlink-c2c": [
        "pcie5-x16",
        "nvlink-c2c, sustained as in kappa_crit",
        "450 GB/s, one direction as wired",
        "900 GB/s, as printed",
    ],
    "unified-memory": ["pcie5-x16", "8000 GB/s, no link"],
    "mla": ["the model's own cache", "a latent of 512 + 64 in every layer"],
    "kv-quantisation": ["bf16", "8 bit", "4 bit"],
}


def data_of(**rows: Any) -> ReportData:  # noqa: ANN401 - a row's values are of any type
    """Return the data of a report that holds the given rows of two models, on one platform."""
    models = {name: {"model": name, "is_tokenizer_proxy": name == "deepseek-v3"} for name in ("a-7b", "deepseek-v3")}
    empty: Row = {
        name: []
        for name in (
            "platforms", "summary", "percentiles", "boundness", "kappa_crit", "comparison", "design_questions",
            "paper_values", "load", "fleet", "sources", "tokenizers", "rejects", "generations",
        )
    }  # fmt: skip
    given = {"tokenizer": "llama-3.1", "counting": "text", "models": models, "histograms": {}, "template_tokens": {}}
    given["shown"] = {"w": Shown("text", "history")}
    return ReportData(**(empty | given | rows))


def answer(workload: str, model: str, question: str, place: int, basis: str = "physical") -> Row:
    """Return a row of `design_questions`: kappa_crit 10, 100, ... and shares 0.2, 0.5, ... by the variant's place."""
    return {
        "workload": workload, "model": model, "accelerator": "gb200", "basis": basis, "question": question,
        "variant": VARIANTS[question][place], "kappa_crit": 10.0 * 10**place, "link_bytes_per_s": 54.4e9,
        "compute_bound_turn_share": 0.2 + 0.3 * place, "gained_turn_share": 0.3 * place,
    }  # fmt: skip


def answers_of(workloads: list[str], bases: tuple[str, ...] = ("paper", "physical")) -> list[Row]:
    """Return every variant of every question for both models, in the order of the table."""
    return [
        answer(workload, model, question, place, basis)
        for workload in workloads
        for basis in bases
        for model in ("a-7b", "deepseek-v3")
        for question, variants in VARIANTS.items()
        for place in range(len(variants))
    ]


def cells(grid: Grid) -> list[dict[str, str]]:
    """Return a table as a dictionary a row, with plain spaces."""
    rows = [[cell.replace("\N{NO-BREAK SPACE}", " ") for cell in row] for row in grid.rows]
    return [dict(zip(grid.columns, row, strict=True)) for row in rows]


def test_variants_stand_in_order_and_physical_first() -> None:
    """What the others are compared with opens each question, and the basis of the figure opens the table."""
    rows = cells(questions.summary_grid(data_of(design_questions=answers_of(["w"]))))
    names = [name for variants in VARIANTS.values() for name in variants]
    assert [row["variant"] for row in rows] == names * 2
    assert [row["basis"] for row in rows] == ["physical"] * 11 + ["paper"] * 11
    # both models have the same shares: 0.2 + 2 x 0.3
    assert rows[2]["compute bound turns of w"] == "80 %"
    assert rows[2]["kappa crit, range over the models"] == "1,000"


def test_workload_without_a_model_is_a_dash() -> None:
    """A workload that a model's tokenizer did not count leaves a dash, and ranges are over the others."""
    rows = [r for r in answers_of(["u", "w"]) if (r["workload"], r["model"]) != ("u", "a-7b")]
    rows += [answer("u", "a-7b", "mla", 1) | {"compute_bound_turn_share": 0.9}]
    data = data_of(design_questions=rows)
    grid = next(grid for grid in questions.model_grids(data) if grid.name == "design-nvlink-c2c")
    row = next(row for row in cells(grid) if row["model"] == "a-7b")
    assert (row["compute bound turns of u"], row["compute bound turns of w"]) == ("-", "20.0 %")
    mla = next(row for row in cells(questions.summary_grid(data)) if row["variant"] == VARIANTS["mla"][1])
    # 0.2 + 0.3 of one model, 0.9 of the other
    assert (mla["compute bound turns of u"], mla["compute bound turns of w"]) == ("50 to 90 %", "50 %")


def test_gain_stands_in_percentage_points() -> None:
    """A share names what it gains over the first variant, which gains nothing."""
    (grid,) = questions.model_grids(data_of(design_questions=[answer("w", "a-7b", "mla", i) for i in (0, 1)]))
    # 0.2, then 0.2 + 0.3
    assert [row["compute bound turns of w"] for row in cells(grid)] == ["20.0 %", "50.0 % (+30.0)"]


def test_figure_names_basis_and_proxies() -> None:
    """Without rows of basis physical the paper's are drawn, and the title says so."""
    data = data_of(design_questions=answers_of(["w"], ("paper",)))
    with theme():
        texts = [text.get_text() for text in figure_questions.draw(data).findobj(Text)]
    assert "design questions, basis paper, cost_model 2n" in texts
    assert "deepseek-v3 (proxy)" in texts
    assert "basis paper, cost_model 2n, counting text" in figure_questions.caption(data)


@pytest.mark.parametrize("workloads", [["w"], ["finqa", "narrativeqa", "sharegpt", "sharegpt-v3"]])
def test_nothing_in_the_figure_overlaps_or_is_cut_off(workloads: list[str]) -> None:
    """Every text of the figure lies within it and apart from the others."""
    with theme():
        figure = figure_questions.draw(data_of(design_questions=answers_of(workloads)))
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
        boxes = [(text.get_text().strip(), last_line(text)) for text in texts if not is_tick(text)]
    assert len(boxes) > 4 * (1 + len(workloads))
    for name, box in boxes:
        assert (box.min >= figure.bbox.min - 1).all(), name
        assert (box.max <= figure.bbox.max + 1).all(), name
    overlapping = [(a, b) for (a, one), (b, other) in itertools.combinations(boxes, 2) if one.overlaps(other)]
    assert overlapping == []


def is_tick(text: Text) -> bool:
    """Return whether a text is a number at an axis; Matplotlib keeps more of them than it draws."""
    return text.get_text().removesuffix("k").replace(".", "").isdigit()


def last_line(text: Text) -> Bbox:
    """Return the box of a text; of one that begins with empty lines, which are no ink, the last line's."""
    box = text.get_window_extent()
    lines = len(text.get_text().split("\n")) if text.get_text().startswith("\n") else 1
    return Bbox.from_bounds(box.x0, box.y0, box.width, box.height / lines)


def bound(cost_model: str, share: float, model: str = "a-7b") -> Row:
    """Return a row of `boundness` of workload w."""
    names = {"workload": "w", "tokenizer": "llama-3.1", "counting": "text", "reuse": "history", "model": model}
    names |= {"cost_model": cost_model}
    return names | HARDWARE | {"memory_bound_turn_share": share, "transfer_time_share": share / 2}


def platform_rows() -> Row:
    """Return what names the platform of `HARDWARE`."""
    from reports.data import platform_of  # noqa: PLC0415 - one test's helper

    return {"platforms": [platform_of(HARDWARE)], "summary": [{"workload": "w", "is_sample": False}]}


def test_cost_model_that_is_not_known_is_a_dash() -> None:
    """A model without figures for `full` keeps its row; without any other cost model there is no table."""
    rows = [
        bound("2n", 0.8),
        bound("attention", 0.6),
        bound("2n", 0.4, "deepseek-v3"),
        bound("full", 0.2, "deepseek-v3"),
    ]
    first, second = cells(cost_models.cost_model_grid(data_of(boundness=rows, **platform_rows())))
    shown = [first[f"memory bound turns, {name}"] for name in ("2n", "attention", "full")]
    assert shown == ["80.0 %", "60.0 %", "-"]
    # half of 0.4 and of 0.2
    assert (second["transfer time share, 2n"], second["transfer time share, full"]) == ("20.0 %", "10.0 %")
    only = data_of(boundness=[bound("2n", 0.8)], **platform_rows())
    assert cost_models.cost_model_grid(only).rows == []
    assert "This warehouse holds only one of them." in cost_models.cost_model_words(only)


def value(verdict: str, why: str, workload: str | None = None) -> Row:
    """Return a row of `paper_values`."""
    numbers = {"printed": 2.0, "reproduced": None if verdict == "not reproduced" else 3.0, "residual": None}
    return {"quantity": why, "workload": workload, "verdict": verdict, "why": why} | numbers


def test_printed_values_are_counted_by_kind() -> None:
    """The sentence counts each value once, and a data set that differs is no miss of the paper's arithmetic."""
    rows = [
        value("within 1 %", "product"), value("equal when rounded", "product"), value("differs", "a miss: 1 is not 2"),
        value("differs", "measured on one machine"), value("not reproduced", "measured on one machine; power"),
        value("not reproduced", "of a workload", "finqa"), value("differs", "of a workload", "sharegpt"),
    ]  # fmt: skip
    text = paper.summary(data_of(paper_values=rows)).replace("\N{NO-BREAK SPACE}", " ")
    # 1 + 1 + 1 + 1 + 2 + 1 = 7
    assert text == (
        "The paper prints 7 values that are kept here: 1 are reproduced within 1 %; 1 are equal when rounded to the "
        "printed digits; 1 are misses of the paper's own arithmetic; 1 of the data sets differ from our counts; 2 are "
        "measurements of one machine, which no test asserts; 1 are not reproduced here, since the full set was not "
        "counted."
    )
    assert paper.value_words(rows[4]) == "measurement, not asserted: no model gives it"
    assert paper.value_words(rows[6]) == "differs"


def test_columns_of_words_after_numbers_are_set_left() -> None:
    """Quantity, verdict and reason are words, the three between are numbers."""
    (grid,) = paper.value_grids(data_of(paper_values=[value("within 1 %", "product")]))
    assert [grid.is_word(i) for i in range(6)] == [True, False, False, False, True, True]
    text = markdown(Page("t", "s", [Section("", [grid])], is_sample=False))
    assert "| --- | ---: | ---: | ---: | --- | --- |" in text

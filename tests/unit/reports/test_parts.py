"""Parts of the report that need no database: bins, places of names, escaping."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from reports.data import shown_of, shown_series
from reports.figures.crit import Curve, _label_places
from reports.figures.style import LINE_STYLES, SAMPLE_MARK, axis_label, colours, new_figure, png_bytes, svg_bytes, theme
from reports.format import is_hypothetical, percent, whole_percent
from reports.histogram import Histogram, histograms, span
from reports.html import inline_svg
from reports.markdown import markdown
from reports.page import Grid, Page, Paragraph, Section
from reports.sections.result import parts_sentence
from warehouse.declared.fields import CACHED_TOKENS
from warehouse.declared.tables import ACCELERATORS


def histogram(bins: dict[int, int], zeros: int = 0) -> Histogram:
    """Return a histogram of {bin: turns}."""
    return Histogram(np.array(list(bins), np.int64), np.array(list(bins.values()), np.int64), zeros)


def test_share_below_counts_zeros_and_ends_at_one() -> None:
    """The cumulative share starts with the zeros and reaches 1 at the last edge."""
    turns = histogram({20: 3, 21: 5}, zeros=2)
    # edges 19, 20, 21, 22: 2 zeros of 10, then nothing, 3 and 5 more
    assert turns.share_below(19, 22).tolist() == [0.2, 0.2, 0.5, 1.0]
    # bins before the first edge are below it
    assert turns.share_below(21, 22).tolist() == [0.5, 1.0]
    # log10 of the edges: 20 / 20 = 1, that is a value of 10
    assert turns.edges(20, 22).tolist() == [1.0, 1.05, 1.1]


def test_coarser_bins_keep_every_turn() -> None:
    """Four bins become one, below 1 as well."""
    coarse = histogram({-1: 1, 0: 2, 3: 4, 4: 8}, zeros=5).coarser(4)
    # -1 // 4 = -1, 0 and 3 -> 0, 4 -> 1
    assert dict(zip(coarse.bins.tolist(), coarse.turns.tolist(), strict=True)) == {-1: 1, 0: 6, 1: 8}
    assert (coarse.total, coarse.per_decade) == (20, 5)


def test_sum_of_histograms_adds_bins_and_zeros() -> None:
    """Turns of the same bin add up, whichever kind they are."""
    both = histogram({1: 2, 5: 1}, zeros=1) + histogram({5: 3, 9: 4}, zeros=2)
    assert dict(zip(both.bins.tolist(), both.turns.tolist(), strict=True)) == {1: 2, 5: 4, 9: 4}
    assert both.zeros == 3


def test_histograms_of_rows_have_both_kinds() -> None:
    """A workload without later turns has an empty histogram of them, and NULL is zero."""
    row = {"workload": "w", "metric": "kappa_ratio", "is_first_turn": True}
    found = histograms([row | {"bin": None, "turns": 7}, row | {"bin": 3, "turns": 2}])
    assert found["w", "kappa_ratio", True].total == 9
    assert found["w", "kappa_ratio", True].zeros == 7
    assert found["w", "kappa_ratio", False].total == 0
    # nothing to divide by: a share of 0, not a failure
    assert found["w", "kappa_ratio", False].share_below(0, 1).tolist() == [0.0, 0.0]


def test_span_covers_whole_decades() -> None:
    """The range of an axis runs from a power of ten to a power of ten."""
    # bin -1 lies in 0.1 to 1, bin 41 in 100 to 1000: decades -1 to 2, edges -20 and 60
    assert span([histogram({-1: 1}), histogram({41: 1})], per_decade=20) == (-20, 60)
    assert span([histogram({}, zeros=3)], per_decade=20) == (0, 20)


def test_colours_and_lines_tell_many_workloads_apart() -> None:
    """Nine colours differ; with the style of the line beside them, so do 18 curves."""
    assert len(set(colours(9))) == 9
    # 9 colours and 6 lines come again together after lcm(9, 6) = 18
    assert len({(colour, LINE_STYLES[i % 6]) for i, colour in enumerate(colours(18))}) == len(LINE_STYLES) * 3


def test_the_series_that_figures_show() -> None:
    """What counted most workloads, then what published figures were counted with, then the first by name."""
    rows = [{"counting": "text", "tokenizer": name} for name in ("b", "a", "c", "b", "a", "c")]
    assert shown_series([*rows, {"counting": "text", "tokenizer": "c"}], []) == ("c", "text")
    assert shown_series(rows, [{"tokenizer": None}, {"tokenizer": "b"}]) == ("b", "text")
    assert shown_series(rows, []) == ("a", "text")
    assert shown_series([], []) == ("", "")


def test_the_series_of_each_workload() -> None:
    """The first reuse as declared, in the counting that most are shown in where the workload has it."""
    names = ("workload", "counting", "reuse")
    rows = [
        dict(zip(names, row, strict=True))
        for row in (
            ("a", "chat", "prefix"), ("a", "chat", "history"), ("a", "text", "history"), ("b", "chat", "prefix"),
            ("b", "chat", "reported"), ("c", "logged", "reported"), ("d", "chat", "history"),
        )
    ]  # fmt: skip
    assert shown_of(rows, "text") == {
        "a": ("text", "history"), "b": ("chat", "prefix"), "c": ("logged", "reported"), "d": ("chat", "history"),
    }  # fmt: skip
    assert shown_of(rows, "chat")["a"] == ("chat", "history")
    assert shown_of([], "") == {}


def test_shares_are_never_rounded_to_all_or_nothing() -> None:
    """A share that is not 0 or 1 never reads as 0 or 100 %."""
    for share in (1e-9, 0.0004, 0.5, 0.9996, 1 - 1e-9):
        assert percent(share).replace("\N{NO-BREAK SPACE}", "") not in ("0%", "100%")
        assert whole_percent(share) not in ("0", "100")


def test_one_percent_is_not_hypothetical() -> None:
    """The limit itself is not above the limit."""
    assert not is_hypothetical(1 / 100)
    assert is_hypothetical(0.0101)


def test_names_of_curves_do_not_cover_each_other() -> None:
    """Four curves on the same path get four places apart."""
    x = np.linspace(0, 4, 81)
    drawn = [Curve(f"workload-{i}", x, 100 - 25 * x) for i in range(4)]
    with theme():
        axes = new_figure(3, "t", is_sample=False).subplots()
        axes.set_xlim(-0.5, 4.5)
        places = _label_places(axes, drawn)
    levels = {(y, side) for _, _, y, side in places}
    assert len(levels) == 4
    for _, at, y, _ in places:
        # the curve falls 25 % for each unit of x
        assert at == pytest.approx((100 - y) / 25, abs=1e-6)


def test_colours_differ_and_are_readable_on_white() -> None:
    """Nine colours are nine, each with a contrast of at least 1.9 to white paper; more than that repeat."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    nine = colours(9)
    assert len(set(nine)) == 9
    # (1 + 0.05) / (luminance + 0.05) is the contrast to white
    assert min(1.05 / (luminance(colour) + 0.05) for colour in nine) > 1.9
    assert len(colours(12)) == 12


def test_axis_label_has_the_unit_of_the_field() -> None:
    """A unit that the name does not say stands in the label."""
    assert axis_label(CACHED_TOKENS) == "cached tokens (K)"
    assert ACCELERATORS.field("hbm_bytes_per_s").label() == "hbm bytes per s (bytes/s)"


def test_figures_leave_no_trace_and_repeat() -> None:
    """A figure gives the same bytes twice, names no date or version, and the process keeps its settings."""
    import matplotlib as mpl  # noqa: PLC0415 - seconds to import

    before = dict(mpl.rcParams)

    def draw() -> tuple[bytes, bytes]:
        with theme():
            figure = new_figure(2, "title", is_sample=True)
            figure.subplots().fill_between([0, 1], [1, 2], hatch="/")
            return svg_bytes(figure), png_bytes(figure)

    svg, png = draw()
    assert (svg, png) == draw()
    assert SAMPLE_MARK.encode() in svg
    assert b"<metadata" not in svg
    assert b"Software" not in png
    assert dict(mpl.rcParams) == before


def test_inlined_svg_has_no_prolog_and_its_own_ids() -> None:
    """What refers to an id still finds it after the figure's name was put before both."""
    prolog = b'<?xml version="1.0"?>\n<!DOCTYPE svg PUBLIC "a" "b">\n'
    text = str(inline_svg(prolog + b'<svg><path id="p"/><use xlink:href="#p" style="fill: url(#h)"/></svg>', "f"))
    assert text == '<svg><path id="f-p"/><use xlink:href="#f-p" style="fill: url(#f-h)"/></svg>'


def test_markdown_table_has_the_cells_it_was_given() -> None:
    """Bars, line breaks and markup in a cell neither end it nor format it; numbers are set right."""
    grid = Grid("g", "Caption", ("name", "value"), [("a|b\nc <b>*d*</b> http://e", "1,234")])
    page = Page("Title", "Sentence.", [Section("", [grid, Paragraph("Text.", is_warning=True)])], is_sample=False)
    lines = markdown(page).splitlines()
    assert "| --- | ---: |" in lines
    row = next(line for line in lines if "1,234" in line)
    assert row == r"| a&#124;b c &lt;b&gt;\*d\*&lt;/b&gt; http&#58;&#47;&#47;e | 1,234 |"
    assert "> Text." in lines


def test_parts_of_the_published_sets_are_told_first() -> None:
    """A set that is not whole is named with its counts; a whole one is not; a sample says so anyway."""
    rows = [
        {"workload": "finqa", "metric": "records", "ours": 65.0, "value": 7437.0, "is_full_set": False},
        {"workload": "sharegpt", "metric": "records", "ours": 90665.0, "value": 90665.0, "is_full_set": True},
        {"workload": "finqa", "metric": "turns", "ours": 65.0, "value": 7437.0, "is_full_set": False},
    ]
    # 65 of 7,437 records
    told = parts_sentence(SimpleNamespace(is_sample=False, comparison=rows))
    assert told == "Only parts of the published sets were counted (records): finqa 65 of 7,437."
    assert parts_sentence(SimpleNamespace(is_sample=False, comparison=rows[1:2])) == ""
    assert parts_sentence(SimpleNamespace(is_sample=True, comparison=rows)) == ""

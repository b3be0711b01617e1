"""Builds the page: the order of figures and tables, and the text between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.data import ReportData
from reports.figures import boundness, crit, distributions, load, routing, style
from reports.figures import cache as figure_cache
from reports.figures import questions as figure_questions
from reports.format import is_hypothetical, listing, percent
from reports.page import Block, Page, Paragraph, Picture, Section
from reports.sections import cache, cost_models, method, paper, percentile_tables, provenance, questions, result, trust

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CRIT_FIGURE = "kappa_ratio_vs_kappa_crit"
BOUND_FIGURE = "memory_bound_turns"
QUESTIONS_FIGURE = "design_questions"
CAPACITY_FIGURE, TIERS_FIGURE = "hit_ratio_by_bytes", "cache_tiers"


def build_page(data: ReportData) -> Page:
    """Return the whole report with its figures drawn."""
    with style.theme():
        sections = [
            _first_screen(data),
            _verdicts(data),
            _boundness(data),
            _cache(data),
            _questions(data),
            *_serving(data),
            _distributions(data),
        ]
    sections += [
        _percentiles(data),
        _countings(data),
        _crit(data),
        trust.section(data),
        _paper(data),
        _published(data),
        method.section(data),
    ]
    sections += [_sources(data), _rejects(data)]
    sections.append(Section("Generation and code", [provenance.generation_grid(data)]))
    return Page(
        title="kappa: is prefill bound by the GPU or by the link to host memory?",
        sentence=result.sentence(data),
        sections=[section for section in sections if section.blocks],
        is_sample=data.is_sample,
    )


def _picture(figure: Figure, name: str, alt: str, caption: str) -> Picture:
    return Picture(name, alt, caption, style.svg_bytes(figure), style.png_bytes(figure))


def _first_screen(data: ReportData) -> Section:
    parts = result.parts_sentence(data)
    blocks: list[Block] = [Paragraph(parts, is_warning=True)] if parts else []
    if data.histograms:
        alt = "Shares of turns above each kappa_ratio, a curve a workload, over kappa_crit of models and platforms"
        blocks.append(_picture(crit.draw(data), CRIT_FIGURE, alt, crit.caption(data)))
    if data.summary:
        blocks += [result.first_grid(data), Paragraph(result.basis_note(data))]
    return Section("", blocks)


def _verdicts(data: ReportData) -> Section:
    grids = result.verdict_grids(data)
    beyond = [Paragraph(text, is_warning=True) for text in hypothetical_sentences(data)]
    intro = (
        "A turn is memory bound where loading its cached keys and values takes longer than computing its new tokens "
        "(t_PCIe > t_GPU; at cost_model 2n: "
        "kappa_ratio > kappa_crit). The token share weighs a turn by K + T, the time share by t_PCIe + t_GPU; the "
        "transfer time share is the sum of t_PCIe "
        "over the sum of both."
    )
    costs: list[Block] = [Paragraph(cost_models.cost_model_words(data))]
    costs += [cost_models.cost_model_grid(data)] if cost_models.has_other_models(data) else []
    return Section("Verdicts, and which are hypothetical", [Paragraph(intro), *beyond, *grids, *costs] if grids else [])


def hypothetical_sentences(data: ReportData) -> list[str]:
    """Return a sentence for each workload of which more than 1 % of turns exceed the context of any model."""
    sentences = []
    for workload in data.workloads:
        shares = {key[1]: row["over_context_turn_share"] for key, row in data.bound.items() if key[0] == workload}
        groups: dict[float, list[str]] = {}
        for model in data.models:
            if is_hypothetical(shares.get(model, 0)):
                groups.setdefault(shares[model], []).append(data.model_label(model, workload))
        parts = [
            f"{percent(share)} of its turns are longer than the context of {listing(names)}"
            for share, names in groups.items()
        ]
        if parts:
            sentences.append(
                f"Hypothetical for {workload}: {'; '.join(parts)}. No server could run such turns without cutting them."
            )
    return sentences


def _boundness(data: ReportData) -> Section:
    grids = percentile_tables.bound_grids(data)
    if not grids:
        return Section("", [])
    alt = "Heat map of the memory bound share of turns: a panel a workload, a row a model, a column a platform"
    picture = _picture(boundness.draw(data), BOUND_FIGURE, alt, boundness.caption(data))
    return Section("Memory bound share by model and hardware", [picture, *grids])


def _cache(data: ReportData) -> Section:
    if not data.cache.curves:
        return Section("", [])
    alt = "Curves of hit ratio over bytes of cache: a panel a workload, a line a model, the optimum as a thin line"
    curves = _picture(figure_cache.draw_capacity(data), CAPACITY_FIGURE, alt, cache.capacity_caption(data))
    blocks: list[Block] = [Paragraph(cache.intro(data)), curves]
    if any(figure_cache.loaded_model(data, workload) for workload in figure_cache.workloads_of(data)):
        alt = "Bars of tokens by origin and percentiles of kappa_link over sizes of host memory, a row a workload"
        tiers = _picture(figure_cache.draw_tiers(data), TIERS_FIGURE, alt, cache.tiers_caption(data))
        blocks += [tiers, cache.grid(data)]
    return Section("How much cache", blocks)


def _questions(data: ReportData) -> Section:
    if not data.design_questions:
        return Section("", [])
    alt = "Markers of kappa_crit and of the compute bound share of each workload, a row a model and variant"
    picture = _picture(figure_questions.draw(data), QUESTIONS_FIGURE, alt, figure_questions.caption(data))
    # The short table comes first: in print the figure needs a page of its own.
    blocks: list[Block] = [Paragraph(questions.intro(data)), questions.summary_grid(data), picture]
    return Section("Design questions", [*blocks, *questions.model_grids(data)])


def _serving(data: ReportData) -> list[Section]:
    blocks: list[Block] = []
    if data.load:
        alt = "Curves of p90 TTFT over the request rate with bands from p50 to p99, a panel a workload, a line a model"
        blocks.append(_picture(load.draw(data), "ttft_over_rate", alt, load.caption(data)))
    if data.fleet:
        alt = "Classes of turns by K and T, coloured by the machine that serves them, a panel a model"
        blocks.append(_picture(routing.draw(data), "routing", alt, routing.caption(data)))
    return [Section("When turns meet", blocks)] if blocks else []


def _countings(data: ReportData) -> Section:
    text = (
        "Counting text counts each message by itself, counting chat the prompt that the model's chat template makes "
        "of the same turns, its system prompt and the marks of each message included. New template tokens of a turn "
        "add to T, those of earlier turns to K."
    )
    grid = cost_models.counting_grid(data)
    return Section("Text against chat", [Paragraph(text), grid] if grid.rows else [])


def _paper(data: ReportData) -> Section:
    text = f"{paper.summary(data)} {paper.READING}"
    return Section(
        "The paper's printed values", [Paragraph(text), *paper.value_grids(data)] if data.paper_values else []
    )


def _distributions(data: ReportData) -> Section:
    blocks: list[Block] = []
    for workload in data.drawn_workloads:
        alt = f"Histograms and cumulative curves of T, K and kappa_ratio of {workload}, first turns shown apart"
        figure = distributions.draw(data, workload)
        blocks.append(_picture(figure, f"distribution_{workload}", alt, distributions.caption(data, workload)))
    if blocks:
        others = sorted({row["tokenizer"] for row in data.summary} - {data.tokenizer})
        text = f"Figures show the {data.whose_counts}" + (
            f"; the tables hold those of {listing(others)} too." if others else "."
        )
        blocks.insert(0, Paragraph(text))
    return Section("Distributions of T, K and kappa_ratio", blocks)


def _percentiles(data: ReportData) -> Section:
    grids = percentile_tables.percentile_grids(data)
    text = (
        "Exact percentiles, never sketched. Population all: every turn; reused: turns with K > 0. Reuse by blocks "
        "of 16 (a vLLM block) or 256 tokens (an LMCache "
        "chunk) rounds K down and leaves the rest to T."
    )
    return Section("Percentiles", [Paragraph(text), *grids, provenance.totals_grid(data)] if grids else [])


def _crit(data: ReportData) -> Section:
    text = (
        "kappa_crit = kappa_M x kappa_HW, with kappa_M = 2 x active parameters / KV bytes of a token and kappa_HW = "
        "link bytes per second / accelerator FLOP per second. "
        "Basis paper: the source paper's own inputs, to reproduce its tables; kappa_crit multiplies kappa_M and "
        "kappa_HW as it printed them. Basis physical: dense peak times a "
        "stated sustained fraction, one direction of the "
        "link, large pinned copies; the sustained fractions are assumptions."
    )
    return Section("kappa_crit", [Paragraph(text), percentile_tables.crit_grid(data)] if data.crit else [])


def _published(data: ReportData) -> Section:
    grids = percentile_tables.comparison_grids(data)
    text = (
        "Published figures with ours; the ratio is ours / published. Only a full set is compared, and "
        "only figures with a stated method are asserted: a measurement of "
        "one machine and a misprint are for orientation."
    )
    partial = percentile_tables.not_compared(data)
    blocks: list[Block] = [Paragraph(text), *([Paragraph(partial, is_warning=True)] if partial else []), *grids]
    return Section("Published figures", blocks if grids else [])


def _sources(data: ReportData) -> Section:
    return Section("Sources and tokenizers", [*provenance.source_grids(data), provenance.tokenizer_grid(data)])


def _rejects(data: ReportData) -> Section:
    if not data.rejects:
        return Section("What was left out", [Paragraph("Nothing: every record was used.")])
    return Section("What was left out", [provenance.reject_grid(data)])

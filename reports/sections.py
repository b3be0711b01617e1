"""Puts the page together: which figure and table stands where, and the words between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports import figure_boundness, figure_crit, figure_distributions, measures, provenance, result, style
from reports.page import Block, Page, Paragraph, Picture, Section
from reports.reading import ReportData
from reports.words import is_hypothetical, listing, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CRIT_FIGURE = "kappa_ratio_vs_kappa_crit"
BOUND_FIGURE = "memory_bound_turns"


def build_page(data: ReportData) -> Page:
    """Return the whole report, figures drawn."""
    with style.theme():
        sections = [_first_screen(data), _verdicts(data), _boundness(data), _distributions(data)]
    sections += [_percentiles(data), _crit(data), _published(data), _method(data), _sources(data), _rejects(data)]
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
    blocks: list[Block] = []
    if data.histograms:
        alt = "Shares of turns above each kappa_ratio, a curve a workload, over kappa_crit of models and platforms"
        blocks.append(_picture(figure_crit.draw(data), CRIT_FIGURE, alt, figure_crit.caption(data)))
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
    return Section("Verdicts, and which are hypothetical", [Paragraph(intro), *beyond, *grids] if grids else [])


def hypothetical_sentences(data: ReportData) -> list[str]:
    """Return a sentence for each workload with models whose context more than 1 % of its turns exceed."""
    sentences = []
    for workload in data.workloads:
        shares = {key[1]: row["over_context_turn_share"] for key, row in data.bound.items() if key[0] == workload}
        groups: dict[float, list[str]] = {}
        for model in data.models:
            if is_hypothetical(shares.get(model, 0)):
                groups.setdefault(shares[model], []).append(data.model_label(model))
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
    grids = measures.bound_grids(data)
    if not grids:
        return Section("", [])
    alt = "Heat map of the memory bound share of turns: a panel a workload, a row a model, a column a platform"
    picture = _picture(figure_boundness.draw(data), BOUND_FIGURE, alt, figure_boundness.caption(data))
    return Section("Memory bound share by model and hardware", [picture, *grids])


def _distributions(data: ReportData) -> Section:
    blocks: list[Block] = []
    for workload in data.drawn_workloads:
        alt = f"Histograms and cumulative curves of T, K and kappa_ratio of {workload}, first turns shown apart"
        figure = figure_distributions.draw(data, workload)
        blocks.append(_picture(figure, f"distribution_{workload}", alt, figure_distributions.caption(data, workload)))
    if blocks:
        others = sorted({row["tokenizer"] for row in data.summary} - {data.tokenizer})
        text = f"Figures show the counts of {data.tokenizer}" + (
            f"; the tables hold those of {listing(others)} too." if others else "."
        )
        blocks.insert(0, Paragraph(text))
    return Section("Distributions of T, K and kappa_ratio", blocks)


def _percentiles(data: ReportData) -> Section:
    grids = measures.percentile_grids(data)
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
        "Basis paper: the source paper's own inputs, to reproduce its tables. Basis physical: dense peak times a "
        "stated sustained fraction, one direction of the "
        "link, large pinned copies; the sustained fractions are assumptions."
    )
    return Section("kappa_crit", [Paragraph(text), measures.crit_grid(data)] if data.crit else [])


def _published(data: ReportData) -> Section:
    grids = measures.comparison_grids(data)
    text = (
        "Published figures with ours beside them; the ratio is ours / published. Only a full set is compared, and "
        "only figures with a stated method are asserted: a measurement of "
        "one machine and a misprint stand for orientation."
    )
    partial = measures.not_compared(data)
    blocks: list[Block] = [Paragraph(text), *([Paragraph(partial, is_warning=True)] if partial else []), *grids]
    return Section("Published figures", blocks if grids else [])


_METHOD = """
A turn is one request to the model: everything new since the last reply. T (prefill tokens) counts what is new,
K (cached tokens) everything before it, replies included; kappa_ratio = K / T. A document workload is a session for each
document: K is the document, T the question, and the first question already finds the document cached.

K is the upper bound of reuse: everything said before is taken as cached in host memory, nothing as still in GPU memory,
nothing as evicted. With less reuse fewer turns are memory bound; what still lies in GPU memory need not be loaded.

Text is counted as stored, each message alone, without template tokens (counting text) or as the prompt that the
model's chat template makes (counting chat). Nothing is cleaned or cut, contexts longer than the model's included; their
share stands beside each verdict.

cost_model 2n counts 2 x active parameters for each new token, as the source paper does. Attention over the cached
context and the time to read the weights are left out; both make t_GPU longer, and fewer turns memory bound, than shown
here.

Models marked (proxy) have a vocabulary that is not counted: the counts of the tokenizer named beside them stand in.

Formulae and the basis paper: arXiv 2601.19910, Understanding Bottlenecks for Efficiently Serving LLM Inference With KV
Offloading.
"""
_SAMPLE = f"""
{style.SAMPLE_MARK}. It was written by kappa in the data sets' own formats and says nothing about them.
"""


def _paragraphs(text: str) -> list[Block]:
    return [Paragraph(" ".join(part.split())) for part in text.strip().split("\n\n")]


def _method(data: ReportData) -> Section:
    sample = [Paragraph(_SAMPLE.strip(), is_warning=True)] if data.is_sample else []
    return Section("Method", [*sample, *_paragraphs(_METHOD)])


def _sources(data: ReportData) -> Section:
    return Section("Sources and tokenizers", [*provenance.source_grids(data), provenance.tokenizer_grid(data)])


def _rejects(data: ReportData) -> Section:
    if not data.rejects:
        return Section("What was left out", [Paragraph("Nothing: every record was used.")])
    return Section("What was left out", [provenance.reject_grid(data)])

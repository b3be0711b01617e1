"""The section on method: what is counted, assumed and left out."""

from __future__ import annotations

from reports.data import ReportData
from reports.figures import style
from reports.page import Block, Paragraph, Section

_METHOD = """
A turn is one request to the model: everything new since the last reply. T (prefill tokens) counts what is new,
K (cached tokens) everything before it, replies included; kappa_ratio = K / T. A document workload is a session for each
document: K is the document, T the question, and the first question already finds the document cached.

K is the upper bound of reuse: everything said before is taken as cached in host memory, nothing as still in GPU memory,
nothing as evicted. With less reuse fewer turns are memory bound; what still lies in GPU memory need not be loaded. So
it is with reuse history. With prefix K is the leading blocks that any earlier request has left, with reported what the
server said it found in its cache; a log that has the tokens itself (counting logged) is counted by no tokenizer.

Text is counted as stored, each message by itself, without template tokens (counting text) or as the prompt that the
model's chat template makes (counting chat). Nothing is cleaned or cut, contexts longer than the model's included; each
verdict shows their share.

cost_model 2n counts 2 x active parameters for each new token, as the source paper does. Attention over the cached
context and the time to read the weights are left out; the cost models attention and full count them, and are listed
with 2n under the verdicts. Both leave fewer turns memory bound where contexts are long or questions are short.

Models marked (proxy) have a vocabulary that is not counted: the counts of the tokenizer named with them are used.

Formulae and the basis paper: arXiv 2601.19910, Understanding Bottlenecks for Efficiently Serving LLM Inference With KV
Offloading.
"""
_SAMPLE = f"""
{style.SAMPLE_MARK}. It was written by kappa in the data sets' own formats and says nothing about them.
"""


def _paragraphs(text: str) -> list[Block]:
    return [Paragraph(" ".join(part.split())) for part in text.strip().split("\n\n")]


def section(data: ReportData) -> Section:
    """Return the section; it says first whether the text was generated."""
    sample = [Paragraph(_SAMPLE.strip(), is_warning=True)] if data.is_sample else []
    return Section("Method", [*sample, *_paragraphs(_METHOD)])

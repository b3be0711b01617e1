r"""K and T of documents as a server sees them: one user message of document, blank line and question (design rule 7).

Only the end of a document, behind the last place where its tokens do not depend on what follows, is tokenised with
each question. Memory holds the ends of the documents and a batch of texts.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from pipelines.chat_layout import Ints, Layout
from pipelines.chat_pieces import shared_tokens
from pipelines.chat_templates import Message, header, is_separable, piece
from pipelines.counting import Counter, Ids
from pipelines.sessions import DOCUMENT, USER
from pipelines.tokenizer_specs import TemplateFacts

GAP = "\n\n"
PROBES = ("A", "1")
# A word ends before a blank whatever stands behind it: the patterns take letters as far as they go and start anew at
# the blank, NFC composes nothing with either, and no special token holds a blank.
_CUT = re.compile(r"(?<=[A-Za-z])(?=\s)")
_WINDOW = 1 << 12


@dataclasses.dataclass(frozen=True, slots=True)
class Ending:
    """What is kept of a document until its questions were counted.

    Attributes:
        head_tokens: Tokens of the prompt up to the cut, 0 where there is no cut.
        frame: What the prompt begins with where there is no cut, else empty.
        tail: The document's text behind the cut.
        probes: Token ids behind the cut of the prompts with the questions `A` and `1`.
    """

    head_tokens: int
    frame: str
    tail: str
    probes: tuple[Ids, ...]


def document_content(document: str, question: str) -> str:
    """Return the one user message of a question about a document."""
    return document + GAP + question


def question_prompts(
    batches: Iterable[pa.Array], layout: Layout, facts: TemplateFacts, counter: Counter, tokens: Ints
) -> tuple[Ints, Ints]:
    """Return K and T of each question's prompt, shape (messages,) each, in the order of the texts; 0 for documents.

    Args:
        batches: The texts in the order of the file; a document stands before its questions.
        layout: How they lie.
        facts: The template.
        counter: The engine; it must be able to encode.
        tokens: Tokens of each text alone, shape (messages,).

    Raises:
        ValueError: The numbers of texts and tokens differ, or a question stands before its document.
    """
    cached, prefill = np.zeros(len(layout.role), np.int64), np.zeros(len(layout.role), np.int64)
    endings: dict[int, Ending] = {}
    row = 0
    for texts in batches:
        for text in texts:
            session = int(layout.session[row])
            if layout.role[row] == DOCUMENT:
                endings[session] = ending_of(text.as_py(), int(tokens[row]), facts, counter)
            elif session not in endings:
                raise ValueError(f"row {row} asks about a document that was not seen yet")
            else:
                cached[row], prefill[row] = _question(endings[session], text.as_py(), facts, counter)
            row += 1
    if row != len(tokens) or row != len(layout.role):
        raise ValueError(f"{row} texts and {len(tokens)} token counts for {len(layout.role)} messages")
    return cached, prefill


def ending_of(document: str, tokens: int, facts: TemplateFacts, counter: Counter) -> Ending:
    """Return what a document's prompts have in common, and the end that depends on the question.

    Args:
        document: Its text.
        tokens: Tokens of that text alone; they are not counted again.
        facts: The template.
        counter: The engine.
    """
    first, last = _first_cut(document), _last_cut(document + GAP)
    before = piece(facts, Message(USER, "", is_first=True)).removesuffix(facts.end_of_turn + facts.separator)
    if first is None or last is None:
        part = Ending(0, before, document, ())
    else:
        lead = document[:first]
        shown = lead.lstrip() if facts.is_trimmed else lead
        begins, alone = before + shown, lead
        if shown == lead and is_separable(lead):
            begins, alone = before, ""
        counts = counter.count(pa.array([begins, alone, document[last:]], pa.large_string())).tolist()
        part = Ending(tokens - counts[2] + counts[0] - counts[1], "", document[last:], ())
    return dataclasses.replace(part, probes=tuple(_ids(part, probe, facts, counter) for probe in PROBES))


def _question(ending: Ending, question: str, facts: TemplateFacts, counter: Counter) -> tuple[int, int]:
    ids = _ids(ending, question, facts, counter)
    # At least the last token of a prompt is computed.
    shared = min(len(ids) - 1, *(shared_tokens(ids, probe) for probe in ending.probes))
    shared = min(shared, shared_tokens(*ending.probes))
    return ending.head_tokens + shared, len(ids) - shared


def _ids(ending: Ending, question: str, facts: TemplateFacts, counter: Counter) -> Ids:
    """Return the token ids of a prompt behind the cut."""
    text = document_content(ending.tail, question)
    if facts.is_trimmed:
        text = text.strip() if ending.frame else text.rstrip()
    return counter.encode(ending.frame + text + facts.end_of_turn + facts.separator + header(facts, "assistant"))


def _first_cut(document: str) -> int | None:
    found = _CUT.search(document)
    return found.start() if found else None


def _last_cut(document: str) -> int | None:
    """Return the last cut, looked for in windows from the end that double."""
    window = _WINDOW
    while True:
        begin = max(0, len(document) - window)
        cuts = [found.start() for found in _CUT.finditer(document, begin)]
        if cuts:
            return cuts[-1]
        if begin == 0:
            return None
        window *= 2

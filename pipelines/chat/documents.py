r"""K and T of documents as a server sees them: one user message of document, blank line and question (docs/turns.md).

Only the end of a document, after the last position where its tokens do not depend on the text after it, is
tokenised with each question. Memory holds the ends of the documents and a batch of texts.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from pipelines.chat.layout import Ints, Layout
from pipelines.chat.pieces import shared_tokens
from pipelines.chat.templates import Message, header, is_separable, piece
from pipelines.counting.engines import Counter, Ids
from pipelines.io.arrow_text import as_large, bytes_of
from pipelines.sessions.writing import DOCUMENT, USER
from pipelines.vocab.specs import TemplateFacts

GAP = "\n\n"
PROBES = ("A", "1")
# Positions where a match of the patterns ends whatever follows: letters end before any white space, every other run
# ends before a blank or tab (signs include only line breaks), and white space ends after its last line break. NFC
# composes nothing with white space, and no special token contains any.
_CUT = re.compile(r"(?<=[A-Za-z])(?=\s)|(?<=\S)(?=[ \t])|(?<=\n)(?=\S)")
_WINDOW = 1 << 12


@dataclasses.dataclass(frozen=True, slots=True)
class Ending:
    """The state of a document until its questions are counted.

    Attributes:
        head_tokens: Tokens of the prompt up to the cut, 0 without a cut.
        frame: The start of the prompt without a cut, else empty.
        tail: The document's text after the cut.
        probes: Token ids after the cut of the prompts with the questions `A` and `1`.
    """

    head_tokens: int
    frame: str
    tail: str
    probes: tuple[Ids, ...]


def document_content(document: str, question: str) -> str:
    """Return the single user message of a question about a document."""
    return document + GAP + question


def question_prompts(
    batches: Iterable[pa.Array], layout: Layout, facts: TemplateFacts, counter: Counter, tokens: Ints
) -> tuple[Ints, Ints]:
    """Return K and T of each question's prompt, shape (messages,) each, in the order of the texts; 0 for documents.

    Args:
        batches: The texts in file order; a document comes before its questions.
        layout: Their sessions, roles and order.
        facts: The facts of the template.
        counter: The engine; it must be able to encode.
        tokens: Tokens of each bare text, shape (messages,).

    Raises:
        ValueError: The numbers of texts and tokens differ, or a question comes before its document.
    """
    cached, prefill = np.zeros(len(layout.role), np.int64), np.zeros(len(layout.role), np.int64)
    endings: dict[int, Ending] = {}
    row = 0
    for texts in map(as_large, batches):
        ends, data = bytes_of(texts)
        for start, end in itertools.pairwise(ends.tolist()):
            session, letters = int(layout.session[row]), data[start:end]
            if layout.role[row] == DOCUMENT:
                endings[session] = ending_of(letters, int(tokens[row]), facts, counter)
            elif session not in endings:
                raise ValueError(f"row {row} asks about a document that was not seen yet")
            else:
                cached[row], prefill[row] = _question(endings[session], str(letters, "utf-8"), facts, counter)
            row += 1
    if row != len(tokens) or row != len(layout.role):
        raise ValueError(f"{row} texts and {len(tokens)} token counts for {len(layout.role)} messages")
    return cached, prefill


def ending_of(document: memoryview, tokens: int, facts: TemplateFacts, counter: Counter) -> Ending:
    """Return the shared part of a document's prompts, and the end that depends on the question.

    Args:
        document: Its text in UTF-8; only the two ends are decoded.
        tokens: Tokens of the bare text; they are not counted again.
        facts: The facts of the template.
        counter: The engine.
    """
    lead, tail = _lead(document), _tail(document)
    before = piece(facts, Message(USER, "", is_first=True)).removesuffix(facts.end_of_turn + facts.separator)
    if lead is None or tail is None:
        part = Ending(0, before, str(document, "utf-8"), ())
    else:
        shown = lead.lstrip() if facts.is_trimmed else lead
        begins, alone = before + shown, lead
        if shown == lead and is_separable(lead):
            begins, alone = before, ""
        counts = counter.count(pa.array([begins, alone, tail], pa.large_string())).tolist()
        part = Ending(tokens - counts[2] + counts[0] - counts[1], "", tail, ())
    return dataclasses.replace(part, probes=tuple(ending_ids(part, probe, facts, counter) for probe in PROBES))


def _question(ending: Ending, question: str, facts: TemplateFacts, counter: Counter) -> tuple[int, int]:
    ids = ending_ids(ending, question, facts, counter)
    # A server always computes the last token of a prompt.
    shared = min(len(ids) - 1, *(shared_tokens(ids, probe) for probe in ending.probes))
    shared = min(shared, shared_tokens(*ending.probes))
    return ending.head_tokens + shared, len(ids) - shared


def ending_ids(ending: Ending, question: str, facts: TemplateFacts, counter: Counter) -> Ids:
    """Return the token ids of a prompt after the cut."""
    text = document_content(ending.tail, question)
    if facts.is_trimmed:
        text = text.strip() if ending.frame else text.rstrip()
    return counter.encode(ending.frame + text + facts.end_of_turn + facts.separator + header(facts, "assistant"))


def _lead(document: memoryview) -> str | None:
    """Return the text before the first cut, None without one."""
    for size in _windows(len(document)):
        # Decoding drops only a character that the window's end cuts.
        text = bytes(document[:size]).decode(errors="ignore")
        if found := _CUT.search(text):
            return text[: found.start()]
    return None


def _tail(document: memoryview) -> str | None:
    """Return the text after the last cut of document and gap, None without one."""
    for size in _windows(len(document)):
        text = bytes(document[len(document) - size :]).decode(errors="ignore")
        if cuts := [found.start() for found in _CUT.finditer(text + GAP)]:
            return text[cuts[-1] :]
    return None


def _windows(size: int) -> Iterator[int]:
    """Yield window sizes that double, the last one the whole size."""
    window = _WINDOW
    while window < size:
        yield window
        window *= 2
    yield size

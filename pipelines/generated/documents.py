"""The two document sets of the sample: NarrativeQA's nested rows and DocFinQA's flat ones, one question a row."""

from __future__ import annotations

from random import Random

import pyarrow as pa

from pipelines.generated.lengths import (
    FILING_QUESTION_TOKENS,
    FILING_TOKENS,
    STORY_QUESTION_TOKENS,
    STORY_TOKENS,
    draw_lengths,
)
from pipelines.generated.text import amount, foreign, name, prose, sentence, table

Row = dict[str, object]

STORIES = 11
FILINGS = 8
# Published: 47k / 1,572 = 30 and 7.4k / 801 = 9 questions a document (paper.md section 2). JSON repeats a filing for
# each question, so DocFinQA has fewer: filings are three quarters of the sample's bytes.
STORY_QUESTIONS = (26, 34)
FILING_QUESTIONS = (6, 7)
# The share of a document's rows placed after all others in the file: our choice, so that a document returns after
# others were read.
FAR_SHARE = 0.25

# Characters per token of the Llama-3.1 vocabulary, and the tokens that " from 2001 to 2012?" takes of a question:
# measured on this generator.
_STORY_CHARACTERS = 4.6
_FILING_CHARACTERS = 3.9
_QUESTION_CHARACTERS = 4.4
_YEARS_TOKENS = 10

_TEXT = pa.struct([("text", pa.string()), ("tokens", pa.list_(pa.string()))])
_SUMMARY = pa.struct(
    [("text", pa.string()), ("tokens", pa.list_(pa.string())), ("url", pa.string()), ("title", pa.string())]
)
_STORY = pa.struct(
    [
        ("id", pa.string()), ("kind", pa.string()), ("url", pa.string()), ("file_size", pa.int32()),
        ("word_count", pa.int32()), ("start", pa.string()), ("end", pa.string()), ("summary", _SUMMARY),
        ("text", pa.string()),
    ]
)  # fmt: skip
NARRATIVEQA_SCHEMA = pa.schema([("document", _STORY), ("question", _TEXT), ("answers", pa.list_(_TEXT))])


def build_stories(rng: Random) -> dict[str, list[Row]]:
    """Return the rows of NarrativeQA's files by file stem; one story has questions in both train files."""
    groups = [_story_rows(rng, tokens) for tokens in draw_lengths(rng, STORY_TOKENS, STORIES)]
    broken = groups[1]
    broken[3] = {**broken[3], "question": {"text": None, "tokens": None}}
    broken[5] = {**broken[5], "question": None}
    broken[7] = {**broken[7], "document": {**_story(rng, 20), "text": None}}
    straddling = groups[2]
    return {
        "train-00000-of-00002": scatter(rng, [*groups[:2], straddling[:12]]),
        "train-00001-of-00002": scatter(rng, [straddling[12:], *groups[3:7]]),
        "validation-00000-of-00001": scatter(rng, groups[7:9]),
        "test-00000-of-00001": scatter(rng, groups[9:]),
    }


def build_filings(rng: Random) -> dict[str, list[object]]:
    """Return the rows of DocFinQA's files by split; one filing is in train and in dev, defects are in train."""
    groups = [_filing_rows(rng, tokens) for tokens in draw_lengths(rng, FILING_TOKENS, FILINGS)]
    straddling = groups[4]
    train: list[object] = [*scatter(rng, [*groups[:4], straddling[:4]])]
    for defect in _odd_filing_rows(rng):
        train.insert(rng.randint(1, len(train)), defect)
    return {
        "train": train,
        "dev": [*scatter(rng, [straddling[4:], groups[5]])],
        "test": [*scatter(rng, groups[6:]), {**groups[7][0], "Question": None}],
    }


def scatter(rng: Random, groups: list[list[Row]]) -> list[Row]:
    """Return the rows of all groups; the last FAR_SHARE of each group come after all others, in random order."""
    heads: list[Row] = []
    tails: list[Row] = []
    for rows in groups:
        near = int(len(rows) * (1 - FAR_SHARE))
        heads += rows[:near]
        tails += rows[near:]
    rng.shuffle(tails)
    return heads + tails


def story_text(rng: Random, tokens: int) -> str:
    """Return chapters of hard-wrapped paragraphs, about `tokens` long."""
    parts = [f"The Book of {name(rng)}\n\nby {name(rng)} {name(rng)}"]
    room = tokens * _STORY_CHARACTERS
    while room > 0:
        if len(parts) % 40 == 1:
            parts.append(f"CHAPTER {len(parts) // 40 + 1}\n\n{sentence(rng, 5, '').upper()}")
        spoken = prose(rng, rng.randint(80, 900))
        parts.append(_wrap(f'"{spoken}"' if rng.random() < 0.2 else spoken))  # noqa: PLR2004 -- a share
        room -= len(parts[-1]) + 4
    return "\r\n\r\n".join(parts)


def filing_text(rng: Random, tokens: int) -> str:
    """Return numbered items of prose and tables full of figures, about `tokens` long."""
    parts = [f"{name(rng).upper()} {name(rng).upper()} CORPORATION\n{foreign(rng)}"]
    room = tokens * _FILING_CHARACTERS
    while room > 0:
        if len(parts) % 30 == 1:
            parts.append(f"ITEM {len(parts) // 30 + 1}. {sentence(rng, 4, '').upper()}")
        is_table = rng.random() < 0.15  # noqa: PLR2004 -- a share
        parts.append(table(rng) if is_table else prose(rng, rng.randint(200, 1200), figures=0.25))
        room -= len(parts[-1]) + 1
    return "\n".join(parts)


def _wrap(text: str, words_a_line: int = 12) -> str:
    words = text.split(" ")
    return "\r\n".join(" ".join(words[at : at + words_a_line]) for at in range(0, len(words), words_a_line))


def _tokenised(text: str) -> Row:
    return {"text": text, "tokens": text.split()}


def _story(rng: Random, tokens: int) -> Row:
    text = story_text(rng, tokens)
    words = text.split()
    summary = prose(rng, 900)
    return {
        "id": f"{rng.getrandbits(160):040x}",
        "kind": rng.choice(["gutenberg", "movie"]),
        "url": f"https://example.org/stories/{rng.randint(1, 99_999)}.txt",
        "file_size": len(text.encode()),
        "word_count": len(words),
        "start": " ".join(words[:4]),
        "end": " ".join(words[-4:]),
        "summary": {**_tokenised(summary), "url": "https://example.org/summaries", "title": sentence(rng, 4, "")},
        "text": text,
    }


def _story_rows(rng: Random, tokens: int) -> list[Row]:
    story = _story(rng, tokens)
    lengths = draw_lengths(rng, STORY_QUESTION_TOKENS, rng.randint(*STORY_QUESTIONS))
    return [
        {
            "document": story,
            "question": _tokenised(_question(rng, length)),
            "answers": [_tokenised(sentence(rng, rng.randint(1, 9))) for _ in range(2)],
        }
        for length in lengths
    ]


def _filing_rows(rng: Random, tokens: int) -> list[Row]:
    context = filing_text(rng, tokens)
    lengths = draw_lengths(rng, FILING_QUESTION_TOKENS, rng.randint(*FILING_QUESTIONS))
    return [_filing_row(rng, context, length) for length in lengths]


def _filing_row(rng: Random, context: str, question_tokens: int) -> Row:
    before, after = rng.randint(100, 9999), rng.randint(100, 9999)
    question = _question(
        rng, question_tokens - _YEARS_TOKENS, f" from {rng.randint(1995, 2010)} to {rng.randint(2011, 2019)}?"
    )
    program = rng.choice([f"subtract({after}, {before}), divide(#0, {before})", ""])
    return {"Context": context, "Question": question, "Program": program, "Answer": amount(rng)}


def _question(rng: Random, tokens: int, end: str = "?") -> str:
    return prose(rng, max(1, int(tokens * _QUESTION_CHARACTERS)))[:-1].lower() + end


def _odd_filing_rows(rng: Random) -> list[object]:
    """Return unusable rows (question null or absent, no text, a number), then usable ones (no words, more keys)."""
    short = filing_text(rng, 2_000)
    row = _filing_row(rng, short, 20)
    return [
        {**row, "Question": None},
        {key: value for key, value in row.items() if key != "Question"},
        {**row, "Context": None},
        17,
        {**row, "Question": ""},
        {**row, "source": "generated", "page": 12},
    ]

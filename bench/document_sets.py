"""NarrativeQA and DocFinQA at the published size: every document repeated in the row of each of its questions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from bench.text import Source
from pipelines.generated.documents import NARRATIVEQA_SCHEMA
from pipelines.generated.lengths import FILING_TOKENS, STORY_TOKENS, Quantiles, draw_lengths
from pipelines.generated.text import amount

STORIES, FILINGS = "deepmind/narrativeqa/data", "kensho/DocFinQA"


class Split(NamedTuple):
    """The number of documents, rows and files of a split."""

    name: str
    documents: int
    rows: int
    files: int


# Source: paper.md section 5; the numbers of files are those of the repository.
STORY_SPLITS = (Split("train", 1102, 32_747, 24), Split("validation", 115, 3_461, 3), Split("test", 355, 10_557, 8))
FILING_SPLITS = (Split("train", 618, 5_735, 1), Split("dev", 84, 780, 1), Split("test", 99, 922, 1))
# Characters per token of the published lengths, chosen to give the published bytes: 16.3 GB decoded and 4.7 GB.
# The story's column is compressed in pages of this size, three or four rows, which gives 3.2 GB.
_STORY_CHARACTERS, _FILING_CHARACTERS = 4.75, 3.35
_PAGE_BYTES, _ZSTD_LEVEL = 12 << 16, 2
_ROW_GROUP_ROWS = 1000
_PLAIN_COLUMN = "document.text"


def scaled(split: Split, scale: float) -> Split:
    """Return a split with a share of the documents and the same number of rows a document."""
    documents = max(1, round(split.documents * scale))
    rows = max(documents, round(split.rows * documents / split.documents))
    return Split(split.name, documents, rows, min(rows, max(1, round(split.files * scale))))


def rows_of(split: Split, document: int) -> range:
    """Return the number of rows of a document: 32,747 over 1,102 gives 29 or 30 each."""
    return range(split.rows * document // split.documents, split.rows * (document + 1) // split.documents)


def write_stories(root: Path, split: Split, file: int, seed: str) -> None:
    """Write one Parquet file of a split, the story's text without a dictionary."""
    path = root / STORIES / f"{split.name}-{file:05d}-of-{split.files:05d}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    first, last = split.rows * file // split.files, split.rows * (file + 1) // split.files
    dictionary = [path for path in _leaves(NARRATIVEQA_SCHEMA) if path != _PLAIN_COLUMN]
    with pq.ParquetWriter(
        path, NARRATIVEQA_SCHEMA, compression="zstd", use_dictionary=dictionary, data_page_size=_PAGE_BYTES,
        write_batch_size=1, store_schema=False, write_statistics=False, compression_level=_ZSTD_LEVEL,
    ) as writer:  # fmt: skip
        for group in _row_groups(_story_batches(split, first, last, seed)):
            writer.write_table(group)


def _row_groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(part.num_rows for part in held) >= _ROW_GROUP_ROWS:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _story_batches(split: Split, first: int, last: int, seed: str) -> Iterator[pa.RecordBatch]:
    tokens = _lengths(STORY_TOKENS, split, seed)
    for document in range(split.documents):
        rows = rows_of(split, document)
        count = min(rows.stop, last) - max(rows.start, first)
        if count > 0:
            source = Source(f"{seed}/{split.name}/{document}/{first}")
            yield _batch(_story(Source(f"{seed}/{split.name}/{document}"), tokens[document]), source, count)


def _leaves(schema: pa.Schema) -> list[str]:
    empty = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), empty)
    parquet = pq.ParquetFile(pa.BufferReader(empty.getvalue())).schema
    return [parquet.column(n).path for n in range(len(parquet))]


def _lengths(points: Quantiles, split: Split, seed: str) -> list[int]:
    """Return the token count of each document of a split: the published percentiles, in random order."""
    return draw_lengths(Random(f"{seed}/{split.name}"), points, split.documents)  # noqa: S311 - no secret


def _story(source: Source, tokens: int) -> dict[str, object]:
    """Return one story with the columns of the real set."""
    text, summary = source.story(round(tokens * _STORY_CHARACTERS)), source.prose(3_500)
    return {
        "id": f"{source.random.getrandbits(160):040x}",
        "kind": source.random.choice(["gutenberg", "movie"]),
        "url": f"https://example.org/stories/{source.random.randint(1, 99_999)}.txt",
        "file_size": len(text),
        "word_count": text.count(" "),
        "start": text[:40],
        "end": text[-40:],
        "summary": {
            "text": summary, "tokens": summary.split(), "url": "https://example.org/summaries",
            "title": source.prose(30),
        },
        "text": text,
    }  # fmt: skip


def _batch(story: dict[str, object], source: Source, count: int) -> pa.RecordBatch:
    document = pa.array([story], NARRATIVEQA_SCHEMA.field("document").type).take(pa.array([0] * count))
    questions = [_tokenised(source.prose(source.random.randint(30, 80))[:-1] + "?") for _ in range(count)]
    answers = [[_tokenised(source.prose(source.random.randint(4, 50))) for _ in range(2)] for _ in range(count)]
    columns = [
        document,
        pa.array(questions, NARRATIVEQA_SCHEMA.field("question").type),
        pa.array(answers, NARRATIVEQA_SCHEMA.field("answers").type),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=NARRATIVEQA_SCHEMA)


def _tokenised(text: str) -> dict[str, object]:
    return {"text": text, "tokens": text.split()}


def write_filings(root: Path, split: Split, seed: str) -> None:
    """Write one split of DocFinQA: a JSON array, or JSON lines for `test`, as in the sample."""
    path = root / FILINGS / f"{split.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    is_lines = split.name == "test"
    with path.open("wb") as file:
        separator = b"" if is_lines else b"["
        for document, tokens in enumerate(_lengths(FILING_TOKENS, split, seed)):
            source = Source(f"{seed}/{split.name}/{document}")
            context = json.dumps(source.filing(round(tokens * _FILING_CHARACTERS)), ensure_ascii=False).encode()
            for _ in rows_of(split, document):
                file.write(b"".join((separator, b'{"Context": ', context, b", ", _rest(source), b"}")))
                separator = b"\n" if is_lines else b", "
        file.write(b"\n" if is_lines else b"]")


def _rest(source: Source) -> bytes:
    """Return the keys of a record after its context, without the braces."""
    rng: Random = source.random
    before, after = rng.randint(100, 9999), rng.randint(100, 9999)
    row = {
        "Question": source.prose(rng.randint(40, 160))[:-1] + f" from {rng.randint(1995, 2010)} to 2019?",
        "Program": f"subtract({after}, {before}), divide(#0, {before})",
        "Answer": amount(rng),
    }
    return json.dumps(row, ensure_ascii=False).encode()[1:-1]

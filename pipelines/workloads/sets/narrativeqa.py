"""NarrativeQA: 1,572 whole stories, each repeated in the Parquet row of every one of its questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.fetch.hub import Hub
from pipelines.generated.documents import NARRATIVEQA_SCHEMA, build_stories
from pipelines.generated.encoding import parquet
from pipelines.io.prefetch import in_order
from pipelines.sessions.writing import Reject, SessionsWriter
from pipelines.workloads.declaration import InputFile, Workload
from pipelines.workloads.document_records import DocumentSessions
from warehouse.errors import KappaError

SPLITS = ("train", "validation", "test")
COLUMNS = ("document.id", "document.text", "question.text")
# A row can hold a story of a megabyte: eight of them are enough to be quick and few enough to be small.
ROWS = 8
BUFFER_BYTES = 1 << 20
# Lists of rows that are read ahead of each of two files, with a story at most in each.
HELD = 2


def select(hub: Hub, repo_id: str, revision: str) -> list[str]:
    """Return the Parquet files of train, validation and test, in that order."""
    splits = hub.splits(repo_id, revision)
    missing = [split for split in SPLITS if not splits.get(split)]
    if missing:
        raise KappaError(
            f"{repo_id} has no split {missing[0]}",
            f"at {revision[:12]} it has {', '.join(splits) or 'none'}",
            "look at the data set's page: its layout changed",
        )
    return [path for split in SPLITS for path in splits[split]]


@dataclass(frozen=True)
class Row:
    """One row: its number, its story's id, the story's text at its first sight in the file, and what is missing."""

    record: int
    story: str | None
    text: str | None
    question: str | None
    missing: str | None


def read(files: list[InputFile], writer: SessionsWriter, on_bytes: Callable[[int], None]) -> None:
    """Write each story once, at its first row, and each row's question behind it."""
    documents = DocumentSessions(writer)
    for file in files:
        writer.records[file.path] += 0
    for file, rows, size in in_order([partial(_pieces, file) for file in files], HELD):
        for row in rows:
            writer.records[file.path] += 1
            if row.missing is not None or row.story is None or row.question is None:
                writer.reject(Reject(file.path, row.record, "missing_field", f"{row.missing} is null", row.story))
                continue
            if row.text is not None and not documents.knows(row.story):
                documents.add_document(row.story, row.story, row.text, (file.path, row.record))
            documents.add_question(row.story, row.question)
        on_bytes(size)


def _pieces(file: InputFile) -> Iterator[tuple[InputFile, list[Row], int]]:
    """Yield rows, at most one text that was not seen in the file in each list of them, and the bytes behind them."""
    parquet = _open(file)
    share = file.local.stat().st_size / max(1, parquet.metadata.num_rows)
    seen: set[str] = set()
    record = 0
    for batch in _batches(file, parquet):
        rows: list[Row] = []
        for row in _rows(batch, record, seen):
            if row.text is not None and rows:
                yield file, rows, int(share * len(rows))
                rows = []
            rows.append(row)
        yield file, rows, int(share * len(rows))
        record += batch.num_rows


def _rows(batch: pa.RecordBatch, record: int, seen: set[str]) -> Iterator[Row]:
    document, question = batch["document"], batch["question"]
    texts = document.field("text")
    pairs = zip(document.field("id").to_pylist(), question.field("text").to_pylist(), strict=True)
    for place, (story, asked) in enumerate(pairs):
        values = zip(COLUMNS, (story is not None, texts[place].is_valid, asked is not None), strict=True)
        missing = next((name for name, is_there in values if not is_there), None)
        is_new = missing is None and story not in seen
        if is_new:
            seen.add(story)
        yield Row(record + place, story, texts[place].as_py() if is_new else None, asked, missing)


def _batches(file: InputFile, parquet: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    try:
        yield from parquet.iter_batches(batch_size=ROWS, columns=list(COLUMNS), use_threads=False)
    except OSError as error:
        raise _damaged(file, error) from error


def _damaged(file: InputFile, error: Exception) -> KappaError:
    why = str(error).strip().splitlines()[0]
    return KappaError(f"{file.path} is not a whole Parquet file", why, "fetch it again, or tell the owner")


def _open(file: InputFile) -> pq.ParquetFile:
    try:
        parquet = pq.ParquetFile(file.local, buffer_size=BUFFER_BYTES, pre_buffer=False)
    except (pa.ArrowInvalid, OSError) as error:
        raise _damaged(file, error) from error
    paths = {parquet.schema.column(n).path for n in range(len(parquet.schema))}
    if missing := [column for column in COLUMNS if column not in paths]:
        raise KappaError(f"{file.path} has no column {missing[0]}", "its layout changed", "look at the data set's page")
    return parquet


def sample(rng: Random) -> Iterator[tuple[str, bytes]]:
    """Generate the files of all splits."""
    for stem, rows in build_stories(rng).items():
        yield f"data/{stem}.parquet", parquet(rows, NARRATIVEQA_SCHEMA)


WORKLOAD = Workload(
    name="narrativeqa",
    order=3,
    title="NarrativeQA (whole stories)",
    repo_id="deepmind/narrativeqa",
    licence="Apache-2.0; stories in the public domain or linked scripts",
    kind="documents",
    select=select,
    read=read,
    sample=sample,
)

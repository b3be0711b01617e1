"""NarrativeQA: 1,572 whole stories, each repeated in the Parquet row of every one of its questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.fetch.hub import Hub
from pipelines.generated.documents import NARRATIVEQA_SCHEMA, build_stories
from pipelines.generated.encoding import parquet
from pipelines.io.file_kinds import ERRORS, PARQUET, require_kind, told, unreadable
from pipelines.io.parquet_text import Texts, is_text
from pipelines.io.prefetch import in_order
from pipelines.sessions.rejects import Reject
from pipelines.sessions.writing import SessionsWriter
from pipelines.workloads.declaration import InputFile, Workload
from pipelines.workloads.document_records import DocumentSessions
from warehouse.errors import ErrorCode, KappaError

SPLITS = ("train", "validation", "test")
COLUMNS = ("document.id", "document.text", "question.text")
# A row can hold a story of a megabyte: eight rows a batch are fast and still small.
ROWS = 8
BUFFER_BYTES = 1 << 20
# Lists of rows that are read ahead of each of two files, with at most one story in each.
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
            code=ErrorCode.HUB_LAYOUT,
        )
    return [path for split in SPLITS for path in splits[split]]


@dataclass(frozen=True)
class Row:
    """One row: its number, its story's id, the story's text at its first row in the file, and the missing field."""

    record: int
    story: str | None
    text: str | None
    question: str | None
    missing: str | None


def read(files: list[InputFile], writer: SessionsWriter, on_bytes: Callable[[int], None]) -> None:
    """Write each story once, at its first row, and each row's question after it."""
    documents = DocumentSessions(writer)
    for file in files:
        writer.records[file.path] += 0
    for file, rows, size in in_order([partial(_told_pieces, file) for file in files], HELD):
        for row in rows:
            writer.records[file.path] += 1
            if row.missing is not None or row.story is None or row.question is None:
                writer.reject(Reject(file.path, row.record, "missing_field", f"{row.missing} is null", row.story))
                continue
            if row.text is not None and not documents.knows(row.story):
                documents.add_document(row.story, row.story, row.text, (file.path, row.record))
            documents.add_question(row.story, row.question)
        on_bytes(size)


def _told_pieces(file: InputFile) -> Iterator[tuple[InputFile, list[Row], int]]:
    return told(file.path, _pieces(file))


def _pieces(file: InputFile) -> Iterator[tuple[InputFile, list[Row], int]]:
    """Yield lists of rows, with at most one new text of the file in each, and the bytes read for them."""
    parquet = _open(file)
    share = file.local.stat().st_size / max(1, parquet.metadata.num_rows)
    seen: set[str] = set()
    record = 0
    for batch in _batches(parquet):
        rows: list[Row] = []
        for row in _rows(batch, record, seen):
            if row.text is not None and rows:
                yield file, rows, int(share * len(rows))
                rows = []
            rows.append(row)
        yield file, rows, int(share * len(rows))
        record += batch.num_rows


def _rows(batch: pa.RecordBatch, record: int, seen: set[str]) -> Iterator[Row]:
    ids, texts, questions = (Texts(_column(batch, name)) for name in COLUMNS)
    for place in range(batch.num_rows):
        story, asked = ids[place], questions[place]
        values = zip(COLUMNS, (story is not None, texts.has(place), asked is not None), strict=True)
        missing = next((name for name, is_there in values if not is_there), None)
        is_new = story is not None and missing is None and story not in seen
        if is_new and story is not None:
            seen.add(story)
        yield Row(record + place, story, texts[place] if is_new else None, asked, missing)


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    outer, inner = name.split(".")
    return pc.struct_field(batch[outer], inner)


def _batches(parquet: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    for batch in parquet.iter_batches(batch_size=ROWS, columns=list(COLUMNS), use_threads=False):
        # A damaged page can give texts that end before they begin.
        batch.validate()
        yield batch


def _open(file: InputFile) -> pq.ParquetFile:
    require_kind(file.path, file.local, PARQUET)
    try:
        parquet = pq.ParquetFile(file.local, buffer_size=BUFFER_BYTES, pre_buffer=False)
        paths = {parquet.schema.column(n).path for n in range(len(parquet.schema))}
        schema = parquet.schema_arrow
    except ERRORS as error:
        raise unreadable(file.path, error, "is not a whole Parquet file") from error
    remedy = "look at the data set's page: its layout changed"
    for column in COLUMNS:
        outer, inner = column.split(".")
        if column not in paths or outer not in schema.names or not pa.types.is_struct(schema.field(outer).type):
            raise KappaError(
                f"{file.path} has no column {column}",
                f"it has {', '.join(sorted(paths))}"[:200],
                remedy,
                code=ErrorCode.HUB_LAYOUT,
            )
        if not is_text(kind := schema.field(outer).type.field(inner).type):
            raise KappaError(
                f"column {column} of {file.path} holds no text",
                f"its type is {kind}",
                remedy,
                code=ErrorCode.HUB_LAYOUT,
            )
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

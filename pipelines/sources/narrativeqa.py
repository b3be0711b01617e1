"""NarrativeQA: 1,572 whole stories, each repeated in the Parquet row of every one of its questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.documents import DocumentSessions
from pipelines.hub import Hub
from pipelines.sessions import Reject, SessionsWriter
from pipelines.workload import InputFile, Workload
from warehouse.errors import KappaError

SPLITS = ("train", "validation", "test")
COLUMNS = ("document.id", "document.text", "question.text")
# A row can hold a story of a megabyte: eight of them are enough to be quick and few enough to be small.
ROWS = 8
BUFFER_BYTES = 1 << 20


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


def read(files: list[InputFile], writer: SessionsWriter, on_bytes: Callable[[int], None]) -> None:
    """Write each story once, at its first row, and each row's question behind it."""
    documents = DocumentSessions(writer)
    for file in files:
        writer.records[file.path] += 0
        for record, story, row, batch in _rows(file, on_bytes):
            writer.records[file.path] += 1
            question = batch[2][row].as_py()
            if (missing := _missing(story, batch, row, question)) is not None:
                writer.reject(Reject(file.path, record, "missing_field", f"{missing} is null", story))
                continue
            if not documents.knows(story):
                documents.add_document(story, story, batch[1][row].as_py(), (file.path, record))
            documents.add_question(story, question)


def _missing(story: str | None, batch: list[pa.Array], row: int, question: str | None) -> str | None:
    values = {
        "document.id": story is not None,
        "document.text": batch[1][row].is_valid,
        "question.text": question is not None,
    }
    return next((name for name, is_there in values.items() if not is_there), None)


def _rows(file: InputFile, on_bytes: Callable[[int], None]) -> Iterator[tuple[int, str, int, list[pa.Array]]]:
    """Yield (record, document id, row in the batch, the batch's three columns)."""
    parquet = _open(file)
    share = file.local.stat().st_size / max(1, parquet.metadata.num_rows)
    record = 0
    for batch in _batches(file, parquet):
        document, question = batch["document"], batch["question"]
        columns = [document.field("id"), document.field("text"), question.field("text")]
        for row, story in enumerate(columns[0].to_pylist()):
            yield record, story, row, columns
            record += 1
        on_bytes(int(share * batch.num_rows))


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


WORKLOAD = Workload(
    name="narrativeqa",
    title="NarrativeQA (whole stories)",
    repo_id="deepmind/narrativeqa",
    licence="Apache-2.0; stories in the public domain or linked scripts",
    kind="documents",
    select=select,
    read=read,
)

"""FinQA over whole filings (DocFinQA): about 801 filings, each repeated in the record of every one of its questions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from pipelines.generated.documents import build_filings
from pipelines.generated.encoding import json_array, json_lines
from pipelines.sessions.rejects import without_surrogates
from pipelines.sessions.writing import SessionsWriter
from pipelines.workloads.chat_records import UnusableError, kind_of
from pipelines.workloads.declaration import InputFile, Workload, files_named, read_records
from pipelines.workloads.document_records import DocumentSessions


def read(files: list[InputFile], writer: SessionsWriter, on_bytes: Callable[[int], None]) -> None:
    """Write each filing once, keyed by the sha256 of its text, and each record's question after it."""
    documents = DocumentSessions(writer)
    last, key = "", _key_of("")
    for file in files:
        for record, value in read_records(file, writer, on_bytes, repeated="Context"):
            try:
                context, question = _parse(value)
            except UnusableError as error:
                writer.reject(error.at(file.path, record))
                continue
            if context != last:
                last, key = context, _key_of(context)
            if not documents.knows(key):
                documents.add_document(key, key, context, (file.path, record))
            documents.add_question(key, question)


def _key_of(context: str) -> str:
    try:
        content = context.encode()
    except UnicodeEncodeError:
        content = without_surrogates(context).encode()
    return hashlib.sha256(content).hexdigest()


def _parse(value: Any) -> tuple[str, str]:  # noqa: ANN401 - any JSON value
    if not isinstance(value, dict):
        raise UnusableError("not_an_object", f"the element is {kind_of(value)}")
    for name in ("Context", "Question"):
        if not isinstance(value.get(name), str):
            raise UnusableError("missing_field", f"{name} is absent, null or not text")
    return value["Context"], value["Question"]


def sample(rng: Random) -> Iterator[tuple[str, bytes]]:
    """Generate the files; that of `test` is JSON lines, as in the set."""
    filings = build_filings(rng)
    yield "train.json", json_array(filings["train"], is_ascii=False)
    yield "dev.json", json_array(filings["dev"], is_ascii=False)
    yield "test.json", json_lines(filings["test"])


WORKLOAD = Workload(
    name="finqa",
    order=4,
    title="FinQA (DocFinQA, whole filings)",
    repo_id="kensho/DocFinQA",
    licence="MIT as published; filings are public",
    kind="documents",
    select=files_named("train.json", "dev.json", "test.json"),
    read=read,
    sample=sample,
)

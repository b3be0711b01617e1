"""The declaration of a workload: its repository, its files, how to read them, and how to generate its sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pipelines.fetch.hub import Hub
from pipelines.generated.writing import Sample
from pipelines.io.file_kinds import JSON, require_kind, told
from pipelines.io.json_array import Cut, Element, read_elements
from pipelines.sessions.writing import SessionsWriter
from pipelines.workloads.chat_records import cut_reject
from warehouse.declared.fields import HISTORY

Kind = Literal["chat", "documents", "requests", "prompts"]


@dataclass(frozen=True)
class InputFile:
    """One verified file to read: its path in the repository and on disk."""

    path: str
    local: Path


Reader = Callable[[list[InputFile], SessionsWriter, Callable[[int], None]], None]
Selector = Callable[[Hub, str, str], list[str]]


@dataclass(frozen=True)
class Workload:
    """A named data set with a reader.

    Attributes:
        name: The name in every table.
        order: Its position among the workloads, the paper's first; equal ones are in the order of their names.
        title: Its common name.
        repo_id: Data set repository on the Hub.
        licence: Licence of the data set.
        kind: What a session is: a conversation, a document with its questions, requests whose tokens a log has, or
            requests whose prompts it has.
        select: Chooses the files of the repository to read.
        read: Writes the sessions of those files.
        sample: Generates such files without a network.
        reuse: What K is where the kind is `requests`; K of texts is counted.
        hub: Where its files are, None for the Hub of the run.
        declared: What a user's own declaration decides about its sessions; None for a built-in one.
        keep_text: Whether texts stay in staging after they were counted.
        salt: A user's secret in the identities of blocks.
    """

    name: str
    order: int
    title: str
    repo_id: str
    licence: str
    kind: Kind
    select: Selector = field(repr=False)
    read: Reader = field(repr=False)
    sample: Sample = field(repr=False)
    reuse: str = HISTORY
    hub: Hub | None = field(repr=False, default=None)
    declared: dict[str, Any] | None = None
    keep_text: bool = True
    salt: str = field(repr=False, default="")


def files_named(*paths: str) -> Selector:
    """Return a selector of exactly these files, in this order."""

    def select(hub: Hub, repo_id: str, revision: str) -> list[str]:
        del hub, repo_id, revision
        return list(paths)

    return select


def read_records(
    file: InputFile, writer: SessionsWriter, on_bytes: Callable[[int], None], repeated: str | None = None
) -> Iterator[tuple[int, Any]]:
    """Yield (index, value) of each JSON element of a file, count the records, and record where the file is truncated.

    An element that is truncated by the end of the file is not a record: its content and the number after it are
    unknown. `repeated` is the key of a long text that often equals the previous element's.

    Raises:
        KappaError: the file is of another kind, or not readable.
    """
    writer.records[file.path] += 0
    for element in told(file.path, _elements(file, on_bytes, repeated)):
        if isinstance(element, Cut):
            writer.records[file.path] += not element.is_end
            writer.reject(cut_reject(file.path, element))
        else:
            writer.records[file.path] += 1
            yield element.index, element.value


def _elements(file: InputFile, on_bytes: Callable[[int], None], repeated: str | None) -> Iterator[Element | Cut]:
    require_kind(file.path, file.local, JSON)
    yield from read_elements(file.local, on_bytes, repeated)

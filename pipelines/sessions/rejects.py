"""Writes the rejects of a workload to disk; memory is bounded by a batch, whatever their number."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warehouse.declared.tables import REJECTS

REJECTED = "rejects.parquet"
# A record is one element of a file; the lost part of a truncated file belongs to the file: its records are unknown.
RECORD_LEVEL, TURN_LEVEL, FILE_LEVEL = "record", "turn", "file"
BATCH_ROWS = 1 << 15

_SURROGATE = re.compile("[\ud800-\udfff]")
_COLUMNS = ("path", "record", "level", "session_id", "reason", "detail")
_SAME = ("workload", "path", "level", "reason")


def without_surrogates(text: str) -> str:
    """Return the text with each lone surrogate as U+FFFD: Arrow and the counters do not accept surrogates."""
    return _SURROGATE.sub("\ufffd", text)


@dataclass(frozen=True)
class Reject:
    """One rejected record, request or file, and why; `detail` holds no text of the data set but a role's name."""

    path: str
    record: int
    reason: str
    detail: str
    session_id: str | None = None
    level: str = RECORD_LEVEL


class RejectsWriter:
    """Writes rejects as they come, and sorts them by file and record at the end.

    Rows out of order are sorted in memory, some 200 bytes each; of the others only counts are kept.
    """

    def __init__(self, folder: Path, workload: str) -> None:
        """Open the file."""
        self.counts: Counter[tuple[str, str]] = Counter()
        self.records = 0
        self.first: dict[str, Reject] = {}
        self.cuts: list[str] = []
        self._path = folder / REJECTED
        self._workload = workload
        self._rows: list[tuple[str, int, str, str | None, str, str]] = []
        self._last = ("", -1)
        self._is_sorted = True
        self._writer = pq.ParquetWriter(self._path, REJECTS.arrow_schema)

    def add(self, reject: Reject) -> None:
        """Append one reject."""
        path, record = self._last
        is_next = reject.record > record if reject.path == path else reject.path not in self.first
        self._is_sorted &= is_next
        self._last = (reject.path, reject.record)
        self.first.setdefault(reject.path, reject)
        self.counts[reject.path, reject.reason] += 1
        if reject.level == RECORD_LEVEL:
            self.records += 1
        elif reject.level == FILE_LEVEL:
            self.cuts.append(f"{reject.path}: {reject.detail}")
        session_id = None if reject.session_id is None else without_surrogates(reject.session_id)
        detail = without_surrogates(reject.detail)
        self._rows.append((reject.path, reject.record, reject.level, session_id, reject.reason, detail))
        if len(self._rows) >= BATCH_ROWS:
            self._flush()

    def _flush(self) -> None:
        rows: dict[str, object] = dict(zip(_COLUMNS, map(list, zip(*self._rows, strict=True)), strict=True))
        rows["workload"] = pa.repeat(pa.scalar(self._workload), len(self._rows))
        rows["turn_index"] = pa.nulls(len(self._rows), pa.int32())
        columns = {name: rows[name] for name in REJECTS.names}
        self._writer.write_table(pa.table(columns, schema=REJECTS.arrow_schema))
        self._rows = []

    def close(self, files: Iterable[str]) -> None:
        """Finish the file, sorted by file and record."""
        if self._rows:
            self._flush()
        self._writer.close()
        order = list(files)
        if not self._is_sorted or list(self.first) != [path for path in order if path in self.first]:
            self._sort(order)

    def _sort(self, order: list[str]) -> None:
        table = pq.ParquetFile(self._path, read_dictionary=list(_SAME)).read()
        keys = pa.table({"file": pc.index_in(table["path"], pa.array(order)), "record": table["record"]})
        table = table.take(pc.sort_indices(keys, [("file", "ascending"), ("record", "ascending")]))
        with pq.ParquetWriter(self._path, REJECTS.arrow_schema) as writer:
            for batch in table.to_batches(BATCH_ROWS):
                writer.write_table(pa.Table.from_batches([batch]).cast(REJECTS.arrow_schema))

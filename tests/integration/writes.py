"""The writes of a run, found while it runs.

What Python itself opens for writing, creates, links and renames is told by its audit events; what pyarrow writes, by
the methods of its writer. Some are one of many that the same lines of code do for table after table: those are tried
for a few tables at each write, for the others at one.
"""

from __future__ import annotations

import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
# Where each event names what it creates.
EVENTS = {"os.rename": 1, "os.link": 1, "os.symlink": 1, "os.mkdir": 0}


# Of tables, which are all written alike: a small and a large one; of the lake also one in partitions and the last.
TABLE = re.compile(r"/(tables|lake)/(\w+)")
EACH_WRITE = {"tables": {"sources", "boundness"}, "lake": {"sources", "boundness", "turns", "generations"}}
# Of a table's draft: its folder, its file as it is opened, filled and closed, its note.
DRAFT_WRITES = 5
LOCKS = 10


def named(path: str) -> str:
    """Return the name of a place without what is drawn anew each time: random names, the generation's number."""
    return re.sub(r"[0-9a-f]{8,}|(?<=-g)\d+|(?<=/\.new-)\d+|(?<=/generations/)\d+", "*", path)


@dataclass
class Disk:
    """Watches the writes below a folder, and does something at the first one that is not known yet."""

    act: Callable[[str, str], None]
    folder: str = ""
    passed: frozenset[str] = frozenset()
    met: str | None = None
    counts: Counter[str] = field(default_factory=Counter)
    drafted: Counter[str] = field(default_factory=Counter)

    def meet(self, kind: str, path: object) -> None:
        """Take one write; act where it is the first that is not passed."""
        if not self.folder or not str(path).startswith(self.folder):
            return
        place = named(str(path).removeprefix(self.folder))
        self.counts[kind + place] += 1
        site = f"{kind} {self.counts[kind + place]} {place}"
        is_tried = self._is_tried(place, self.counts[kind + place])
        if is_tried and self.met is None and site not in self.passed:
            self.met = site
            self.act(site, str(path))

    def _is_tried(self, place: str, count: int) -> bool:
        """Whether a write is tried, or others like it are: `count` is how often it came in this run."""
        if place.endswith("/.lock"):
            return count == 1 or count % LOCKS == 0
        found = TABLE.search(place)
        if found is None or found[2] in EACH_WRITE[found[1]]:
            return True
        if found[1] == "lake" or "/.draft-" not in place:
            return False
        self.drafted[found[2]] += 1
        # The same one in each run, and over the tables all of them.
        return self.drafted[found[2]] == 1 + zlib.crc32(found[2].encode()) % DRAFT_WRITES

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Take Python's own events."""
        if not self.folder:
            return
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING:
            self.meet(event, arguments[0])
        elif event == "os.mkdir" and Path(arguments[0]).is_dir():
            # It is there already: nothing is written.
            return
        elif event in EVENTS:
            self.meet(event, arguments[EVENTS[event]])

    def watch(self, folder: Path | None, passed: Iterable[str] = ()) -> None:
        """Begin anew: `passed` are the writes that are known. Without a folder, stop."""
        met = self.met
        self.folder, self.passed, self.met = "" if folder is None else str(folder), frozenset(passed), None
        self.counts.clear()
        self.drafted.clear()
        if folder is None:
            self.met = met


def watched_parquet(disk: Disk, replace: Callable[[Any, str, Any], None]) -> None:
    """Put pyarrow's writer on the disk, by a function that sets attributes."""

    def counted(method: Callable[..., Any]) -> Callable[..., Any]:
        def write(self: Any, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - as pyarrow has it
            if method.__name__ == "__init__":
                self.place = given[0] if given else named["where"]
            disk.meet(method.__name__, self.place)
            return method(self, *given, **named)

        return write

    for name in ("__init__", "write_table", "close"):
        replace(pq.ParquetWriter, name, counted(getattr(pq.ParquetWriter, name)))

"""Writes data sets of the published size in the sets' own formats: `python -m bench.generate ROOT`.

Two processes, each file written front to back; the same seed and scale give the same bytes. The files lie as the
sample's do, ROOT/OWNER/NAME/..., so that what serves the sample serves them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from bench.chat_set import write_part
from bench.document_sets import FILING_SPLITS, STORY_SPLITS, scaled, write_filings, write_stories

SETS = ("sharegpt", "narrativeqa", "finqa")
SEED = "20260119"
PROCESSES = 2
Task = tuple[Callable[..., None], tuple[object, ...]]


def tasks(root: Path, scale: float, names: list[str]) -> list[Task]:
    """Return the files to write, one task each, the longest first."""
    found: list[Task] = []
    if "finqa" in names:
        splits = [scaled(split, scale) for split in FILING_SPLITS]
        found += [(write_filings, (root, split, f"{SEED}/finqa")) for split in splits]
    if "sharegpt" in names:
        found += [(write_part, (root, part, scale, f"{SEED}/sharegpt")) for part in (0, 1)]
    if "narrativeqa" in names:
        stories = [scaled(split, scale) for split in STORY_SPLITS]
        found += [
            (write_stories, (root, split, file, f"{SEED}/narrativeqa"))
            for split in stories
            for file in range(split.files)
        ]
    return found


def generate(root: Path, scale: float = 1.0, names: list[str] | None = None, processes: int = PROCESSES) -> int:
    """Write the named sets; return the bytes written.

    Args:
        root: a folder; files of the same names are replaced.
        scale: share of the conversations and documents to write; rows a document do not change.
        names: names in `SETS`; all by default.
        processes: number of writing processes; 1 writes in this process.
    """
    todo = tasks(root, scale, names or list(SETS))
    if processes == 1:
        for write, arguments in todo:
            write(*arguments)
    else:
        with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
            for done in [pool.submit(write, *arguments) for write, arguments in todo]:
                done.result()
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


def main() -> int:
    """Generate the sets that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m bench.generate", description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the published number of records")
    parser.add_argument("--set", action="append", choices=SETS, help="only this set (may be repeated)")
    options = parser.parse_args()
    begin = time.perf_counter()
    written = generate(options.root, options.scale, options.set)
    print(f"{written / 1e9:.2f} GB in {time.perf_counter() - begin:.0f} s under {options.root}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

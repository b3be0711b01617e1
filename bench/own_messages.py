"""One's own file beside the built-in ShareGPT on the same texts: `python -m bench.own_messages [--megabytes 1000]`.

One generated set of conversations, as ShareGPT's records and as `messages`; each way reads it into sessions in a new
process. CPU seconds beyond those of the same way on an empty array are divided by the bytes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.measure import hand_back, measure, table
from pipelines.sessions.writing import SessionsWriter
from pipelines.workloads.declaration import InputFile
from pipelines.workloads.formats import format_named
from pipelines.workloads.own.reading import read_own
from pipelines.workloads.sets import workload

WAYS = ("built-in sharegpt", "own sharegpt", "own messages")
_WORDS = "the quick brown fox jumps over a lazy dog \u00e9t\u00e9 \u6771\u4eac 12,345.67 "


def write_conversations(folder: Path, megabytes: float) -> dict[str, Path]:
    """Write the same conversations in both forms, each at least that large; return the file of each way."""
    sharegpt, messages = folder / "sharegpt.json", folder / "messages.json"
    with sharegpt.open("w", encoding="utf-8") as first, messages.open("w", encoding="utf-8") as second:
        number = 0
        while number == 0 or first.tell() < megabytes * 1e6:
            texts = [f"{number} {turn} " + _WORDS * (1 + (number * 7 + turn * 13) % 40) for turn in range(8)]
            first.write("[" if number == 0 else ",")
            second.write("[" if number == 0 else ",")
            said = [{"from": ("human", "gpt")[turn % 2], "value": text} for turn, text in enumerate(texts)]
            json.dump({"id": f"c{number}", "conversations": said}, first, ensure_ascii=False)
            said = [{"role": ("user", "assistant")[turn % 2], "content": text} for turn, text in enumerate(texts)]
            json.dump({"id": f"c{number}", "messages": said}, second, ensure_ascii=False)
            number += 1
        first.write("]")
        second.write("]")
    return dict(zip(WAYS, (sharegpt, sharegpt, messages), strict=True))


def run(way: str, path: Path) -> dict[str, Any]:
    """Read a file one way; return the sessions, the messages and the seconds after everything was imported."""
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        writer = SessionsWriter(Path(folder), "bench")
        files = [InputFile(path.name, path)]
        if way == WAYS[0]:
            workload("sharegpt").read(files, writer, lambda _: None)
        else:
            read_own(files, writer, lambda _: None, format_named(way.removeprefix("own ")), {})
        writer.close()
    return {"seconds": time.perf_counter() - begin, "sessions": writer.kept, "messages": writer.messages}


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.own_messages", description=__doc__)
    parser.add_argument("--megabytes", type=float, default=1000, help="size of a file (default: 1,000)")
    parser.add_argument("--one", nargs=2, metavar=("WAY", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        hand_back(run(options.one[0], Path(options.one[1])))
        return 0
    rows, base = [], 0.0
    with tempfile.TemporaryDirectory() as scratch:
        empty = Path(scratch) / "empty.json"
        empty.write_text("[]", "utf8")
        for way, path in write_conversations(Path(scratch), options.megabytes).items():
            started = measure("bench.own_messages", "--one", way, str(empty))
            cost = measure("bench.own_messages", "--one", way, str(path))
            seconds = cost.cpu_seconds - started.cpu_seconds
            base = base or seconds
            size = path.stat().st_size
            rows.append(
                [way, f"{size / 1e6:,.0f}", f"{cost.result['messages']:,}", f"{seconds:.1f}",
                 f"{size / 1e6 / seconds:.0f}", f"{seconds / base:.2f}", f"{cost.peak_bytes / 2**30:.2f}"]
            )  # fmt: skip
    print(table(["way", "MB", "messages", "CPU s", "MB per CPU s", "ratio", "peak GiB"], rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

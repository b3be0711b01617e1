"""What is large or repeated, measured: `python -m bench.large_inputs`.

A message of 50 MB, a JSON record of 300 MB, stories in 30 rows, a conversation of thousands of turns, millions of
elements that are no record: at a quarter, at half and at all of the size, each in a new process. Linear is a ratio
of 2.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.document_sets import Split, write_stories
from bench.full_size import REVISION
from bench.measure import Measured, hand_back, measure, table
from bench.text import Source
from pipelines.fetch.hub import SampleHub
from pipelines.steps.chat_turns import count_chat_turns
from pipelines.steps.conversations import read_conversations
from pipelines.steps.counts import count_tokens
from pipelines.steps.fetching import fetch_raw, fetch_tokenizer_file
from pipelines.steps.text_turns import derive_turns
from pipelines.vocab.specs import tokenizer_specs
from pipelines.workloads.sets import workload
from warehouse.home.home import Home

PARTS = ("sg_90k_part1.json", "sg_90k_part2.json")
SPLITS = ("train", "dev", "test")
LARGEST_RATIO = 2.2


def long_message(root: Path, megabytes: float) -> str:
    """Write a chat with one message of the given megabytes; return its workload."""
    said = [{"from": "human", "value": Source("message").story(int(megabytes * 1e6))}, {"from": "gpt", "value": "Yes."}]
    return write_chats(root, [said])


def long_conversation(root: Path, turns: float) -> str:
    """Write one conversation of the given number of turns, 200 and 400 characters each; return its workload."""
    source = Source("conversation")
    said = []
    for _ in range(int(turns)):
        said += [{"from": "human", "value": source.prose(200)}, {"from": "gpt", "value": source.prose(400)}]
    return write_chats(root, [said])


def write_chats(root: Path, chats: list[list[dict[str, str]]]) -> str:
    """Write conversations into ShareGPT's first file and none into the second; return the workload."""
    chosen = workload("sharegpt")
    records = [{"id": f"c{n}", "conversations": said} for n, said in enumerate(chats)]
    for path, content in zip(PARTS, (records, []), strict=True):
        (root / chosen.repo_id).mkdir(parents=True, exist_ok=True)
        (root / chosen.repo_id / path).write_text(json.dumps(content), "ascii")
    return chosen.name


def long_record(root: Path, megabytes: float) -> str:
    """Write one filing of the given megabytes with one question; return its workload."""
    chosen = workload("finqa")
    (root / chosen.repo_id).mkdir(parents=True, exist_ok=True)
    part = Source("record").filing(int(min(megabytes, 10) * 1e6))
    context = part * max(1, round(megabytes / 10))
    for split in SPLITS:
        rows = [{"Context": context, "Question": "How much?", "Answer": "1"}] if split == "train" else []
        with (root / chosen.repo_id / f"{split}.json").open("w", encoding="utf-8") as file:
            json.dump(rows, file, ensure_ascii=False)
    return chosen.name


def repeated_story(root: Path, rows: float) -> str:
    """Write 30 stories, each repeated in the given number of rows; return their workload."""
    for name, documents in (("train", 28), ("validation", 1), ("test", 1)):
        write_stories(root, Split(name, documents, round(documents * rows), 1), 0, "repeated")
    return "narrativeqa"


def numbers(root: Path, millions: float) -> str:
    """Write an array of one conversation and the given millions of numbers; return its workload."""
    return write_junk(root, "[", ",1", millions, "]")


def lines_not_json(root: Path, millions: float) -> str:
    """Write one conversation and the given millions of lines that are not JSON; return its workload."""
    return write_junk(root, "", "\nx", millions, "\n")


def write_junk(root: Path, begin: str, junk: str, millions: float, end: str) -> str:
    """Write one conversation, then elements that are no records, into ShareGPT's first file."""
    name = write_chats(root, [[{"from": "human", "value": "Hello"}]])
    path = root / workload(name).repo_id / PARTS[0]
    (record,) = json.loads(path.read_text("ascii"))
    with path.open("w", encoding="ascii") as file:
        file.write(begin + json.dumps(record))
        for _ in range(round(millions * 1000)):
            file.write(junk * 1000)
        file.write(end)
    return name


CASES: dict[str, tuple[Callable[[Path, float], str], tuple[float, ...], str]] = {
    "one message": (long_message, (12.5, 25, 50), "MB"),
    "one JSON record": (long_record, (75, 150, 300), "MB"),
    "one conversation": (long_conversation, (10_000, 20_000, 40_000), "turns"),
    "numbers": (numbers, (0.75, 1.5, 3), "million"),
    "lines not JSON": (lines_not_json, (0.25, 0.5, 1), "million"),
    "30 stories": (repeated_story, (1, 30), "rows each"),
}


def run_steps(root: Path, name: str) -> None:
    """Read, count and derive turns by `text` and `chat` from the files under `root`; hand back each step's cost."""
    home = Home(root / "home")
    home.prepare()
    staging, chosen = home.staging(is_sample=True), workload(name)
    for spec in tokenizer_specs().values():
        fetch_tokenizer_file(staging, spec, offline=True)
    fetch_raw(staging, chosen, SampleHub(root, REVISION))
    work: dict[str, Callable[[], object]] = {"read": lambda: read_conversations(staging, chosen)}
    for tokenizer in tokenizer_specs():
        work[f"count {tokenizer}"] = partial(count_tokens, staging, chosen, tokenizer)
        work[f"derive {tokenizer}"] = partial(derive_turns, staging, chosen, tokenizer)
        work[f"chat {tokenizer}"] = partial(count_chat_turns, staging, chosen, tokenizer)
    when, cpu = {}, {}
    for label, step in work.items():
        begin, used = time.time(), time.process_time()
        step()
        when[label], cpu[label] = (begin, time.time()), time.process_time() - used
    hand_back({"when": when, "cpu": cpu})


def measure_case(case: str, size: float) -> Measured:
    """Write a case at one size and measure the steps over it in a new process."""
    write = CASES[case][0]
    with tempfile.TemporaryDirectory() as folder:
        name = write(Path(folder), size)
        return measure("bench.large_inputs", "--child", name, "--root", folder)


def main() -> int:
    """Run the measurement with the command-line options."""
    parser = argparse.ArgumentParser(prog="python -m bench.large_inputs", description=__doc__)
    parser.add_argument("--case", action="append", choices=list(CASES))
    parser.add_argument("--scale", type=float, default=1.0, help="share of the sizes")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--root", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_steps(options.root, options.child)
        return 0
    for case in options.case or list(CASES):
        _, sizes, unit = CASES[case]
        rows, memory = [], []
        for size in sizes:
            scaled = size if unit == "rows each" else size * options.scale
            took = measure_case(case, scaled)
            label, peak = f"{case}, {scaled:,g} {unit}", f"{took.peak_bytes / 2**30:.2f}"
            peaks = [took.peak_between(*times) for times in took.result["when"].values()]
            rows.append([label, *(f"{s:.2f}" for s in took.result["cpu"].values()), peak])
            memory.append([label, *(f"{size / 2**30:.2f}" for size in peaks), peak])
        for what, lines in (("CPU s", rows), ("GiB", memory)):
            print(table([what, *took.result["cpu"], "peak GiB"], lines) + "\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

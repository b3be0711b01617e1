"""The straightforward way against ours, on a part that it can finish: `python -m bench.naive ROOT`.

Straightforward: `load_dataset`, `map`, and every prompt rendered and tokenised from its beginning.
Ours: the steps of `kappa run` over the same records. Both must find the same prompts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.chat_set import FILES
from bench.large_inputs import write_chats
from bench.measure import hand_back, measure, table
from pipelines.io.json_array import Element, read_elements
from pipelines.steps.product_names import turns_name
from pipelines.steps.turn_products import TURNS_FILE
from pipelines.vocab.files import fetch_tokenizer
from pipelines.vocab.specs import tokenizer_spec, tokenizer_specs
from warehouse.home.home import Home

PROCESSES = 2
Message = dict[str, str]


def prompts_of(messages: list[Message]) -> list[list[Message]]:
    """Return the messages of every prompt: everything before a reply that follows a request.

    [human, gpt, human] has the prompts [human] and [human, gpt, human].
    """
    roles = {"human": "user", "gpt": "assistant"}
    said = [{"role": roles[message["from"]], "content": message["value"]} for message in messages]
    asks = [n for n, message in enumerate(said) if message["role"] == "user"]
    ends = [n + 1 for n in asks if n + 1 == len(said) or said[n + 1]["role"] == "assistant"]
    return [said[:end] for end in ends]


def count_naively(root: Path, tokenizer: str) -> None:
    """Count every prompt in this process; hand back their tokens and the seconds."""
    begin = time.perf_counter()
    from datasets import disable_progress_bars, load_dataset  # noqa: PLC0415 - included in the measurement

    from pipelines.counting.engines import official_prompts  # noqa: PLC0415
    from pipelines.vocab.template_files import chat_template  # noqa: PLC0415

    disable_progress_bars()
    file = fetch_tokenizer(tokenizer_spec(tokenizer), root / "tokenizers", offline=True)
    records = load_dataset("json", data_files=str(root / FILES[0]), split="train", cache_dir=str(root / "cache"))
    loaded = time.perf_counter()
    prompt = official_prompts(file, chat_template(file))

    def lengths(record: dict[str, Any]) -> dict[str, list[int]]:
        return {"tokens": [len(prompt(messages)) for messages in prompts_of(record["conversations"])]}

    counted = records.map(lengths, num_proc=PROCESSES, remove_columns=records.column_names)
    tokens = sum(sum(row) for row in counted["tokens"])
    turns = sum(len(row) for row in counted["tokens"])
    done = time.perf_counter()
    hand_back({"load": loaded - begin, "map": done - loaded, "turns": turns, "prompt_tokens": tokens})


def ours(root: Path, tokenizer: str) -> dict[str, float]:
    """Run our steps over the same file in a new process; return the seconds and the totals."""
    took = measure("bench.large_inputs", "--child", "sharegpt", "--root", str(root))
    staging = Home(root / "home").staging(is_sample=True)
    turns = pq.read_table(staging.require(turns_name("sharegpt", tokenizer, "chat")).file(TURNS_FILE))
    tokens = pc.sum(turns["cached_tokens"]).as_py() + pc.sum(turns["prefill_tokens"]).as_py()
    wanted = ("read", f"count {tokenizer}", f"chat {tokenizer}")
    return {**{name: took.result["clock"][name] for name in wanted}, "turns": turns.num_rows, "prompt_tokens": tokens}


def main() -> int:
    """Run the comparison with the command-line options."""
    parser = argparse.ArgumentParser(prog="python -m bench.naive", description=__doc__)
    parser.add_argument("root", type=Path, help="what bench.generate wrote")
    parser.add_argument("--conversations", type=int, default=300, help="the first so many of the first file")
    parser.add_argument("--tokenizer", choices=list(tokenizer_specs()), default="llama-3.1")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        count_naively(options.root, options.tokenizer)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        elements = islice(read_elements(options.root / FILES[0]), options.conversations)
        write_chats(folder, [element.value["conversations"] for element in elements if isinstance(element, Element)])
        naive = measure("bench.naive", str(folder), "--tokenizer", options.tokenizer, "--child").result
        fast = ours(folder, options.tokenizer)
        rows = [["straightforward", *_row(naive)], ["ours", *_row(fast)]]
        print(table(["way", "s", "prompts", "their tokens", "prompts a second"], rows))
    if naive["prompt_tokens"] != fast["prompt_tokens"]:
        raise RuntimeError("the two ways found different prompts")
    return 0


def _row(found: dict[str, float]) -> list[str]:
    seconds = sum(value for name, value in found.items() if name not in ("turns", "prompt_tokens"))
    rate = found["turns"] / seconds
    return [f"{seconds:.1f}", f"{found['turns']:,}", f"{found['prompt_tokens']:,}", f"{rate:,.0f}"]


if __name__ == "__main__":
    sys.exit(main())

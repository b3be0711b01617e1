"""Counting throughput of our path against what else there is: `python -m bench.counting`.

Each measurement is a new process that makes two passes over the same text: the first is cold, the second warm. The ways
of Hugging Face remember next to nothing and take minutes, so they make the first alone, once. All ways have the same
number of threads and must find the same number of tokens.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.measure import hand_back, measure, table
from bench.texts import KINDS, write_texts
from pipelines.counting.engines import exact_counter, fast_counter
from pipelines.io.arrow_text import byte_lengths
from pipelines.sessions.messages import OWNERS, TEXTS, Messages
from pipelines.steps import counts
from pipelines.steps.fetching import fetch_tokenizer_file, tokenizer_file_of
from pipelines.steps.product_names import conversations_name, counts_name
from pipelines.vocab.files import TokenizerFile, fetch_tokenizer
from pipelines.vocab.specs import tokenizer_spec, tokenizer_specs
from pipelines.workloads.sets import workload
from warehouse.home.home import Home
from warehouse.home.products import identity_of

THREADS = 2
PASSES = ("cold", "warm")
WORKLOAD = "sharegpt"
Pass = Callable[[], int]
# Required speed relative to the bare engine, warm and cold, and to Hugging Face's own call, cold.
LEAST_OF_BARE, LEAST_OF_BATCH = 0.7, 15.0


def ours(file: TokenizerFile, folder: Path) -> Pass:
    """The counting step of `kappa run`: read Arrow, tokenise, compare with Hugging Face, write the counts."""
    staging = Home(folder.parent / f"home-{os.getpid()}").staging(is_sample=True)
    with staging.build(conversations_name(WORKLOAD), identity_of(texts=str(folder))) as draft:
        for name in (OWNERS, TEXTS):
            (draft.folder / name).hardlink_to(folder / name)
        draft.meta["text_bytes"] = sum(int(byte_lengths(texts).sum()) for texts in Messages(folder).texts())
    staged = tokenizer_file_of(staging, fetch_tokenizer_file(staging, file.spec, offline=True))
    # The other ways load their tokenizers and libraries before the first pass too.
    pa.array([""])
    fast_counter(staged)
    exact_counter(staged)

    def count() -> int:
        shutil.rmtree(staging.root / counts_name(WORKLOAD, file.spec.name), ignore_errors=True)
        return int(counts.count_tokens(staging, workload(WORKLOAD), file.spec.name).meta["tokens"])

    return count


def bare(file: TokenizerFile, folder: Path) -> Pass:
    """The bare engine call, with the texts ready as Python strings."""
    import fastokens  # noqa: PLC0415

    tokenizer = fastokens.Tokenizer.from_file(str(file.path))
    batches = [batch.to_pylist() for batch in Messages(folder).texts()]

    def count() -> int:
        return sum(len(tokenizer.encode_batch_flat(texts, False, False)[0]) // 4 for texts in batches)

    return count


def batch_fast(file: TokenizerFile, folder: Path) -> Pass:
    """`encode_batch_fast` of Hugging Face tokenizers, with the texts ready as Python strings."""
    from tokenizers import Tokenizer  # noqa: PLC0415

    tokenizer = Tokenizer.from_file(str(file.path))
    batches = [batch.to_pylist() for batch in Messages(folder).texts()]

    def count() -> int:
        return sum(len(e) for texts in batches for e in tokenizer.encode_batch_fast(texts, add_special_tokens=False))

    return count


def dataset_map(processes: int) -> Callable[[TokenizerFile, Path], Pass]:
    """`datasets.map` with the tokenizer of transformers, in the given number of processes."""

    def prepare(file: TokenizerFile, folder: Path) -> Pass:
        import datasets  # noqa: PLC0415
        from transformers import PreTrainedTokenizerFast  # noqa: PLC0415

        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(file.path))
        datasets.disable_progress_bars()
        path = folder.parent / f"texts-{os.getpid()}.parquet"
        pq.write_table(pa.table({"text": pa.chunked_array(Messages(folder).texts())}), path)
        texts = datasets.Dataset.from_parquet(str(path), cache_dir=str(folder.parent / f"cache-{os.getpid()}"))

        def lengths(batch: dict[str, list[str]]) -> dict[str, list[int]]:
            return {"tokens": [len(ids) for ids in tokenizer(batch["text"], add_special_tokens=False)["input_ids"]]}

        def count() -> int:
            counted = texts.map(
                lengths, batched=True, num_proc=processes, remove_columns=["text"], load_from_cache_file=False,
            )  # fmt: skip
            return sum(counted["tokens"])

        return count

    return prepare


WAYS: dict[str, Callable[[TokenizerFile, Path], Pass]] = {
    "ours": ours,
    "bare fastokens": bare,
    "encode_batch_fast": batch_fast,
    "datasets.map, 1 process": dataset_map(1),
    "datasets.map, 2 processes": dataset_map(2),
}
SLOW = ("encode_batch_fast", "datasets.map, 1 process", "datasets.map, 2 processes")


def run_way(way: str, tokenizer: str, path: Path, folder: Path) -> None:
    """Measure one way in this process."""
    file = fetch_tokenizer(tokenizer_spec(tokenizer), folder, offline=True)
    begin = time.perf_counter()
    count = WAYS[way](file, path)
    prepared, passes = time.perf_counter() - begin, []
    for _ in PASSES[: 1 if way in SLOW else 2]:
        start, used = time.perf_counter(), _cpu()
        tokens = count()
        passes.append({"s": time.perf_counter() - start, "cpu_s": _cpu() - used, "tokens": tokens})
    hand_back({"prepare_s": prepared, "passes": passes})


def _cpu() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def threads_of(way: str) -> dict[str, str]:
    """Return the environment that gives every way THREADS threads in total."""
    each = THREADS // 2 if way.endswith("2 processes") else THREADS
    parallel = "true" if each > 1 else "false"
    return {"RAYON_NUM_THREADS": str(each), "FASTOKENS_BPE_THREADS": str(each), "TOKENIZERS_PARALLELISM": parallel}


Rates = dict[tuple[str, str, str, str], list[float]]


def measure_all(folder: Path, options: argparse.Namespace) -> tuple[Rates, Rates]:
    """Return MB/s by wall time and by CPU time over THREADS, one value a repetition; the ways alternate."""
    by_clock: Rates = {}
    by_cpu: Rates = {}
    for kind in options.kind or KINDS:
        sizes = {}
        for slow, megabytes in ((False, options.megabytes), (True, options.slow_megabytes or options.megabytes)):
            sizes[slow] = write_texts(kind, folder / f"{kind}-{slow}", megabytes)
        for repetition in range(options.repetitions):
            for tokenizer in options.tokenizer or list(tokenizer_specs()):
                found: dict[bool, set[int]] = {False: set(), True: set()}
                for way in options.way or list(WAYS):
                    slow = way in SLOW
                    if slow and repetition:
                        continue
                    path = folder / f"{kind}-{slow}"
                    arguments = ("--child", way, "--tokenizer", tokenizer, "--path", str(path), "--folder", str(folder))
                    result: dict[str, Any] = measure("bench.counting", *arguments, environment=threads_of(way)).result
                    for name, once in zip(PASSES, result["passes"], strict=False):
                        case = (way, tokenizer, kind, name)
                        by_clock.setdefault(case, []).append(sizes[slow] / once["s"] / 1e6)
                        by_cpu.setdefault(case, []).append(sizes[slow] * THREADS / once["cpu_s"] / 1e6)
                        found[slow].add(once["tokens"])
                if any(len(tokens) > 1 for tokens in found.values()):
                    raise RuntimeError(f"the ways count {kind} with {tokenizer} differently: {found}")
    return by_clock, by_cpu


def spread(values: list[float], form: str = ".0f") -> str:
    """Return the median, with the lowest and highest where there are several values."""
    middle = format(statistics.median(values), form)
    return middle if len(values) == 1 else f"{middle} ({min(values):{form}} to {max(values):{form}})"


def ratios(rates: Rates, way: str, name: str) -> dict[tuple[str, str], list[float]]:
    """Return our speed over another way's in the same pass by (tokenizer, kind), one value a repetition of that way."""
    return {
        (tokenizer, kind): [a / b for a, b in zip(values, rates[way, tokenizer, kind, name], strict=False)]
        for (which, tokenizer, kind, passed), values in rates.items()
        if which == "ours" and passed == name and (way, tokenizer, kind, name) in rates
    }


def print_tables(rates: Rates) -> None:
    """Print MB/s of every way, then our speed relative to each other way."""
    cases = list(dict.fromkeys((tokenizer, kind) for _, tokenizer, kind, _ in rates))
    head = ["MB/s", *(f"{tokenizer} {kind}" for tokenizer, kind in cases)]
    lines = list(dict.fromkeys((way, name) for way, _, _, name in rates))
    rows = [[f"{way}, {name}", *(spread(rates[way, *case, name]) for case in cases)] for way, name in lines]
    print(table(head, rows))
    rows = []
    for way, name in lines:
        found = ratios(rates, way, name)
        if way != "ours" and found:
            mean = math.exp(statistics.fmean(math.log(statistics.median(values)) for values in found.values()))
            rows.append([f"ours / {way}, {name}", *(spread(found[case], ".2f") for case in cases), f"{mean:.2f}"])
    print("\n" + table(["ratio", *head[1:], "geometric mean"], rows))


def main() -> int:
    """Run the measurement with the command-line options."""
    parser = argparse.ArgumentParser(prog="python -m bench.counting", description=__doc__)
    parser.add_argument("--megabytes", type=float, default=200, help="text a kind")
    parser.add_argument("--slow-megabytes", type=float, help="text a kind for the ways that are not ours nor bare")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--tokenizer", action="append", choices=list(tokenizer_specs()))
    parser.add_argument("--way", action="append", choices=list(WAYS))
    parser.add_argument("--child", choices=list(WAYS), help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help="scratch folder (default: a temporary one)")
    options = parser.parse_args()
    if options.child:
        run_way(options.child, options.tokenizer[0], options.path, options.folder)
        return 0
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        by_clock, by_cpu = measure_all(Path(folder), options)
    for what, rates in (("By the clock", by_clock), (f"By CPU time over {THREADS} threads", by_cpu)):
        print(f"\n{what}:\n")
        print_tables(rates)
    print(f"\nAsked: at least {LEAST_OF_BARE} of bare fastokens; cold, {LEAST_OF_BATCH} times encode_batch_fast.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

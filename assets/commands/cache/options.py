"""The options of `kappa cache`. No heavy import, so that help prints at once."""

from __future__ import annotations

import argparse


def add_cache_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `kappa cache`."""
    workload = parser.add_mutually_exclusive_group(required=True)
    workload.add_argument("place", nargs="?", metavar="WORKLOAD", help="a workload that the home folder holds")
    workload.add_argument("--workload", metavar="NAME", help="the same, as other commands take it")
    parser.add_argument("--model", metavar="M", required=True)
    parser.add_argument("--accelerator", metavar="A", required=True)
    parser.add_argument("--link", metavar="L", help="default: the one that the accelerator is built with")
    parser.add_argument(
        "--tier", metavar="NAME=SIZE[@BANDWIDTH]", action="append", default=[],
        help="a tier behind the accelerators' memory, nearest first, such as dram=512GB or nvme=8TB@14GB/s: its size "
        "and bandwidth for all accelerators of the model together (default: sizes of DRAM up to 2 TB)",
    )  # fmt: skip
    parser.add_argument("--kv-dtype", metavar="D", default="bf16", help="bf16, fp8, or int8 and int4 with their scales")
    parser.add_argument(
        "--tensor-parallel", "--gpus", dest="gpus", metavar="N", type=int,
        help="GPUs that share each layer (default: the least that hold it)",
    )  # fmt: skip
    parser.add_argument("--counting", type=str.lower, help="text or chat (default: the log's own, else text)")
    parser.add_argument("--reuse", type=str.lower, help="prefix or history (default: what the workload has)")
    parser.add_argument(
        "--sessions", metavar="S", type=int, default=256,
        help="sessions served at a time, a turn each in turn, where there are no times (default: 256)",
    )  # fmt: skip
    parser.add_argument("--block-tokens", metavar="B", type=int, default=16, help="16 (vLLM, default) or 256 (LMCache)")
    parser.add_argument(
        "--rate", "--requests-per-s", dest="requests_per_s", metavar="R", type=float,
        help="requests a second, for bytes a second (default: the log's own)",
    )  # fmt: skip

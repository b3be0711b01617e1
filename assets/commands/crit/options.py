"""The options of `kappa crit`. No heavy import, so that help prints at once."""

from __future__ import annotations

import argparse


def add_crit_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `kappa crit`; without K and T or a workload it prints only kappa_crit."""
    add_several(parser, "--model", "M", "a name, a repository of the Hub, or the path of a config.json")
    add_several(parser, "--accelerator", "A", "a GPU")
    add_several(parser, "--link", "L", "the way between host memory and GPU")
    parser.add_argument("--basis", type=str.lower, choices=("paper", "physical", "measured"))
    parser.add_argument("--bandwidth", metavar="B", help="use this bandwidth of one direction, such as 15GB/s")
    parser.add_argument(
        "--sustained-fraction",
        metavar="F",
        type=float,
        help="share of the dense peak that prefill sustains, above 0 to 1 (default: 0.55, mixtures of experts 0.25)",
    )
    add_several(parser, "--kv-dtype", "D", "bf16, fp8, or int8, int4 and nvfp4 with their scales")
    add_several(
        parser, "--tensor-parallel", "N", "GPUs that share the model (default: the least on which it fits)", int
    )
    served = parser.add_argument_group("how the model is served")
    served.add_argument("--weight-dtype", type=str.lower, choices=("bf16", "fp8", "mxfp4", "nvfp4", "int4"),
                        help="format of the weights (default: the one that the model is served in)")  # fmt: skip
    served.add_argument("--compute-dtype", type=str.lower, choices=("bf16", "fp8", "fp4"),
                        help="format of the matrix products (default: the engines')")  # fmt: skip
    served.add_argument("--batch", metavar="N", type=int, default=1, help="equal requests in an iteration (default: 1)")
    served.add_argument("--node-bandwidth", metavar="B", help="what all GPUs of a host load together, such as 15GB/s")
    served.add_argument("--block-layout", type=str.lower, choices=("packed", "layer"),
                        help="size of a copy: a block of all layers, or K or V of one (default: large)")  # fmt: skip
    served.add_argument("--copy-latency", metavar="S", type=float, help="fixed seconds of one copy, such as 14e-6")
    served.add_argument("--mla-attention", type=str.lower, choices=("tensor", "broadcast", "data"), default="tensor",
                        help="GPUs and a latent: each loads it, one for all, or each its own requests")  # fmt: skip
    served.add_argument("--pipeline", action="store_true", help="stages of layers over the nodes")
    served.add_argument("--no-hybrid-manager", action="store_true",
                        help="the engine stores the cache of every layer whole, windows too")  # fmt: skip
    parser.add_argument("--wide", action="store_true", help="all columns; else as many as fit into 100 characters")
    question = parser.add_argument_group("a turn or a workload")
    question.add_argument(
        "--cached-tokens", metavar="K", type=int, help="cached tokens of one turn; needs --new-tokens"
    )
    question.add_argument("--new-tokens", metavar="T", type=int, help="new tokens of that turn, at least 1")
    question.add_argument("--workload", metavar="NAME", help="all turns of a workload that the home folder holds")
    question.add_argument(
        "--tokenizer",
        metavar="NAME",
        help="whose counts of the workload (default: the model's, else another as a proxy)",
    )
    question.add_argument(
        "--counting",
        type=str.lower,
        choices=("text", "chat", "logged"),
        help="way of counting the workload (default: the first that it has)",
    )
    question.add_argument(
        "--reuse",
        type=str.lower,
        choices=("history", "prefix", "reported"),
        help="what K is: all said before in the session, blocks that any earlier request left, or what the server "
        "reported (default: the first that the workload has)",
    )
    question.add_argument(
        "--chunk", metavar="C", type=int, default=1, help="tokens that are reused together, such as 256"
    )
    question.add_argument(
        "--cost-model",
        type=str.lower,
        choices=("2n", "attention", "full"),
        help="what t_GPU counts (default: every one that is known)",
    )
    more = parser.add_argument_group("more about a turn")
    more.add_argument(
        "--tier", metavar="L", help="slower link that a part of the cache lies behind, such as nvme-gen5-x4"
    )
    more.add_argument("--tier-share", metavar="S", type=float, help="that part, 0 to 1 (default: 1)")
    more.add_argument("--output-tokens", metavar="N", type=int, help="tokens generated: adds the time to write back")
    more.add_argument(
        "--pool-tokens",
        metavar="N",
        type=int,
        help="tokens that the KV pool holds: adds T_sched, and the requests that fit",
    )
    more.add_argument(
        "--idle-w", metavar="W", type=float, help="power of one GPU while loading; with --busy-w adds the energy"
    )
    more.add_argument("--busy-w", metavar="W", type=float, help="power of one GPU while computing")


def add_several(
    parser: argparse.ArgumentParser, name: str, metavar: str, words: str, kind: type[str | int] = str
) -> None:
    """Add an option that may be repeated: each combination of the values is answered."""
    words = f"{words} (may be repeated)"
    parser.add_argument(name, action="append", metavar=metavar, type=kind, help=words)

"""The options of `kappa serve-sim`. No heavy import, so that help prints at once."""

from __future__ import annotations

import argparse

from assets.commands.crit.options import add_several


def add_serve_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `kappa serve-sim`; their defaults are those of `ServeQuestion`."""
    _add_machine(parser)
    _add_turns(parser)
    engine = parser.add_argument_group("how the accelerator is run")
    engine.add_argument("--engine", choices=("engine", "line"), help="iterations, or the closed-form line")
    engine.add_argument(
        "--policy",
        metavar="P",
        action="append",
        help="fifo, fill, fair, fair:session; with +age:S, +limit:N:KAPPA, +weights:W:W; johnson on the line",
    )
    engine.add_argument("--loading", choices=("async", "blocking"), help="as vLLM's connector, or as LMCache's default")
    engine.add_argument(
        "--decode", metavar="D", help="none, shared (a token an iteration), or hold:S (keeps its memory)"
    )
    engine.add_argument("--token-budget", metavar="N", type=int, help="new tokens of an iteration (default: 8192)")
    engine.add_argument("--max-seqs", metavar="N", type=int, help="turns held together (default: 1024)")
    engine.add_argument("--pool-tokens", metavar="N", type=int, help="tokens of the pool (default: what memory leaves)")
    engine.add_argument("--cap-w", metavar="W", type=float, help="power cap of an accelerator")
    fleet = parser.add_argument_group("a fleet")
    fleet.add_argument("--fleet", action="store_true", help="route the turns between all chosen machines at least cost")
    fleet.add_argument(
        "--price", metavar="A=USD", action="append", help="an hour of one accelerator, such as h100-sxm=2.5"
    )
    fleet.add_argument("--hours", metavar="A=H", action="append", help="most hours of a machine with this accelerator")
    fleet.add_argument("--use", metavar="U", type=float, help="planned use of machines, above 0 to 1 (default: 0.7)")


def _add_machine(parser: argparse.ArgumentParser) -> None:
    add_several(parser, "--model", "M", "as in kappa crit, like the options below")
    add_several(parser, "--accelerator", "A", "a GPU")
    add_several(parser, "--link", "L", "the way between host memory and GPU")
    parser.add_argument("--basis", type=str.lower, choices=("paper", "physical", "measured"))
    parser.add_argument("--bandwidth", metavar="B", help="use this bandwidth of one direction, such as 15GB/s")
    parser.add_argument(
        "--sustained-fraction", metavar="F", type=float, help="share of the dense peak, as in kappa crit"
    )
    add_several(parser, "--kv-dtype", "D", "bf16, fp8, or int8 and int4 with their scales")
    add_several(parser, "--tensor-parallel", "N", "GPUs that share each layer (default: the least that hold it)", int)
    parser.add_argument(
        "--cost-model", type=str.lower, choices=("2n", "attention", "full"), help="default: the fullest that is known"
    )


def _add_turns(parser: argparse.ArgumentParser) -> None:
    turns = parser.add_argument_group("the turns, and when they come")
    turns.add_argument("--workload", metavar="NAME", help="a workload that the home folder holds")
    turns.add_argument("--counting", type=str.lower, choices=("text", "chat", "logged"), help="way of counting it")
    turns.add_argument("--reuse", type=str.lower, choices=("history", "prefix", "reported"), help="what K is")
    turns.add_argument("--chunk", metavar="C", type=int, help="tokens that are reused together, such as 256")
    turns.add_argument("--turns", metavar="N", type=int, help="the first N turns that are served; 0 for all")
    turns.add_argument("--sessions", metavar="S", type=int, help="sessions that are interleaved (default: 16)")
    turns.add_argument(
        "--arrivals", metavar="A", help="poisson, closed:N, or log:FILE, a CSV with a column of instants"
    )
    turns.add_argument(
        "--tier", metavar="NAME=SIZE[@BANDWIDTH]", action="append", default=[],
        help="a tier behind the GPUs' memory, as in kappa cache: what it holds crosses the link, what is in the GPUs' "
        "memory does not, what was evicted is computed (default: all of K crosses the link)",
    )  # fmt: skip
    turns.add_argument("--rate", metavar="R", type=float, action="append", help="mean arrivals a second")
    turns.add_argument("--seed", metavar="N", type=int, help="of the arrivals (default: 0)")
    turns.add_argument("--seeds", metavar="N", type=int, help="runs with seeds one after the other: adds intervals")
    turns.add_argument("--slo", metavar="S", type=float, help="limit of p90 TTFT: adds the largest rate within it")

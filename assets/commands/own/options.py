"""The options of `kappa add`, `profile`, `workloads` and `remove`. No heavy import, so that help prints at once."""

from __future__ import annotations

import argparse
from typing import Any

SOURCE = "a file, folder or glob of JSON, JSON lines, CSV or Parquet, packed or not; - for standard input; or hf://..."


def add_own_options(commands: Any, shared: argparse.ArgumentParser) -> None:  # noqa: ANN401 - argparse's own
    """Add the commands on a user's own workloads."""
    profile = commands.add_parser(
        "profile", parents=[shared], help="your own log: what it asks of models and machines, in one command"
    )
    profile.add_argument("source", metavar="SOURCE", help=SOURCE)
    profile.add_argument("--name", metavar="NAME", help="its name in every table (default: the file's)")
    profile.add_argument(
        "--tokenizer", action="append", metavar="NAME", default=[], help="only this tokenizer (may be repeated)"
    )
    _add_overruling(profile)

    add = commands.add_parser("add", parents=[shared], help="declare your own log, data set or trace as a workload")
    add.add_argument("name", metavar="NAME", help="its name in every table")
    add.add_argument("source", metavar="SOURCE", help=SOURCE)
    add.add_argument("--dry-run", action="store_true", help="only say what is understood")
    _add_overruling(add)

    commands.add_parser("workloads", parents=[shared], help="list the workloads of the home folder")
    remove = commands.add_parser("remove", parents=[shared], help="remove a workload of your own; its files stay")
    remove.add_argument("name", metavar="NAME", help="its name")
    _add_export(commands, shared)


def _add_export(commands: Any, shared: argparse.ArgumentParser) -> None:  # noqa: ANN401 - argparse's own
    export = commands.add_parser("export", parents=[shared], help="write a workload as a trace without text")
    export.add_argument("name", metavar="WORKLOAD", help="a workload that was run")
    export.add_argument(
        "--format", dest="form", choices=("mooncake", "bailian"), default="mooncake",
        help="the form of the trace (default: mooncake)",
    )  # fmt: skip
    export.add_argument("--output", metavar="F", help="write to a file instead of standard output, which is - too")
    export.add_argument(
        "--block-tokens", metavar="B", type=int,
        help="tokens of a block (default: those of the workload; by history 512 in mooncake, 16 in bailian)",
    )  # fmt: skip
    export.add_argument("--tokenizer", metavar="NAME", help="whose counts (default: the first that it has)")
    export.add_argument("--counting", choices=("text", "chat", "logged"), help="default: the first that it has")
    export.add_argument(
        "--reuse", choices=("history", "prefix"),
        help="what K is (default: prefix where the blocks of requests are known, else history)",
    )  # fmt: skip
    export.add_argument(
        "--salt", metavar="TEXT", help="makes the first number of a block, so that traces can be put together"
    )


def _add_overruling(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", dest="form", metavar="F", help="its format (default: found out)")
    parser.add_argument(
        "--field", action="append", metavar="ROLE=PATH", default=[],
        help="where a field is, such as session=metadata.id (may be repeated)",
    )  # fmt: skip
    parser.add_argument("--salt", metavar="TEXT", help="a secret in the identities of blocks of text (requests)")
    parser.add_argument(
        "--no-keep-text", action="store_true", help="remove its texts from the home folder after counting"
    )

"""The command line. Nothing heavy is imported before the command that needs it."""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from assets.commands.crit.options import add_crit_options
from warehouse.errors import KappaError, UsageError
from warehouse.home.code_version import package_version

FORMATS = ("table", "csv", "json", "parquet")


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are one line like all others: what, why, what to do."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - argparse's own
        """Take -5GB/s for a value, as argparse takes -5: no option begins with a digit."""
        super().__init__(*arguments, **options)
        self._negative_number_matcher = re.compile(r"-\d")

    def error(self, message: str) -> NoReturn:
        """Tell wrong usage and leave with exit code 2."""
        what, is_split, why = message.partition(": ")
        told = (what, why) if is_split else ("this cannot be understood", message)
        self.exit(2, f"error: {UsageError(*told, f'see `{self.prog} --help`')}\n")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of every command and option."""
    shared = OneLineParser(add_help=False)
    shared.add_argument(
        "--home", metavar="DIR", default=argparse.SUPPRESS, help="home folder (default: KAPPA_HOME, else ./data)"
    )
    shared.add_argument(
        "--debug", action="store_true", default=argparse.SUPPRESS, help="show the traceback of an error"
    )
    parser = OneLineParser(
        prog="kappa",
        description="kappa_ratio of real workloads against kappa_crit of models on hardware, for KV-cache offloading.",
        parents=[shared],
    )
    parser.add_argument("--version", action="version", version=f"kappa {package_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    run = commands.add_parser(
        "run", parents=[shared], help="build everything, print the percentile table and where the report is"
    )
    run.add_argument(
        "--sample", action="store_true", help="generated data instead of the real sets: no network, no account"
    )
    run.add_argument(
        "--workload", action="append", metavar="NAME", default=[], help="only this workload (may be repeated)"
    )
    run.add_argument(
        "--tokenizer", action="append", metavar="NAME", default=[], help="only this tokenizer (may be repeated)"
    )

    refresh = commands.add_parser("refresh", parents=[shared], help="rebuild what changed upstream")
    refresh.add_argument(
        "--check", action="store_true", help="only tell: exit code 10 where a file that is used changed"
    )

    sql = commands.add_parser("sql", parents=[shared], help="query the warehouse, read only")
    sql.add_argument("query", nargs="?", metavar="QUERY", help="the query; without it, --file or standard input")
    sql.add_argument("--file", metavar="F", help="read the query from a file")
    _add_output(sql)

    crit = commands.add_parser(
        "crit", parents=[shared], help="kappa_crit of models on hardware, and of a turn or workload"
    )
    add_crit_options(crit)
    _add_output(crit)

    measure = commands.add_parser(
        "measure", parents=[shared], help="time this machine's link and accelerator; needs PyTorch and an accelerator"
    )
    measure.add_argument("--accelerator", metavar="A", help="its name in the tables (default: by the device's name)")
    measure.add_argument("--link", metavar="L", help="a name for its link (default: host-link)")

    report = commands.add_parser(
        "report", parents=[shared], help="draw the report and figures again, from the warehouse"
    )
    report.add_argument("--open", action="store_true", help="open the page in a browser")

    commands.add_parser("doctor", parents=[shared], help="what works here: Hub, token, tokenizers, disk, versions")
    return parser


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=FORMATS, help="default: the suffix of --output, else table")
    parser.add_argument("--output", metavar="F", help="write to a file instead of the terminal")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code: 0, 1 for an error, 2 for usage, 130 for Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    options = build_parser().parse_args(arguments)
    options.home = getattr(options, "home", None)
    is_debug = getattr(options, "debug", False)
    try:
        return _dispatch(options)
    except KeyboardInterrupt:
        print("interrupted: the last good state is as it was", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if is_debug:
            raise
        shown = readable(error)
        print(f"error: {shown}", file=sys.stderr)
        return 2 if isinstance(shown, UsageError) else 1


# Access denied, no space, file too large, read-only, quota: what a full or protected disk answers.
_DISK_ERRORS = (errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EFBIG, errno.EROFS, errno.EDQUOT)


def readable(error: BaseException) -> KappaError:
    """Return the error to show: the chain's first KappaError or disk error; what is neither is a defect of kappa."""
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None and cause not in chain:
        chain.append(cause)
    for link in chain:
        if isinstance(link, KappaError):
            return link
        if _is_full_database(link):
            why = f"{link}; the last good state is as it was"
            return KappaError("Dagster's run history could not be written", why, "free disk space, then run again")
        if isinstance(link, OSError) and link.errno in _DISK_ERRORS:
            where = f"{link.filename} could not be written" if link.filename else "a file could not be written"
            why = f"{os.strerror(link.errno)}; the last good state is as it was"
            return KappaError(where, why, "free disk space or mend permissions, then run again")
        if isinstance(link, OSError) and link.errno == errno.ENAMETOOLONG:
            return KappaError(
                f"{str(link.filename)[:60]}... cannot be used", "the name is too long", "choose a shorter one"
            )
    root = chain[-1]
    why = f"{type(root).__name__}: {str(root).strip().splitlines()[0][:200] if str(root).strip() else 'no message'}"
    return KappaError("something unexpected happened", why, "run again with --debug and report what it prints")


def _is_full_database(error: BaseException) -> bool:
    """Whether SQLite, in which Dagster keeps its history, met a full or protected disk."""
    words = ("disk is full", "disk I/O error", "unable to open database file", "readonly database")
    return type(error).__module__ == "sqlite3" and any(word in str(error) for word in words)


_COMMANDS = {
    "run": "assets.commands.running",
    "refresh": "assets.commands.running",
    "report": "assets.commands.running",
    "sql": "assets.commands.querying",
    "crit": "assets.commands.crit.command",
    "doctor": "assets.commands.doctor",
    "measure": "assets.commands.measure",
}
# They build or answer from a user's own rows; `kappa doctor` lists what it finds beside them itself.
_READ_OWN_ROWS = ("run", "refresh", "crit", "measure")


def _dispatch(options: argparse.Namespace) -> int:
    """Import the command's module, and with it what that command needs, and run it."""
    if options.command in _READ_OWN_ROWS:
        from warehouse.hardware_rows.files import unread_files, user_folder  # noqa: PLC0415 - pyarrow is slow to import

        for unread in unread_files(user_folder(home_path(options.home))):
            print(f"warning: {unread}", file=sys.stderr)
    module = importlib.import_module(_COMMANDS[options.command])
    return int(getattr(module, options.command)(options))


def home_path(given: str | None) -> Path:
    """Return the home folder: the one given, else KAPPA_HOME, else ./data."""
    return Path(given or os.environ.get("KAPPA_HOME") or "data")


if __name__ == "__main__":
    sys.exit(main())

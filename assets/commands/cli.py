"""The command line. Heavy modules are imported only by the commands that need them."""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import io
import os
import sys
import traceback
from collections.abc import Sequence

from assets import interrupts
from assets.commands.cache.options import add_cache_options
from assets.commands.crit.options import add_crit_options
from assets.commands.own.options import add_own_options
from assets.commands.parser import OneLineParser
from assets.commands.serving.options import add_serve_options
from warehouse.errors import ErrorCode, KappaError, UsageError, write_code
from warehouse.masking import MaskedStream, mask_log_records
from warehouse.versions.installed import package_version

FORMATS = ("table", "markdown", "csv", "json", "parquet")


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

    add_own_options(commands, shared)

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

    cache = commands.add_parser(
        "cache",
        parents=[shared],
        help="how much of a workload a cache of a given size keeps, and what crosses the link",
    )
    add_cache_options(cache)
    _add_output(cache)
    serve = commands.add_parser(
        "serve-sim", parents=[shared], help="turns that meet on a machine: TTFT over the rate, policies, fleet and cost"
    )
    add_serve_options(serve)
    _add_output(serve)

    measure = commands.add_parser(
        "measure", parents=[shared], help="time this machine's link and accelerator; needs PyTorch and an accelerator"
    )
    measure.add_argument("--accelerator", metavar="A", help="its name in the tables (default: by the device's name)")
    measure.add_argument("--link", metavar="L", help="a name for its link (default: host-link)")

    calibration = commands.add_parser(
        "calibrate", parents=[shared], help="fit the model's numbers to measurements of your own machine"
    )
    calibration.add_argument("--file", metavar="CSV", required=True, help="the measurements, see docs/validation.md")

    report = commands.add_parser(
        "report", parents=[shared], help="draw the report and figures again, from the warehouse"
    )
    report.add_argument("--open", action="store_true", help="open the page in a browser")

    adding = commands.add_parser(
        "add-tokenizer", parents=[shared], help="count with a tokenizer of your own: copied into the home and proved"
    )
    adding.add_argument("name", metavar="NAME", help="its name in every table")
    adding.add_argument(
        "source", metavar="SOURCE", help="a tokenizer.json, a folder with one, or org/name[@revision] on the Hub"
    )
    adding.add_argument("--template", metavar="F", help="its chat template (default: the one beside it)")
    adding.add_argument("--max-context", metavar="N", help="longest context in tokens (default: what the source says)")
    adding.add_argument(
        "--model", action="append", metavar="M", default=[], help="a model that uses it (may be repeated)"
    )

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
    mask_log_records()
    with contextlib.redirect_stderr(MaskedStream(sys.stderr)):
        return _answer(build_parser().parse_args(arguments))


def _answer(options: argparse.Namespace) -> int:
    """Run the command and print a failure to standard error; return the exit code."""
    options.home = getattr(options, "home", None)
    try:
        return _dispatch(options)
    except KeyboardInterrupt:
        interrupts.tell()
        return interrupts.CODE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001 - the last place to report it
        if interrupts.has_come():
            interrupts.tell()
            return interrupts.CODE
        if getattr(options, "debug", False):
            traceback.print_exc()
            return 1
        shown = readable(error)
        print(f"error: {shown}", file=sys.stderr)
        return 2 if isinstance(shown, UsageError) else 1


# Errors of a full or protected disk: access denied, no space, file too large, read-only, quota.
_DISK_ERRORS = (errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EFBIG, errno.EROFS, errno.EDQUOT)


def readable(error: BaseException) -> KappaError:
    """Return the error to show: the chain's first KappaError or disk error; any other error is a defect of kappa."""
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None and cause not in chain:
        chain.append(cause)
    for link in chain:
        if isinstance(link, KappaError):
            return link
        if _is_full_database(link):
            why = f"{link}; the last good state is as it was"
            return KappaError(
                "Dagster's run history could not be written",
                why,
                "free disk space, then run again",
                code=ErrorCode.NOT_WRITABLE,
            )
        if isinstance(link, OSError) and link.errno in _DISK_ERRORS:
            where = f"{link.filename} could not be written" if link.filename else "a file could not be written"
            why = f"{os.strerror(link.errno)}; the last good state is as it was"
            return KappaError(where, why, "free disk space or mend permissions, then run again", code=write_code(link))
        if isinstance(link, OSError) and link.errno == errno.ENAMETOOLONG:
            return KappaError(
                f"{str(link.filename)[:60]}... cannot be used",
                "the name is too long",
                "choose a shorter one",
                code=ErrorCode.BAD_PATH,
            )
    root = chain[-1]
    why = f"{type(root).__name__}: {str(root).strip().splitlines()[0][:200] if str(root).strip() else 'no message'}"
    return KappaError(
        "something unexpected happened",
        why,
        "run again with --debug and report what it prints",
        code=ErrorCode.UNEXPECTED,
    )


def _is_full_database(error: BaseException) -> bool:
    """Return whether SQLite, which stores Dagster's history, met a full or protected disk."""
    words = ("disk is full", "disk I/O error", "unable to open database file", "readonly database")
    return type(error).__module__ == "sqlite3" and any(word in str(error) for word in words)


_COMMANDS = {
    "run": "assets.commands.running",
    "refresh": "assets.commands.running",
    "report": "assets.commands.running",
    **dict.fromkeys(("add", "profile", "workloads", "remove"), "assets.commands.own.command"),
    "export": "assets.commands.own.exporting",
    "sql": "assets.commands.querying",
    "crit": "assets.commands.crit.command",
    "cache": "assets.commands.cache.command",
    "serve-sim": "assets.commands.serving.command",
    "doctor": "assets.commands.doctor",
    "measure": "assets.commands.measure",
    "add-tokenizer": "assets.commands.own.tokenizers",
    "calibrate": "assets.commands.calibrate",
}
# These commands use a user's own rows. `kappa doctor` lists ignored files itself.
_READ_OWN_ROWS = ("run", "profile", "refresh", "crit", "cache", "serve-sim", "measure", "calibrate")
# These show tables, which have own rows from the run on that found them.
_SHOW_TABLES = ("sql", "report")


def _dispatch(options: argparse.Namespace) -> int:
    """Import the command's module and run the command."""
    if options.command in _READ_OWN_ROWS:
        from warehouse.hardware_rows.files import unread_files, user_folder  # noqa: PLC0415 - pyarrow is slow to import
        from warehouse.home.home import home_path  # noqa: PLC0415

        for unread in unread_files(user_folder(home_path(options.home))):
            print(f"warning: {unread}", file=sys.stderr)
    if options.command in _SHOW_TABLES:
        _tell_of_waiting_rows(options.home)
    module = importlib.import_module(_COMMANDS[options.command])
    return int(getattr(module, options.command.replace("-", "_"))(options))


def _tell_of_waiting_rows(home: str | None) -> None:
    """Print a note where a user's own rows are not yet in the tables."""
    from warehouse.hardware_rows.files import waiting_rows  # noqa: PLC0415 - pyarrow is slow to import
    from warehouse.home.home import Home, home_path  # noqa: PLC0415

    path = home_path(home)
    # The command itself reports what cannot be read.
    with contextlib.suppress(KappaError):
        if waiting := waiting_rows(path, Home(path).current_note()):
            print(f"note: {waiting}", file=sys.stderr)

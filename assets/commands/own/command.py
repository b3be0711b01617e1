"""`kappa add`, `kappa profile`, `kappa workloads`, `kappa remove`: a user's own logs, data sets and traces."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import pyarrow as pa

from assets.commands.screen import text_table
from pipelines.workloads.known import known_workloads
from pipelines.workloads.own import adding
from pipelines.workloads.own.declared import declared_in, path_of
from pipelines.workloads.own.sources import name_of_source
from pipelines.workloads.sets import workloads as built_in
from warehouse.declared.formats import printable, quantity
from warehouse.errors import ErrorCode, UsageError
from warehouse.home.home import Home, home_path

_LISTED = 3


def add(options: argparse.Namespace) -> int:
    """Look at a source, say what was understood, and declare it; with --dry-run only say it."""
    home = Home(home_path(options.home))
    wish = _wish(options, options.name)
    if options.dry_run:
        # Standard input would be kept in the home folder.
        with tempfile.TemporaryDirectory() as nowhere:
            _print(adding.understood(Home(Path(nowhere)), wish, sys.stdin.buffer))
        print("nothing was written: --dry-run")
        return 0
    added = adding.understood(home, wish, sys.stdin.buffer)
    _print(added)
    path = adding.write(home, added)
    print(f"declared in {path}")
    print(f"next: kappa run --workload {added.name}{_home_option(options)}")
    return 0


def profile(options: argparse.Namespace) -> int:
    """Declare a source, count it, and say what limits it: add, run and verdict in one command."""
    from assets.commands.own.profiling import profiled, verdict  # noqa: PLC0415 - NumPy and pyarrow are slow to import

    home = Home(home_path(options.home))
    wish = _wish(options, options.name or name_of_source(options.source))
    added = adding.understood(home, wish, sys.stdin.buffer)
    _print(added)
    profiled(home, added, list(options.tokenizer))
    print(verdict(home, added.name))
    return 0


def workloads(options: argparse.Namespace) -> int:
    """List the workloads of the home folder."""
    home = Home(home_path(options.home))
    own = declared_in(home.path)
    rows = [
        {
            "workload": name,
            "kind": workload.kind,
            "format": own[name].format if name in own else "built-in",
            "source": _source(own[name].path, own[name].repo) if name in own else workload.repo_id,
        }
        for name, workload in known_workloads(home.path).items()
    ]
    print(text_table(pa.Table.from_pylist(rows), stream=sys.stdout))
    return 0


def remove(options: argparse.Namespace) -> int:
    """Remove an own workload; the source itself stays as it is."""
    home = Home(home_path(options.home))
    if options.name in built_in():
        what, why = f"{options.name} cannot be removed", "it is built in"
        raise UsageError(what, why, "name one of your own, see `kappa workloads`", code=ErrorCode.USAGE)
    adding.remove(home, options.name)
    print(f"{options.name} is removed: {path_of(home.path, options.name)}")
    note = home.current_note() or {}
    if any(entry[0] == options.name for entry in note.get("series", [])):
        print(f"the published tables hold it until the next run: kappa refresh{_home_option(options)}")
    return 0


def _home_option(options: argparse.Namespace) -> str:
    return f" --home {options.home}" if options.home else ""


def _source(path: str | None, repo: str | None) -> str:
    return path or f"hf://datasets/{repo}"


def _wish(options: argparse.Namespace, name: str) -> adding.Wish:
    fields = []
    for given in options.field:
        role, mark, path = given.partition("=")
        if not (mark and role and path):
            what, why = f"--field {given} cannot be meant", "it is ROLE=PATH, as in session=metadata.id"
            raise UsageError(what, why, "write it so", code=ErrorCode.USAGE)
        fields.append((role, path))
    return adding.Wish(name, options.source, options.form, tuple(fields), not options.no_keep_text, options.salt)


def _print(added: adding.Added) -> None:
    found = added.recognised
    names = list(added.files)
    more = f" and {len(names) - _LISTED:,} more" if names[_LISTED:] else ""
    size = quantity(sum(path.stat().st_size for path in added.files.values()), "B")
    _say(f"{added.name}: {found.form.name}, {found.form.record}")
    _say(f"files: {', '.join(names[:_LISTED])}{more} ({size})")
    _say("fields: " + ", ".join(f"{role} = {path}" for role, path in found.understood.fields.items()))
    lacking = [role.name for role in found.form.roles if role.name not in found.understood.fields]
    if lacking:
        _say(f"not there: {', '.join(lacking)}")
    _say(f"why: {found.understood.reason}")
    if found.rejects:
        first = found.rejects[0]
        words = f"{len(found.rejects)} of the first {found.looked_at} records cannot be used"
        _say(f"{words}, the first one: {first.reason} ({first.detail})")
    print(text_table(pa.Table.from_pylist(found.rows), stream=sys.stdout))
    if _is_overruled(added):
        _say("overruled: " + ", ".join(f"{role} = {path}" for role, path in added.declaration.fields.items()))
    else:
        _say("not so? --format F and --field ROLE=PATH overrule each of it")


def _say(text: str) -> None:
    """Print a line; a file is named by whoever made it, and a name may hold what controls a terminal."""
    print(printable(text))


def _is_overruled(added: adding.Added) -> bool:
    return bool(added.declaration.fields)

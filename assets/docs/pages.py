"""Pages that cannot go stale: tables, command line, codes of errors, and the generated parts of docs/kappa-crit.md.

`python -m assets.docs.pages` writes them; `python -m assets.docs.pages --check` fails if one differs.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from assets.commands.cli import build_parser
from assets.docs.sections import with_sections
from assets.graph.dictionary import dictionary
from warehouse.declared.tables import TABLES
from warehouse.errors import ErrorCode

FOLDER = Path(__file__).resolve().parents[2] / "docs"
INTRODUCTION = (
    "Generated from the declarations in `warehouse/` by `make docs`. GB is 10^9 bytes, GiB 2^30 bytes. "
    "The database itself has the same (`SELECT comment FROM duckdb_columns()`), in the metadata of "
    "the Parquet files and in Dagster (`dictionary` of each asset).\n"
)
EXIT_CODES = (
    "0 done; 1 an error in one line `error: what, why, what to do`; 2 wrong usage; "
    "10 `kappa refresh --check` found that a file that is used changed; 130 interrupted."
)
ERRORS = (
    "Generated from `warehouse/errors.py` by `make docs`. A program reads `error.code` of a `kappa.KappaError`, "
    "a string and a `kappa.ErrorCode`: the words of an error may change, its code does not. "
    "The command line shows only the words.\n"
)


def pages() -> dict[str, str]:
    """Return the generated pages by file name."""
    sections = with_sections((FOLDER / "kappa-crit.md").read_text("utf8"))
    measured = with_sections((FOLDER / "validation.md").read_text("utf8"))
    tables = "\n".join(["# Tables\n", INTRODUCTION, dictionary(*TABLES.values())]) + "\n"
    return {
        "tables.md": tables,
        "commands.md": _commands(),
        "errors.md": _errors(),
        "kappa-crit.md": sections,
        "validation.md": measured,
    }


def _commands() -> str:
    os.environ["COLUMNS"] = "100"
    parser = build_parser()
    parts = ["# Command line\n", "Generated from the parser by `make docs`.\n"]
    parts += ["```", parser.format_help().rstrip(), "```"]
    for action in parser._actions:  # noqa: SLF001 - argparse names its subcommands nowhere else
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for name, command in action.choices.items():
                parts += [f"\n## kappa {name}\n", "```", command.format_help().rstrip(), "```"]
    parts += ["\n## Exit codes\n", EXIT_CODES]
    return "\n".join(parts) + "\n"


def _errors() -> str:
    rows = "".join(f"| `{code}` | {code.meaning} |\n" for code in ErrorCode)
    return f"# Errors\n\n{ERRORS}\n| code | what happened |\n|---|---|\n{rows}"


def main() -> int:
    """Write the pages, or with --check compare them; return 1 if one is stale."""
    stale = [name for name, text in pages().items() if not _is_current(name, text)]
    if "--check" in sys.argv[1:]:
        for name in stale:
            print(f"error: docs/{name} is stale, the declarations changed, run `make docs`", file=sys.stderr)
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, "utf8")
    return 0


def _is_current(name: str, text: str) -> bool:
    path = FOLDER / name
    return path.is_file() and path.read_text("utf8") == text


if __name__ == "__main__":
    sys.exit(main())

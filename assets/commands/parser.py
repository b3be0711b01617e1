"""A parser with errors of one line, which refuses empty and repeated values and suggests the nearest names."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from warehouse.errors import ErrorCode, UsageError


class _Given:
    """An argparse action that refuses an empty value, and a second value, which would silently replace the first."""

    option_strings: Sequence[str]
    may_be_repeated = False
    is_given = False

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: object, option: str | None = None
    ) -> None:
        """Store the value.

        Raises:
            argparse.ArgumentError: the value is empty, or a second one for an option that takes one.
        """
        assert isinstance(self, argparse.Action)
        if self.option_strings and isinstance(values, str) and not values.strip():
            raise argparse.ArgumentError(self, "it is given an empty text")
        if self.option_strings and self.is_given and not self.may_be_repeated:
            raise argparse.ArgumentError(self, "it is given twice, and takes one value")
        self.is_given = True
        super().__call__(parser, namespace, values, option)  # type: ignore[misc]


class _Store(_Given, argparse._StoreAction):  # noqa: SLF001 - argparse has no public name for it
    """`store`, the default action."""


class _StoreTrue(_Given, argparse._StoreTrueAction):  # noqa: SLF001
    """`store_true`."""


class _Append(_Given, argparse._AppendAction):  # noqa: SLF001
    """`append`."""

    may_be_repeated = True


class OneLineParser(argparse.ArgumentParser):
    """A parser with one-line errors: what, why, what to do. It parses one command line."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - argparse's own
        """Accept -5GB/s as a value, as argparse accepts -5: no option begins with a digit."""
        super().__init__(*arguments, **options)
        self._negative_number_matcher = re.compile(r"-\d")
        for name, action in ((None, _Store), ("store", _Store), ("store_true", _StoreTrue), ("append", _Append)):
            self.register("action", name, action)

    def error(self, message: str) -> NoReturn:
        """Print the usage error and exit with code 2."""
        what, is_split, why = (message + self._nearest(message)).partition(": ")
        told = (what, why) if is_split else ("this cannot be understood", message)
        self.exit(2, f"error: {UsageError(*told, f'see `{self.prog} --help`', code=ErrorCode.USAGE)}\n")

    def _nearest(self, message: str) -> str:
        """Return the nearest names of a command, value or option with a slip, as words that follow the message."""
        choice = re.match(r"argument [^:]*: invalid choice: '([^']*)' \(choose from (.*)\)", message)
        option = re.match(r"unrecognized arguments: (--[\w-]+)", message)
        if choice:
            near = difflib.get_close_matches(choice[1], re.findall(r"[\w.-]+", choice[2]), 1)
        elif option:
            near = difflib.get_close_matches(option[1], sorted(self.all_options()), 1)
        else:
            return ""
        return f", nearest is {near[0]}" if near else ""

    def all_options(self) -> set[str]:
        """Return the long options of this parser and of its commands."""
        options = {name for action in self._actions for name in action.option_strings if name.startswith("--")}
        groups = [action.choices for action in self._actions if isinstance(action, argparse._SubParsersAction)]  # noqa: SLF001
        return options.union(*(parser.all_options() for group in groups for parser in group.values()))

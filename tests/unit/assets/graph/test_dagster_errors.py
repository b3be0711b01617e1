"""What Dagster prints and raises by itself reaches a person in one line."""

from __future__ import annotations

import inspect
import sys

import dagster as dg
import pytest
from dagster._core.instance import types

from assets.graph.dagster_errors import ALSO_RAISED, in_our_words


def test_what_is_raised_is_not_printed_too(capsys: pytest.CaptureFixture[str]) -> None:
    """The line before an error about the run history is dropped, every other one is shown."""
    with in_our_words():
        sys.stderr.write(f"{ALSO_RAISED}: (sqlite3.OperationalError) disk I/O error\n[SQL: INSERT INTO event_logs]\n")
        sys.stderr.write("another word\n")
    sys.stderr.write("after it\n")
    assert capsys.readouterr().err == "another word\nafter it\n"


def test_the_words_are_those_of_dagster() -> None:
    """Dagster prints just these words and raises the error: another wording of a newer one fails here."""
    source = inspect.getsource(types)
    assert f'sys.stderr.write(f"{ALSO_RAISED}: {{e}}' in source


def test_an_interrupt_is_pythons() -> None:
    """Ctrl-C in a step is Ctrl-C."""
    with pytest.raises(KeyboardInterrupt), in_our_words():
        raise dg.DagsterExecutionInterruptedError

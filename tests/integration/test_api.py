"""`import kappa` as documented: docs/api.md, on the sample."""

from __future__ import annotations

import doctest
import subprocess
import sys
from collections.abc import Iterator

import duckdb
import pytest
from kappa_process import ROOT, Kappa
from refusals import refused

import kappa
import kappa.asking
import kappa.warehouse
from kappa import ErrorCode, KappaError, Warehouse

OPTIONS = doctest.ELLIPSIS


@pytest.fixture(scope="module")
def warehouse(sample_home: Kappa) -> Iterator[Warehouse]:
    """The sample's warehouse, opened by the API."""
    with kappa.open(sample_home.home) as opened:
        yield opened


def test_the_page_of_the_api_runs(sample_home: Kappa) -> None:
    """Each example of docs/api.md gives what the page shows."""
    page = str(ROOT / "docs" / "api.md")
    names = {"home": sample_home.home}
    result = doctest.testfile(page, module_relative=False, globs=names, optionflags=OPTIONS)
    assert result.failed == 0
    assert result.attempted > 10


PLAIN = """
import duckdb, sys
with duckdb.connect(sys.argv[1], read_only=True) as plain:
    for query in sys.argv[2:]:
        print(plain.sql(query).fetchall())
"""


def test_relations_give_what_duckdb_gives(sample_home: Kappa, warehouse: Warehouse) -> None:
    """The API's rows are those of a plain DuckDB client on the same file."""
    where = "WHERE workload = 'finqa' AND tokenizer = 'qwen3' AND counting = 'chat' AND reuse = 'history' ORDER BY ALL"
    # In a process of its own: one process opens a file with one configuration only.
    command = [sys.executable, "-c", PLAIN, str(sample_home.home / "warehouse.duckdb")]
    command += [f"FROM turns {where}", f"FROM percentiles_at(64) {where}"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    series = {"workload": "finqa", "tokenizer": "qwen3", "counting": "chat", "reuse": "history"}
    found = [warehouse.turns(**series), warehouse.percentiles(**series, block_tokens=64)]
    assert [str(relation.order("ALL").fetchall()) for relation in found] == printed
    assert all(len(line) > len("[]") for line in printed)


def test_it_reads_nothing_else_and_changes_nothing(warehouse: Warehouse) -> None:
    """No file of the machine is read and no table is changed through the API."""
    for query in ("FROM read_csv('/etc/passwd')", "DELETE FROM turns", "ATTACH 'other.duckdb'", ""):
        with pytest.raises((KappaError, duckdb.Error)):
            warehouse.sql(query).fetchall()


@pytest.mark.parametrize(
    ("ask", "code", "values"),
    [
        (lambda w: w.table("turn"), ErrorCode.UNKNOWN_NAME, ["table 'turn'"]),
        (lambda w: w.table("turns", wrokload="x"), ErrorCode.UNKNOWN_NAME, ["turns", "column 'wrokload'"]),
        (lambda w: w.turns(tokenizer="gpt2"), ErrorCode.UNKNOWN_NAME, ["tokenizer 'gpt2'"]),
        (lambda w: w.percentiles(counting="words"), ErrorCode.UNKNOWN_NAME, ["counting 'words'"]),
        (lambda w: w.percentiles(block_tokens=0), ErrorCode.USAGE, ["block_tokens 0"]),
    ],
)  # fmt: skip
def test_a_name_that_is_not_there_is_an_error(
    ask: object, code: ErrorCode, values: list[str], warehouse: Warehouse
) -> None:
    """A misspelt name is never an empty answer."""
    with refused(code, *values):
        ask(warehouse)  # type: ignore[operator]


def test_import_kappa_is_quick() -> None:
    """`import kappa` loads none of the libraries that take seconds."""
    slow = ("dagster", "datasets", "transformers", "seaborn", "duckdb")
    code = f"import sys, kappa; print([name for name in {slow} if name in sys.modules])"
    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"

"""`kappa run` and `kappa refresh` from the Hub to the published generation, with totals counted by hand."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from hub_stand_in import HubStandIn, sha256
from kappa_process import ROOT, SECRET, Kappa, errors_of, files_below
from tiny_sets import FINQA, RECORDS, REJECTS, SHAREGPT, TOTALS, all_sets

from warehouse.declared.fields import TOKENIZER_COUNTINGS
from warehouse.declared.tables import TABLES
from warehouse.home.home import Home

SMALL = ("--workload", "finqa", "--tokenizer", "qwen3")
TIMED = ("generations/", "sources/")


def test_totals_are_those_counted_by_hand(full: Kappa) -> None:
    """Sessions, turns, sum of K and sum of T of the four sets by both tokenizers."""
    query = """SELECT workload, tokenizer, sessions, turns, cached_tokens_sum, prefill_tokens_sum
               FROM summary WHERE counting = 'text'"""
    # Each number is added up in tiny_sets.py.
    assert {(row[0], row[1]): row[2:] for row in full.rows(query)} == TOTALS


def test_turns_of_a_chat(full: Kappa) -> None:
    """K, T, output and index of chat `d` by both tokenizers, and of `c` whose first turn is empty."""
    query = """SELECT session_id, tokenizer, turn_index, cached_tokens, prefill_tokens, output_tokens, is_first_turn
               FROM turns WHERE counting = 'text' AND workload = 'sharegpt' AND session_id IN ('c', 'd') ORDER BY ALL"""
    # d is h "123456" (2 or 6), g 2, h "789" (1 or 3): K = 2 + 2 or 6 + 2. c is h0 g2 h3 g1: turn 0 is rejected.
    assert full.rows(query) == [
        ("c", "llama-3.1", 1, 2, 3, 1, False),
        ("c", "qwen3", 1, 2, 3, 1, False),
        ("d", "llama-3.1", 0, 0, 2, 2, True),
        ("d", "llama-3.1", 1, 4, 1, None, False),
        ("d", "qwen3", 0, 0, 6, 2, True),
        ("d", "qwen3", 1, 8, 3, None, False),
    ]


def test_turns_by_the_chat_template(full: Kappa) -> None:
    """The two conversations of the split edition as a server sees them, by the templates of both models."""
    query = """SELECT tokenizer, session_id, cached_tokens, prefill_tokens, output_tokens FROM turns
               WHERE counting = 'chat' AND reuse = 'history' AND workload = 'sharegpt-v3'
               ORDER BY tokenizer, session_id, turn_index"""
    # llama-3.1: 26 for the date, 4 + 1 + n for a message of n words, 4 for the reply's header.
    # x: 26+8+4 = 38; then K = 38 + reply 2 + end 1 = 41 of 26+8+7+6+4 = 51. y: 26+7+4 = 37.
    # qwen3: 4 + 1 + n for a message, 3 for the header. x: 8+3 = 11; then K = 11+2+1 = 14 of 8+7+6+3 = 24. y: 7+3 = 10.
    assert full.rows(query) == [
        ("llama-3.1", "x", 0, 38, 3),
        ("llama-3.1", "x", 41, 10, 5),
        ("llama-3.1", "y", 0, 37, 2),
        ("qwen3", "x", 0, 11, 3),
        ("qwen3", "x", 14, 10, 5),
        ("qwen3", "y", 0, 10, 2),
    ]


def test_every_declared_table_is_in_database_and_lake(full: Kappa) -> None:
    """Each declared table has its columns in DuckDB, and each stored one has the same number of rows in Parquet."""
    # No workload here has times and identities of its own or a server's report, and no price is known.
    empty = {"log_requests", "reuse_distances", "reuse_times", "reuse_reported", "fleet"}
    for name, table in TABLES.items():
        names = [row[0] for row in full.rows(f"DESCRIBE {name}")]
        assert names == list(table.names), name
        stored = full.rows(f"SELECT count(*) FROM {name}")[0][0]  # noqa: S608 - declared names
        assert stored > 0 or name in empty, name
        if not table.is_view:
            files = str(full.home / "lake" / name / "**" / "*.parquet")
            assert duckdb.sql(f"SELECT count(*) FROM read_parquet('{files}')").fetchall()[0][0] == stored  # noqa: S608


def test_rejects_reconcile_with_records(full: Kappa) -> None:
    """What is left out has its reason, and records read are those kept and those rejected."""
    found = full.rows("SELECT workload, level, reason, count(*) FROM rejects GROUP BY ALL")
    assert {row[:3]: row[3] for row in found} == REJECTS
    records = dict(full.rows("SELECT workload, sum(records)::BIGINT FROM sources GROUP BY ALL"))
    # sharegpt 5 + 4, sharegpt-v3 5, narrativeqa 2 + 1 + 1, finqa 1 + 2 + 1
    assert records == RECORDS


def test_sources_name_commit_and_sha256(full: Kappa, hub: HubStandIn) -> None:
    """Each used file, and no other, stands in `sources` with its repository's commit, its size and its sha256."""
    expected = {
        (repo_id, next(iter(hub.repositories["datasets", repo_id])), path, len(body), sha256(body), False)
        for repo_id, files in all_sets().items()
        for path, body in files.items()
        if path.endswith((".json", ".parquet")) and not path.startswith("old/")
    }
    assert set(full.rows("SELECT repo_id, revision, path, bytes, sha256, is_sample FROM sources")) == expected


def test_gated_tokenizer_comes_from_the_open_mirror(full: Kappa) -> None:
    """The official Llama repository is gated, so the file is taken from the mirror, and the row says so."""
    found = dict(full.rows("SELECT tokenizer, repo_id FROM tokenizers"))
    assert found == {"llama-3.1": "NousResearch/Meta-Llama-3.1-8B-Instruct", "qwen3": "Qwen/Qwen3-8B"}


def test_report_and_output_say_where_to_look(full: Kappa, output: str) -> None:
    """There is a page and a Markdown file, the output names the page, and no data set is called a sample."""
    page = full.home / "report" / "report.html"
    assert page.is_file()
    assert str(page) in output
    assert list((full.home / "report").glob("*.md"))
    assert "generated text" not in output
    assert full.rows("SELECT DISTINCT is_sample FROM summary") == [(False,)]


def test_a_good_run_tells_progress_and_nothing_else(output: str) -> None:
    """Standard error of a run without trouble holds lines of kappa only: no warnings of libraries."""
    lines = output.splitlines()
    assert [line for line in lines if "Warning" in line or "Traceback" in line] == []
    sentence = "kappa: finqa: 4 records where the published set has 7,437 (only a part was counted)"
    # One check that fails is one line
    assert [line for line in lines if "finqa: " in line and "where the published set" in line] == [sentence]


def test_no_text_and_no_token_in_what_is_published(full: Kappa, output: str) -> None:
    """No message text reaches a generation, and HF_TOKEN stands nowhere below the home."""
    assert [path for path, body in full.state().items() if b"the the" in body] == []
    assert [path for path, body in files_below(full.home).items() if SECRET.encode() in body] == []
    assert SECRET not in output


def test_second_run_changes_nothing(full: Kappa, hub: HubStandIn, tmp_path: Path) -> None:
    """The same revisions give the same generation and the same products, and no file is fetched again."""
    kappa = full.twin(tmp_path / "home")
    before, products = kappa.state(), kappa.products()
    process = kappa("run")
    assert process.returncode == 0, process.stderr
    assert kappa.generation == 1
    assert kappa.state() == before
    assert kappa.products() == products
    assert hub.asked("GET /datasets") == []


def test_check_tells_only_of_files_that_are_used(full: Kappa, hub: HubStandIn, tmp_path: Path) -> None:
    """Exit code 0 without a change, 0 where only an unused file changed, 10 where a used one did; nothing is built."""
    kappa = full.twin(tmp_path / "home")
    assert kappa("refresh", "--check").returncode == 0
    files = all_sets()[SHAREGPT]
    hub.commit(SHAREGPT, {**files, "old/sg_52k.json": b"[]", "README.md": b"# new\n"})
    assert kappa("refresh", "--check").returncode == 0
    hub.commit(SHAREGPT, {**files, "sg_90k_part2.json": b"[]"})
    process = kappa("refresh", "--check")
    assert process.returncode == 10, process.stderr
    assert f"{SHAREGPT}" in process.stdout
    assert "sg_90k_part2.json" in process.stdout
    assert kappa.generation == 1


def test_refresh_rebuilds_what_depends_on_the_change(
    full: Kappa, hub: HubStandIn, changed_finqa: Callable[[], str], tmp_path: Path
) -> None:
    """One changed file gives a new generation: one workload is read and counted again, three are not.

    A reader that had the old database open keeps its snapshot, and does not hold the refresh up.
    """
    kappa = full.twin(tmp_path / "home")
    products = kappa.products()
    commit = changed_finqa()
    query = """SELECT tokenizer, cached_tokens_sum, prefill_tokens_sum FROM summary
               WHERE counting = 'text' AND workload = 'finqa' ORDER BY 1"""
    with duckdb.connect(str(kappa.home / "warehouse.duckdb"), read_only=True) as reader:
        process = kappa("refresh")
        assert process.returncode == 0, process.stderr
        assert reader.sql(query).fetchall() == [("llama-3.1", 21, 7), ("qwen3", 21, 7)]
    assert kappa.generation == 2
    # The question of 2 tokens is one of 3 now: T = 3 + 4 + 1, K as before.
    assert kappa.rows(query) == [("llama-3.1", 21, 8), ("qwen3", 21, 8)]
    assert kappa.rows("SELECT DISTINCT revision FROM sources WHERE workload = 'finqa'") == [(commit,)]
    renewed = {name for name, identity in kappa.products().items() if products.get(name) != identity}
    steps = {name for name in renewed if not name.startswith(("tables/", "warehouse", "report"))}
    pairs = [f"finqa/{tokenizer}" for tokenizer in ("llama-3.1", "qwen3")]
    assert steps == {
        "raw/finqa",
        "conversations/finqa",
        *(f"token_counts/{pair}" for pair in pairs),
        *(
            f"{kind}/{pair}/{counting}/history"
            for kind in ("turns", "reuse_distances")
            for pair in pairs
            for counting in TOKENIZER_COUNTINGS
        ),
        *(f"turns/{pair}/chat/prefix" for pair in pairs),
    }
    assert "tables/kappa_crit" not in renewed
    assert "tables/models" not in renewed
    fetched = {line.rsplit("/", 1)[1] for line in hub.asked("GET /datasets")}
    assert fetched == {"train.json"}


def test_a_changed_file_that_is_not_used_rebuilds_no_counts(copy: Kappa, hub: HubStandIn) -> None:
    """A new commit of a readme gives a new revision in `sources`, and no file is read or counted again."""
    products = copy.products()
    commit = hub.commit(FINQA, {**all_sets()[FINQA], "README.md": b"# new\n"})
    process = copy("refresh")
    assert process.returncode == 0, process.stderr
    assert copy.rows("SELECT DISTINCT revision FROM sources") == [(commit,)]
    renewed = {name for name, identity in copy.products().items() if products.get(name) != identity}
    assert not {name for name in renewed if name.startswith(("conversations/", "token_counts/", "turns/"))}


@pytest.fixture(scope="module")
def second(small: Kappa, _served: HubStandIn, tmp_path_factory: pytest.TempPathFactory) -> Kappa:
    """The small home built again, in a fresh home and cache, from a Hub that was busy and cut a body."""
    folder = tmp_path_factory.mktemp("second")
    kappa = Kappa(folder / "home", folder / "cache", small.endpoint)
    _served.faults.busy, _served.faults.cut, _served.faults.only = 3, 1, FINQA
    process = kappa("run", *SMALL)
    assert process.returncode == 0, process.stderr
    assert (_served.faults.busy, _served.faults.cut) == (0, 0)
    return kappa


@pytest.mark.usefixtures("hub")
def test_same_inputs_give_the_same_bytes(small: Kappa, second: Kappa) -> None:
    """Two homes built apart have byte-identical lakes but for times; a busy server and a cut body change nothing."""
    one, other = (
        {path.removeprefix("lake/"): body for path, body in kappa.state().items() if path.startswith("lake/")}
        for kappa in (small, second)
    )
    assert one.keys() == other.keys()
    differ = {path for path, body in one.items() if other[path] != body}
    assert {path for path in differ if not path.startswith(TIMED)} == set()
    columns = ", ".join(name for name in TABLES["sources"].names if name != "fetched_at")
    query = f"SELECT {columns} FROM sources ORDER BY ALL"  # noqa: S608 - declared names
    assert small.rows(query) == second.rows(query)


def test_a_home_of_an_odd_name(small: Kappa, hub: HubStandIn, tmp_path: Path) -> None:
    """Line breaks, quotes, signs of patterns and of the terminal are a name like any; Dagster keeps its settings."""
    del hub
    kappa = Kappa(tmp_path / "a\nb'c\"d*e[f]{g,h}\x1b\u202e;#" / "home", small.hf_home, small.endpoint)
    process = kappa("run", *SMALL, env={"HOME": str(tmp_path)})
    assert (process.returncode, errors_of(process)) == (0, [])
    assert kappa.generation == 1
    # Where Dagster's telemetry is on it keeps an id there.
    assert list(tmp_path.glob(".dagster*")) == []


def test_offline_the_cache_is_enough(second: Kappa) -> None:
    """With HF_HUB_OFFLINE the files of the cache are used, and nothing changes."""
    before = second.state()
    process = second("run", *SMALL, env={"HF_HUB_OFFLINE": "1", "HF_ENDPOINT": "http://127.0.0.1:9"})
    assert process.returncode == 0, process.stderr
    assert second.state() == before


def test_a_busy_server_does_not_change_where_a_tokenizer_comes_from(
    copy: Kappa, hub: HubStandIn, tmp_path: Path
) -> None:
    """A 503 and a cut body for a tokenizer are tried again: the same inputs, in another HF_HOME, change nothing."""
    hub.faults.busy, hub.faults.cut, hub.faults.only = 1, 1, "Qwen/Qwen3-8B"
    process = Kappa(copy.home, tmp_path / "cache", copy.endpoint)("run", *SMALL)
    assert process.returncode == 0, process.stderr
    assert (hub.faults.busy, hub.faults.cut) == (0, 0)
    assert copy.rows("SELECT repo_id FROM tokenizers") == [("Qwen/Qwen3-8B",)]
    assert copy.generation == 1


def test_one_workload_joins_what_is_there(copy: Kappa) -> None:
    """A run of another workload adds to the home: the generation holds both."""
    process = copy("run", "--workload", "sharegpt-v3", "--tokenizer", "qwen3")
    assert process.returncode == 0, process.stderr
    found = copy.rows("SELECT DISTINCT workload, tokenizer FROM summary ORDER BY 1")
    assert found == [("finqa", "qwen3"), ("sharegpt-v3", "qwen3")]
    assert FINQA in {row[0] for row in copy.rows("SELECT repo_id FROM sources")}


def test_report_again_changes_no_table(copy: Kappa) -> None:
    """`kappa report` draws the page anew in the same generation and leaves database and lake as they are."""
    before = copy.state()
    page = copy.home / "report" / "report.html"
    page.unlink()
    page.write_text("spoilt")
    process = copy("report")
    assert process.returncode == 0, process.stderr
    after = copy.state()
    assert {path for path, body in before.items() if after.get(path) != body} == set()
    assert after.keys() == before.keys()


def test_a_pipe_that_closes_early(copy: Kappa) -> None:
    """`kappa sql ... | head -1` shows one line and no traceback."""
    command = f"{sys.executable} -m assets sql --format csv 'FROM range(1000000)' | head -1"
    process = subprocess.run(  # noqa: S602 - a pipe of the shell is what is tested
        command, shell=True, cwd=ROOT, env=copy.environment(), capture_output=True, text=True, check=True
    )
    assert process.stdout == "range\n"
    assert process.stderr == ""


def test_generations_name_the_code_that_counted(copy: Kappa) -> None:
    """A series that an older kappa counted keeps its code_version, or is left out, when another workload is run."""
    staging = Home(copy.home).staging(is_sample=False)
    for name in staging.names("turns"):
        # What an older kappa leaves: the same product under an identity of its code.
        folder = staging.require(name).folder
        folder.rename(folder.with_name("0" * 32))
        (folder.parent / "HEAD").write_text("0" * 32)
    process = copy("run", "--workload", "sharegpt-v3", "--tokenizer", "qwen3")
    assert process.returncode == 0, process.stderr
    query = "SELECT DISTINCT workload, code_version FROM generations WHERE generation = 2"
    versions = dict(copy.rows(query))
    assert versions.get("finqa") != versions["sharegpt-v3"]

"""A trace and a usage log of the user, from their files to the tables: no tokenizer, nothing lost."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import kappa
from kappa import CritQuestion, ErrorCode, KappaError
from pipelines.fetch.hub import SampleHub
from pipelines.hardware.questions.answer import WorkloadAnswer
from pipelines.steps.conversations import read_conversations
from pipelines.steps.fetching import fetch_raw
from pipelines.steps.product_names import turns_name
from pipelines.steps.reuse.logged_turns import logged_turns, requests_of
from pipelines.steps.series import series
from pipelines.steps.tables import STAGED, read_table, stage_table
from pipelines.workloads.known import known_workload
from warehouse.checks.tables import unbalanced, violations
from warehouse.checks.turns import turn_violations
from warehouse.database.engine import fetch, read_only
from warehouse.declared.tables import TABLES

TRACE = [
    {"timestamp": 2000, "input_length": 1536, "output_length": 5, "hash_ids": [1, 9, 3]},
    {"timestamp": 1000, "input_length": 1536, "output_length": None, "hash_ids": [1, 2, 3]},
    {"timestamp": 1500, "input_length": 20, "output_length": 5, "hash_ids": [1, 2]},
]
USAGE = [
    {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60}, "session_id": "s"},
    {"prompt_tokens": 10, "completion_tokens": 7, "prompt_tokens_details": None, "session_id": "s"},
    {"prompt_tokens": 10, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 11}, "session_id": "s"},
]
PREFIX, REPORTED = (
    turns_name("trace", "logged", "logged", "prefix"),
    turns_name("served", "logged", "logged", "reported"),
)


def made(lab: Any, name: str, form: str, records: list[Any]) -> None:  # noqa: ANN401 - conftest's Lab
    """Declare a file as a workload and run its steps."""
    file, home = Path(lab.root) / f"{name}.jsonl", Path(lab.home.path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(one) + "\n" for one in records), "utf8")
    (home / "workloads").mkdir(exist_ok=True)
    (home / "workloads" / f"{name}.toml").write_text(f'format = "{form}"\npath = {json.dumps(str(file))}\n', "utf8")
    workload = known_workload(home, name)
    fetch_raw(lab.staging, workload, SampleHub(lab.root, "r1"))
    read_conversations(lab.staging, workload)
    logged_turns(lab.staging, workload)


@pytest.fixture
def both(lab: Any) -> Any:  # noqa: ANN401
    """Return the steps with a trace and a usage log."""
    made(lab, "trace", "trace", TRACE)
    made(lab, "served", "usage", USAGE)
    return lab


def test_from_files_to_tables(both: Any) -> None:  # noqa: ANN401
    """Totals by hand, every table as declared, and what was left out with its reason."""
    assert [part.name for part in series(both.staging)] == [REPORTED, PREFIX]
    tables = {name: read_table(stage_table(both.staging, name)) for name in STAGED}
    assert {name: found for name, table in tables.items() if (found := violations(TABLES[name], table))} == {}
    names = (
        "workload",
        "tokenizer",
        "counting",
        "reuse",
        "turns",
        "sessions",
        "cached_tokens_sum",
        "prefill_tokens_sum",
    )
    # trace: [1 2 3] first, then [1 9 3]: K = 0 + 512; usage: K = 60 + 0, T = 40 + 10
    assert [tuple(row[name] for name in names) for row in tables["summary"].to_pylist()] == [
        ("served", "logged", "logged", "reported", 2, 1, 60, 50),
        ("trace", "logged", "logged", "prefix", 2, 2, 512, 2560),
    ]
    rejects = [(row["workload"], row["record"], row["level"], row["reason"]) for row in tables["rejects"].to_pylist()]
    assert rejects == [("served", 2, "record", "bad_number"), ("trace", 2, "record", "hash_mismatch")]
    for name in ("trace", "served"):
        meta = both.staging.require(f"conversations/{name}").meta
        assert (meta["records"], meta["kept"], meta["rejected"]) == ({f"{name}.jsonl": 3}, 2, 1)
        assert unbalanced(meta["records"], meta["kept"], meta["rejected"]) == []
    assert len(both.staging.require("conversations/served").meta["notes"]) == 1
    assert tables["tokenizers"].num_rows == 0
    assert {row["tokenizer"] for row in tables["boundness"].to_pylist()} == {"logged"}


def test_every_headline_model_is_a_proxy(both: Any) -> None:  # noqa: ANN401
    """A log names no vocabulary: each headline model is joined, and the row says that its tokens are others'."""
    rows = read_table(stage_table(both.staging, "boundness")).to_pylist()
    headlines = {row["model"] for row in read_table(stage_table(both.staging, "headlines")).to_pylist()} - {None}
    known = {
        row["model"] for row in read_table(stage_table(both.staging, "kappa_crit")).to_pylist() if row["kappa_crit"]
    }
    assert {row["model"] for row in rows} >= headlines & known
    assert {row["model"] for row in rows} <= headlines
    assert {row["is_tokenizer_proxy"] for row in rows} == {True}


def test_the_rules_hold(both: Any) -> None:  # noqa: ANN401
    """K + T = n and T >= 1 by the checks of the graph; a first turn may have K, which is no rule of `prefix`."""
    for name in (PREFIX, REPORTED):
        product = both.staging.require(name)
        table = TABLES["turns"].conform(read_turns(product.file("turns.parquet")))
        assert violations(TABLES["turns"], table) == []
        found = turn_violations(table, "requests", "logged", product.meta["reuse"])
        assert found == {rule: [] for rule in ("finite", "kappa_times_t", "cached_below_context", "turn_index")}


def read_turns(path: Path) -> Any:  # noqa: ANN401
    """Return the rows of a file of turns."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - as in the steps

    return pq.read_table(path)


def test_requests(both: Any) -> None:  # noqa: ANN401
    """What a cache is asked: blocks in order of service as dense codes; a usage log has none."""
    of = requests_of(both.staging, "trace")
    assert of is not None
    assert (of.block_tokens, of.offsets.tolist(), of.ids.tolist()) == (512, [0, 3, 6], [0, 1, 2, 0, 3, 2])
    assert of.arrival_s is not None
    assert of.arrival_s.tolist() == [1.0, 2.0]
    assert (of.has_output.tolist(), of.output_tokens.tolist()) == ([False, True], [0, 5])
    served = requests_of(both.staging, "served")
    assert served is not None
    assert (served.block_tokens, len(served.ids), served.arrival_s) == (0, 0, None)


def test_asked(both: Any) -> None:  # noqa: ANN401
    """A question takes the only series of a log, as a proxy, and the API reads by the name of reuse."""
    both.warehouse()
    asked = CritQuestion(model="qwen3-8b", workload="trace", accelerator="h100-sxm", link="pcie5-x16", cost_model="2n")
    for question in (asked, replace(asked, reuse="prefix"), replace(asked, counting="logged")):
        with kappa.open(both.home.path) as warehouse:
            (answer,) = [one for one in warehouse.crit(question) if one.basis == "physical"]
        assert isinstance(answer, WorkloadAnswer)
        assert (answer.tokenizer, answer.counting, answer.reuse, answer.turns) == ("logged", "logged", "prefix", 2)
        assert answer.is_tokenizer_proxy
    with kappa.open(both.home.path) as warehouse:
        with pytest.raises(KappaError) as refused:
            warehouse.crit(replace(asked, reuse="history"))
        assert refused.value.code == ErrorCode.NOT_BUILT
        assert warehouse.turns(reuse="reported").fetchall()[0][:4] == ("served", "logged", "logged", "reported")
        with pytest.raises(KappaError) as unknown:
            warehouse.turns(reuse="history")
        assert unknown.value.code == ErrorCode.UNKNOWN_NAME


def test_a_changed_file(both: Any) -> None:  # noqa: ANN401
    """Turns of the older file are left out until they are made again."""
    made(both, "trace", "trace", TRACE[:2])
    assert [part.name for part in series(both.staging)] == [REPORTED, PREFIX]
    file = Path(both.root) / "trace.jsonl"
    file.write_text(json.dumps(TRACE[0]), "utf8")
    workload = known_workload(Path(both.home.path), "trace")
    fetch_raw(both.staging, workload, SampleHub(both.root, "r1"))
    read_conversations(both.staging, workload)
    assert [part.name for part in series(both.staging)] == [REPORTED]


def test_published(both: Any) -> None:  # noqa: ANN401
    """The database has both, by name of reuse, and files of the lake carry it."""
    both.warehouse()
    with read_only(both.home.database()) as connection:
        found = fetch(
            connection, "SELECT workload, reuse, count(*) AS n FROM turns GROUP BY ALL ORDER BY ALL"
        ).to_pylist()
    assert found == [
        {"workload": "served", "reuse": "reported", "n": 2},
        {"workload": "trace", "reuse": "prefix", "n": 2},
    ]
    lake = sorted(path.name for path in (both.home.current / "lake" / "turns").iterdir())
    assert lake == ["turns-g1-served-logged-logged-reported.parquet", "turns-g1-trace-logged-logged-prefix.parquet"]

"""What of a home folder becomes a trace: the series that is asked for, and what has no blocks is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from refusals import refused

from pipelines.exporting.question import ExportQuestion
from pipelines.fetch.hub import SampleHub
from pipelines.steps.conversations import read_conversations
from pipelines.steps.fetching import fetch_raw
from pipelines.steps.reuse.exported import exported
from pipelines.steps.reuse.logged_turns import logged_turns
from pipelines.workloads.known import known_workload
from warehouse.errors import ErrorCode, UsageError

TRACE = [{"timestamp": n, "input_length": 1024, "output_length": None, "hash_ids": [7, 8 + n]} for n in range(2)]
USAGE = [{"prompt_tokens": 100, "cached_tokens": 60}]
SAID = [("human", 40), ("gpt", 24), ("human", 8), ("gpt", 8)]
CHAT = [{"id": "c", "conversations": [{"from": role, "value": "x" * tokens} for role, tokens in SAID]}]


@pytest.fixture
def staged(lab: Any) -> Any:  # noqa: ANN401 - conftest's Lab
    """Return the steps with a trace, a usage log, and a chat whose tokens are its characters."""
    for name, form, records in (("blocks", "trace", TRACE), ("served", "usage", USAGE)):
        file, home = Path(lab.root) / f"{name}.jsonl", Path(lab.home.path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(one) + "\n" for one in records), "utf8")
        (home / "workloads").mkdir(exist_ok=True)
        (home / "workloads" / f"{name}.toml").write_text(f'format = "{form}"\npath = {json.dumps(str(file))}\n', "utf8")
        workload = known_workload(home, name)
        fetch_raw(lab.staging, workload, SampleHub(lab.root, "r1"))
        read_conversations(lab.staging, workload)
        logged_turns(lab.staging, workload)
    lab.put("sharegpt", CHAT, [])
    lab.turns("sharegpt")
    return lab


def test_blocks_of_a_log(staged: Any) -> None:  # noqa: ANN401
    """Its own blocks at its own size."""
    trace = exported(staged.staging, ExportQuestion("blocks"))
    assert (trace.series, trace.block_tokens) == (("blocks", "logged", "logged", "prefix"), 512)
    rows = [json.loads(line) for line in trace.lines]
    # 7, 8 and 7, 9: ordinals 0, 1 and 0, 2; K = 0 and 512 of 2 x 1,024
    assert [row["hash_ids"] for row in rows] == [[0, 1], [0, 2]]
    assert (trace.written.cached_tokens, trace.written.prefill_tokens) == (512, 1536)


def test_turns_of_a_chat(staged: Any) -> None:  # noqa: ANN401
    """By `history` at the form's size, or at the one that is asked for."""
    trace = exported(staged.staging, ExportQuestion("sharegpt", form="bailian"))
    assert (trace.series[3], trace.block_tokens) == ("history", 16)
    rows = [json.loads(line) for line in trace.lines]
    # first: n = 40, two whole blocks, with the reply 64: four; second: K = 64, n = 72, with the reply 80: five
    assert [row["hash_ids"] for row in rows] == [[0, 1], [0, 1, 2, 3]]
    assert [row.get("reply_hash_ids") for row in rows] == [[2, 3], [4]]
    eights = exported(staged.staging, ExportQuestion("sharegpt", block_tokens=8))
    # K = 64 in blocks of 8; 40 + 8 computed
    assert [json.loads(line)["block_size"] for line in eights.lines] == [8, 8]
    assert (eights.written.cached_tokens, eights.written.prefill_tokens) == (64, 48)


@pytest.mark.parametrize(
    ("question", "code", "seen"),
    [
        (ExportQuestion("served"), ErrorCode.NOTHING_FITS, "reported"),
        (ExportQuestion("blocks", reuse="history"), ErrorCode.NOT_BUILT, "logged logged prefix"),
        (ExportQuestion("sharegpt", tokenizer="nobody"), ErrorCode.NOT_BUILT, "nobody"),
        (ExportQuestion("block"), ErrorCode.NOT_BUILT, "blocks"),
        (ExportQuestion("blocks", form="colour"), ErrorCode.USAGE, "mooncake"),
        (ExportQuestion("blocks", block_tokens=0), ErrorCode.USAGE, "0"),
        (ExportQuestion("blocks", block_tokens=500), ErrorCode.USAGE, "512"),
    ],
)
def test_what_is_refused(staged: Any, question: ExportQuestion, code: ErrorCode, seen: str) -> None:  # noqa: ANN401
    """One error that says what there is."""
    kind = UsageError if code is ErrorCode.USAGE else Exception
    with refused(code, seen) as caught:
        exported(staged.staging, question)
    assert isinstance(caught.value, kind)

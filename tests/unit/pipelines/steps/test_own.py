"""An own workload goes through the steps as a built-in one does: the same turns, its own identities, no text kept."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.fetch.hub import SampleHub
from pipelines.sessions.messages import TEXTS
from pipelines.steps import counts, fetching
from pipelines.steps.chat_turns import count_chat_turns
from pipelines.steps.conversations import read_conversations
from pipelines.steps.forgetting import forget_texts
from pipelines.steps.inputs import conversations_inputs
from pipelines.steps.product_names import conversations_name
from pipelines.steps.series import series
from pipelines.steps.text_turns import derive_turns
from pipelines.steps.turn_products import TURNS_FILE
from pipelines.vocab.files import fetch_tokenizer
from pipelines.vocab.specs import tokenizer_spec
from pipelines.workloads.declaration import Workload
from pipelines.workloads.known import known_workload
from pipelines.workloads.own.declared import Declaration, path_of, write_declaration
from pipelines.workloads.sets import workload
from pipelines.workloads.sets.sharegpt import sample
from warehouse.home.products import identity_of

NAMES = ["session_id", "turn_index", "cached_tokens", "prefill_tokens", "output_tokens"]


def declared(lab: Any, source: Path, **given: Any) -> Workload:  # noqa: ANN401 - the lab is a fixture's
    """Declare a source as `mine`."""
    declaration = Declaration(**{"format": "sharegpt", "path": str(source), **given})
    write_declaration(lab.home.path, "mine", declaration)
    return known_workload(lab.home.path, "mine")


def turns(lab: Any, chosen: Workload) -> pa.Table:  # noqa: ANN401
    """Run the steps of a workload with one token a character; return its turns."""
    fetching.fetch_raw(lab.staging, chosen, SampleHub(lab.root, "r1"))
    read_conversations(lab.staging, chosen)
    fetching.fetch_tokenizer_file(lab.staging, tokenizer_spec("llama-3.1"), offline=True)
    counts.count_tokens(lab.staging, chosen, "llama-3.1")
    return pq.read_table(derive_turns(lab.staging, chosen, "llama-3.1").file(TURNS_FILE))


def test_the_sample_of_sharegpt_as_ones_own(lab: Any, tmp_path: Path) -> None:  # noqa: ANN401
    """The same files, declared by their folder, give the turns of the built-in workload row for row."""
    for name, content in sample(Random(1)):
        for folder in (tmp_path / "mine", lab.root / workload("sharegpt").repo_id):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
    own, built_in = turns(lab, declared(lab, tmp_path / "mine")), turns(lab, workload("sharegpt"))
    assert own.num_rows > 100
    assert own.select(NAMES).equals(built_in.select(NAMES))
    assert [part.meta["workload"] for part in series(lab.staging)] == ["sharegpt", "mine"]


def test_a_changed_file_and_a_changed_field_are_another_source(lab: Any, tmp_path: Path) -> None:  # noqa: ANN401
    """Content and declaration decide what is read; a removed declaration leaves the tables."""
    path = tmp_path / "log.jsonl"
    record: dict[str, Any] = {"id": "a", "name": "b", "conversations": [{"from": "human", "value": "abc"}]}
    path.write_text(json.dumps(record), "utf8")
    # T = 3 characters
    assert turns(lab, declared(lab, path)).select(NAMES[:4]).to_pylist() == [
        {"session_id": "a", "turn_index": 0, "cached_tokens": 0, "prefill_tokens": 3}
    ]
    assert turns(lab, declared(lab, path, fields={"session": "name"}))["session_id"].to_pylist() == ["b"]
    record["conversations"][0]["value"] = "abcd"
    path.write_text(json.dumps(record), "utf8")
    assert turns(lab, declared(lab, path))["prefill_tokens"].to_pylist() == [4]
    path_of(lab.home.path, "mine").unlink()
    assert series(lab.staging) == []


def test_texts_go_and_are_read_again(lab: Any, tmp_path: Path) -> None:  # noqa: ANN401
    """After counting no text is in staging, and nothing is done again; another tokenizer reads the source anew."""
    path = tmp_path / "log.jsonl"
    record = {"id": "a", "conversations": [{"from": "human", "value": "a secret"}], "tools": []}
    path.write_text(json.dumps(record), "utf8")
    mine = declared(lab, path, keep_text=False)
    turns(lab, mine)
    kept = lab.staging.require(conversations_name("mine"))
    assert forget_texts(lab.staging) == ["mine"]
    assert forget_texts(lab.staging) == []
    assert not kept.file(TEXTS).exists()
    assert not any(b"a secret" in file.read_bytes() for file in lab.staging.root.rglob("*") if file.is_file())
    assert turns(lab, mine)["prefill_tokens"].to_pylist() == [8]
    assert not kept.file(TEXTS).exists()
    fetching.fetch_tokenizer_file(lab.staging, tokenizer_spec("qwen3"), offline=True)
    counts.count_tokens(lab.staging, mine, "qwen3")
    assert kept.file(TEXTS).exists()


def test_the_reader_of_a_format_is_its_own(lab: Any, tmp_path: Path) -> None:  # noqa: ANN401
    """What is read depends on the format's code and fields, and on no other format's."""
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"id": "a", "conversations": [{"from": "human", "value": "x"}]}), "utf8")
    fetching.fetch_raw(lab.staging, declared(lab, path), SampleHub(lab.root, "r1"))
    inputs = conversations_inputs(lab.staging.require("raw/mine").meta)
    assert "pipelines.workloads.formats.sharegpt" in inputs["reader"]
    assert "pipelines.workloads.formats.documents" not in inputs["reader"]
    assert identity_of(**inputs) == read_conversations(lab.staging, known_workload(lab.home.path, "mine")).identity


def test_tools_by_the_template(lab: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401
    """By chat a conversation with a call has its template's tokens; what Llama's refuses is a reject of its turns."""
    monkeypatch.undo()
    call = {"function": {"name": "f", "arguments": "{}"}}
    asked, told = {"role": "user", "content": "x"}, {"role": "tool", "content": "y"}
    calling, reply = {"role": "assistant", "content": None}, {"role": "assistant", "content": "z"}
    path = tmp_path / "log.jsonl"
    chats = [[asked, {**calling, "tool_calls": [call] * n}, told, reply] for n in (1, 2)]
    path.write_text("\n".join(json.dumps({"messages": chat}) for chat in chats), "utf8")
    mine = declared(lab, path, format="messages")
    monkeypatch.setattr(
        fetching,
        "fetch_tokenizer",
        lambda spec, folder, **_: fetch_tokenizer(spec, folder, offline=True),
    )
    turns(lab, mine)
    product = count_chat_turns(lab.staging, mine, "llama-3.1")
    rows = pq.read_table(product.file(TURNS_FILE)).select(NAMES).to_pylist()
    assert [(row["session_id"], row["turn_index"]) for row in rows] == [("0", 0), ("0", 1), ("1", 0)]
    # 26 of the opening, 4 + 2 of the request, 4 of the header; then the call as it was written and its end of turn
    assert rows[0]["prefill_tokens"] == 26 + 6 + 4
    assert rows[1]["cached_tokens"] == rows[0]["prefill_tokens"] + rows[0]["output_tokens"]
    rejects = pq.read_table(product.file("rejects.parquet")).to_pylist()
    assert [(row["session_id"], row["turn_index"], row["reason"]) for row in rejects] == [("1", 1, "template")]

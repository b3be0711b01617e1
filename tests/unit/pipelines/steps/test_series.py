"""The steps from files to turns, on a counter of characters and once on a real vocabulary."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from pipelines.fetch.hub import SampleHub
from pipelines.sessions import writing
from pipelines.sessions.messages import OWNERS, TEXTS
from pipelines.sessions.rejects import REJECTED
from pipelines.steps import counts, fetching
from pipelines.steps.chat_turns import count_chat_turns
from pipelines.steps.conversations import read_conversations
from pipelines.steps.product_names import conversations_name, counts_name, raw_name, turns_name
from pipelines.steps.series import is_current
from pipelines.steps.text_turns import derive_turns
from pipelines.steps.turn_products import TURNS_FILE
from pipelines.vocab.files import fetch_tokenizer
from pipelines.vocab.specs import tokenizer_spec
from pipelines.workloads.sets import workload
from warehouse.checks.tables import violations
from warehouse.checks.turns import turn_violations
from warehouse.declared.tables import REJECTS, TURNS
from warehouse.errors import KappaError
from warehouse.home.staging import Staging

Chat = Callable[..., dict[str, Any]]
# Where the texts "a word", "yy" and "x" begin and end: 0, 6, 8, 9.
_ENDS = b"".join(number.to_bytes(8, "little") for number in (0, 6, 8, 9))
SERIES = turns_name("sharegpt", "llama-3.1", "text", "history")


def turn_rows(staging: Staging, name: str = SERIES) -> list[tuple[Any, ...]]:
    """Return (session, turn_index, K, T, output, is_first_turn) of each turn."""
    table = pq.read_table(staging.require(name).file(TURNS_FILE))
    assert violations(TURNS, table) == []
    assert not any(turn_violations(table, workload(name.split("/")[1]).kind, "text", "history").values())
    columns = ("session_id", "turn_index", "cached_tokens", "prefill_tokens", "output_tokens", "is_first_turn")
    return [tuple(row[column] for column in columns) for row in table.to_pylist()]


def test_chats_from_files_to_turns(lab: Any, chat: Chat) -> None:  # noqa: ANN401 - conftest's Lab
    """Two files, one with rejects; a token is a character."""
    first = [chat("a", "human: xxx", "gpt: yy", "human: x", "gpt: yyyy", "human: xx"), {"id": "bad"}]
    lab.put(
        "sharegpt", first, [chat("b", "gpt: yyyyy", "human: xxx", "gpt: "), chat("c", "human: ", "gpt: yy", "user: x")]
    )
    lab.turns("sharegpt")
    assert turn_rows(lab.staging) == [
        ("a", 0, 0, 3, 2, True),
        ("a", 1, 5, 1, 4, False),  # 3 + 2 = 5
        ("a", 2, 10, 2, None, False),  # 3 + 2 + 1 + 4 = 10
        ("b", 0, 0, 8, 0, True),  # 5 + 3 = 8
        ("c", 1, 2, 1, None, False),  # turn 0 is empty; its reply counts: 2
    ]
    rejects = pq.read_table(lab.staging.require(SERIES).file(REJECTED))
    # record 1 of the second file, turn 0
    assert violations(REJECTS, rejects) == []
    (row,) = rejects.to_pylist()
    assert (row["path"], row["record"], row["session_id"]) == ("sg_90k_part2.json", 1, "c")
    assert (row["level"], row["turn_index"], row["reason"]) == ("turn", 0, "empty_turn")
    read = lab.staging.require(conversations_name("sharegpt")).meta
    # 4 records = 3 kept + 1 rejected
    assert (sum(read["records"].values()), read["kept"], read["rejected"]) == (4, 3, 1)


def test_documents_from_files_to_turns(lab: Any) -> None:  # noqa: ANN401 - conftest's Lab
    """Questions that are scattered over three files, one of them empty."""
    files = [[{"Context": "F" * 9, "Question": "q" * n} for n in counts] for counts in ([2], [], [0, 4])]
    files[1] = [{"Context": "G", "Question": "qq"}]
    lab.put("finqa", *files)
    lab.turns("finqa")
    found = [row[1:] for row in turn_rows(lab.staging, turns_name("finqa", "llama-3.1", "text", "history"))]
    # K = 9; the empty question takes one token of the document: (8, 1); K = 1 for G
    assert found == [
        (0, 9, 2, None, True), (1, 8, 1, None, False), (2, 9, 4, None, False), (0, 1, 2, None, True)
    ]  # fmt: skip


def test_a_step_whose_inputs_did_not_change_does_nothing(lab: Any, chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401
    """The second run reuses each product; another commit with the same files reads and counts nothing again."""
    lab.put("sharegpt", [chat("a", "human: x")], [])
    lab.turns("sharegpt")
    names = (conversations_name("sharegpt"), counts_name("sharegpt", "llama-3.1"), SERIES)
    before = [lab.staging.require(name).identity for name in names]
    monkeypatch.setattr(counts, "count_checked", lambda *_, **__: pytest.fail("counted again"))
    lab.turns("sharegpt", revision="r2")
    # 3 products
    assert [lab.staging.require(name).identity for name in names] == before
    assert lab.staging.require(raw_name("sharegpt")).meta["revision"] == "r2"


@pytest.mark.parametrize(
    ("name", "place", "damage"),
    [(TEXTS, -64, bytes(64)), (TEXTS, b"a word", b"\xff"), (OWNERS, -8, bytes(8)), (TEXTS, _ENDS, _ENDS[::-1])],
    ids=["footer", "no UTF-8", "owners", "offsets"],
)
def test_texts_that_were_damaged_are_read_anew(
    lab: Any,  # noqa: ANN401 - conftest's Lab
    chat: Chat,
    name: str,
    place: int | bytes,
    damage: bytes,
) -> None:
    """A file of the same size that is none of its kind any more, or no UTF-8: one line, and the next run mends it."""
    lab.put("sharegpt", [chat("a", "human: a word", "gpt: yy", "human: x")], [])
    lab.fetch("sharegpt", "r1")
    read_conversations(lab.staging, workload("sharegpt"))
    path = lab.staging.require(conversations_name("sharegpt")).file(name)
    content = bytearray(path.read_bytes())
    start = content.index(place) if isinstance(place, bytes) else place % len(content)
    content[start : start + len(damage)] = damage
    path.write_bytes(content)
    with pytest.raises(KappaError, match=r"conversations/sharegpt cannot be read, its files were changed.*run again"):
        lab.turns("sharegpt")
    lab.turns("sharegpt")
    # "a word" is 6 characters, then 2 and 1: (0, 6), (8, 1)
    assert [row[2:4] for row in turn_rows(lab.staging)] == [(0, 6), (8, 1)]


def test_a_changed_file_is_counted_again(lab: Any, chat: Chat) -> None:  # noqa: ANN401
    """Counts that belong to an older state never become turns."""
    lab.put("sharegpt", [chat("a", "human: x")], [])
    lab.turns("sharegpt")
    lab.put("sharegpt", [chat("a", "human: xx")], [])
    lab.fetch("sharegpt", "r2")
    read_conversations(lab.staging, workload("sharegpt"))
    with pytest.raises(KappaError, match="older state"):
        derive_turns(lab.staging, workload("sharegpt"), "llama-3.1")
    lab.turns("sharegpt", revision="r2")
    # 2 characters now
    assert turn_rows(lab.staging) == [("a", 0, 0, 2, None, True)]


def test_nothing_usable(lab: Any, chat: Chat) -> None:  # noqa: ANN401
    """A set without one usable record is an error that says why, and leaves no product."""
    lab.put("sharegpt", [chat("a", "gpt: r")], [])
    lab.fetch("sharegpt")
    with pytest.raises(KappaError, match="all 1 are rejected, the first one: 1 replies and no request"):
        read_conversations(lab.staging, workload("sharegpt"))
    lab.put("sharegpt", [], b"")
    lab.fetch("sharegpt")
    with pytest.raises(KappaError, match="its files are empty"):
        read_conversations(lab.staging, workload("sharegpt"))
    # no HEAD, no draft
    assert lab.staging.newest(conversations_name("sharegpt")) is None
    assert list((lab.staging.root / "conversations/sharegpt").iterdir()) == []


def test_a_truncation_is_told(lab: Any, caplog: pytest.LogCaptureFixture) -> None:  # noqa: ANN401
    """The whole records are used, and the run says loudly which file is cut and where."""
    lab.put("sharegpt", b'[{"id":"a","conversations":[{"from":"human","value":"x"}]},{"id', [])
    with caplog.at_level(logging.WARNING, "kappa"):
        lab.turns("sharegpt")
    # [ + 57 bytes + comma = 59
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert any("sg_90k_part1.json" in line and "at byte 59" in line for line in told)
    # the other file of the set is an array without elements
    assert any("sg_90k_part2.json holds no record" in line for line in told)
    assert lab.staging.require(conversations_name("sharegpt")).meta["kept"] == 1


def test_a_missing_file(lab: Any, tmp_path: Path) -> None:  # noqa: ANN401
    """A repository without a file that the workload names is an error that names it."""
    with pytest.raises(KappaError, match=r"RyokoAI/ShareGPT52K has no file sg_90k_part1\.json"):
        fetching.fetch_raw(lab.staging, workload("sharegpt"), SampleHub(tmp_path, "r"))


def test_all_turns_empty(lab: Any, chat: Chat) -> None:  # noqa: ANN401
    """A set of empty turns has no row of turns and one reject each."""
    lab.put("sharegpt", [chat("a", "human: ", "gpt: ")], [chat("b", "human: ")])
    lab.turns("sharegpt")
    # 2 turns, both with K + T = 0
    assert turn_rows(lab.staging) == []
    assert pq.read_table(lab.staging.require(SERIES).file(REJECTED)).num_rows == 2


@pytest.mark.parametrize("batch", [1, 2, 1000])
def test_counts_do_not_depend_on_the_batch(lab: Any, chat: Chat, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:  # noqa: ANN401
    """Any number of texts at once gives the same counts."""
    monkeypatch.setattr(writing, "FLUSH_MESSAGES", batch)
    lab.put("sharegpt", [chat(f"s{n}", *(f"human: {'x' * m}" for m in range(n))) for n in range(1, 6)], [])
    lab.turns("sharegpt")
    # session n has messages of 0 + 1 + ... + (n - 1) characters in one turn: 0, 1, 3, 6, 10
    assert [row[3] for row in turn_rows(lab.staging)] == [1, 3, 6, 10]


def test_a_real_vocabulary(tmp_path: Path, chat: Chat, monkeypatch: pytest.MonkeyPatch, lab: Any) -> None:  # noqa: ANN401
    """Text alone is counted: no BOS, no template, a special token's string as one token."""
    monkeypatch.undo()
    try:
        file = fetch_tokenizer(tokenizer_spec("llama-3.1"), tmp_path, offline=True)
    except KappaError as error:
        pytest.skip(f"the offline extra is not installed: {error}")
    monkeypatch.setattr(fetching, "fetch_tokenizer", lambda *_, **__: file)
    lab.put("sharegpt", [chat("a", "human: Hello, world", "gpt: <|eot_id|>", "human: ")], [])
    lab.turns("sharegpt")
    # "Hello" "," " world" = 3; the special string = 1; T = 0, K = 3 + 1: one token moves
    assert turn_rows(lab.staging) == [("a", 0, 0, 3, 1, True), ("a", 1, 3, 1, None, False)]
    counts = lab.staging.require(counts_name("sharegpt", "llama-3.1")).meta
    assert (counts["special_token_messages"], counts["messages"], counts["is_exact"]) == (1, 3, True)
    assert np.sum(counts["tokens"]) == 4


def test_a_miscount_that_only_prompts_show_is_published_nowhere(
    tmp_path: Path,
    chat: Chat,
    monkeypatch: pytest.MonkeyPatch,
    lab: Any,  # noqa: ANN401 - conftest's Lab
) -> None:
    """The step of whole prompts fails and puts it on record; the next run counts everything with the exact engine."""
    monkeypatch.undo()
    try:
        file = fetch_tokenizer(tokenizer_spec("llama-3.1"), tmp_path, offline=True)
    except KappaError as error:
        pytest.skip(f"the offline extra is not installed: {error}")
    monkeypatch.setattr(fetching, "fetch_tokenizer", lambda *_, **__: file)
    count = counts.count_checked

    def one_more(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - those of the function that it stands for
        counted = count(*args, **options)
        return dataclasses.replace(counted, tokens=counted.tokens + np.array([0, 1, 0]))

    lab.put("sharegpt", [chat("a", "human: Hello", "gpt: there", "human: world")], [])
    with monkeypatch.context() as patch:
        patch.setattr(counts, "count_checked", one_more)
        lab.turns("sharegpt")
    with pytest.raises(KappaError, match="miscounts 1 messages of sharegpt"):
        count_chat_turns(lab.staging, workload("sharegpt"), "llama-3.1")
    assert not is_current(lab.staging, lab.staging.require(SERIES))
    lab.turns("sharegpt")
    # one token a word; the second turn has 1 + 1 cached
    assert [row[2:4] for row in turn_rows(lab.staging)] == [(0, 1), (2, 1)]
    turns = count_chat_turns(lab.staging, workload("sharegpt"), "llama-3.1")
    assert {turns.meta["engine"], lab.staging.require(SERIES).meta["engine"]} == {"tokenizers"}
    assert is_current(lab.staging, turns)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"<html>\n<body>busy</body>\n</html>", r"sg_90k_part2\.json is a page of HTML"),
        (b"busy\nbusy\n", "holds no whole record"),
        (b"busy", "holds no whole record"),
        (b"[1, 2]", "holds no whole record"),
        (b'[{"id": "a', "holds no whole record"),
        (b"[" * 2000 + b"]" * 2000, "holds no whole record"),
    ],
)
def test_a_file_without_any_whole_record(lab: Any, raw: bytes, words: str) -> None:  # noqa: ANN401
    """A page of HTML in the place of one of two files is an error that names the file: half a set is no set."""
    whole = [{"id": "a", "conversations": [{"from": "human", "value": "x"}]}]
    lab.put("sharegpt", whole, raw)
    with pytest.raises(KappaError, match=words):
        lab.turns("sharegpt")

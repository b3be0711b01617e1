"""The benchmarks' generators at tiny sizes: formats, counts, repeats, the same bytes again; and their arithmetic."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bench import chat_set, document_sets, own_messages
from bench.counting import Rates, ratios, spread
from bench.full_size import Cost, sum_of
from bench.generate import SETS, generate
from bench.measure import Measured, Watch, measure, table
from bench.naive import prompts_of
from bench.text import Source, vocabulary
from bench.texts import write_texts
from pipelines.generated.documents import NARRATIVEQA_SCHEMA
from pipelines.sessions.messages import Messages
from pipelines.sessions.writing import SessionsWriter
from pipelines.workloads.declaration import InputFile
from pipelines.workloads.sets import workload

SCALE = 0.002


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write all three sets once, at 0.2 % of their size."""
    folder = tmp_path_factory.mktemp("bench") / "root"
    generate(folder, SCALE, processes=1)
    return folder


def digests(folder: Path) -> dict[str, str]:
    """Return the sha256 of every file by its path below the folder."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_same_bytes_again(root: Path, tmp_path: Path) -> None:
    """The same scale gives the same bytes in another process order, set by set."""
    for name in reversed(SETS):
        generate(tmp_path, SCALE, [name], processes=1)
    assert digests(tmp_path) == digests(root)


def test_own_files_hold_the_same_conversations(tmp_path: Path) -> None:
    """Each way reads the same number of sessions and messages, 8 of each conversation."""
    found = [own_messages.run(way, path) for way, path in own_messages.write_conversations(tmp_path, 0.05).items()]
    sessions = {one["sessions"] for one in found}
    assert len(sessions) == 1
    assert {one["messages"] for one in found} == {8 * sessions.pop()}


def test_chats(root: Path) -> None:
    """Two arrays hold half of the conversations each, and the longest one stands at the end."""
    parts: list[list[Any]] = [json.loads((root / path).read_text()) for path in chat_set.FILES]
    # 90,665 x 0.002 = 181: 90 and 91, and the longest one
    assert [len(part) for part in parts] == [90, 92]
    records = parts[0] + parts[1]
    assert {message["from"] for record in records for message in record["conversations"]} == {"human", "gpt"}
    # 450,000 tokens in exchanges of 500 are 900 turns of two messages, and perhaps an opening reply
    assert len(records[-1]["conversations"]) in (1800, 1801)
    assert len({record["id"] for record in records}) == len(records)


def test_published_number_of_messages() -> None:
    """The turns drawn for the full size are about the published 719,155."""
    turns = sum(chat_set.draw_lengths(chat_set.Random(0), chat_set.TURNS, chat_set.CONVERSATIONS))
    # 719,155 x 0.95 = 683,197, x 1.05 = 755,113
    assert 683_197 < turns < 755_113


def test_stories(root: Path) -> None:
    """Each story stands in 29 or 30 rows, its text without a dictionary, in the set's own schema."""
    splits = [document_sets.scaled(split, SCALE) for split in document_sets.STORY_SPLITS]
    # train 1,102 x 0.002 = 2 documents and 32,747 x 2 / 1,102 = 59 rows; 1 and 1 with 30 rows each
    assert [(split.documents, split.rows) for split in splits] == [(2, 59), (1, 30), (1, 30)]
    for split in splits:
        (path,) = (root / document_sets.STORIES).glob(f"{split.name}-*")
        file = pq.ParquetFile(path)
        assert file.schema_arrow.equals(NARRATIVEQA_SCHEMA)
        rows = file.read().to_pylist()
        assert len(rows) == split.rows
        assert len({row["document"]["text"] for row in rows}) == split.documents
        columns = [file.metadata.row_group(0).column(n) for n in range(file.metadata.num_columns)]
        encodings = {column.path_in_schema: column.encodings for column in columns}
        assert not any("DICTIONARY" in name for name in encodings["document.text"])
        assert any("DICTIONARY" in name for name in encodings["document.id"])


def test_published_numbers_of_rows() -> None:
    """The splits add up to the published sets, and rows are dealt out without a gap."""
    stories, filings = document_sets.STORY_SPLITS, document_sets.FILING_SPLITS
    assert (sum(s.documents for s in stories), sum(s.rows for s in stories)) == (1572, 46_765)
    assert (sum(s.documents for s in filings), sum(s.rows for s in filings)) == (801, 7437)
    split = stories[0]
    rows = [row for document in range(split.documents) for row in document_sets.rows_of(split, document)]
    assert rows == list(range(split.rows))


def test_a_story_over_two_files(tmp_path: Path) -> None:
    """A story whose rows two files share is the same story in both."""
    split = document_sets.Split("train", 1, 5, 2)
    for file in range(2):
        document_sets.write_stories(tmp_path, split, file, "seed")
    first, second = sorted((tmp_path / document_sets.STORIES).iterdir())
    left, right = pq.read_table(first).to_pylist(), pq.read_table(second).to_pylist()
    # 5 rows over two files: 2 and 3
    assert (len(left), len(right)) == (2, 3)
    assert len({row["document"]["text"] for row in left + right}) == 1
    assert len({row["question"]["text"] for row in left + right}) == 5


def test_filings(root: Path) -> None:
    """Train and dev are arrays, test is lines; each filing is repeated in the record of every question."""
    folder = root / document_sets.FILINGS
    train = json.loads((folder / "train.json").read_text())
    test = [json.loads(line) for line in (folder / "test.json").read_text().splitlines()]
    # 618 x 0.002 = 1 filing with 5,735 / 618 = 9 questions; 99 x 0.002: 1 with 922 / 99 = 9
    assert (len(train), len(test)) == (9, 9)
    assert len({row["Context"] for row in train}) == 1
    assert len({row["Question"] for row in train}) == 9
    assert set(train[0]) == {"Context", "Question", "Program", "Answer"}


@pytest.mark.parametrize("name", SETS)
def test_our_readers_take_all(root: Path, tmp_path: Path, name: str) -> None:
    """Every generated record is kept by the workload's own reader."""
    chosen = workload(name)
    files = sorted(path for path in (root / chosen.repo_id).rglob("*") if path.is_file())
    writer = SessionsWriter(tmp_path, name)
    chosen.read([InputFile(path.name, path) for path in files], writer, lambda _: None)
    writer.close()
    assert writer.rejects.records == 0
    # conversations 182; stories 2 + 1 + 1; filings 1 + 1 + 1
    assert len(writer.session_ids) == {"sharegpt": 182, "narrativeqa": 4, "finqa": 3}[name]
    assert len(Messages(tmp_path).owners) == writer.messages


@pytest.mark.parametrize("kind", ["chat", "book", "code"])
def test_texts_are_distinct(tmp_path: Path, kind: str) -> None:
    """The text of the counting benchmark reaches its size and does not repeat a long text."""
    written = write_texts(kind, tmp_path / kind, 0.5)
    texts = [text for batch in Messages(tmp_path / kind).texts() for text in batch.to_pylist()]
    assert written == sum(len(text.encode()) for text in texts)
    assert written >= 500_000
    long = [text for text in texts if len(text) > 200]
    assert len(set(long)) == len(long)


def test_source_is_reproducible() -> None:
    """A seed gives one stream, whatever the pieces in which it is taken; words are as common as their rank says."""
    assert Source("a").words(70_000)[:5] == Source("a").words(5)
    assert Source("a").words(5) != Source("b").words(5)
    words, cumulative = vocabulary()
    assert len(words) == len(set(words)) == len(cumulative)
    assert cumulative[-1] == pytest.approx(1)


def test_prompts_of_a_conversation() -> None:
    """A prompt ends with each run of requests; opening replies belong to the first."""
    said = [{"from": role, "value": "x"} for role in ("gpt", "human", "human", "gpt", "human")]
    # runs end at the third and the fifth message
    assert [len(prompt) for prompt in prompts_of(said)] == [3, 5]


def test_costs_add_up() -> None:
    """Seconds and bytes add up, memory is the largest."""
    total = sum_of({"a": Cost(1, 2, 3_000_000, 5), "b": Cost(2, 1, 3_000_000, 4)})
    # 6 MB in 3 s = 2 MB/s
    assert total == Cost(3, 3, 6_000_000, 5)
    assert total.row("x")[:4] == ["x", "3.0", "3.0", "2"]


def test_ratios_pair_repetitions() -> None:
    """Ours is divided by the other way of the same repetition and pass."""
    rates: Rates = {("ours", "t", "chat", "cold"): [20.0, 30.0], ("bare", "t", "chat", "cold"): [10.0, 10.0]}
    # 20 / 10 and 30 / 10
    assert ratios(rates, "bare", "cold") == {("t", "chat"): [2.0, 3.0]}
    assert spread([2.0, 3.0], ".1f") == "2.5 (2.0 to 3.0)"


def test_measured_between() -> None:
    """CPU time is interpolated between two looks; memory is the largest look inside."""
    took = Measured(2.0, 7, {}, [(10.0, 0.0), (12.0, 4.0)], [(10.0, 5), (11.0, 9), (12.0, 6)])
    # from 10.5 to 11.5 of a rise of 2 CPU s a second: 2
    assert took.cpu_between(10.5, 11.5) == pytest.approx(2.0)
    assert took.peak_between(10.5, 11.5) == 9
    assert (took.cpu_seconds, took.peak_all_bytes) == (4.0, 9)


def test_cpu_time_never_falls() -> None:
    """A look at a process that has ended finds nothing, and takes back nothing."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    watch = Watch(process.pid)
    watch.note_cpu(125.0)
    watch.look()
    # 125 s used, then 0 s to be seen
    assert [seconds for _, seconds in watch.cpu] == [125.0, 125.0]


def test_a_look_behind_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last look may come between a process' end and the end of its watch: its CPU time is what the kernel noted."""
    stop = Watch.stop

    def late(watch: Watch) -> None:
        stop(watch)
        watch.look()

    monkeypatch.setattr(Watch, "stop", late)
    took = measure("timeit", "-n", "1", "-r", "1", "sum(range(3_000_000))")
    assert took.cpu_seconds > 0
    assert took.cpu_between(0.0, time.time()) == took.cpu_seconds - took.cpu[0][1]
    assert [seconds for _, seconds in took.cpu] == sorted(seconds for _, seconds in took.cpu)


def test_a_process_that_ends_between_two_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """No look at all: its CPU time is known all the same."""
    monkeypatch.setattr("bench.measure.EVERY_S", 60.0)
    assert measure("timeit", "-n", "1", "-r", "1", "sum(range(3_000_000))").cpu_seconds > 0


def test_table_is_markdown() -> None:
    """Names to the left, numbers to the right."""
    assert table(["a", "b"], [["x", "1"]]) == "| a | b |\n| --- | ---: |\n| x | 1 |"

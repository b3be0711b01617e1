"""Large inputs at a size that fits a test: one long message, one long record, a repeated story, a long conversation.

Times are CPU times of this process, the best of a few, and the bounds leave room for noise; `bench.large_inputs` has
the real sizes.
"""

from __future__ import annotations

import dataclasses
import json
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pytest

from bench.document_sets import Split, write_stories
from bench.text import Source
from pipelines.counting.engines import Counts, exact_counter, fast_counter
from pipelines.io import json_array
from pipelines.io.arrow_text import cut
from pipelines.io.json_array import Element, read_elements
from pipelines.sessions.writing import SessionsWriter
from pipelines.vocab.files import TokenizerFile
from pipelines.workloads.declaration import InputFile
from pipelines.workloads.sets import workload


def test_one_long_message_is_exact(file: TokenizerFile) -> None:
    """A message that is cut into pieces has the tokens that Hugging Face finds in the whole."""
    text = Source("message").story(400_000)
    counter, reference = fast_counter(file), exact_counter(file)
    assert counter.piece_bytes is not None
    assert len(cut(pa.array([text], pa.large_string()), counter.piece_bytes, counter.whole_bytes)[0]) > 1
    assert counter.count(pa.array([text])).tolist() == reference.count_strings([text]).tolist()


def test_one_long_message_is_given_to_the_engine_once(file: TokenizerFile) -> None:
    """The pieces of a message are together the message: nothing is counted twice, whatever its length."""
    counter, given = fast_counter(file), []

    def count_strings(strings: list[str]) -> Counts:
        given.extend(map(len, strings))
        return counter.count_strings(strings)

    text = Source("message").story(1_000_000)
    dataclasses.replace(counter, count_strings=count_strings).count(pa.array([text]))
    assert sum(given) == len(text)
    # a piece is cut at the first safe place behind its size, and no line is that long
    assert counter.piece_bytes is not None
    assert max(given) < 2 * counter.piece_bytes


def record_file(folder: Path, characters: int) -> Path:
    """Write an array of one record with a text of so many characters."""
    path = folder / f"{characters}.json"
    text = (Source("record").filing(1_000_000) * (characters // 1_000_000 + 1))[:characters]
    path.write_text(json.dumps([{"Context": text, "Question": "How much?"}], ensure_ascii=False), "utf8")
    return path


def test_one_long_record_is_whole(tmp_path: Path) -> None:
    """A record many times the reading step comes out as it was written."""
    path = record_file(tmp_path, 12_000_000)
    assert [element.value for element in read_elements(path) if isinstance(element, Element)] == json.loads(
        path.read_text("utf8")
    )


def test_one_long_record_is_decoded_few_times_in_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The buffer doubles while a record does not end in it, so that all tries together are linear in its size."""
    large, fills, fill = record_file(tmp_path, 24_000_000), [], json_array._Buffer.fill

    def counted(buffer: json_array._Buffer) -> bool:
        fills.append(buffer.step)
        return fill(buffer)

    with monkeypatch.context() as patch:
        patch.setattr(json_array._Buffer, "fill", counted)
        list(read_elements(large))
    # 4 MiB show the bracket; behind it 4, 8 and 16 MiB hold the record; two more reads find the end of the file
    assert fills == [json_array.STEP_BYTES << n for n in (0, 0, 1, 2, 0, 1)]
    tracemalloc.start()
    list(read_elements(large))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # one curly apostrophe makes every character two bytes: the buffer before and after it grows by what is there
    # already (24 + 48 MB), the decoded block (up to 48 MB) and the value (48 MB): 168 MB
    assert peak < 7 * 24_000_000


def test_a_story_in_many_rows_is_kept_once(tmp_path: Path) -> None:
    """Thirty rows of three stories hold each text once, and nothing but text and questions is kept."""
    split = Split("train", 3, 30, 1)
    write_stories(tmp_path, split, 0, "seed")
    (path,) = tmp_path.rglob("*.parquet")
    chosen, writer = workload("narrativeqa"), SessionsWriter(tmp_path, "narrativeqa")
    chosen.read([InputFile("train", path)], writer, lambda _: None)
    writer.close()
    # 3 stories + 30 questions
    assert (len(writer.session_ids), writer.messages, writer.kept) == (3, 33, 30)
    # a story has some 90 to 900 kB, a question below 100 bytes
    assert writer.text_bytes < 3 * 950_000 + 30 * 100

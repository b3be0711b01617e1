"""Large inputs at a size that fits a test: one long message, one long record, a repeated story, a long conversation.

Times are CPU times of this process, the best of a few, and the bounds leave room for noise; `bench.large_inputs` has
the real sizes.
"""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bench.document_sets import Split, write_stories
from bench.text import Source
from pipelines.counting import cut_text, exact_counter, fast_counter
from pipelines.json_array import Element, read_elements
from pipelines.sessions import ASSISTANT, USER, SessionsWriter
from pipelines.sources import workload
from pipelines.tokenizer_files import TokenizerFile, fetch_tokenizer
from pipelines.tokenizer_specs import tokenizer_spec, tokenizer_specs
from pipelines.turns import chat_turns
from pipelines.workload import InputFile
from warehouse.errors import KappaError

# Four times the size may take so many times as long: 4 if linear, 16 if quadratic.
AT_MOST = 8


def cpu_seconds(work: Callable[[], object], times: int = 3) -> float:
    """Return the least CPU time of a few runs."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


@pytest.fixture(scope="module", params=tuple(tokenizer_specs()))
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TokenizerFile:
    """Return each tokenizer's official file."""
    try:
        return fetch_tokenizer(tokenizer_spec(request.param), tmp_path_factory.mktemp("tokenizers"), offline=True)
    except KappaError as error:
        pytest.skip(f"the offline extra is not installed: {error}")


def test_one_long_message_is_exact(file: TokenizerFile) -> None:
    """A message that is cut into pieces has the tokens that Hugging Face finds in the whole."""
    text = Source("message").story(400_000)
    counter, reference = fast_counter(file), exact_counter(file)
    assert counter.piece_chars is not None
    assert len(cut_text(text, counter.piece_chars)) > 1
    assert counter.count(pa.array([text])).tolist() == reference.count_strings([text]).tolist()


def test_one_long_message_takes_linear_time(file: TokenizerFile) -> None:
    """Four times the message takes about four times as long."""
    counter = fast_counter(file)
    small, large = (pa.array([Source("message").story(size)]) for size in (1_000_000, 4_000_000))
    counter.count(large)
    assert cpu_seconds(lambda: counter.count(large)) < AT_MOST * cpu_seconds(lambda: counter.count(small))


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


def test_one_long_record_takes_linear_time_and_memory(tmp_path: Path) -> None:
    """Four times the record takes about four times as long, and memory is a few times its size."""
    small, large = record_file(tmp_path, 6_000_000), record_file(tmp_path, 24_000_000)
    assert cpu_seconds(lambda: list(read_elements(large))) < AT_MOST * cpu_seconds(lambda: list(read_elements(small)))
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


def test_twice_the_turns_takes_twice_as_long() -> None:
    """Deriving a conversation of twice the turns takes about twice as long."""

    def derive(messages: int) -> Callable[[], object]:
        role = np.tile(np.array([USER, ASSISTANT], np.int8), messages // 2)
        tokens, session = np.full(messages, 7, np.int64), np.zeros(messages, np.int64)
        return lambda: chat_turns(session, role, tokens)

    # 4 if it were quadratic
    assert cpu_seconds(derive(2_000_000), 5) < 3.2 * cpu_seconds(derive(1_000_000), 5)

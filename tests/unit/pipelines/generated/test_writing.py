"""The embedded sample: same bytes for a seed, the sets' formats, every defect, lengths like the published ones."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refused

from pipelines.generated.chats import cut
from pipelines.generated.lengths import draw_lengths, quantile, rank_lengths
from pipelines.generated.text import Block, code, foreign, prose, render_html, render_plain
from pipelines.generated.writing import MARKER, sample_revision, write_sample
from pipelines.workloads.sets import samples
from warehouse.errors import ErrorCode

PART1 = "RyokoAI/ShareGPT52K/sg_90k_part1.json"
PART2 = "RyokoAI/ShareGPT52K/sg_90k_part2.json"
PIECES = "anon8231489123/ShareGPT_Vicuna_unfiltered/ShareGPT_V3_unfiltered_cleaned_split.json"
STORIES = [
    f"deepmind/narrativeqa/data/{stem}.parquet"
    for stem in (
        "train-00000-of-00002", "train-00001-of-00002", "validation-00000-of-00001", "test-00000-of-00001",
    )
]  # fmt: skip
FILINGS = [f"kensho/DocFinQA/{split}.json" for split in ("train", "dev", "test")]
ASSISTANTS = {"gpt", "assistant", "chatgpt", "bing", "bard", "model"}
# English prose by either vocabulary: 4 to 5 characters a token. Coarse on purpose, the vocabularies are not read here.
CHARACTERS_PER_TOKEN = 4.4


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the sample once for this module."""
    return write_sample(tmp_path_factory.mktemp("home") / "sample", samples())


def rng(seed: int) -> Random:
    """Return a random stream."""
    return Random(seed)


def load(path: Path) -> list[Any]:
    """Return the elements of a JSON array or of JSON lines."""
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines()]


def digests(root: Path) -> dict[str, str]:
    """Return the sha256 of every file, the marker included."""
    files = (path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def messages_of(records: list[Any]) -> Iterator[list[dict[str, Any]]]:
    """Yield the messages of the records that have a non-empty list of them, all with text."""
    for record in records:
        said = record.get("conversations") if isinstance(record, dict) else None
        if said and all(isinstance(message.get("value"), str) for message in said):
            yield said


@cache
def stories(root: Path) -> list[dict[str, Any]]:
    """Return the rows of all NarrativeQA files in file order."""
    return [row for path in STORIES for row in pq.read_table(root / path).to_pylist()]


@cache
def filings(root: Path) -> list[Any]:
    """Return the rows of all DocFinQA files in file order."""
    return [row for path in FILINGS for row in load(root / path)]


def turns_in_characters(messages: list[dict[str, Any]]) -> Iterator[tuple[int, int]]:
    """Yield (K, T) of each turn in characters: T the run before a reply, K everything before that run."""
    cached = fresh = 0
    for message in messages:
        size = len(message["value"])
        if message["from"] in ASSISTANTS:
            if fresh:
                yield cached, fresh
            cached, fresh = cached + fresh + size, 0
        else:
            fresh += size


def test_same_seed_same_bytes(root: Path, tmp_path: Path) -> None:
    """Two folders of one seed are equal file by file, marker and revision included."""
    again = write_sample(tmp_path / "again", samples())
    assert digests(again) == digests(root)
    assert sample_revision(again) == sample_revision(root)


def test_another_seed_differs_in_every_file(root: Path, tmp_path: Path) -> None:
    """No file is the same under another seed, and the paths are."""
    other, ours = digests(write_sample(tmp_path / "other", samples(), seed=7)), digests(root)
    assert other.keys() == ours.keys()
    assert [path for path in ours if other[path] == ours[path]] == []


def test_paths_and_size(root: Path) -> None:
    """The four repositories' files and the marker are there, below 60 MB together."""
    assert sorted(digests(root)) == sorted([PART1, PART2, PIECES, *STORIES, *FILINGS, MARKER])
    assert sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) < 60_000_000


def test_a_finished_sample_is_reused(root: Path) -> None:
    """A second call leaves the files alone: their times of change stay."""
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    assert write_sample(root, samples()) == root
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


def test_a_changed_sample_has_another_revision_and_is_written_anew(root: Path, tmp_path: Path) -> None:
    """One byte more changes the revision; the next call brings the old bytes back and leaves nothing beside."""
    root = Path(shutil.copytree(root, tmp_path / "sample"))
    first = sample_revision(root)
    assert re.fullmatch("[0-9a-f]{40}", first)
    with (root / PART1).open("a", encoding="utf-8") as file:
        file.write("\n")
    assert sample_revision(root) != first
    assert sample_revision(write_sample(root, samples())) == first
    assert [path.name for path in tmp_path.iterdir()] == ["sample"]


def test_a_failed_run_leaves_nothing(tmp_path: Path) -> None:
    """A full disk half way is told as such; neither the sample nor a half-written folder stays."""

    def fail(_: Random) -> Iterator[tuple[str, bytes]]:
        yield "written.json", b"[]"
        raise OSError(28, "No space left on device")

    with refused(ErrorCode.DISK_FULL, tmp_path / "sample"):
        write_sample(tmp_path / "sample", [("owner/set", fail)])
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_is_dropped_when_it_is_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A half-written folder of two hours ago goes; one of now stays, another process may be writing it."""
    monkeypatch.setattr("pipelines.generated.writing._write_files", lambda root, *_: (root / "file").write_text("x"))
    old, new = tmp_path / ".sample.00.partial", tmp_path / ".sample.11.partial"
    for folder in (old, new):
        folder.mkdir()
    two_hours_ago = time.time() - 7200
    os.utime(old, (two_hours_ago, two_hours_ago))
    root = write_sample(tmp_path / "sample", [])
    assert sorted(tmp_path.iterdir()) == [new, root]


def test_the_sample_of_a_faster_process_stays(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another process finished the same sample meanwhile, that one is used and ours is dropped."""
    target = tmp_path / "sample"

    def write_slowly(partial: Path, *_: object) -> None:
        shutil.copytree(root, partial, dirs_exist_ok=True)
        shutil.copytree(root, target)
        (target / "PART").mkdir()

    monkeypatch.setattr("pipelines.generated.writing._write_files", write_slowly)
    assert digests(write_sample(target, samples())) == digests(root)
    # The empty folder tells that it is the other's.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sample"]
    assert (target / "PART").is_dir()


def test_another_set_makes_another_sample(tmp_path: Path) -> None:
    """A sample without a set that is known now is no finished one: all sets are written anew, each by its own draw."""

    def drawn(rng: Random) -> Iterator[tuple[str, bytes]]:
        yield "a.json", str(rng.random()).encode()

    root = write_sample(tmp_path / "sample", [("owner/one", drawn)])
    before = digests(root)
    after = digests(write_sample(root, [("owner/one", drawn), ("owner/two", drawn)]))
    assert sorted(after) == ["SAMPLE.json", "owner/one/a.json", "owner/two/a.json"]
    assert after["owner/one/a.json"] == before["owner/one/a.json"] != after["owner/two/a.json"]


def test_two_sets_of_a_repository_have_one_sample_of_a_file(tmp_path: Path) -> None:
    """Each writes its own files; the same file from both is the same or is refused, and nothing is left."""
    one, other = (lambda _, content=content: iter([("a.json", content)]) for content in (b"1", b"2"))
    root = write_sample(tmp_path / "sample", [("owner/set", one), ("owner/set", one)])
    assert (root / "owner/set/a.json").read_bytes() == b"1"
    with refused(ErrorCode.NAME_CLASH, "owner/set/a.json"):
        write_sample(tmp_path / "other", [("owner/set", one), ("owner/set", other)])
    assert [path.name for path in tmp_path.iterdir()] == ["sample"]


def test_other_files_are_not_overwritten(tmp_path: Path) -> None:
    """A folder that is no sample is refused and kept."""
    (tmp_path / "thesis.txt").write_text("mine", encoding="utf-8")
    with refused(ErrorCode.IN_THE_WAY, tmp_path):
        write_sample(tmp_path, samples())
    assert (tmp_path / "thesis.txt").read_text(encoding="utf-8") == "mine"


def test_revision_of_nothing_is_an_error(tmp_path: Path) -> None:
    """An empty folder has no revision."""
    with refused(ErrorCode.NOT_BUILT, tmp_path):
        sample_revision(tmp_path)


def test_parquet_has_the_set_s_own_schema(root: Path) -> None:
    """Names and types of every NarrativeQA file, written out here as the set has them."""
    text = [pa.field("text", pa.string()), pa.field("tokens", pa.list_(pa.field("element", pa.string())))]
    summary = pa.struct([*text, pa.field("url", pa.string()), pa.field("title", pa.string())])
    strings = {name: pa.field(name, pa.string()) for name in ("id", "kind", "url", "start", "end", "text")}
    document = pa.struct(
        [
            strings["id"], strings["kind"], strings["url"],
            pa.field("file_size", pa.int32()), pa.field("word_count", pa.int32()),
            strings["start"], strings["end"], pa.field("summary", summary), strings["text"],
        ]
    )  # fmt: skip
    answers = pa.list_(pa.field("element", pa.struct(text)))
    expected = pa.schema([("document", document), ("question", pa.struct(text)), ("answers", answers)])
    for path in STORIES:
        assert pq.read_schema(root / path).equals(expected), path


@pytest.mark.shared
def test_parquet_schema_is_the_real_one(root: Path) -> None:
    """The schema equals that of the real set's files beside the checkout."""
    shared = Path(__file__).parents[4].parent / "shared"
    real = shared / "hub/repos/datasets/deepmind/narrativeqa/1/data/train-00000-of-00002.parquet"
    if not real.is_file():
        pytest.skip("the real NarrativeQA files are not beside the checkout")
    assert pq.read_schema(root / STORIES[0]).equals(pq.read_schema(real))


def test_json_formats(root: Path) -> None:
    """One-line arrays for the 90k edition, an indented one for V3, arrays and JSON lines for the filings."""
    starts = {path: (root / path).read_text(encoding="utf-8")[:16] for path in (PART1, PART2, PIECES, *FILINGS)}
    assert [starts[path][:2] for path in (PART1, PIECES, *FILINGS)] == ["[{", "[\n", "[{", "[{", '{"']
    assert starts[PIECES].startswith('[\n  {\n    "id"')
    assert '\\ud83d"' in (root / PART1).read_text(encoding="utf-8") + (root / PART2).read_text(encoding="utf-8")


def test_replies_are_html_in_one_edition_only(root: Path) -> None:
    """Nine of ten replies of the 90k edition begin with the chat page's markup, none of V3's, and no human message."""

    def share(path: str, role: str) -> float:
        texts: list[str] = [m["value"] for said in messages_of(load(root / path)) for m in said if m["from"] == role]
        return sum(text.startswith('<div class="markdown prose') for text in texts) / len(texts)

    assert share(PART1, "gpt") > 0.9
    assert (share(PART1, "human"), share(PIECES, "gpt")) == (0, 0)


@pytest.mark.parametrize("paths", [(PART1, PART2), (PIECES,)])
def test_chat_defects(root: Path, paths: tuple[str, ...]) -> None:
    """Each defect of real chat files is there at least once."""
    records = [record for path in paths for record in load(root / path)]
    objects = [record for record in records if isinstance(record, dict)]
    given = [record["conversations"] for record in objects if record.get("conversations")]
    all_messages = [message for said in given for message in said]
    roles = [[message["from"] for message in said] for said in given]
    values = [message["value"] for message in all_messages if isinstance(message.get("value"), str)]
    runs = [list(pairwise(said)) for said in roles]
    found = {
        "not an object": {type(record) for record in records} >= {type(None), str, int, list},
        "no messages": any(record.get("conversations") == [] for record in objects),
        "no key": any("conversations" not in record for record in objects),
        "null messages": any("conversations" in record and record["conversations"] is None for record in objects),
        "unknown role": any("moderator" in said for said in roles),
        "no value": any("value" not in message for message in all_messages),
        "null value": any("value" in message and message["value"] is None for message in all_messages),
        "a number as value": any(message.get("value") == 42 for message in all_messages),
        "replies only": ["gpt"] in roles and ["gpt", "gpt"] in roles,
        "system only": ["system"] in roles,
        "opening reply": ["gpt", "human", "gpt"] in roles,
        "consecutive questions": any(("human", "human") in run for run in runs),
        "consecutive replies": any(("gpt", "gpt") in run for run in runs),
        "system in the middle": any("system" in said[1:] for said in roles),
        "tools": {"tool", "function", "observation"} <= {role for said in roles for role in said},
        "other names": {"user", "assistant", "chatgpt", "bing", "bard", "model"} <= {r for said in roles for r in said},
        "empty reply": any(m.get("value") == "" and m["from"] == "gpt" for m in all_messages),
        "empty question": any(m.get("value") == "" and m["from"] == "human" for m in all_messages),
        "empty first question": any(said[0].get("value") == "" for said in given),
        "no final reply": any(said[-2:] == ["gpt", "human"] for said in roles),
        "lone surrogate": any("\ud83d" in value for value in values),
        "special tokens": any("<|eot_id|>" in value and "<|im_end|>" in value for value in values),
        "extra keys": any("model" in record and "views" in record for record in objects),
        "extra keys in a message": any("markdown" in message for message in all_messages),
        "emoji": any("\U0001f600" <= letter <= "\U0001f64f" for value in values for letter in set(value)),
    }
    assert [what for what, is_there in found.items() if not is_there] == []


def families(root: Path) -> dict[str, list[tuple[int, int, list[Any]]]]:
    """Return (number, place in the file, messages) of every V3 piece by conversation, in file order."""
    found: dict[str, list[tuple[int, int, list[Any]]]] = defaultdict(list)
    for place, record in enumerate(load(root / PIECES)):
        if isinstance(record, dict) and "_" in record["id"] and record.get("conversations") is not None:
            family, _, number = record["id"].rpartition("_")
            found[family].append((int(number), place, record["conversations"]))
    return found


def test_pieces_overlap_by_one_message(root: Path) -> None:
    """About three quarters of the seams repeat one message, and a piece's number is the place of its first message."""
    overlaps: list[bool] = []
    for family, pieces in families(root).items():
        ordered = sorted(pieces, key=lambda piece: piece[0])
        for (start, _, said), (number, _, following) in pairwise(ordered):
            # A piece at 0 of 12 messages is followed by one at 11 (overlap) or at 12 (none).
            if said and following and number in (start + len(said) - 1, start + len(said)):
                overlaps.append(said[-1] == following[0])
                if number == start + len(said) - 1:
                    # One seam is there on purpose with the same role but another text.
                    assert overlaps[-1] == (family != "sameRol")
    assert len(overlaps) > 300
    assert 0.65 < sum(overlaps) / len(overlaps) < 0.85


def test_pieces_come_as_the_real_ones_do(root: Path) -> None:
    """Some begin with a reply, are empty, have no number, share a number, or stand apart or out of order."""
    found = families(root)
    firsts = [said[0]["from"] for pieces in found.values() for _, _, said in pieces if said]
    # 36 % of the real pieces begin with a reply.
    assert 0.25 < firsts.count("gpt") / len(firsts) < 0.5
    numbers = {family: [number for number, _, _ in pieces] for family, pieces in found.items()}
    assert any(said == [] and number > 0 for pieces in found.values() for number, _, said in pieces)
    assert sum("_" not in record["id"] for record in load(root / PIECES) if isinstance(record, dict)) == 2
    assert any(len(set(each)) < len(each) for each in numbers.values())
    assert sum(each != sorted(each) for each in numbers.values()) >= 5
    apart = [ps[-1][1] - ps[0][1] >= 2 * len(ps) for ps in found.values()]
    assert sum(apart) >= 5


def test_cut_by_hand() -> None:
    """Four messages of 1, 9, 9, 1 thousand characters in pieces of 9,000, all seams overlapping."""

    class Always(Random):
        def random(self) -> float:
            return 0.0

    said = [
        {"from": role, "value": "x" * size}
        for role, size in zip(["human", "gpt"] * 2, [1000, 9000, 9000, 1000], strict=True)
    ]
    pieces = cut(Always(), "xyz", said)
    # Two messages at least: 0-1, then from the overlap 1-2, then 2-3.
    assert [piece["id"] for piece in pieces] == ["xyz_0", "xyz_1", "xyz_2"]
    assert [piece["conversations"] for piece in pieces] == [said[0:2], said[1:3], said[2:4]]


def test_document_defects(root: Path) -> None:
    """Rows without a question, without a text, with neither object nor text, and harmless oddities."""
    rows = stories(root)
    assert sum(row["question"] is None for row in rows) == 1
    assert sum(row["question"] is not None and row["question"]["text"] is None for row in rows) == 1
    assert sum(row["document"]["text"] is None for row in rows) == 1
    found = filings(root)
    objects = [row for row in found if isinstance(row, dict)]
    assert [row for row in found if not isinstance(row, dict)] == [17]
    assert sum("Question" not in row for row in objects) == 1
    assert sum("Question" in row and row["Question"] is None for row in objects) == 2
    assert sum(row["Context"] is None for row in objects) == 1
    assert sum(row.get("Question") == "" for row in objects) == 1
    assert sum("page" in row for row in objects) == 1


def test_documents_come_again_far_apart(root: Path) -> None:
    """In every file some document returns after others; one story and one filing stand in two files."""
    for name, columns in {
        "stories": [[row["document"]["id"] for row in pq.read_table(root / path).to_pylist()] for path in STORIES],
        "filings": [[row["Context"] for row in load(root / path) if isinstance(row, dict)] for path in FILINGS],
    }.items():
        for keys in columns:
            changes = sum(left != right for left, right in pairwise(keys))
            # n documents in a row would change n - 1 times.
            assert changes > len(set(keys)) - 1, name
        assert len(set(columns[0]) & set(columns[1])) == 1, name


def test_document_counts_and_lengths(root: Path) -> None:
    """11 stories of about 57k tokens, 8 filings (and a short one) of about 167k, questions of about 12 and 23."""
    told = [(row["document"]["text"], row["question"]["text"]) for row in stories(root) if row["question"]]
    filed = [(row["Context"], row.get("Question")) for row in filings(root) if isinstance(row, dict)]
    for pairs, count, document_tokens, question_tokens in ((told, 11, 57_000, 12), (filed, 9, 167_000, 20)):
        texts = {text for text, _ in pairs if text}
        assert len(texts) == count
        tokens = median(len(text) for text in texts) / CHARACTERS_PER_TOKEN
        assert 0.7 * document_tokens < tokens < 1.3 * document_tokens
        asked = median(len(question) for _, question in pairs if question) / CHARACTERS_PER_TOKEN
        assert 0.6 * question_tokens < asked < 1.4 * question_tokens


def test_document_kappa_resembles_the_published(root: Path) -> None:
    """Median characters of text over those of the question: about 5000 and 10,000, within a factor of 1.5."""
    told = [(r["document"]["text"], r["question"]["text"]) for r in stories(root) if r["question"]]
    filed = [(r["Context"], r.get("Question")) for r in filings(root) if isinstance(r, dict)]
    for pairs, published in ((told, 5000), (filed, 10_000)):
        ratio = median(len(text) / len(question) for text, question in pairs if text and question)
        assert published / 1.5 < ratio < published * 1.5


def test_chat_lengths_resemble_the_published(root: Path) -> None:
    """T p50 19, replies p50 303 tokens, user turns p50 3, p75 8 and a heavy tail, reused kappa_ratio about 150."""
    chats = list(messages_of(load(root / PART1) + load(root / PART2)))
    assert 300 <= len(chats) <= 330
    turns = [pair for said in chats for pair in turns_in_characters(said)]
    assert 0.75 * 19 < median(fresh for _, fresh in turns) / CHARACTERS_PER_TOKEN < 1.25 * 19
    replies = [len(m["value"]) for said in chats for m in said if m["from"] == "gpt"]
    assert 0.75 * 303 < median(replies) / CHARACTERS_PER_TOKEN < 1.25 * 303
    asked = sorted(sum(m["from"] == "human" for m in said) for said in chats)
    assert asked[len(asked) // 2] in (2, 3, 4)
    assert 6 <= asked[len(asked) * 3 // 4] <= 9
    assert asked[-1] > 78
    ratio = median(cached / fresh for cached, fresh in turns if cached)
    assert 100 < ratio < 200


def test_rank_lengths_by_hand() -> None:
    """Three scores over values 1 to 100 take the middles of three shares, the highest score the longest."""
    # 100 ** (1/6) = 2.15, 100 ** (3/6) = 10, 100 ** (5/6) = 46.4
    assert rank_lengths(((0, 1), (1, 100)), [0.3, 0.9, 0.1]) == [10, 46, 2]
    assert rank_lengths(((0, 1), (1, 100)), []) == []


def test_quantile_passes_through_its_points() -> None:
    """At a point the value is the point's, half way between the geometric mean."""
    points = ((0.0, 1.0), (0.5, 20.0), (1.0, 500.0))
    # sqrt(20 * 500) = 100
    assert [round(quantile(points, share), 9) for share in (0, 0.5, 0.75, 1)] == [1, 20, 100, 500]


def test_drawn_median_does_not_depend_on_the_seed() -> None:
    """Every seed has the same lengths, in another order."""
    first, second = (draw_lengths(rng(seed), ((0, 1), (1, 100)), 50) for seed in (1, 2))
    assert first != second
    assert sorted(first) == sorted(second)


def test_render_by_hand() -> None:
    """Both renderings of a heading, a list and code; code is escaped in HTML, as a page must."""
    parts = [
        Block("heading", ["Top"]),
        Block("list", ["a", "b"]),
        Block("code", ["if x < 1:"]),
        Block("prose", ["End."]),
    ]
    assert render_plain(parts) == "## Top\n\n1. a\n2. b\n\n```python\nif x < 1:\n```\n\nEnd."
    assert render_html(parts).endswith(
        "<h2>Top</h2>\n<ol><li><p>a</p></li><li><p>b</p></li></ol>\n"
        '<pre><code class="hljs language-python">if x &lt; 1:\n</code></pre>\n<p>End.</p></div>'
    )


def test_text_is_about_as_long_as_asked() -> None:
    """Prose of 2,000 characters is off by a sentence at most; code and other scripts are not empty."""
    assert abs(len(prose(rng(5), 2000)) - 2000) < 150
    assert prose(rng(5), 0) == ""
    assert code(rng(5))[0].startswith("def ")
    assert not foreign(rng(5)).isascii()

"""The four readers: what becomes a session, in which order, and what is left out, record by record."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refused

from pipelines.fetch.hub import SampleHub
from pipelines.sessions import writing
from pipelines.workloads import sets
from pipelines.workloads.sets import workload, workloads
from pipelines.workloads.sets.sharegpt_v3 import conversation_of, message_digest
from warehouse.errors import ErrorCode

Read = Callable[..., Any]
Chat = Callable[..., dict[str, Any]]
SHARED = Path(__file__).parents[4].parent / "shared" / "data" / "sharegpt"


def said(outcome: Any, name: str) -> str:  # noqa: ANN401 - conftest's Outcome
    """Return the texts of a session, joined."""
    return " ".join(text for _, text in outcome.sessions[name])


def test_the_four_are_known() -> None:
    """Names, kinds and files are those of the design."""
    # 2 chats, 2 sets of documents, the paper's first
    assert list(workloads()) == ["sharegpt", "sharegpt-v3", "narrativeqa", "finqa"]
    assert [w.kind for w in workloads().values()] == ["chat", "chat", "documents", "documents"]
    hub = SampleHub(Path(), "r")
    assert workload("sharegpt").select(hub, "", "") == ["sg_90k_part1.json", "sg_90k_part2.json"]
    with refused(ErrorCode.UNKNOWN_NAME, "nope", "sharegpt, sharegpt-v3, narrativeqa, finqa"):
        workload("nope")


def test_a_name_is_declared_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A copied module whose name was left as it is would take the place of the other one."""
    (tmp_path / "copied.py").write_text("from pipelines.workloads.sets.finqa import WORKLOAD\n", "utf8")
    monkeypatch.setattr(sets, "__path__", [*sets.__path__, str(tmp_path)])
    with refused(ErrorCode.NAME_CLASH, "finqa"):
        sets.workloads.__wrapped__()


class TestShareGpt:
    """The unsplit edition: a record is a session."""

    def test_records_are_sessions(self, read: Read, chat: Chat) -> None:
        """Both files in order, roles mapped, ids as they stand; an underscore means nothing here."""
        out = read("sharegpt", [chat("a_1", "human: q", "gpt: r")], [chat("b", "system: s", "tool: t", "bing: r")])
        # 1 record a file
        assert (out.records, out.kept) == ({"file0": 1, "file1": 1}, 2)
        assert out.sessions == {
            "a_1": [("user", "q"), ("assistant", "r")],
            "b": [("system", "s"), ("tool", "t"), ("assistant", "r")],
        }

    def test_repeated_ids(self, read: Read, chat: Chat) -> None:
        """A repeated id gets a number, also where that name is taken; no session is lost or merged."""
        records = [chat(name, f"human: {n}") for n, name in enumerate(["a", "a", "a#2", "a"])]
        out = read("sharegpt", records)
        # the second a is a#2, so the record a#2 is a#2#2, and the third a is a#3
        assert {name: said(out, name) for name in out.sessions} == {"a": "0", "a#2": "1", "a#2#2": "2", "a#3": "3"}

    def test_rejects_with_every_reason(self, read: Read, chat: Chat) -> None:
        """One record of each kind: 1 kept and 5 rejected are the 6 read."""
        records = [None, {"id": "a"}, {"id": "b", "conversations": []}, chat("c", "cat: miau"), chat("d", "gpt: r")]
        out = read("sharegpt", [*records, chat("e", "human: q")])
        reasons = ["not_an_object", "missing_field", "no_messages", "unknown_role", "no_request"]
        assert out.reasons == list(enumerate(reasons))
        assert [row["session_id"] for row in out.rejects] == [None, "a", "b", "c", "d"]
        assert {row["level"] for row in out.rejects} == {"record"}
        # 6 = 1 + 5
        assert (out.records["file0"], out.kept) == (6, 1)

    def test_truncated(self, read: Read, chat: Chat) -> None:
        """The whole records of a cut array are kept and the cut is a record that is rejected."""
        whole = json.dumps([chat("a", "human: q"), chat("b", "human: q")]).encode()
        out = read("sharegpt", whole[:-10])
        # 2 records begin in the file, 1 is whole
        assert (out.records["file0"], out.kept, out.reasons) == (1, 1, [(1, "truncated")])
        assert "at byte" in out.rejects[0]["detail"]

    def test_text_is_as_stored(self, read: Read, chat: Chat) -> None:
        """HTML, controls and empty text stay; a lone surrogate becomes one U+FFFD, also in an id."""
        out = read("sharegpt", [chat("i\ud800", "human: <p>\x00\r\n\ud83d\ude00\ud800</p>", "gpt: ")])
        # \ud83d\ude00 is a pair and one character; \ud800 alone is U+FFFD
        assert out.sessions == {"i\ufffd": [("user", "<p>\x00\r\n\U0001f600\ufffd</p>"), ("assistant", "")]}

    def test_invalid_bytes(self, read: Read) -> None:
        """Each byte that is no UTF-8 is one U+FFFD in the text, and an encoded lone surrogate is one too."""
        raw = b'[{"id":"a","conversations":[{"from":"human","value":"x\xff\xfe\xed\xa0\x80y"}]}]'
        # 2 bytes and 1 surrogate
        assert read("sharegpt", raw).sessions == {"a": [("user", "x\ufffd\ufffd\ufffdy")]}

    def test_more_messages_than_a_batch(self, read: Read, chat: Chat) -> None:
        """A conversation longer than a batch, and long texts, come out whole and in order."""
        long = chat("long", *(f"human: {n}" for n in range(writing.FLUSH_MESSAGES + 5)))
        big = chat("big", *(f"human: {'x' * 3_000_000}" for _ in range(4)))
        out = read("sharegpt", [long, big, chat("last", "human: q")])
        # 8192 + 5 messages, then 4, then 1
        assert [len(out.sessions[name]) for name in ("long", "big", "last")] == [8197, 4, 1]
        assert [text for _, text in out.sessions["long"]] == [str(n) for n in range(8197)]


class TestStitching:
    """The V3 edition, stitched as docs/turns.md has it."""

    def test_ids(self) -> None:
        """The number is what follows the last underscore."""
        # a second underscore belongs to the id
        assert conversation_of("a_b_17") == ("a_b", 17)
        assert conversation_of("a_007") == ("a", 7)
        plain = ("abc", "a_", "a_b", "a_1b", "a_-1", "a_\u0663", "a_\u00b2", "a_1 ", "")
        assert [conversation_of(name) for name in plain] == [(name, None) for name in plain]

    def test_order_of_numbers(self, read: Read, chat: Chat) -> None:
        """Pieces that are scattered over the file and over files are put together by number, not by text."""
        pieces = [chat("x_10", "human: d"), chat("y_0", "human: y"), chat("x_2", "gpt: c"), chat("x_0", "human: a")]
        out = read("sharegpt-v3", pieces, [chat("x_1", "gpt: b")])
        # 0 1 2 10; x is the session that the file names first
        assert (list(out.sessions), said(out, "x"), out.kept) == (["x", "y"], "a b c d", 5)

    def test_equal_numbers(self, read: Read, chat: Chat) -> None:
        """Pieces of one number stay in the order of the file."""
        out = read("sharegpt-v3", [chat("x_5", "human: b"), chat("x_5", "gpt: c"), chat("x_0", "human: a")])
        # 0 5 5
        assert said(out, "x") == "a b c"

    def test_long_numbers(self, read: Read, chat: Chat) -> None:
        """Numbers of any length are compared as numbers."""
        out = read("sharegpt-v3", [chat("x_1000000000000000000", "gpt: b"), chat("x_999999999999999999", "human: a")])
        # 10^18 - 1 is below 10^18
        assert said(out, "x") == "a b"

    def test_an_id_without_a_number_stands_alone(self, read: Read, chat: Chat) -> None:
        """It never joins pieces of that name nor another record of the same id."""
        out = read("sharegpt-v3", [chat("x", "human: 1"), chat("x_0", "human: 2"), chat("x", "human: 3")])
        # three sessions of one message
        assert {name: said(out, name) for name in out.sessions} == {"x": "1", "x#2": "2", "x#3": "3"}

    @pytest.mark.parametrize(
        ("pieces", "expected"),
        [
            # the last message of one piece and the first of the next are identical: one is dropped
            ([["human: a", "gpt: b"], ["gpt: b", "human: c"]], "a b c"),
            # at most one a seam: a whole repeated pair keeps its first message
            ([["human: a", "gpt: b"], ["human: a", "gpt: b"]], "a b a b"),
            ([["human: a", "gpt: b", "gpt: b"], ["gpt: b", "gpt: b"]], "a b b b"),
            # same role, other text: kept
            ([["human: a", "gpt: b"], ["gpt: c"]], "a b c"),
            # same text, other role: kept
            ([["human: a"], ["gpt: a"]], "a a"),
            # a piece of one message that is dropped still decides the next seam
            ([["human: a"], ["human: a"], ["human: a", "gpt: b"]], "a b"),
            # within a piece nothing is dropped
            ([["human: a", "human: a"]], "a a"),
            # empty text is text
            ([["human: a", "gpt: "], ["gpt: ", "human: b"]], "a  b"),
            # both names of a role are one role
            ([["human: a"], ["user: a", "gpt: b"]], "a b"),
        ],
    )
    def test_seams(self, read: Read, chat: Chat, pieces: list[list[str]], expected: str) -> None:
        """One message is dropped where a seam repeats it, and at most one."""
        records = [chat(f"x_{n}", *piece) for n, piece in enumerate(pieces)]
        # the order of the file does not matter
        for order in itertools.permutations(records):
            out = read("sharegpt-v3", list(order))
            assert (said(out, "x"), out.kept) == (expected, len(pieces))

    def test_an_empty_piece(self, read: Read, chat: Chat) -> None:
        """It is rejected by itself, the seam is between its neighbours, and the conversation is kept."""
        empty = {"id": "x_1", "conversations": []}
        out = read("sharegpt-v3", [chat("x_0", "human: a", "gpt: b"), empty, chat("x_2", "gpt: b", "human: c")])
        # 3 = 2 kept + 1
        assert (out.reasons, said(out, "x"), out.kept) == ([(1, "no_messages")], "a b c", 2)

    def test_only_empty_pieces(self, read: Read) -> None:
        """A conversation of empty pieces is no session."""
        out = read("sharegpt-v3", [{"id": "x_0", "conversations": []}, {"id": "x_1", "conversations": []}])
        # 2 = 0 kept + 2
        assert (out.reasons, out.sessions) == ([(0, "no_messages"), (1, "no_messages")], {})

    @pytest.mark.parametrize(
        ("broken", "reason"),
        [
            ({"id": "x_1", "conversations": [{"from": "cat", "value": "miau"}]}, "unknown_role"),
            ({"id": "x_1", "conversations": [{"from": "human", "value": None}]}, "missing_field"),
            ({"id": "x_1"}, "missing_field"),
        ],
    )
    def test_a_broken_piece(self, read: Read, chat: Chat, broken: object, reason: str) -> None:
        """It rejects each piece of its conversation, wherever it stands; an empty piece keeps its own reason."""
        others = [chat("x_0", "human: a"), {"id": "x_2", "conversations": []}, chat("y_0", "human: y")]
        for order in itertools.permutations([*others, broken]):
            out = read("sharegpt-v3", list(order))
            found = {json.dumps(order[record]): why for record, why in out.reasons}
            # 4 = 1 kept + 3 rejected
            assert (list(out.sessions), out.kept, len(out.rejects)) == (["y"], 1, 3)
            assert found[json.dumps(broken)] == found[json.dumps(others[0])] == reason
            assert found[json.dumps(others[1])] == "no_messages"

    def test_replies_alone(self, read: Read, chat: Chat) -> None:
        """A conversation without a request gives a row for each piece; one request anywhere keeps them all."""
        out = read("sharegpt-v3", [chat("x_0", "gpt: a"), chat("x_3", "gpt: b")])
        assert (out.reasons, {row["session_id"] for row in out.rejects}) == (
            [(0, "no_request"), (1, "no_request")], {"x"}
        )  # fmt: skip
        # 36 % of the real pieces begin with a reply
        assert read("sharegpt-v3", [chat("x_0", "gpt: a"), chat("x_3", "human: b")]).kept == 2

    def test_records_without_an_id(self, read: Read, chat: Chat) -> None:
        """They break nobody else's conversation."""
        out = read("sharegpt-v3", [None, chat(None, "human: q"), 5, chat("x_0", "human: a")])
        # 4 = 1 + 3
        assert out.reasons == [(0, "not_an_object"), (1, "missing_field"), (2, "not_an_object")]
        assert (out.kept, said(out, "x")) == (1, "a")

    def test_digest_tells_role_and_text(self) -> None:
        """Role and text both count, and they do not run into one another."""
        digests = {message_digest(role, text) for role, text in ((0, "a"), (1, "a"), (0, "b"), (0, ""), (0, "\x01a"))}
        # 5 different messages
        assert len(digests) == 5

    def test_batches_do_not_matter(self, read: Read, chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
        """Pieces spread over many batches of the spool are stitched as from one."""
        records = [chat(f"{name}_{n}", f"human: {name}{n}", "gpt: r") for n in range(9) for name in "abc"]
        expected = read("sharegpt-v3", records)
        monkeypatch.setattr(writing, "FLUSH_MESSAGES", 3)
        # 9 pieces of 2 messages, no seam repeats
        assert read("sharegpt-v3", records).sessions == expected.sessions
        assert [len(session) for session in expected.sessions.values()] == [18, 18, 18]

    @pytest.mark.shared
    @pytest.mark.skipif(not SHARED.is_dir(), reason="the larger real data is not beside the checkout")
    @pytest.mark.parametrize(
        ("name", "records", "kept"),
        [
            ("v3_oddities.json", 132, 117),
            ("v3_split_families.json", 173, 172),
            # 293 = 291 + 2 empty; what the cut left of the next one is no record
            ("v3_truncated.json", 293, 291),
        ],
    )
    def test_real_oddities(self, read: Read, name: str, records: int, kept: int) -> None:
        """The odd files of the real set are read to their end, and the truncated one says where it was cut."""
        out = read("sharegpt-v3", SHARED / name)
        assert (out.records["file0"], out.kept) == (records, kept)
        cuts = [(row["record"], row["level"]) for row in out.rejects if row["reason"] == "truncated"]
        assert cuts == ([(records, "file")] if name == "v3_truncated.json" else [])


STORY = pa.schema(
    [
        ("document", pa.struct([("id", pa.string()), ("text", pa.string())])),
        ("question", pa.struct([("text", pa.string())])),
    ]
)


@pytest.fixture
def parquet(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes rows (id, story, question) as NarrativeQA does; None for a null struct."""

    def write(*rows: tuple[Any, ...] | None, name: str = "f") -> Path:
        path = tmp_path / f"{name}.parquet"
        data = [
            {
                "document": None if row is None or row[0] is Ellipsis else {"id": row[0], "text": row[1]},
                "question": None if row is None or row[2] is Ellipsis else {"text": row[2]},
            }
            for row in rows
        ]
        pq.write_table(pa.Table.from_pylist(data, schema=STORY), path, row_group_size=3)
        return path

    return write


class TestNarrativeQa:
    """Stories with questions, repeated in every row."""

    def test_each_story_once(self, read: Read, parquet: Callable[..., Path]) -> None:
        """Scattered questions come to their story in the order of files and rows; the text is kept once."""
        first = parquet(("b", "B", "b1"), ("a", "A", "a1"), ("b", "B", "b2"), ("a", "A", "a2"), name="train")
        out = read("narrativeqa", first, parquet(("b", "B", "b3"), ("c", "C", "c1"), name="test"))
        # 6 rows, 3 stories
        assert (out.kept, list(out.sessions)) == (6, ["b", "a", "c"])
        assert [said(out, name) for name in ("b", "a", "c")] == ["B b1 b2 b3", "A a1 a2", "C c1"]
        assert out.sessions["a"][0][0] == "document"
        assert out.sessions["a"][1][0] == "question"

    def test_nulls(self, read: Read, parquet: Callable[..., Path]) -> None:
        """A null struct, id, text or question is a missing field; the story lives on in its other rows."""
        path = parquet(None, (..., ..., "q"), (None, "A", "q"), ("a", None, "q"), ("a", "A", None), ("a", "A", ...),
                       ("a", "A", "q1"))  # fmt: skip
        out = read("narrativeqa", path)
        # 7 = 1 + 6
        assert (out.kept, said(out, "a")) == (1, "A q1")
        assert [row["detail"].split(" ")[0] for row in out.rejects] == [
            "document.id", "document.id", "document.id", "document.text", "question.text", "question.text"
        ]  # fmt: skip
        assert out.reasons == [(n, "missing_field") for n in range(6)]

    def test_many_batches(self, read: Read, parquet: Callable[..., Path]) -> None:
        """Rows over several batches and row groups keep their numbers."""
        rows = [(f"s{n % 3}", f"S{n % 3}", f"q{n}") for n in range(20)]
        out = read("narrativeqa", parquet(*rows, (None, "x", "y")))
        # the 21st row is record 20; story 1 has rows 1, 4, ... 19
        assert (out.reasons, out.kept) == ([(20, "missing_field")], 20)
        assert said(out, "s1") == "S1 " + " ".join(f"q{n}" for n in range(1, 20, 3))

    def test_empty_texts_and_no_rows(self, read: Read, parquet: Callable[..., Path]) -> None:
        """Empty text is text, and a file without rows is no error."""
        out = read("narrativeqa", parquet(("a", "", ""), name="one"), parquet(name="none"))
        # 1 + 0 rows
        assert (out.records, out.sessions) == (
            {"file0": 1, "file1": 0}, {"a": [("document", ""), ("question", "")]}
        )  # fmt: skip

    def test_not_parquet(self, read: Read, parquet: Callable[..., Path], tmp_path: Path) -> None:
        """A cut file and one of another layout are told by name."""
        cut = tmp_path / "cut.parquet"
        cut.write_bytes(parquet(("a", "A", "q")).read_bytes()[:-8])
        with refused(ErrorCode.BAD_FILE, "file0"):
            read("narrativeqa", cut)
        other = tmp_path / "other.parquet"
        pq.write_table(pa.table({"document": ["x"], "question": ["y"]}), other)
        with refused(ErrorCode.HUB_LAYOUT, "file0", "document.id"):
            read("narrativeqa", other)

    def test_a_damaged_page(self, read: Read, parquet: Callable[..., Path], tmp_path: Path) -> None:
        """A file whose footer is whole and whose pages are not is an error that names the file."""
        raw = bytearray(parquet(*[(f"s{n}", "S" * 3000 + str(n), "q") for n in range(9)]).read_bytes())
        for place in range(20, 60):
            raw[place] ^= 0xFF
        damaged = tmp_path / "damaged.parquet"
        damaged.write_bytes(raw)
        # 40 bytes of the first pages are inverted
        with refused(ErrorCode.BAD_FILE, "file0"):
            read("narrativeqa", damaged)

    def test_splits(self, tmp_path: Path) -> None:
        """All three splits are read, train first; a missing one is an error that names it."""
        folder = tmp_path / "deepmind/narrativeqa/data"
        folder.mkdir(parents=True)
        for name in ("test-0", "train-1", "train-0"):
            (folder / f"{name}.parquet").touch()
        hub = SampleHub(tmp_path, "r")
        with refused(ErrorCode.HUB_LAYOUT, "deepmind/narrativeqa", "validation"):
            workload("narrativeqa").select(hub, "deepmind/narrativeqa", "r")
        (folder / "validation-0.parquet").touch()
        found = workload("narrativeqa").select(hub, "deepmind/narrativeqa", "r")
        # 2 + 1 + 1 files
        assert [Path(path).stem for path in found] == ["train-0", "train-1", "validation-0", "test-0"]


class TestFinQa:
    """Filings with questions, repeated in every record."""

    @staticmethod
    def record(context: object, question: object) -> dict[str, object]:
        """Return a record as DocFinQA has it."""
        return {"Context": context, "Question": question, "Program": "add(1, 2)", "Answer": "3"}

    def test_each_filing_once(self, read: Read) -> None:
        """Filings are keyed by the hash of their text, over all files, and questions keep their order."""
        train = [self.record("F", "f1"), self.record("G", "g1"), self.record("F", "f2")]
        out = read("finqa", train, [self.record("F", "f3")], [self.record("F ", "other")])
        key = hashlib.sha256(b"F").hexdigest()
        # 5 records, 3 texts: "F " is another one
        assert (out.kept, len(out.sessions)) == (5, 3)
        assert out.sessions[key] == [("document", "F"), ("question", "f1"), ("question", "f2"), ("question", "f3")]

    def test_json_lines(self, read: Read) -> None:
        """Lines give what an array gives, and a broken line in the middle is one reject."""
        records = [self.record("F", f"f{n}") for n in range(3)]
        lines = [json.dumps(record).encode() for record in records]
        array = read("finqa", records)
        assert read("finqa", b"\r\n".join(lines)).sessions == array.sessions
        broken = read("finqa", b"\n".join([lines[0], b'{"Context": "F", "Quest', lines[1], lines[2]]))
        # 4 = 3 + 1
        assert (broken.kept, broken.reasons, broken.sessions) == (3, [(1, "not_an_object")], array.sessions)

    def test_rejects(self, read: Read) -> None:
        """What is not an object, and a field that is absent, null or not text."""
        out = read("finqa", [[], self.record(None, "q"), self.record("F", 5), {"Context": "F"}, self.record("F", "q")])
        # 5 = 1 + 4
        assert out.kept == 1
        assert out.reasons == [(0, "not_an_object"), (1, "missing_field"), (2, "missing_field"), (3, "missing_field")]

    def test_surrogates(self, read: Read) -> None:
        """The key is the hash of the text as it is kept, lone surrogates replaced."""
        out = read("finqa", [self.record("F\ud800", "q\udfff")])
        # one U+FFFD each
        assert out.sessions == {hashlib.sha256("F\ufffd".encode()).hexdigest(): [
            ("document", "F\ufffd"), ("question", "q\ufffd")
        ]}  # fmt: skip

    def test_five_megabytes(self, read: Read) -> None:
        """A filing of five megabytes, repeated, is read and kept once."""
        filing = "x" * 5_000_000
        out = read("finqa", [self.record(filing, "q1"), self.record(filing, "q2")])
        (session,) = out.sessions.values()
        # 1 document and 2 questions
        assert [len(text) for _, text in session] == [5_000_000, 2, 2]

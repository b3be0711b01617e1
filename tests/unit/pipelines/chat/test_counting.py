"""K and T of whole workloads by the chat template: rules by hand, documents, the check, and a linear amount of work."""

from __future__ import annotations

import dataclasses
import hashlib
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.chat.counting import ChatCounted, count_chat
from pipelines.chat.documents import ending_of, question_prompts
from pipelines.chat.layout import Ints, layout_of, read_layout
from pipelines.chat.official import Official
from pipelines.chat.pieces import Pieces, count_pieces
from pipelines.chat.prompts import prompt_turns
from pipelines.chat.spot_checks import choose_turns
from pipelines.counting.engines import Counter, Counts, Ids, official_prompts
from pipelines.sessions.messages import Messages
from pipelines.sessions.writing import ASSISTANT, DOCUMENT, QUESTION, SYSTEM, TOOL, USER, SessionsWriter
from pipelines.turns.derivation import chat_turns
from pipelines.vocab.files import TokenizerFile
from pipelines.vocab.template_files import chat_template
from pipelines.workloads.declaration import InputFile
from pipelines.workloads.sets import workload

_SHARED = Path(__file__).parents[4].parent / "shared"
Message = tuple[int, int, int, str]


@pytest.fixture(scope="module")
def official(file: TokenizerFile, exact: Counter) -> Official:
    """Return the real template and the reference engine."""
    return Official(official_prompts(file, chat_template(file)), exact, exact.encode(file.spec.template.end_of_turn))


def _store(folder: Path, messages: Sequence[Message]) -> Messages:
    """Write messages (session, position, role, text) in their order, in batches of three."""
    writer = SessionsWriter(folder, "w")
    for number, message in enumerate(messages):
        writer.message(*message)
        if number % 3 == 2:
            writer.flush()
    writer.close()
    return Messages(folder)


def _chat(session: int, *parts: tuple[int, str]) -> list[Message]:
    return [(session, position, role, text) for position, (role, text) in enumerate(parts)]


def _tokens(messages: Sequence[Message], counter: Counter) -> Counts:
    return counter.count(pa.array([text for *_, text in messages], pa.large_string()))


def _rows(counted: ChatCounted) -> list[tuple[int, int, int, int]]:
    turns = counted.turns
    columns = (turns.session, turns.turn_index, turns.cached, turns.prefill)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _numbers(role: list[int], early: list[int], header: int = 4, frame: int = 5) -> tuple[Counts, Pieces]:
    """Return the tokens and numbers of messages in frames of so many tokens, replies shown as they were written."""
    pieces, size = np.array(early, np.int64), len(early)
    tokens = pieces - frame
    reply = np.where(np.array(role) == ASSISTANT, header + tokens + 1, 0)
    none = np.zeros(size, np.bool_)
    query = np.array(role) == USER
    return tokens, Pieces(
        header, pieces, pieces.copy(), reply, reply.copy(), np.full(size, -1), query, none, none.copy()
    )  # fmt: skip


def test_prompts_added_up_by_hand() -> None:
    """Pieces of 10, 7 and 9 tokens and a header of 4: the second prompt shares the first, the reply and its end."""
    role = [USER, ASSISTANT, USER]
    tokens, pieces = _numbers(role, [10, 7, 9])
    found = prompt_turns(np.zeros(3, np.int64), np.array(role, np.int8), tokens, pieces)
    # first 10 + 4 = 14; then 10 + 7 + 9 + 4 = 30, of which 14 + 2 (reply) + 1 (end of turn) = 17
    assert (found.turns.cached.tolist(), found.turns.prefill.tolist()) == ([0, 17], [14, 13])
    # text: [5 2 4] -> 5 and 11 tokens; 14 - 5 = 9, 30 - 11 = 19
    assert found.template_tokens.tolist() == [9, 19]
    # 2 tokens of the reply and the end of turn
    assert (found.turns.output.tolist(), found.turns.has_output.tolist()) == ([3, 0], [True, False])


def test_only_the_first_of_several_replies_was_generated() -> None:
    """The second reply is new input; both are output."""
    role = [USER, ASSISTANT, ASSISTANT, USER]
    tokens, pieces = _numbers(role, [10, 7, 8, 9])
    found = prompt_turns(np.zeros(4, np.int64), np.array(role, np.int8), tokens, pieces)
    # 10 + 7 + 8 + 9 + 4 = 38, of which again 14 + 2 + 1 = 17
    assert (found.turns.cached.tolist(), found.turns.prefill.tolist()) == ([0, 17], [14, 21])
    # 2 + 3 tokens of replies, two ends of turn
    assert found.turns.output.tolist() == [7, 0]


def test_thinking_that_is_shown_until_the_next_query() -> None:
    """The prompts part inside the reply whose thinking is dropped, wherever it stands."""
    role = [USER, ASSISTANT, TOOL, ASSISTANT, USER]
    tokens, pieces = _numbers(role, [10, 7, 8, 6, 9])
    late, twist, shared_late = pieces.late.copy(), pieces.twist.copy(), pieces.shared_late.copy()
    # The first reply's piece has 20 tokens with thinking, 7 without; 3 of both are the same.
    late[1], twist[1], shared_late[1] = 20, 3, 18
    pieces = dataclasses.replace(pieces, late=late, twist=twist, shared_late=shared_late)
    found = prompt_turns(np.zeros(5, np.int64), np.array(role, np.int8), tokens, pieces)
    # 14; then 10 + 20 + 8 + 4 = 42 of which 10 + 18; then 10 + 7 + 8 + 6 + 9 + 4 = 44 of which 10 + 3
    assert (found.turns.cached.tolist(), found.turns.prefill.tolist()) == ([0, 28, 13], [14, 14, 31])


def test_sessions_do_not_touch_each_other() -> None:
    """An opening reply belongs to its own session's first prompt and to nobody's output."""
    role = [USER, ASSISTANT, ASSISTANT, USER, USER]
    tokens, pieces = _numbers(role, [10, 7, 8, 9, 6])
    found = prompt_turns(np.array([3, 3, 5, 5, 8]), np.array(role, np.int8), tokens, pieces)
    # 10 + 4; 8 + 9 + 4; 6 + 4
    assert (found.turns.cached.tolist(), found.turns.prefill.tolist()) == ([0, 0, 0], [14, 21, 10])
    assert (found.turns.session.tolist(), found.turns.output.tolist()) == ([3, 5, 8], [3, 0, 0])


def test_turns_join_with_those_of_text() -> None:
    """The same sessions and indices as `text`; a turn that is empty there is not empty here."""
    role = [USER, ASSISTANT, USER]
    tokens, pieces = _numbers(role, [5, 7, 9])
    session = np.zeros(3, np.int64)
    text = chat_turns(session, np.array(role, np.int8), tokens)
    found = prompt_turns(session, np.array(role, np.int8), tokens, pieces).turns
    # [h0 g2 h4]: the first turn of text has K + T = 0; here its prompt has 5 + 4 tokens
    assert text.is_empty.tolist() == [True, False]
    assert (found.is_empty.tolist(), found.prefill.tolist()[0]) == ([False, False], 9)
    assert found.turn_index.tolist() == text.turn_index.tolist()


_CONVERSATIONS = [
    *_chat(0, (USER, "Hello there."), (ASSISTANT, "Hi! What is it?"), (USER, "A question\nin two lines.")),
    *_chat(1, (SYSTEM, " Be brief. "), (USER, ""), (ASSISTANT, "\n\nYes."), (ASSISTANT, "No. "), (USER, "1")),
    *_chat(2, (ASSISTANT, "<think>\nHm\n</think>\n\nx"), (USER, "a"), (ASSISTANT, "<think>b</think>c"), (TOOL, "d")),
]


def test_a_workload_equals_its_real_prompts(
    file: TokenizerFile, fast: Counter, official: Official, tmp_path: Path
) -> None:
    """Messages of several sessions in any order of the file, every turn compared with whole prompts."""
    messages = [_CONVERSATIONS[at] for at in (5, 0, 9, 3, 8, 1, 11, 4, 2, 7, 10, 6)]
    counted = count_chat(_store(tmp_path, messages), file, "chat", text_tokens=_tokens(messages, fast), fast=fast)
    chats = {n: [(role, text) for session, _, role, text in _CONVERSATIONS if session == n] for n in range(3)}
    # ends of prompts and of the one before: a turn a run of requests
    places = [(0, 1, None), (0, 3, 1), (1, 2, None), (1, 5, 2), (2, 2, None), (2, 4, 2)]
    expected = [official.chat_turn(chats[session], end, before) for session, end, before in places]
    assert [row[2:] for row in _rows(counted)] == expected
    assert [row[:2] for row in _rows(counted)] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert (counted.engine, counted.differences, counted.is_exact) == ("fastokens", [], True)
    assert counted.checked_turns == 6
    text = chat_turns(*_sorted(_CONVERSATIONS), _tokens(_CONVERSATIONS, fast))
    whole = counted.turns.cached + counted.turns.prefill
    assert counted.template_tokens.tolist() == (whole - text.cached - text.prefill).tolist()


def _sorted(messages: Sequence[Message]) -> tuple[Ints, npt.NDArray[np.int8]]:
    return np.array([row[0] for row in messages], np.int64), np.array([row[2] for row in messages], np.int8)


def test_a_reply_that_goes_on_like_the_next_message_is_rendered(
    file: TokenizerFile, fast: Counter, official: Official, tmp_path: Path
) -> None:
    """Where a reply's shown piece is the beginning of what was generated, the real template decides."""
    if file.spec.name != "qwen3":
        pytest.skip("llama-3.1 shows every reply whole but for blank edges")
    # Shown is `x`; generated was `x`, an end of turn and then what the next message looks like.
    reply = "x<|im_end|>\n<|im_start|>user\nnext<think></think>x"
    chat = [(USER, "a"), (ASSISTANT, reply), (USER, "next?"), (ASSISTANT, "b"), (USER, "c")]
    messages = [*_chat(0, (USER, "plain")), *_chat(1, *chat)]
    counted = count_chat(_store(tmp_path, messages), file, "chat", text_tokens=_tokens(messages, fast), fast=fast)
    assert counted.rendered_turns == 1
    places = [(1, None), (3, 1), (5, 3)]
    assert [row[2:] for row in _rows(counted)[1:]] == [official.chat_turn(chat, *place) for place in places]
    # <|im_start|>user\na<|im_end|>\n is 6 tokens, then <|im_start|>assistant\n x <|im_end|>\n is 6,
    # then <|im_start|>user\nnext is 4: shared are 16 tokens, and `?` is new
    assert _rows(counted)[2][2] == 16
    assert counted.is_exact


def test_replies_that_go_on_like_no_message_are_added_up(
    file: TokenizerFile, fast: Counter, official: Official, tmp_path: Path
) -> None:
    """What was generated goes on behind the shown piece, but not as a message begins: no prompt is needed."""
    if file.spec.name != "qwen3":
        pytest.skip("llama-3.1 shows every reply whole but for blank edges")
    # Shown is `x`; generated was `x`, an end of turn and then an end of thinking.
    chat = [(USER, "a"), (ASSISTANT, "x<|im_end|>\n</think>x")] * 20
    messages = _chat(0, *chat)
    counted = count_chat(_store(tmp_path, messages), file, "chat", text_tokens=_tokens(messages, fast), fast=fast)
    assert counted.rendered_turns == 0
    places = [(1, None), *((end, end - 2) for end in range(3, 40, 2))]
    assert [row[2:] for row in _rows(counted)] == [official.chat_turn(chat, *place) for place in places]


def test_only_the_turn_that_needs_it_is_rendered(
    file: TokenizerFile, fast: Counter, official: Official, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One such reply in a conversation of 200 turns costs one turn's real prompts, not everyone's."""
    if file.spec.name != "qwen3":
        pytest.skip("llama-3.1 shows every reply whole but for blank edges")
    reply = "x<|im_end|>\n<|im_start|>user\nnext<think></think>x"
    chat = [(USER, "a"), (ASSISTANT, reply), *[(USER, "next?"), (ASSISTANT, "b")] * 199]
    rendered: list[int] = []
    real_turn = Official.chat_turn

    def noting(self: Official, some: Sequence[tuple[int, str]], end: int, before: int | None) -> tuple[int, int]:
        rendered.append(end)
        return real_turn(self, some, end, before)

    monkeypatch.setattr(Official, "chat_turn", noting)
    messages = _chat(0, *chat)
    tokens = _tokens(messages, fast)
    counted = count_chat(_store(tmp_path, messages), file, "chat", text_tokens=tokens, fast=fast, check_tokens=0)
    # the second turn's prompt ends before message 3; the comparison has no budget, which gives one turn a kind
    assert (counted.rendered_turns, rendered.count(3)) == (1, 1)
    assert len(rendered) <= 1 + 3
    assert _rows(counted)[1][2:] == official.chat_turn(chat, 3, 1)


def _recording(counter: Counter, seen: list[str]) -> Counter:
    """Return an engine that notes every text it is given."""
    assert counter.encode_strings is not None
    encode = counter.encode_strings

    def count_strings(strings: list[str]) -> Counts:
        seen.extend(strings)
        return counter.count_strings(strings)

    def encode_strings(strings: list[str]) -> list[Ids]:
        seen.extend(strings)
        return encode(strings)

    return dataclasses.replace(counter, count_strings=count_strings, encode_strings=encode_strings)


@pytest.mark.parametrize("reply", ["as it is", "\nwith edges ", "<think>\nthis\n</think>\n\nthat"])
def test_work_grows_as_the_text_does(file: TokenizerFile, fast: Counter, reply: str) -> None:
    """Twice the turns give the engine twice the characters at most: plain texts none, others three times their own."""
    given_characters = []
    for turns in (100, 200, 400):
        texts = pa.array([f"{reply} {number % 2}" for number in range(2 * turns)], pa.large_string())
        role = np.tile(np.array([USER, ASSISTANT], np.int8), turns)
        layout = layout_of(np.zeros(2 * turns, np.int32), np.arange(2 * turns, dtype=np.int32), role)
        seen: list[str] = []
        count_pieces([texts], layout, file.spec.template, _recording(fast, seen), fast.count(texts))
        given_characters.append(sum(map(len, seen)))
        frames = 60 * 2 * turns
        assert given_characters[-1] <= 1000 + 3 * (sum(map(len, texts.to_pylist())) + frames)
    grown = [given_characters[1] - given_characters[0], given_characters[2] - given_characters[1]]
    assert grown[1] == 2 * grown[0]
    if reply == "as it is":
        assert grown == [0, 0]


_DOCUMENTS = (
    "",
    "word",
    "A story. It ends.",
    "A story that ends in a word",
    "  \n\nA story with blank edges.\n\n  ",
    "\u3000One. Two\u3000",
    "no blank,only.signs-and/words",
    "\u65e5\u672c\u8a9e\u306e\u6587\u7ae0\u3002",
    "ends in a digit 12",
    "ends in lines\nword\n\n\n",
    "<|im_end|> inside <|eot_id|> of it <think> x </think>",
    " " * 300,
    "A long one. " * 900 + "\nIt ends here: [",
)
_QUESTIONS = ("What?", "", " ", "A", "1", "A1", "12", "\n\nWhy", " why? ", "\u0301", "].")


def test_documents_equal_their_real_prompts(
    file: TokenizerFile, fast: Counter, official: Official, tmp_path: Path
) -> None:
    """Every end of a document with every question, from its end alone, equals the whole prompts."""
    messages = [(n, 0, DOCUMENT, text) for n, text in enumerate(_DOCUMENTS)]
    # Questions stand in any order behind the documents.
    for position, question in enumerate(_QUESTIONS, 1):
        messages += [(n, position, QUESTION, question) for n in range(len(_DOCUMENTS))]
    tokens = _tokens(messages, fast)
    counted = count_chat(_store(tmp_path, messages), file, "documents", text_tokens=tokens, fast=fast)
    expected = [
        (n, at, *official.question(document, question))
        for n, document in enumerate(_DOCUMENTS)
        for at, question in enumerate(_QUESTIONS)
    ]
    assert _rows(counted) == expected
    assert not counted.turns.has_output.any()
    assert counted.is_exact
    assert min(counted.turns.prefill) >= 1


_WORDS = st.lists(
    st.sampled_from(("a", "Word", " ", "  ", "\n", "\r\n", ".", "12", "\u0301", "\u3000", "<think>", "["))
)


@given(document=_WORDS.map("".join), question=_WORDS.map("".join))
def test_any_document_and_question(
    file: TokenizerFile, fast: Counter, official: Official, document: str, question: str
) -> None:
    """The same for texts of any such parts."""
    texts = pa.array([document, question], pa.large_string())
    layout = layout_of(np.zeros(2, np.int32), np.arange(2, dtype=np.int32), np.array([DOCUMENT, QUESTION], np.int8))
    cached, prefill = question_prompts([texts], layout, file.spec.template, fast, fast.count(texts))
    assert (cached[1], prefill[1]) == official.question(document, question)


@pytest.mark.parametrize(
    "document",
    [
        "Some words of a story, " * 5000 + "the end.",
        "\u043d\u0435\u043a\u043e\u0442\u043e\u0440\u044b\u0435 \u0441\u043b\u043e\u0432\u0430, " * 9000
        + "\u043a\u043e\u043d\u0435\u0446.",
        "\u6545\u4e8b\u306e\u4e00\u884c\u3002\n" * 15_000 + "\u7d42\u308f\u308a\u3002",
        "1,234.5  (678)\t90%\n" * 6000 + "1.",
    ],
    ids=["words", "Russian", "lines of Japanese", "figures"],
)
def test_a_document_is_not_tokenised_again(file: TokenizerFile, fast: Counter, document: str) -> None:
    """Its tokens are those of the text count; the engine sees its edges, and its end once a question."""
    texts = pa.array([document, *("Why?" for _ in range(30))], pa.large_string())
    role = np.array([DOCUMENT, *[QUESTION] * 30], np.int8)
    layout = layout_of(np.zeros(31, np.int32), np.arange(31, dtype=np.int32), role)
    seen: list[str] = []
    question_prompts([texts], layout, file.spec.template, _recording(fast, seen), fast.count(texts))
    # 32 prompts of an end of a few characters with a frame of less than 130, and the beginning of the first one
    assert sum(map(len, seen)) < 33 * 140 < len(document) / 20


def test_where_a_document_is_cut(file: TokenizerFile, fast: Counter) -> None:
    """Before the last blank behind anything, or line break behind a letter, or behind the last line break."""
    tails = {
        "One two. Three.": " Three.", "One two": "", "One two\n ": "\n ", "1 2 3": " 3", "": "", "1.": "1.",
        "\u5929\n\u5730\u3002": "\u5730\u3002", "\u044f \u0434\u0430": " \u0434\u0430",
        ".\r\n": ".\r\n", "a.\n": "a.\n",
    }  # fmt: skip
    for document, tail in tails.items():
        tokens = int(fast.count(pa.array([document]))[0])
        assert ending_of(memoryview(document.encode()), tokens, file.spec.template, fast).tail == tail


def test_a_question_before_its_document_is_refused(file: TokenizerFile, fast: Counter) -> None:
    """A product that is not in order is an error of ours, never a wrong number."""
    layout = layout_of(np.zeros(1, np.int32), np.ones(1, np.int32), np.array([QUESTION], np.int8))
    texts = pa.array(["Why?"], pa.large_string())
    with pytest.raises(ValueError, match="row 0 asks about a document that was not seen yet"):
        question_prompts([texts], layout, file.spec.template, fast, np.ones(1, np.int64))


@pytest.mark.parametrize("rows", [[], [1, 2]])
def test_counts_of_other_messages_are_refused(file: TokenizerFile, fast: Counter, rows: list[int]) -> None:
    """One number a message, else nothing is counted."""
    layout = layout_of(np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int8))
    with pytest.raises(ValueError, match=f"{len(rows)} token counts for 1 messages"):
        count_pieces([], layout, file.spec.template, fast, np.array(rows, np.int64))
    with pytest.raises(ValueError, match="0 texts for 1 messages"):
        count_pieces([], layout, file.spec.template, fast, np.ones(1, np.int64))


def _off_by_one(counter: Counter, marker: str) -> Counter:
    """Return an engine that finds one token too many in texts with the marker."""
    assert counter.encode_strings is not None
    encode = counter.encode_strings

    def count_strings(strings: list[str]) -> Counts:
        return counter.count_strings(strings) + np.array([marker in text for text in strings], np.int64)

    def encode_strings(strings: list[str]) -> list[Ids]:
        pairs = zip(strings, encode(strings), strict=True)
        return [np.append(ids, np.uint32(0)) if marker in text else ids for text, ids in pairs]

    return Counter("wrong", "0.1", count_strings, encode_strings=encode_strings)


def test_a_difference_makes_everything_be_counted_again(
    file: TokenizerFile, fast: Counter, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Token counts that are wrong are found by real prompts; then the exact engine counts, texts alone included."""
    messages = [row for n in range(20) for row in _chat(n, (USER, f"{n} is"), (ASSISTANT, "MARK"), (USER, "ok"))]
    store, truth = _store(tmp_path, messages), _tokens(messages, fast)
    wrong = _off_by_one(fast, "MARK")
    with caplog.at_level(logging.WARNING, "kappa"):
        counted = count_chat(store, file, "chat", text_tokens=_tokens(messages, wrong), fast=wrong)
    assert (counted.engine, counted.is_exact) == ("tokenizers", True)
    right = count_chat(store, file, "chat", text_tokens=truth, fast=fast)
    assert _rows(counted) == _rows(right)
    assert right.differences == []
    # Every second turn has the reply in its prompt: one token too many, before the next request.
    found = counted.differences[0]
    assert {difference.turn_index for difference in counted.differences} == {1}
    assert found.sha256 == hashlib.sha256(b"ok").hexdigest()
    assert found.counted == (found.exact[0] + 1, found.exact[1])
    assert "wrong and real prompts differ on" in caplog.text


def test_a_second_count_that_differs_too_is_not_exact(file: TokenizerFile, fast: Counter, tmp_path: Path) -> None:
    """Then the counts cannot be trusted, and the result says so."""
    messages = _chat(0, (USER, "MARK"))
    wrong = _off_by_one(fast, "MARK")
    tokens = _tokens(messages, wrong)
    counted = count_chat(_store(tmp_path, messages), file, "chat", text_tokens=tokens, fast=wrong, exact=wrong)
    assert (counted.is_exact, len(counted.differences)) == (False, 1)


def test_an_engine_that_fails_is_replaced(file: TokenizerFile, fast: Counter, tmp_path: Path) -> None:
    """The exact engine takes over, and the counts are the same."""

    def fail(strings: list[str]) -> Counts:
        raise RuntimeError(f"cannot count {len(strings)}")

    store, tokens = _store(tmp_path, _CONVERSATIONS), _tokens(_CONVERSATIONS, fast)
    counted = count_chat(store, file, "chat", text_tokens=tokens, fast=dataclasses.replace(fast, count_strings=fail))
    assert counted.engine == "tokenizers"
    assert _rows(counted) == _rows(count_chat(store, file, "chat", text_tokens=tokens, fast=fast))


def test_a_small_budget_compares_little(file: TokenizerFile, fast: Counter, tmp_path: Path) -> None:
    """A long prompt beyond the budget is not rendered; nothing that fits is no reason to fail."""
    messages = [row for n in range(50) for row in _chat(n, (USER, f"{n} " * 20), (ASSISTANT, "b"), (USER, "c"))]
    store, tokens = _store(tmp_path, messages), _tokens(messages, fast)
    checked = [
        count_chat(store, file, "chat", text_tokens=tokens, fast=fast, check_tokens=budget).checked_turns
        for budget in (1, 2000, 10**9)
    ]
    # none, some, all 100
    assert checked[0] == 0 < checked[1] < checked[2] == 100


def test_where_every_prompt_is_beyond_the_budget() -> None:
    """The cheapest is taken, up to three times the budget; never one where a cheaper one fits."""
    rows, direct = np.arange(3), np.zeros(3, np.bool_)
    assert choose_turns(np.array([900, 300, 301]), rows, direct, 100) == [1]
    assert choose_turns(np.array([900, 301, 302]), rows, direct, 100) == []
    assert choose_turns(np.array([900, 100, 101]), rows, direct, 100) == [1]
    assert choose_turns(np.zeros(0, np.int64), rows[:0], direct[:0], 100) == []


def test_progress_and_an_empty_workload(file: TokenizerFile, fast: Counter, tmp_path: Path) -> None:
    """Bytes of text are told after each batch; no message gives no turn."""
    done: list[int] = []
    for folder, kind in (("chat", "chat"), ("documents", "documents")):
        (tmp_path / folder).mkdir()
        store = _store(tmp_path / folder, [])
        counted = count_chat(store, file, kind, text_tokens=np.zeros(0, np.int64), fast=fast)  # type: ignore[arg-type]
        assert (len(counted.turns.cached), counted.checked_turns, counted.is_exact) == (0, 0, True)
    (tmp_path / "told").mkdir()
    store, tokens = _store(tmp_path / "told", _CONVERSATIONS), _tokens(_CONVERSATIONS, fast)
    count_chat(store, file, "chat", text_tokens=tokens, fast=fast, on_progress=done.append)
    assert done[-1] == sum(len(text.encode()) for *_, text in _CONVERSATIONS)


def test_texts_are_read_again_by_row(tmp_path: Path) -> None:
    """Rows of several batches in any order."""
    store = _store(tmp_path, _CONVERSATIONS)
    texts = [text for *_, text in _CONVERSATIONS]
    assert store.texts_at(np.array([11, 0, 4, 3])) == [texts[at] for at in (11, 0, 4, 3)]
    assert [text for batch in store.texts() for text in batch.to_pylist()] == texts
    assert read_layout(store).session.tolist() == [0] * 3 + [1] * 5 + [2] * 4


def test_what_stands_around_a_message() -> None:
    """Neighbours are those of the conversation, not of the file."""
    session, position = np.array([1, 0, 1, 0, 0], np.int32), np.array([1, 0, 0, 2, 1], np.int32)
    layout = layout_of(session, position, np.array([TOOL, TOOL, USER, TOOL, TOOL], np.int8))
    # session 0 is rows 1, 4, 3, all tools; session 1 is rows 2, 0, a user's and a tool's
    assert layout.order.tolist() == [1, 4, 3, 2, 0]
    assert layout.is_first.tolist() == [False, True, True, False, False]
    assert layout.after_tool.tolist() == [False, False, False, True, True]
    assert layout.before_tool.tolist() == [False, True, True, False, True]


@pytest.mark.shared
@pytest.mark.parametrize("name", ["v3_oddities.json", "v3_split_families.json", "v3_truncated.json"])
def test_real_conversations(file: TokenizerFile, fast: Counter, tmp_path: Path, name: str) -> None:
    """Conversations of the V3 edition picked for defects: a good many turns equal their real prompts."""
    path = _SHARED / "data/sharegpt" / name
    if not path.is_file():
        pytest.skip("the real conversations are not beside the checkout")
    writer = SessionsWriter(tmp_path, "sharegpt-v3")
    workload("sharegpt-v3").read([InputFile(name, path)], writer, lambda _: None)
    writer.close()
    store = Messages(tmp_path)
    tokens = np.concatenate([fast.count(texts) for texts in store.texts()])
    counted = count_chat(store, file, "chat", text_tokens=tokens, fast=fast)
    assert (counted.differences, counted.is_exact) == ([], True)
    assert counted.checked_turns > 20

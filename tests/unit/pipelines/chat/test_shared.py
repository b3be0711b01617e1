"""K by `prefix` of whole workloads against real prompts and a set of every prefix."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from pipelines.chat import shared
from pipelines.chat.counting import count_chat
from pipelines.chat.layout import Ints, read_layout
from pipelines.chat.official import Chat, Official
from pipelines.chat.rendered import Prompts
from pipelines.chat.shared import Known, Rendered, prefix_of_chats, prefix_of_documents, shared_with_earlier
from pipelines.counting.engines import Counter, official_prompts
from pipelines.sessions.messages import Messages
from pipelines.sessions.writing import ASSISTANT, DOCUMENT, QUESTION, SYSTEM, TOOL, USER, SessionsWriter
from pipelines.turns.derivation import Turns
from pipelines.vocab.files import TokenizerFile
from pipelines.vocab.template_files import chat_template

_LINES = "A rule of the house is that nobody may enter it at night.\nThe second rule is longer than the first one is.\n"
_TEXTS = ("x", "", " Yes. ", "<think>\nHm.\n</think>\n\nYes.", _LINES, _LINES * 2, _LINES + "x", _LINES * 2 + "\n y")


@pytest.fixture(scope="module")
def official(file: TokenizerFile, exact: Counter) -> Official:
    """Return the real template and the reference engine."""
    return Official(official_prompts(file, chat_template(file)), exact, exact.encode(file.spec.template.end_of_turn))


@pytest.fixture
def limits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[int | None, ...]:
    """Cut the starts of sessions elsewhere."""
    monkeypatch.setattr(shared, "LIMITS", request.param)
    return request.param  # type: ignore[no-any-return]


def _drawn(count: int, seed: int) -> list[Chat]:
    """Draw sessions that often begin as an earlier one does, often with a system message."""
    rng = Random(seed)
    chats: list[list[tuple[int, str]]] = []
    for _ in range(count):
        begun = list(rng.choice(chats)[: rng.randint(0, 5)]) if chats and rng.random() < 0.6 else []
        begun = begun or [(SYSTEM, rng.choice(_TEXTS[4:]))] * rng.randint(0, 1)
        more = [(rng.choice((USER, ASSISTANT, ASSISTANT, TOOL)), rng.choice(_TEXTS)) for _ in range(rng.randint(0, 5))]
        chats.append([*begun, *more, (USER, rng.choice(_TEXTS))])
    return [list(chat) for chat in chats]


def _store(folder: Path, sessions: list[Chat]) -> Messages:
    writer = SessionsWriter(folder, "w")
    for number, chat in enumerate(sessions):
        for position, (role, text) in enumerate(chat):
            writer.message(number, position, role, text)
    writer.close()
    return Messages(folder)


def _tokens(sessions: list[Chat], counter: Counter) -> Ints:
    return counter.count(pa.array([text for chat in sessions for _, text in chat], pa.large_string()))


def _history(messages: Messages, file: TokenizerFile, tokens: Ints, kind: str) -> Turns:
    return count_chat(messages, file, kind, text_tokens=tokens).turns  # type: ignore[arg-type]


class _Held:
    """A set of every prefix of whole blocks that was left."""

    def __init__(self) -> None:
        self.prefixes: set[tuple[int, ...]] = set()

    def cached(self, prompt: list[int]) -> int:
        h = 0
        while 16 * (h + 1) <= len(prompt) and tuple(prompt[: 16 * (h + 1)]) in self.prefixes:
            h += 1
        return min(16 * h, len(prompt) - 1)

    def leave(self, tokens: list[int]) -> None:
        self.prefixes |= {tuple(tokens[: 16 * j]) for j in range(1, len(tokens) // 16 + 1)}


def _reference(sessions: list[Chat], official: Official) -> list[int]:
    held, found = _Held(), []
    for chat in sessions:
        for end in range(1, len(chat) + 1):
            is_reply = end < len(chat) and chat[end][0] == ASSISTANT
            if chat[end - 1][0] == ASSISTANT or not (end == len(chat) or is_reply):
                continue
            prompt = official._prompt(chat[:end]).tolist()
            found.append(held.cached(prompt))
            reply = [*official.exact.encode(chat[end][1]).tolist(), *official.end_of_turn.tolist()] if is_reply else []
            held.leave(prompt + reply)
    return found


@pytest.mark.parametrize("limits", [(40, 200, None), (1, None), shared.LIMITS], indirect=True)
def test_chats(
    tmp_path: Path, file: TokenizerFile, fast: Counter, official: Official, limits: tuple[int | None, ...]
) -> None:
    """120 sessions with shared starts, thinking, tools and edges that a template trims, wherever starts are cut."""
    sessions = _drawn(120, seed=len(limits))
    messages, tokens = _store(tmp_path, sessions), _tokens(sessions, fast)
    history = _history(messages, file, tokens, "chat")
    found = prefix_of_chats(messages, read_layout(messages), history, tokens, Known(file.spec.template, fast))
    expected = _reference(sessions, official)
    assert found.tolist() == expected
    # Sharing across sessions is there to be found.
    assert (np.array(expected) > history.cached).sum() > 20


def test_chats_by_the_text_of_a_template(
    tmp_path: Path, file: TokenizerFile, fast: Counter, official: Official
) -> None:
    """The same without facts."""
    sessions = _drawn(40, seed=7)
    messages, tokens = _store(tmp_path, sessions), _tokens(sessions, fast)
    history = _history(messages, file, tokens, "chat")
    prompts = Prompts(file, chat_template(file), fast)
    source = Rendered(prompts, file.spec.template.end_of_turn)
    assert prefix_of_chats(messages, read_layout(messages), history, tokens, source).tolist() == _reference(
        sessions, official
    )


@pytest.mark.parametrize("limits", [(40, 200, None), shared.LIMITS], indirect=True)
@pytest.mark.usefixtures("limits")
def test_documents(tmp_path: Path, file: TokenizerFile, fast: Counter, official: Official) -> None:
    """The first question is cold but for what other documents begin with, later ones find the document."""
    rng = Random(3)
    stories = [_LINES * rng.randint(0, 3) + rng.choice(("", "End.", "A cat\nsat." * 9, "x" * 99)) for _ in range(30)]
    asked = ("Who?", "Who is it that may enter the house at night, and why is that so, and not otherwise?", "1")
    sessions = [
        [(DOCUMENT, story), *((QUESTION, rng.choice(asked)) for _ in range(rng.randint(1, 4)))] for story in stories
    ]
    messages, tokens = _store(tmp_path, sessions), _tokens(sessions, fast)
    layout, history = read_layout(messages), _history(messages, file, tokens, "documents")
    held, expected = _Held(), []
    for (_, story), *questions in sessions:
        for _, question in questions:
            prompt = official._prompt([(USER, shared.document_content(story, question))]).tolist()
            expected.append(held.cached(prompt))
            held.leave(prompt)
    source = Known(file.spec.template, fast)
    own = shared_with_earlier(messages, layout, file.spec.template, fast, tokens)
    assert prefix_of_documents(messages, layout, history, own, source).tolist() == expected
    whole = Rendered(Prompts(file, chat_template(file), fast), file.spec.template.end_of_turn)
    none = np.zeros(len(expected), np.int64)
    assert prefix_of_documents(messages, layout, history, none, whole).tolist() == expected


def test_little_is_tokenised_where_little_is_shared(tmp_path: Path, file: TokenizerFile, fast: Counter) -> None:
    """Of 200 sessions of 40 KB that differ in their first line, their first kilobytes."""
    line = "There is a lot to say about many things, and here it is said again.\n"
    sessions = [[(USER, f"{number} is my number.\n" + line * 300), (ASSISTANT, line * 300 + "End."), (USER, "x")]
                for number in range(200)]  # fmt: skip
    messages, tokens = _store(tmp_path, list(sessions)), _tokens(list(sessions), fast)
    history = _history(messages, file, tokens, "chat")
    done = 0

    def encode_strings(strings: list[str]) -> list[np.ndarray]:
        nonlocal done
        done += sum(map(len, strings))
        assert fast.encode_strings is not None
        return fast.encode_strings(strings)

    counting = dataclasses.replace(fast, encode_strings=encode_strings)
    prefix_of_chats(messages, read_layout(messages), history, tokens, Known(file.spec.template, counting))
    # 1 KiB, a line and a frame of each; all of them are 200 * 40 KB
    assert done < 200 * 1_500


def test_sessions_whose_tokens_are_given(
    tmp_path: Path, file: TokenizerFile, fast: Counter, official: Official
) -> None:
    """Every other session comes with what its turns leave, as conversations with tools do: nothing changes."""
    sessions = _drawn(40, seed=5)
    messages, tokens = _store(tmp_path, sessions), _tokens(sessions, fast)
    history, source = _history(messages, file, tokens, "chat"), Known(file.spec.template, fast)
    ends = [[end for end in range(1, len(chat) + 1) if chat[end - 1][0] != ASSISTANT
             and (end == len(chat) or chat[end][0] == ASSISTANT)] for chat in sessions]  # fmt: skip
    given = [
        (number, [np.concatenate(source.encode(list(source.start(sessions[number], end, None).texts)))
                  for end in ends[number]])
        for number in range(0, len(sessions), 2)
    ]  # fmt: skip
    found = prefix_of_chats(messages, read_layout(messages), history, tokens, source, given)
    assert found.tolist() == _reference(sessions, official)

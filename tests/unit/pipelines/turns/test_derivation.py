"""Design rules 2 to 5 and 7: every example of the design, and a plain loop as the second implementation."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.sessions.writing import ASSISTANT, DOCUMENT, QUESTION, SYSTEM, TOOL, USER
from pipelines.turns.derivation import Turns, at_least_one, chat_turns, document_turns

ROLES = {"h": USER, "g": ASSISTANT, "s": SYSTEM, "t": TOOL, "d": DOCUMENT, "q": QUESTION}
Message = tuple[int, int]
# a turn is its K, its T, and its output or None
Turn = tuple[int, int, int | None]


def parse(text: str) -> list[Message]:
    """Return (role, tokens) of `h3 g2`."""
    return [(ROLES[role], int(tokens)) for role, tokens in re.findall(r"([a-z])(\d+)", text)]


def arrays(sessions: list[list[Message]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """Return session, role and tokens as arrays; session numbers have gaps."""
    rows = [(7 * n + 1, role, tokens) for n, messages in enumerate(sessions) for role, tokens in messages]
    session, role, tokens = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(session, np.int64), np.array(role, np.int8), np.array(tokens, np.int64)


def rows(turns: Turns) -> list[Turn]:
    """Return the turns as tuples."""
    found = zip(turns.cached.tolist(), turns.prefill.tolist(), turns.output.tolist(), turns.has_output, strict=True)
    return [(k, t, output if has_output else None) for k, t, output, has_output in found]


def loop(messages: list[Message]) -> list[Turn]:
    """Return the turns of one chat, message by message, after the words of the design."""
    turns: list[list[int | None]] = []
    said, is_in_run, opening = 0, False, 0
    for role, tokens in messages:
        if role != ASSISTANT:
            if not is_in_run:
                # K = everything before, replies included; what opened the session was never computed
                turns.append([0 if not turns else said, opening if not turns else 0, None])
            turns[-1][1] = (turns[-1][1] or 0) + tokens
        elif turns:
            turns[-1][2] = (turns[-1][2] or 0) + tokens
        else:
            opening += tokens
        is_in_run = role != ASSISTANT
        said += tokens
    return [_last_token(k or 0, t or 0, output) for k, t, output in turns]


def _last_token(k: int, t: int, output: int | None) -> Turn:
    return (k - 1, 1, output) if t == 0 and k > 0 else (k, t, output)


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        # rule 2: T = the run, K = everything before: 3+2 = 5, 3+2+1+4 = 10
        ("h3 g2 h1 g4 h2 g1", [(0, 3, 2), (5, 1, 4), (10, 2, 1)]),
        # a run of two: 3+2 = 5; K = 5+4 = 9
        ("h3 h2 g4 h1", [(0, 5, 4), (9, 1, None)]),
        # two replies: output 2+4 = 6, K = 3+6 = 9
        ("h3 g2 g4 h1", [(0, 3, 6), (9, 1, None)]),
        # a system message belongs to the run: 7+3 = 10, K = 12
        ("s7 h3 g2 h1", [(0, 10, 2), (12, 1, None)]),
        # wherever it stands: T = 4+1 = 5, K = 3+2
        ("h3 g2 s4 h1 g1", [(0, 3, 2), (5, 5, 1)]),
        ("h3 g2 h1 s4 g1", [(0, 3, 2), (5, 5, 1)]),
        # and alone it is a request: K = 3+2, T = 4
        ("h3 g2 s4 g1", [(0, 3, 2), (5, 4, 1)]),
        # tools are new input like a user message: K = 3+2, T = 6
        ("h3 g2 t6 g1", [(0, 3, 2), (5, 6, 1)]),
        # rule 3: opening replies belong to the first T: 5+3 = 8, K = 5+3+2 = 10
        ("g5 h3 g2 h1", [(0, 8, 2), (10, 1, None)]),
        ("g5 g1 h3", [(0, 9, None)]),
        # an opening reply and an empty request: T = 5+0, K = 0
        ("g5 h0 g2 h1", [(0, 5, 2), (7, 1, None)]),
        # rule 4: the sum of the replies, 0 for an empty one, none without one
        ("h3 g2 g4", [(0, 3, 6)]),
        ("h3 g0", [(0, 3, 0)]),
        ("h3 g2 h4", [(0, 3, 2), (5, 4, None)]),
        # rule 5: K + T = 0 is there and empty; its reply counts: K = 0+2
        ("h0 g2 h3 g1", [(0, 0, 2), (2, 3, 1)]),
        # T = 0 and K = 3+2: one token moves: (4, 1); then K = 5+0+1 = 6
        ("h3 g2 h0 g1 h4", [(0, 3, 2), (4, 1, 1), (6, 4, None)]),
        # K = 1+0 = 1, T = 0: (0, 1)
        ("h1 g0 h0 g2", [(0, 1, 0), (0, 1, 2)]),
        ("h0 g0 h0 g0", [(0, 0, 0), (0, 0, 0)]),
        ("h0", [(0, 0, None)]),
        ("g5", []),
        ("", []),
    ],
)
def test_chats(messages: str, expected: list[Turn]) -> None:
    """The examples of the design and their neighbours, by the arrays and by the loop."""
    found = chat_turns(*arrays([parse(messages)]))
    assert rows(found) == expected
    assert loop(parse(messages)) == expected
    assert found.turn_index.tolist() == list(range(len(expected)))
    assert found.is_empty.tolist() == [k + t == 0 for k, t, _ in expected]


def test_rejected_turns_keep_their_number() -> None:
    """turn_index counts rejected turns, so that countings join."""
    found = chat_turns(*arrays([parse("h0 g2 h3 g1")]))
    # turn 0 is empty, turn 1 is (2, 3)
    assert found.turn_index[~found.is_empty].tolist() == [1]


CHAT = st.lists(st.tuples(st.sampled_from([USER, ASSISTANT, ASSISTANT, SYSTEM, TOOL]), st.integers(0, 5)), max_size=9)


@given(st.lists(CHAT, max_size=5))
def test_any_chats(sessions: list[list[Message]]) -> None:
    """The arrays give what the loop gives, session by session, whatever stands beside it."""
    found = chat_turns(*arrays(sessions))
    assert rows(found) == [turn for messages in sessions for turn in loop(messages)]
    assert found.session.tolist() == [7 * n + 1 for n, messages in enumerate(sessions) for _ in loop(messages)]
    assert found.turn_index.tolist() == [n for messages in sessions for n, _ in enumerate(loop(messages))]


@given(st.lists(CHAT, min_size=1, max_size=4))
def test_what_holds_of_any_turn(sessions: list[list[Message]]) -> None:
    """T >= 1 but for empty turns, K >= 0, the first turn has K = 0, and kappa_ratio x T = K."""
    found = chat_turns(*arrays(sessions))
    kept = ~found.is_empty
    cached, prefill = found.cached[kept], found.prefill[kept]
    assert (prefill >= 1).all()
    assert (found.cached >= 0).all()
    assert (found.cached[found.turn_index == 0] == 0).all()
    assert np.allclose(cached / prefill * prefill, cached, rtol=1e-15, atol=0)


@given(CHAT)
def test_context_grows_by_turn_and_reply(messages: list[Message]) -> None:
    """K + T of a turn is K + T of the one before, its reply, and the new tokens: everything is counted once."""
    found = chat_turns(*arrays([messages]))
    context = (found.cached + found.prefill).tolist()
    news = [t for _, t, _ in _uncorrected(messages)]
    for n in range(1, len(context)):
        assert context[n] == context[n - 1] + int(found.output[n - 1]) + news[n]
    if context:
        # the last context and its reply are all tokens
        assert context[-1] + int(found.output[-1]) == sum(tokens for _, tokens in messages)


def _uncorrected(messages: list[Message]) -> list[Turn]:
    """Return the turns with the tokens of each run as T, before rule 5."""
    groups: list[Turn] = []
    is_in_run = False
    for role, tokens in messages:
        if role != ASSISTANT:
            groups = [*groups[:-1], (0, groups[-1][1] + tokens, None)] if is_in_run else [*groups, (0, tokens, None)]
        is_in_run = role != ASSISTANT
    return groups


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        # K = the document, T = the question, for the first one too
        ("d100 q4 q7", [(100, 4), (100, 7)]),
        # an empty question: one token moves
        ("d100 q0", [(99, 1)]),
        # an empty document: K = 0
        ("d0 q4", [(0, 4)]),
        ("d1 q0", [(0, 1)]),
        # nothing at all
        ("d0 q0 q3", [(0, 0), (0, 3)]),
    ],
)
def test_documents(messages: str, expected: list[tuple[int, int]]) -> None:
    """Design rule 7, counting `text`: each question finds the document cached; there is no output."""
    found = document_turns(*arrays([parse(messages)]))
    assert rows(found) == [(k, t, None) for k, t in expected]
    assert found.turn_index.tolist() == list(range(len(expected)))


@given(st.lists(st.tuples(st.integers(0, 5), st.lists(st.integers(0, 5), max_size=4)), max_size=5))
def test_any_documents(documents: list[tuple[int, list[int]]]) -> None:
    """The arrays give what two loops give."""
    found = document_turns(*arrays([[(DOCUMENT, k), *((QUESTION, t) for t in asked)] for k, asked in documents]))
    expected = [_last_token(k, t, None) for k, asked in documents for t in asked]
    assert rows(found) == expected
    assert found.turn_index.tolist() == [n for _, asked in documents for n in range(len(asked))]
    assert found.session.tolist() == [7 * n + 1 for n, (_, asked) in enumerate(documents) for _ in asked]


def test_at_least_one_token() -> None:
    """One token moves where T = 0 and K > 0, and nowhere else."""
    cached, prefill = at_least_one(np.array([5, 0, 1, 5]), np.array([0, 0, 0, 2]))
    # (5, 0) -> (4, 1); (0, 0) stays; (1, 0) -> (0, 1); (5, 2) stays
    assert (cached.tolist(), prefill.tolist()) == ([4, 0, 0, 5], [1, 0, 1, 2])


def test_sums_beyond_32_bits() -> None:
    """Contexts of billions of tokens do not overflow."""
    found = chat_turns(*arrays([[(USER, 2**31), (ASSISTANT, 2**31), (USER, 1)]]))
    # 2^31 + 2^31 = 2^32
    assert rows(found)[1] == (2**32, 1, None)

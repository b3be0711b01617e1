"""Conversations with tools, calls and reasoning: templates against the official ones, K and T by hand and by force."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.chat.structured import prompt_ends, session_turns
from pipelines.counting.engines import (
    Counter,
    Rendered,
    TemplateRefusedError,
    exact_counter,
    fast_counter,
    rendered_prompts,
)
from pipelines.vocab.files import TokenizerFile, fetch_tokenizer
from pipelines.vocab.specs import tokenizer_spec

SHARED = Path(__file__).parents[4].parent / "shared" / "hub" / "repos" / "models"
OFFICIAL = {"llama-3.1": "meta-llama/Llama-3.1-8B-Instruct", "qwen3": "Qwen/Qwen3-8B"}
TOOLS = [
    {"type": "function", "function": {"name": "weather", "description": "é <b>", "parameters": {"type": "object"}}}
]
Message = dict[str, Any]


def call(name: str, arguments: object) -> dict[str, Any]:
    """Return a call as templates take it."""
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


USER: Message = {"role": "user", "content": "How is it in Rome?"}
CALLING: Message = {"role": "assistant", "content": "", "tool_calls": [call("weather", {"city": "Rome é", "n": 1})]}
TOLD: Message = {"role": "tool", "content": '{"sky": "blue"}'}
REPLY: Message = {"role": "assistant", "content": "Blue."}
THOUGHT: Message = {"role": "assistant", "content": "Blue.", "reasoning_content": "\nThe tool says so.\n"}
SYSTEM: Message = {"role": "system", "content": " Be brief. "}
TWICE: Message = {**CALLING, "content": "Two.", "tool_calls": [call("weather", {}), call("weather", "x")]}
CHATS: list[list[Message]] = [
    [USER, CALLING, TOLD, REPLY, USER],
    [SYSTEM, USER, CALLING, TOLD, TOLD, THOUGHT, USER, REPLY],
    [SYSTEM, USER, {**CALLING, "content": "Let me look."}, TOLD, CALLING, TOLD, REPLY, SYSTEM, USER],
    [USER, {**CALLING, "reasoning_content": "Hm."}, TOLD, THOUGHT, USER, THOUGHT, USER],
    [USER, {**CALLING, "tool_calls": [call("weather", "Rome")]}, TOLD],
]


@pytest.fixture(scope="module", params=sorted(OFFICIAL))
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TokenizerFile:
    """Return a tokenizer, rebuilt from its vocabulary."""
    return fetch_tokenizer(tokenizer_spec(request.param), tmp_path_factory.mktemp("vocabulary"), offline=True)


@pytest.fixture(scope="module")
def render(file: TokenizerFile) -> Rendered:
    """Return our template."""
    path = file.spec.template.file
    assert path is not None
    return rendered_prompts(file, path.read_text("utf8"))


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="the official templates are not beside the checkout")
def test_our_templates_render_as_the_official_ones(file: TokenizerFile, render: Rendered) -> None:
    """Every prefix of every conversation, with and without tools and header, has the same text, or both refuse it."""
    config = json.loads((SHARED / OFFICIAL[file.spec.name] / "1" / "tokenizer_config.json").read_text("utf8"))
    official = rendered_prompts(file, config["chat_template"])
    for chat in (*CHATS, [USER, TWICE, TOLD, USER], [SYSTEM], [TOLD, USER]):
        for end in range(1, len(chat) + 1):
            for tools in (None, TOOLS, TOOLS * 2):
                for has_header in (True, False):
                    assert shown(render, chat[:end], tools, has_header) == shown(
                        official, chat[:end], tools, has_header
                    )


def shown(render: Rendered, chat: list[Message], tools: list[Any] | None, has_header: bool) -> str | None:
    """Return a prompt, None where it is refused."""
    try:
        return render(chat, tools, has_header)
    except TemplateRefusedError:
        return None


def by_force(chat: list[Message], tools: list[Any] | None, render: Rendered, counter: Counter, end: str) -> Any:  # noqa: ANN401
    """Return (K, T) of each turn: whole prompts tokenised at once, the reply cut out of the prompt that follows it."""
    pairs, computed = [], None
    for place in prompt_ends(chat):
        text = render(chat[:place], tools, True)
        prompt = counter.encode(text).tolist()
        k = 0
        if computed is not None:
            while k < min(len(computed), len(prompt) - 1) and computed[k] == prompt[k]:
                k += 1
        pairs.append((k, len(prompt) - k))
        if place < len(chat):
            reply = chat[place]
            written = reply["content"]
            if len(reply) > 2:
                whole = render([*chat[: place + 1], {"role": "tool", "content": "@@"}], tools, False)
                written = whole[len(text) : whole.rindex(end, 0, whole.rindex("@@"))]
            computed = prompt + counter.encode(written + end).tolist()
    return pairs


@pytest.mark.parametrize("tools", [None, TOOLS], ids=["no tools", "tools"])
@pytest.mark.parametrize("chat", CHATS, ids=range(len(CHATS)))
def test_turns_equal_whole_prompts(
    file: TokenizerFile, render: Rendered, chat: list[Message], tools: list[Any] | None
) -> None:
    """The parts of prompts that are counted once add up to the prompts, with both engines."""
    end = file.spec.template.end_of_turn
    conversation = {"messages": chat, "tools": tools}
    expected = by_force(chat, tools, render, exact_counter(file), end)
    for counter in (fast_counter(file), exact_counter(file)):
        found = session_turns(conversation, render, counter, end)
        assert list(zip(found.cached.tolist(), found.prefill.tolist(), strict=True)) == expected


def test_a_tool_loop_reuses_what_the_model_wrote(file: TokenizerFile, render: Rendered) -> None:
    """In a tool loop K is the whole prompt before and the whole call; thinking is dropped after the next question."""
    counter, end = fast_counter(file), file.spec.template.end_of_turn
    chat = [USER, CALLING, TOLD, REPLY, USER]
    found = session_turns({"messages": chat, "tools": TOOLS}, render, counter, end)
    first, second, third = (found.cached + found.prefill).tolist()
    # K_1 = T_0 + the call with its end of turn; K_2 = K_1 + T_1 + the reply with its end of turn
    assert found.cached.tolist() == [0, first + found.output[0], second + found.output[1]]
    assert third > second > first
    thinking = session_turns({"messages": [USER, THOUGHT, USER]}, render, counter, end)
    if file.spec.name == "qwen3":
        # <think> is where both prompts part: the second has the prompt before and no token of the reply
        assert thinking.cached.tolist() == [0, int(thinking.prefill[0])]
        assert thinking.output[0] > len(counter.encode("\nThe tool says so.\nBlue."))


def test_a_refused_conversation_loses_the_turns_after_it(file: TokenizerFile, render: Rendered) -> None:
    """Llama's template takes one call at a time: the turn before two calls stays, those after it are refused."""
    found = session_turns({"messages": [USER, TWICE, TOLD, REPLY, USER]}, render, fast_counter(file), "<|eot_id|>")
    is_llama = file.spec.name == "llama-3.1"
    assert (found.prefill > 0).tolist() == [True, not is_llama, not is_llama]


TEXTS = st.sampled_from(
    ["", "x", " a b\n", "é\U0001f600", "<|im_end|>", "<|eot_id|>", "<think>", "</think>\n\n1", "\n"]
)
ASSISTANT = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": TEXTS},
    optional={
        "tool_calls": st.builds(call, st.just("f"), st.dictionaries(TEXTS, TEXTS, max_size=2)).map(lambda one: [one]),
        "reasoning_content": st.sampled_from(["hm", "a\n\nb"]),
    },
)  # fmt: skip
OTHERS = st.fixed_dictionaries({"role": st.sampled_from(["user", "tool", "system"]), "content": TEXTS})


@given(st.lists(st.tuples(OTHERS, ASSISTANT), min_size=1, max_size=4))
@settings(max_examples=60)
def test_any_conversation_adds_up(file: TokenizerFile, render: Rendered, pairs: list[tuple[Message, Message]]) -> None:
    """Each prompt's tokens are K + T, K is a prefix of it, and K is never all of it."""
    chat = [USER, *(message for pair in pairs for message in reversed(pair))]
    counter = fast_counter(file)
    found = session_turns({"messages": chat}, render, counter, file.spec.template.end_of_turn)
    lengths = [len(counter.encode(render(chat[:end], None, True))) for end in prompt_ends(chat)]
    assert (found.cached + found.prefill).tolist() == lengths
    assert np.all(found.prefill >= 1)

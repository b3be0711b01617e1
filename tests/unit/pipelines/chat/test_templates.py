"""What the facts of a TOML say of its template, against the template itself: token lists of whole prompts compared."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from pipelines.chat.layout import Layout, layout_of
from pipelines.chat.official import Official, require_facts
from pipelines.chat.pieces import count_pieces, shared_tokens
from pipelines.chat.prompts import PromptTurns, prompt_turns
from pipelines.chat.templates import (
    FAMILIES,
    Message,
    is_query,
    is_separable,
    piece,
    shown,
    template_fingerprint,
)
from pipelines.counting.engines import Counter, exact_counter, official_prompts
from pipelines.sessions.writing import ASSISTANT, SYSTEM, TOOL, USER
from pipelines.vocab import template_files
from pipelines.vocab.files import TokenizerFile, fetch_tokenizer
from pipelines.vocab.specs import TEMPLATE_FAMILIES, tokenizer_spec, tokenizer_specs
from pipelines.vocab.template_files import chat_template
from warehouse.errors import ErrorCode

_NAMES = tuple(tokenizer_specs())
_ROLES = {USER: "user", ASSISTANT: "assistant", SYSTEM: "system", TOOL: "tool"}
_SHARED = Path(__file__).parents[4].parent / "shared"
Chat = Sequence[tuple[int, str]]
Pairs = list[tuple[int, int]]


@pytest.fixture(scope="module")
def real(file: TokenizerFile) -> Callable[[Chat], Pairs]:
    """Return K and T of every turn the slow way: every prefix rendered, tokenised whole, compared token by token."""
    from transformers import PreTrainedTokenizerFast  # noqa: PLC0415 - over a second

    facts = file.spec.template
    assert facts.file is not None
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(file.path), bos_token=facts.begin or None)
    tokenizer.chat_template = facts.file.read_text(encoding="utf-8")

    def prompt(chat: Chat) -> list[int]:
        messages = [{"role": _ROLES[role], "content": text} for role, text in chat]
        found: list[int] = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_dict=False, date_string="26 Jul 2024"
        )
        return found

    end_of_turn = tokenizer.convert_tokens_to_ids(facts.end_of_turn)

    def turns(chat: Chat) -> Pairs:
        pairs, computed = [], None
        for end in range(1, len(chat) + 1):
            is_reply = chat[end - 1][0] == ASSISTANT
            if is_reply or (end < len(chat) and chat[end][0] != ASSISTANT):
                continue
            tokens = prompt(chat[:end])
            same = 0
            if computed is not None:
                pairwise = zip(tokens, computed, strict=False)
                same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairwise))
            cached = min(same, len(tokens) - 1)
            pairs.append((cached, len(tokens) - cached))
            if end < len(chat):
                computed = [*tokens, *tokenizer.encode(chat[end][1], add_special_tokens=False), end_of_turn]
        return pairs

    return turns


def _layout(chat: Chat) -> Layout:
    role = np.array([role for role, _ in chat], np.int8)
    return layout_of(np.zeros(len(chat), np.int32), np.arange(len(chat), dtype=np.int32), role)


def _prompts(chat: Chat, file: TokenizerFile, counter: Counter) -> PromptTurns:
    """Return the turns by adding up."""
    texts, layout = pa.array([text for _, text in chat], pa.large_string()), _layout(chat)
    tokens = counter.count(texts)
    pieces = count_pieces([texts], layout, file.spec.template, counter, tokens)
    return prompt_turns(layout.session, layout.role, tokens, pieces)


def _pairs(prompts: PromptTurns) -> Pairs:
    return list(zip(prompts.turns.cached.tolist(), prompts.turns.prefill.tolist(), strict=True))


def test_additive_forms_of_both_families(file: TokenizerFile, fast: Counter) -> None:
    """The numbers that were measured by hand: 26 + (4 + n) + 4 for llama-3.1, (4 + n) + 3 for qwen3."""
    n = int(fast.count(pa.array(["\n\nHi there" if file.spec.name == "llama-3.1" else "\nHi there"]))[0])
    prompts = _prompts([(USER, "Hi there")], file, fast)
    # llama-3.1: 26 system block, 4 + n message, 4 header. qwen3: 4 + n message, 3 header.
    assert _pairs(prompts) == [(0, 26 + 4 + n + 4 if file.spec.name == "llama-3.1" else 4 + n + 3)]


# Roles, empty and blank texts, line breaks, thinking, tools, quotes, special tokens that are this template's own.
_ATOMS = (
    *(
        "",
        "",
        "a",
        "Hello",
        "x1",
        "12",
        "\n",
        "\n\n",
        " ",
        "  ",
        "\r\n",
        "\t",
        "\u3000",
        "\x1c",
        "\x85",
        ".",
        "...",
        "'s",
    ),
    *("</think>", "<think>", "<think>\n", "\n</think>\n\n", "<tool_response>", "</tool_response>", "{", '"', "[]"),
    *("<|eot_id|>", "<|im_end|>", "<|im_end|>\n", "<|im_start|>", "<|start_header_id|>", "<|end_header_id|>\n\n"),
    *("<|begin_of_text|>", "<|im_start|>user\n", "user", "assistant", "\u0301", "\u00e9", "\u65e5\u672c", "\U0001f44d"),
)
_ROLE_DRAW = (USER, USER, USER, ASSISTANT, ASSISTANT, ASSISTANT, SYSTEM, TOOL, TOOL)


def _assert_as_real(chat: Chat, file: TokenizerFile, fast: Counter, real: Callable[[Chat], Pairs]) -> None:
    prompts = _prompts(chat, file, fast)
    for pair, truth, is_open in zip(_pairs(prompts), real(chat), prompts.is_open.tolist(), strict=True):
        # Only K is undecided in an open turn: it comes from the real prompts, see test_chat_counting.
        assert (sum(pair) == sum(truth) and pair[0] <= truth[0]) if is_open else pair == truth, chat


_PARTS = st.lists(st.one_of(st.sampled_from(_ATOMS), st.characters(exclude_categories=["Cs"])), max_size=6)
_WHOLE = _PARTS.map("".join)
_TEXTS = st.one_of(_WHOLE, _WHOLE, _WHOLE, _WHOLE.map("<tool_response>{}</tool_response>".format))
_CHATS = st.lists(st.tuples(st.sampled_from(_ROLE_DRAW), _TEXTS), min_size=1, max_size=9)


@given(chats=st.lists(_CHATS, min_size=3, max_size=6))
def test_any_chats(file: TokenizerFile, fast: Counter, real: Callable[[Chat], Pairs], chats: list[Chat]) -> None:
    """K and T of every turn equal those of the real prompts, whatever order of roles and whatever texts."""
    for chat in chats:
        _assert_as_real(chat, file, fast, real)


_THOUGHT = "<think>\nHm.\n</think>\n\nYes."
_OF_NOTE: dict[str, Chat] = {
    "a system message in the middle": [(USER, "a"), (ASSISTANT, "b"), (SYSTEM, " c "), (USER, "d")],
    "a system message alone at the end": [(USER, "a"), (ASSISTANT, _THOUGHT), (SYSTEM, "c")],
    "messages of one role in a row": [(USER, "a"), (USER, "b"), (ASSISTANT, "c"), (ASSISTANT, "d"), (USER, "e")],
    "opening replies": [(ASSISTANT, "a "), (ASSISTANT, _THOUGHT), (USER, "b"), (ASSISTANT, "c"), (USER, "d")],
    "empty texts": [(SYSTEM, ""), (USER, ""), (ASSISTANT, ""), (USER, ""), (ASSISTANT, ""), (TOOL, "")],
    "replies with line breaks first": [(USER, "a"), (ASSISTANT, "\n\nb"), (USER, "c"), (ASSISTANT, "\n"), (USER, "d")],
    "replies with blank edges": [(USER, "a"), (ASSISTANT, " b \n"), (USER, " c "), (ASSISTANT, "  "), (USER, "d")],
    "thinking that is dropped": [(USER, "a"), (ASSISTANT, _THOUGHT), (USER, "b"), (ASSISTANT, _THOUGHT), (USER, "c")],
    "thinking shown until the next query": [
        *((USER, "a"), (ASSISTANT, _THOUGHT), (TOOL, "t"), (ASSISTANT, "b"), (TOOL, "t")),
        *((TOOL, "u"), (ASSISTANT, _THOUGHT), (USER, "c"), (ASSISTANT, "d"), (USER, "e")),
    ],
    "an end of thinking alone": [
        *((USER, "a"), (ASSISTANT, "b</think>c"), (USER, "d"), (ASSISTANT, "</think>"), (TOOL, "e")),
    ],
    "a tool's response from a user": [
        *((USER, "a"), (ASSISTANT, _THOUGHT), (USER, "<tool_response>b</tool_response>")),
        *((ASSISTANT, "c"), (USER, "d")),
    ],
    "tools only": [(TOOL, "a"), (TOOL, 'b"'), (ASSISTANT, _THOUGHT), (TOOL, "\nc\n"), (ASSISTANT, "d"), (TOOL, "")],
    "the end of a turn inside a reply": [(USER, "a"), (ASSISTANT, "b<|eot_id|>c<|im_end|>"), (USER, "d")],
}  # fmt: skip


@pytest.mark.parametrize("chat", _OF_NOTE.values(), ids=_OF_NOTE.keys())
def test_chats_of_note(file: TokenizerFile, fast: Counter, real: Callable[[Chat], Pairs], chat: Chat) -> None:
    """Each case that the additive forms do not cover as they are written down."""
    _assert_as_real(chat, file, fast, real)


def test_what_is_shown_of_a_text() -> None:
    """Llama cuts blank edges off, Qwen drops a reply's thinking; neither touches anything else."""
    llama, qwen = (tokenizer_spec(name).template for name in ("llama-3.1", "qwen3"))
    assert shown(llama, Message(USER, " a\n")) == "a"
    assert shown(llama, Message(ASSISTANT, _THOUGHT)) == _THOUGHT
    assert shown(qwen, Message(ASSISTANT, _THOUGHT)) == "Yes."
    assert shown(qwen, Message(USER, f" {_THOUGHT}\n")) == f" {_THOUGHT}\n"


def test_pieces_by_hand() -> None:
    """A tool's text is JSON under Llama; tools in a row are one user message under Qwen; thinking has its own form."""
    llama, qwen = (tokenizer_spec(name).template for name in ("llama-3.1", "qwen3"))
    assert piece(llama, Message(TOOL, 'a"')) == '<|start_header_id|>ipython<|end_header_id|>\n\n"a\\""<|eot_id|>'
    first, last = Message(TOOL, "a", before_tool=True), Message(TOOL, "b", after_tool=True)
    one = "<|im_start|>user\n<tool_response>\na\n</tool_response>"
    assert piece(qwen, first) + piece(qwen, last) == f"{one}\n<tool_response>\nb\n</tool_response><|im_end|>\n"
    late = piece(qwen, Message(ASSISTANT, _THOUGHT), is_late=True)
    assert late == f"<|im_start|>assistant\n{_THOUGHT}<|im_end|>\n"
    assert piece(qwen, Message(ASSISTANT, _THOUGHT)) == "<|im_start|>assistant\nYes.<|im_end|>\n"


def test_what_is_a_query() -> None:
    """A user's message, but not one that Qwen takes for a tool's response."""
    llama, qwen = (tokenizer_spec(name).template for name in ("llama-3.1", "qwen3"))
    response = "<tool_response>a</tool_response>"
    assert (is_query(qwen, USER, "a"), is_query(qwen, USER, response), is_query(llama, USER, response)) == (1, 0, 1)
    assert not any(is_query(qwen, role, "a") for role in (ASSISTANT, SYSTEM, TOOL))


@given(text=st.lists(st.sampled_from((*" \n\r\t\u3000\x85\x0b\x1c", *_ATOMS))).map("".join))
def test_separable_texts_have_their_own_tokens(file: TokenizerFile, fast: Counter, text: str) -> None:
    """Behind a header's line breaks a text has the tokens that it has alone, unless a line break is in its blanks."""
    breaks = "\n\n" if file.spec.template.header.endswith("\n\n") else "\n"
    header, alone, joined = (fast.encode(some) for some in (breaks, text, breaks + text))
    if is_separable(text):
        assert joined.tolist() == [*header.tolist(), *alone.tolist()]


def test_special_tokens_cannot_run_into_a_neighbour(file: TokenizerFile) -> None:
    """No added token holds a blank, and none ends with what another one begins with: pieces never grow together."""
    source = file.spec.vocabulary
    assert source is not None
    tokens = source.special_tokens + source.added_tokens
    assert not any(letter.isspace() for token in tokens for letter in token)
    heads = {token[:length] for token in tokens for length in range(1, len(token))}
    assert not any(token[-length:] in heads for token in tokens for length in range(1, len(token)))


def test_shared_tokens() -> None:
    """The length of the common prefix, also where one list is the other's beginning or is empty."""
    lists = ([1, 2, 3], [1, 2, 4, 5], [1, 2], [])
    one, other, short, none = (np.array(some, np.uint32) for some in lists)
    found = [shared_tokens(one, some) for some in (other, short, none, one)]
    assert found == [2, 2, 0, 3]


def test_families_are_those_that_a_file_may_name() -> None:
    """A family that a TOML may name has its code."""
    assert tuple(FAMILIES) == TEMPLATE_FAMILIES


def test_wrong_facts_are_refused(file: TokenizerFile) -> None:
    """A TOML that says something else than its template does is not used; the message names it and the chat."""
    facts = file.spec.template
    exact = exact_counter(file)
    official = Official(official_prompts(file, chat_template(file)), exact, exact.encode(facts.end_of_turn))
    require_facts(file.spec, official)
    wrong: list[dict[str, Any]] = [
        {"is_trimmed": not facts.is_trimmed},
        {"header": facts.header + " "},
        {"separator": facts.separator + "x"},
        {"system_text": facts.system_text + "x"},
        {"begin": facts.begin + "x"},
        {"family": {"llama-3.1": "qwen3", "qwen3": "llama-3.1"}[facts.family]},
    ]
    for change in wrong:
        spec = dataclasses.replace(file.spec, template=dataclasses.replace(facts, **change))
        with refused(ErrorCode.BAD_TOML, f"tokenizers/{spec.name}.toml"):
            require_facts(spec, official)


def test_the_fingerprint_follows_text_and_facts() -> None:
    """It changes with the template's text and with each fact, not with where the file lies."""
    facts = tokenizer_spec("qwen3").template
    same = template_fingerprint(dataclasses.replace(facts, file=None, licence="x"))
    assert same == template_fingerprint(facts)
    for change in ({"sha256": "0" * 64}, {"is_trimmed": True}, {"date_string": "1 Jan 2025"}):
        assert template_fingerprint(dataclasses.replace(facts, **change)) != same


def test_a_tokenizer_without_any_template(file: TokenizerFile) -> None:
    """Where neither the repository nor the program has one, it is told which TOML to correct."""
    facts = dataclasses.replace(file.spec.template, file=None)
    other = dataclasses.replace(file, spec=dataclasses.replace(file.spec, template=facts))
    with refused(ErrorCode.NO_TEMPLATE, other.spec.name):
        chat_template(other)


@pytest.mark.parametrize("kind", ["config", "own file", "another", "unreachable"])
def test_the_repositorys_template_comes_first(
    file: TokenizerFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    """From the config or a file of its own, where it is the known one; another one is told and not used."""
    ours = chat_template(file)
    official = ours + "{# the official one #}"
    text = official + "x" if kind == "another" else official
    known = hashlib.sha256(official.encode()).hexdigest()
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": text}), encoding="utf-8")
    (tmp_path / "chat_template.jinja").write_text(text, encoding="utf-8")
    names = {"config": ["tokenizer_config.json"], "unreachable": []}.get(kind, ["chat_template.jinja"])

    def download(asked: TokenizerFile, name: str) -> Path | None:
        assert asked.revision == file.revision
        return tmp_path / name if name in names else None

    monkeypatch.setattr(template_files, "_download", download)
    # Without a file of ours the repository's is the only one.
    place = file.spec.template.file if kind in ("another", "unreachable") else None
    facts = dataclasses.replace(file.spec.template, file=place, sha256=known)
    spec = dataclasses.replace(file.spec, template=facts)
    assert chat_template(dataclasses.replace(file, spec=spec, repo_id="owner/model")) == (
        official if place is None else ours
    )
    assert ("has another chat template" in caplog.text) == (kind == "another")


def _random_chats(count: int) -> list[list[tuple[int, str]]]:
    """Return chats of one to eight messages in any order of roles, of texts that templates treat apart."""
    texts = ["", "x", " x ", "\n\ny\n", "<think>\nhm\n</think>\n\nyes", "a</think>b</think>\nc", '"q"\n\u2028']
    texts += ["<tool_response>q</tool_response>", "<|eot_id|>", "<think>a", "\u3000z"]
    draw = random.Random(20260119)
    return [[(draw.choice(list(_ROLES)), draw.choice(texts)) for _ in range(draw.randint(1, 8))] for _ in range(count)]


@pytest.mark.shared
@pytest.mark.parametrize("name", _NAMES)
def test_prompts_of_the_real_repository(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The official repository's own tokenizer, as everybody loads it, gives the tokens of `official_prompts`."""
    spec = tokenizer_spec(name)
    folder = _SHARED / "hub/repos/models" / spec.repositories[0] / "1"
    if not folder.is_dir():
        pytest.skip("the real tokenizers are not beside the checkout")
    from transformers import AutoTokenizer  # noqa: PLC0415 - over a second

    file = fetch_tokenizer(spec, tmp_path_factory.getbasetemp() / "official", offline=True)
    theirs = AutoTokenizer.from_pretrained(str(folder))
    ours = official_prompts(file, chat_template(file))
    for chat in (*_OF_NOTE.values(), *_random_chats(200)):
        messages = [{"role": _ROLES[role], "content": text} for role, text in chat]
        found = theirs.apply_chat_template(
            messages, add_generation_prompt=True, return_dict=False, date_string="26 Jul 2024"
        )
        assert ours(messages).tolist() == found

"""Templates of which only the text is known: the same counts as by facts, and whole prompts by transformers."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from pipelines.chat.counting import count_chat
from pipelines.chat.rendered import Prompts
from pipelines.counting.engines import Counter, exact_counter, official_prompts
from pipelines.own_tokenizers.adding import add_tokenizer
from pipelines.sessions.messages import Messages
from pipelines.sessions.writing import ASSISTANT, DOCUMENT, QUESTION, SYSTEM, TOOL, USER, SessionsWriter
from pipelines.vocab.files import TokenizerFile
from pipelines.vocab.template_files import chat_template
from warehouse.errors import ErrorCode, KappaError

Chat = list[tuple[int, str]]
MISTRAL = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if m['role'] == 'system' %}{{ raise_exception('no system messages') }}"
    "{% elif m['role'] == 'assistant' %} {{ m['content'] }}{{ eos_token }}"
    "{% else %}[INST] {{ m['content'] }} [/INST]{% endif %}{% endfor %}"
)
_TEXTS = ["", " ", "x", "Hello there.", "\n\n a", "é 1234", "<think>\nHm.\n</think>\n\nYes.", "a\nb", "日本語"]


def _drawn(count: int) -> list[Chat]:
    rng = Random(7)
    roles = (USER, ASSISTANT, TOOL)
    return [[(rng.choice(roles), rng.choice(_TEXTS)) for _ in range(rng.randint(1, 6))] for _ in range(count)]


def _store(folder: Path, sessions: list[Chat]) -> Messages:
    writer = SessionsWriter(folder, "w")
    for number, chat in enumerate(sessions):
        for position, (role, text) in enumerate(chat):
            writer.message(number, position, role, text)
    writer.close()
    return Messages(folder)


def _counted(folder: Path, sessions: list[Chat], file: TokenizerFile, kind: str = "chat") -> list[tuple[int, int, int]]:
    texts = pa.array([text for chat in sessions for _, text in chat], pa.large_string())
    tokens = exact_counter(file).count(texts)
    found = count_chat(_store(folder, sessions), file, kind, text_tokens=tokens)  # type: ignore[arg-type]
    assert found.is_exact
    assert not found.differences
    turns = found.turns
    return list(zip(turns.cached.tolist(), turns.prefill.tolist(), turns.output.tolist(), strict=True))


def _rendered(file: TokenizerFile, place: Path) -> TokenizerFile:
    """Return a tokenizer of the program as if a user had added it: of its template only the text is known."""
    text = chat_template(file)
    place.write_text(text, "utf-8")
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    facts = dataclasses.replace(file.spec.template, family="rendered", file=place, sha256=sha256)
    return dataclasses.replace(file, spec=dataclasses.replace(file.spec, template=facts, is_own=True))


def test_the_text_of_a_template_gives_what_its_facts_give(tmp_path: Path, file: TokenizerFile) -> None:
    """The two official templates, once by their facts and once as a user's own, over 150 drawn conversations."""
    (tmp_path / "a").mkdir()
    own, sessions = _rendered(file, tmp_path / "own.jinja"), _drawn(150)
    assert _counted(tmp_path, sessions, own) == _counted(tmp_path / "a", sessions, file)


def test_documents_give_what_facts_give(tmp_path: Path, file: TokenizerFile) -> None:
    """A document with two questions."""
    sessions = [[(DOCUMENT, "A story.\n\nIt ends."), (QUESTION, "Who?"), (QUESTION, "1 or 2?")]]
    (tmp_path / "a").mkdir()
    own = _rendered(file, tmp_path / "own.jinja")
    assert _counted(tmp_path, sessions, own, "documents") == _counted(tmp_path / "a", sessions, file, "documents")


def _byte_level() -> object:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: PLC0415

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "</s>", "[INST]", "[/INST]"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(["Hello there, hello again. What is it?"] * 9, trainer)
    return tokenizer


def _sentence_piece() -> object:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers  # noqa: PLC0415

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))  # noqa: S106 - a token of text
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    special = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=special)
    tokenizer.train_from_iterator(["Hello there, hello again. What is it?"] * 9, trainer)
    return tokenizer


@pytest.fixture(scope="module", params=[_byte_level, _sentence_piece])
def added(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TokenizerFile:
    """Return a small tokenizer of each kind with a template that knows no system message."""
    folder = tmp_path_factory.mktemp("own")
    tokenizer = request.param()
    # Settings of a training run must not cut what is counted.
    tokenizer.enable_truncation(5)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "t.jinja").write_text(MISTRAL)
    (folder / "tokenizer_config.json").write_text('{"bos_token": "<s>", "eos_token": {"content": "</s>"}}')
    return add_tokenizer(
        folder / "home", "tiny", str(folder), template=folder / "t.jinja", max_context_tokens=4096
    ).file


def test_prompts_by_parts_are_those_of_transformers(tmp_path: Path, added: TokenizerFile) -> None:
    """K and T of every turn of 150 drawn conversations against whole prompts, the plain way."""
    sessions = _drawn(150)
    assert [turn[:2] for turn in _counted(tmp_path, sessions, added)] == _reference(sessions, added)


def _reference(sessions: list[Chat], file: TokenizerFile) -> list[tuple[int, int]]:
    exact: Counter = exact_counter(file)
    prompt_of = official_prompts(file, chat_template(file))
    names = {USER: "user", ASSISTANT: "assistant", TOOL: "tool"}
    found = []
    for chat in sessions:
        left: list[int] = []
        for end in range(1, len(chat) + 1):
            is_end = end == len(chat) or chat[end][0] == ASSISTANT
            if chat[end - 1][0] == ASSISTANT or not is_end:
                continue
            prompt = prompt_of([{"role": names[role], "content": text} for role, text in chat[:end]]).tolist()
            same = [a == b for a, b in zip(prompt, left, strict=False)]
            shared = same.index(False) if False in same else len(same)
            cached = min(shared, len(prompt) - 1)
            found.append((cached, len(prompt) - cached))
            reply = exact.encode(chat[end][1]).tolist() if end < len(chat) else []
            left = [*prompt, *reply, *exact.encode(file.spec.template.end_of_turn).tolist()]
    return found


def test_the_end_of_a_turn_is_found_in_the_template(added: TokenizerFile) -> None:
    """The added token after a reply."""
    assert (added.spec.template.end_of_turn, added.spec.template.begin) == ("</s>", "<s>")


def test_a_refused_turn_has_no_prompt(tmp_path: Path, added: TokenizerFile) -> None:
    """This template raises on a system message; the other session is counted."""
    sessions = [[(SYSTEM, "s"), (USER, "x")], [(USER, "x")]]
    # K + T = 0 of the first
    first, second = _counted(tmp_path, sessions, added)
    assert (first[:2], second[0] + second[1] > 0) == ((0, 0), True)


def test_a_template_that_drops_the_question_is_refused(tmp_path: Path, added: TokenizerFile) -> None:
    """It is proved when it is loaded."""
    with pytest.raises(KappaError) as error:
        Prompts(added, "nothing", exact_counter(added))
    assert error.value.code == ErrorCode.NO_TEMPLATE
    (tmp_path / "bad.jinja").write_text("{{ raise_exception('never') }}")
    with pytest.raises(KappaError) as error:
        add_tokenizer(tmp_path / "home", "bad", str(added.path), template=tmp_path / "bad.jinja", max_context_tokens=9)
    assert error.value.code == ErrorCode.NO_TEMPLATE
    assert not list((tmp_path / "home").glob("*"))


def test_whole_texts_are_counted(added: TokenizerFile) -> None:
    """The file says that texts are cut after five tokens."""
    text = "Hello there, hello again. " * 50
    assert exact_counter(added).count(pa.array([text], pa.large_string()))[0] > 50
    assert np.array_equal(
        exact_counter(added).count(pa.array([text], pa.large_string())), [len(exact_counter(added).encode(text))]
    )

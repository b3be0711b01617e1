"""What the TOML files say, and how a wrong one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from refusals import refused

from pipelines.vocab.specs import tokenizer_spec, tokenizer_specs
from warehouse.errors import ErrorCode

_MINIMAL = f"""
repositories = ["owner/model"]
revision = "main"
path = "tokenizer.json"
sha256 = "{"0" * 64}"
max_context_tokens = 8
licence = "MIT"
[template]
family = "qwen3"
sha256 = "{"2" * 64}"
licence = "MIT"
begin = ""
header = "<start>{{role}}\\n"
end_of_turn = "<end>"
separator = "\\n"
is_trimmed = false
date_string = "26 Jul 2024"
system_text = ""
"""

_VOCABULARY = f"""
[vocabulary]
distribution = "some-package"
path = "some_package/vocabulary"
sha256 = "{"1" * 64}"
family = "qwen"
pattern = "x+"
special_tokens = ["<end>"]
added_tokens = []
"""


def _write(folder: Path, text: str) -> Path:
    (folder / "tiny.toml").write_text(text, encoding="utf-8")
    return folder


def test_the_two_tokenizers_of_the_checkout() -> None:
    """Both files are read, and the context lengths are those of the models' configs."""
    specs = tokenizer_specs()
    # 128 x 1024 and 40 x 1024 positions
    assert {name: spec.max_context_tokens for name, spec in specs.items()} == {"llama-3.1": 131072, "qwen3": 40960}
    assert specs["qwen3"].repositories == ("Qwen/Qwen3-8B", "Qwen/Qwen3-235B-A22B")


def test_special_tokens_are_complete_and_hold_the_end_of_turn() -> None:
    """Llama has 256 special tokens, Qwen 14 and 12 that are not special; none holds a line break."""
    for name, special, added in (("llama-3.1", 256, 0), ("qwen3", 14, 12)):
        spec = tokenizer_spec(name)
        assert spec.vocabulary is not None
        # Llama: 11 named + numbers 3 to 247 = 11 + 245 = 256
        assert (len(set(spec.vocabulary.all_special_tokens)), len(spec.vocabulary.added_tokens)) == (special, added)
        assert spec.template.end_of_turn in spec.vocabulary.special_tokens
        assert not any("\n" in token for token in spec.vocabulary.all_special_tokens + spec.vocabulary.added_tokens)


def test_an_unknown_name_is_told_with_the_known_ones() -> None:
    """The message lists what may be asked for."""
    with refused(ErrorCode.UNKNOWN_NAME, "gpt-2", "llama-3.1, qwen3"):
        tokenizer_spec("gpt-2")


def test_a_new_tokenizer_is_one_file(tmp_path: Path) -> None:
    """A file without a vocabulary is enough, and the file's name is the tokenizer's."""
    spec = tokenizer_specs(_write(tmp_path, _MINIMAL))["tiny"]
    assert (spec.name, spec.vocabulary, spec.template.end_of_turn) == ("tiny", None, "<end>")


def test_reserved_tokens_are_spelt_out(tmp_path: Path) -> None:
    """A name with a number stands for a run of tokens."""
    reserved = '[vocabulary.reserved]\nname = "<r{}>"\nfirst = 3\nlast = 5\n'
    vocabulary = tokenizer_specs(_write(tmp_path, _MINIMAL + _VOCABULARY + reserved))["tiny"].vocabulary
    assert vocabulary is not None
    # one named, then 3, 4, 5
    assert vocabulary.all_special_tokens == ("<end>", "<r3>", "<r4>", "<r5>")


_FAMILIES = "key 'template.family' should be 'llama-3.1', 'qwen3', 'rendered' or 'none'"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('revision = "main"\n', "", "key 'revision' is missing"),
        ("max_context_tokens = 8", 'max_context_tokens = "8"', "key 'max_context_tokens' should be a valid integer"),
        ("max_context_tokens = 8", "max_context_tokens = 0", "key 'max_context_tokens' should be greater than 0"),
        ("max_context_tokens = 8", "max_context_tokens = true", "key 'max_context_tokens' should be a valid int"),
        ('sha256 = "0', 'sha256 = "Z', "key 'sha256' should match pattern"),
        ('["owner/model"]', "[]", "key 'repositories' should have at least 1 item"),
        ('["owner/model"]', '["owner/model", 7]', "key 'repositories.1' should be a valid string"),
        ('["owner/model"]', '["a/b", "a/b"]', "key 'repositories' has a text twice"),
        ("max_context_tokens = 8", 'max_context_tokens = 8\nlicense = "MIT"', "key 'license' is not known"),
        ("max_context_tokens = 8", 'max_context_tokens = 8\nname = "big"', "key 'name' is not known: a tokenizer is"),
        ('revision = "main"', "revision = 2026-01-01", "key 'revision' should be a valid string"),
        ('revision = "main"', 'revision = ""', "key 'revision' should have at least 1 character"),
        (
            'family = "qwen3"',
            "family = 1",
            "key 'template.family' should be 'llama-3.1', 'qwen3', 'rendered' or 'none'",
        ),
        (
            'family = "qwen3"',
            'family = "chatml"',
            "key 'template.family' should be 'llama-3.1', 'qwen3', 'rendered' or 'none'",
        ),
        ("{role}", "", "key 'template.header' has no {role}"),
        ('begin = ""', "", "key 'template.begin' is missing"),
        ('separator = "', 'separator = 1 # "', "key 'template.separator' should be a valid string"),
        ("is_trimmed = false", "is_trimmed = 0", "key 'template.is_trimmed' should be a valid boolean"),
        ('begin = ""', 'begin = ""\nfile = "no.jinja"', "key 'template.file' names no file beside it"),
        ('[template]\nfamily = "qwen3"', "[other]", "key 'template' is missing"),
        ('end_of_turn = "<end>"', 'end_of_turn = "<end>"\nend = "x"', "key 'template.end' is not known"),
        ("max_context_tokens = 8", "max_context_tokens = ", "Invalid value"),
    ],
)
def test_a_wrong_file_is_refused_by_file_and_key(tmp_path: Path, old: str, new: str, said: str) -> None:
    """Each error names the file and what is wrong in it."""
    assert old in _MINIMAL
    with refused(ErrorCode.BAD_TOML, tmp_path / "tiny.toml", said):
        tokenizer_specs(_write(tmp_path, _MINIMAL.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('family = "qwen"\n', "", "key 'vocabulary.family' is missing"),
        ("added_tokens = []", 'added_tokens = "x"', "key 'vocabulary.added_tokens' should be a list"),
        (
            "added_tokens = []",
            'added_tokens = []\nreserved = {name = "x", first = 1, last = 2}',
            "key 'vocabulary.reserved.name' has no {}",
        ),
        ('family = "qwen"', 'family = "word"', "key 'vocabulary.family' should be 'llama-3' or 'qwen'"),
        ('"x+"', '"(x+"', "key 'vocabulary.pattern' is not a regular expression: missing )"),
        ("[vocabulary]", "[[vocabulary]]", "key 'vocabulary' is not a table"),
    ],
)
def test_a_wrong_vocabulary_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    """Keys of inner tables are named with the table."""
    assert old in _VOCABULARY
    with refused(ErrorCode.BAD_TOML, tmp_path / "tiny.toml", said):
        tokenizer_specs(_write(tmp_path, _MINIMAL + _VOCABULARY.replace(old, new)))


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (b"{{ messages }}", None),
        (b"{% for said in messages %}", "key 'template.file' is not a template: Unexpected end of template"),
        (b"one line\n{{ messages | nosuch }", "unexpected '}' in line 2 of own.jinja"),
        (b"\xff", "key 'template.file' 'utf-8' codec can't decode byte 0xff"),
    ],
)
def test_a_template_of_our_own(tmp_path: Path, template: bytes, said: str | None) -> None:
    """It lies beside the file, and is read as far as its syntax."""
    (tmp_path / "own.jinja").write_bytes(template)
    folder = _write(tmp_path, _MINIMAL + 'file = "own.jinja"\n')
    if said is None:
        assert tokenizer_specs(folder)["tiny"].template.file == tmp_path / "own.jinja"
        return
    with refused(ErrorCode.BAD_TOML, said):
        tokenizer_specs(folder)


def test_what_is_no_file(tmp_path: Path) -> None:
    """A folder of such a name is told like any file that cannot be read."""
    (tmp_path / "tiny.toml").mkdir()
    with refused(ErrorCode.BAD_TOML, tmp_path / "tiny.toml", "Is a directory"):
        tokenizer_specs(tmp_path)


def test_no_file_at_all(tmp_path: Path) -> None:
    """An empty folder means a broken installation."""
    with refused(ErrorCode.MISSING, tmp_path):
        tokenizer_specs(tmp_path)

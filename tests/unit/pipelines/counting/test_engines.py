"""Both engines against each other and against Hugging Face's own answer, and what happens when they differ."""

from __future__ import annotations

import builtins
import dataclasses
import logging
import os
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.counting import engines
from pipelines.counting.engines import Counter, special_tokens_in
from pipelines.counting.verified import count_checked
from pipelines.io.arrow_text import SAFE_CUT, cut
from pipelines.vocab.files import TokenizerFile
from pipelines.vocab.specs import tokenizer_specs

_HARD = [
    "",
    " ",
    "\n",
    "\r\n\r\n  \t\n x",
    "Hello, world",
    "it's we'LL you'Re I'M",
    "<|eot_id|>",
    "a<|eot_id|>b<|begin_of_text|><|eot_id|>",
    "<|im_end|>\n<|im_start|>user <think>hm</think><tool_call>{}</tool_call>",
    "<|eot_id|<|eot_id|>|>",
    "<|EOT_ID|> < |eot_id|>",
    "<|reserved_special_token_247|><|reserved_special_token_248|>",
    "1234567 12 3 \u0661\u0662\u0663\u0664 \u2167",
    "e\u0301 \u00e9 \u212b \ufb01 \u1112\u1161\u11ab \uf900",
    "a\u0323\u0307 a\u0307\u0323 \u0344 \u0958",
    "\u05e9\u05c1\u05dc\u05d5\u05dd \u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u3053\u3093\u306b\u3061\u306f",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea \u2764\ufe0f",
    "\ufeff\u200b\u00ad\u00a0\u2003\u2028\u2029\u0085\u180e\u3000x",
    "\x00\x01\x1c\x1f\x7f\ufffd\ue000\U000f0000\U0010ffff",
    "def f(x):\n\treturn {\n\t\t'a': 1,\n\n\n    }  \n  \nend",
    "x" * 3000,
    "ab" * 2000 + "\u00e9" * 500,
    "=" * 1000 + "\n" * 1000 + " " * 1000,
]
_NAMES = tuple(tokenizer_specs())


def _array(texts: Sequence[str]) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())


def _pieces(text: str, piece_bytes: int) -> list[str]:
    return cut(_array([text]), piece_bytes)[0].to_pylist()  # type: ignore[no-any-return]


def _uncut(counter: Counter) -> Counter:
    return dataclasses.replace(counter, piece_bytes=None)


def _plain(file: TokenizerFile, texts: Sequence[str]) -> list[int]:
    """Count the plainest way: one `encode` a text, as Hugging Face documents it."""
    from tokenizers import Tokenizer  # noqa: PLC0415 - as in the code under test

    tokenizer = Tokenizer.from_file(str(file.path))
    return [len(tokenizer.encode(text, add_special_tokens=False).ids) for text in texts]


def test_both_engines_give_hugging_faces_counts(file: TokenizerFile, fast: Counter, exact: Counter) -> None:
    """On the hard strings, and on each with something before and after it."""
    texts = [*_HARD, *(f"see: {text} ok" for text in _HARD)]
    truth = _plain(file, texts)
    assert fast.count(_array(texts)).tolist() == truth
    assert exact.count(_array(texts)).tolist() == truth
    assert fast.count(pa.array(texts, pa.string())).tolist() == truth


def test_counts_known_by_hand(file: TokenizerFile, fast: Counter) -> None:
    """No BOS; a special token's string is one token; Llama groups three digits, Qwen none."""
    end = file.spec.template.end_of_turn
    digits = {"llama-3.1": 2, "qwen3": 4}[file.spec.name]  # 123|4 and 1|2|3|4
    # "", "a", the end-of-turn token alone and between two letters (1 + 1 + 1), four digits
    assert fast.count(_array(["", "a", end, f"a{end}a", "1234"])).tolist() == [0, 1, 1, 3, digits]


_LETTERS = st.characters(exclude_categories=["Cs"])
_ODD = st.sampled_from(["\n", " ", "\r", "\t", "<|", "|>", "<|eot_id|>", "<|im_end|>", "<think>", "\u0301", "'s", "12"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(st.lists(st.one_of(_LETTERS, _ODD)).map("".join), min_size=1, max_size=8))
def test_engines_agree_on_any_text(fast: Counter, exact: Counter, parts: list[str]) -> None:
    """Any code points, mixed with what the patterns and the special tokens treat apart."""
    assert fast.count(_array(parts)).tolist() == _uncut(exact).count(_array(parts)).tolist()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(st.one_of(_LETTERS, _ODD, st.just("\n"), st.just("\n"))), piece_bytes=st.integers(1, 9))
def test_cutting_changes_nothing(fast: Counter, exact: Counter, parts: list[str], piece_bytes: int) -> None:
    """Pieces put together are the text, and their tokens are the text's, for both engines."""
    text = "".join(parts)
    assert "".join(_pieces(text, piece_bytes)) == text
    whole = _uncut(exact).count(_array([text, text]))
    for counter in (exact, fast):
        pieces = dataclasses.replace(counter, piece_bytes=piece_bytes, whole_bytes=0)
        assert pieces.count(_array([text, text])).tolist() == whole.tolist()


def test_cutting_before_every_kind_of_character(exact: Counter) -> None:
    """The one place where a cut is made, before every assigned or unassigned code point that is not a space."""
    letters = [chr(code) for code in range(0x2FFFF) if not 0xD800 <= code < 0xE000 and not chr(code).isspace()]
    cut = dataclasses.replace(exact, piece_bytes=1, whole_bytes=0)
    texts = [f"({letter}\t \n{' ' * (place % 2)}{letter}\u0301" for place, letter in enumerate(letters[::11])]
    assert _pieces(texts[40], 1) == [texts[40][:5], texts[40][5:]]
    assert np.array_equal(cut.count(_array(texts)), _uncut(exact).count(_array(texts)))


def test_a_cut_is_before_what_python_calls_no_space() -> None:
    """In UTF-8 as by `str`, for every code point but the control characters, before which there is no need to cut."""
    letters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    allowed = [letter for letter in letters if SAFE_CUT.search(f"\n{letter}".encode())]
    no_space = [letter for letter in letters if unicodedata.category(letter) != "Cc" and not letter.isspace()]
    assert allowed == no_space


def test_where_a_text_is_cut() -> None:
    """After the first line break at or past the length, before a line that is not blank."""
    assert _pieces("ab\ncd\n ef\ngh", 2) == ["ab\n", "cd\n", " ef\n", "gh"]
    assert _pieces("ab\n\n \t\n \tcd", 2) == ["ab\n\n \t\n", " \tcd"]
    assert _pieces("ab\n \u3000cd\n \x85ef\n \u00e9", 2) == ["ab\n \u3000cd\n \x85ef\n", " \u00e9"]
    assert _pieces("ab\ncd", 5) == ["ab\ncd"]
    assert _pieces("ab\n", 1) == ["ab\n"]
    assert _pieces("", 1) == [""]
    whole = [cut(_array(["ab\ncd"]), 1, whole_bytes)[0].to_pylist() for whole_bytes in (4, 5)]
    assert whole == [["ab\n", "cd"], ["ab\ncd"]]


def test_texts_of_a_megabyte(fast: Counter, exact: Counter) -> None:
    """Spaces, one letter, line breaks, and prose with line breaks: neither engine hangs or differs."""
    texts = [" " * 1_000_000, "a" * 300_000, "\n" * 1_000_000, "a line of prose, not long\n" * 40_000]
    found = fast.count(_array(texts))
    assert found.tolist() == exact.count(_array(texts)).tolist()
    one_line = int(fast.count(_array(["a line of prose, not long\n"]))[0])
    # each line break ends a token, so the lines add up
    assert found[3] == 40_000 * one_line


def test_arrays_with_an_offset_nulls_and_none(fast: Counter) -> None:
    """A slice is counted as what it shows, an empty array gives an empty one, nulls are refused."""
    texts = _array(_HARD)
    assert fast.count(texts[5:9]).tolist() == fast.count(texts).tolist()[5:9]
    assert fast.count(texts[:0]).shape == (0,)
    with pytest.raises(ValueError, match="1 texts are null"):
        fast.count(pa.array(["a", None], pa.large_string()))


def test_special_tokens_are_found(file: TokenizerFile) -> None:
    """Only the tokenizer's own strings, exactly as written, added tokens that are not special included."""
    texts = ["", "<|eot_id|>", "x<|im_end|>y", "<|EOT_ID|>", "a < b |> <|", "<think>", "<|reserved_special_token_247|>"]
    expected = {
        "llama-3.1": [False, True, False, False, False, False, True],
        "qwen3": [False, False, True, False, False, True, False],
    }
    assert special_tokens_in(_array(texts), file).tolist() == expected[file.spec.name]
    assert special_tokens_in(_array([]), file).shape == (0,)


def _stream(texts: Sequence[str], size: int = 7) -> Callable[[], Iterator[pa.LargeStringArray]]:
    return lambda: (_array(texts[at : at + size]) for at in range(0, len(texts), size))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(range(len(_HARD))), size=st.integers(1, 30), slice_bytes=st.integers(1, 5000))
def test_counts_do_not_change_with_batches_or_order(
    file: TokenizerFile, fast: Counter, order: list[int], size: int, slice_bytes: int
) -> None:
    """A text has its count wherever it stands."""
    texts = [_HARD[at] for at in order]
    sliced = dataclasses.replace(fast, slice_bytes=slice_bytes)
    counted = [sliced.count(batch) for batch in _stream(texts, size)()]
    assert np.concatenate(counted).tolist() == fast.count(_array(_HARD))[order].tolist()
    assert file.spec.name in _NAMES


@pytest.mark.parametrize("chosen", [None, "", "3", "x", "1000000000"])
def test_the_engines_threads(monkeypatch: pytest.MonkeyPatch, chosen: str | None) -> None:
    """The variable that sizes the engine's pool is as it was for the processes that this one begins."""
    monkeypatch.delenv("FASTOKENS_BPE_THREADS", raising=False)
    if chosen is not None:
        monkeypatch.setenv("FASTOKENS_BPE_THREADS", chosen)
    engines._begun_callers.cache_clear()
    with ThreadPoolExecutor(4) as pool:
        found = [future.result() for future in [pool.submit(engines._callers) for _ in range(4)]]
    engines._begun_callers.cache_clear()
    assert os.environ.get("FASTOKENS_BPE_THREADS") == chosen
    assert {id(callers) for callers in found} == {id(found[0])}
    assert len(found[0]) == (3 if chosen == "3" else min(8, os.cpu_count() or 1))


def test_batches_that_are_begun_are_waited_for_in_any_order(fast: Counter) -> None:
    """Each has its own result, as often as it is asked for."""
    small = dataclasses.replace(fast, slice_bytes=200)
    begun = [small.begin(_array(_HARD[at:])) for at in range(5)]
    expected = fast.count(_array(_HARD)).tolist()
    assert [begun[at]().tolist() for at in (3, 0, 4, 1, 2, 3)] == [expected[at:] for at in (3, 0, 4, 1, 2, 3)]


def test_without_fastokens_the_exact_engine_counts(
    file: TokenizerFile, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It warns, and the counts are the same."""
    original = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:  # noqa: ANN401 - Python's own signature
        if name == "fastokens":
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.delitem(sys.modules, "fastokens", raising=False)
    monkeypatch.setattr(builtins, "__import__", refuse)
    with caplog.at_level(logging.WARNING, "kappa"):
        counted = count_checked(_stream(_HARD), file)
    monkeypatch.undo()
    assert (counted.engine, counted.is_exact) == ("tokenizers", True)
    assert counted.tokens.tolist() == _plain(file, _HARD)
    assert "fastokens cannot be used" in caplog.text

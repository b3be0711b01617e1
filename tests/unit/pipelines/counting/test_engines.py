"""Both engines against each other and against Hugging Face's own answer, and what happens when they differ."""

from __future__ import annotations

import builtins
import dataclasses
import hashlib
import logging
import os
import re
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

from pipelines.counting import engines, spot_checks
from pipelines.counting.engines import PIECE_BYTES, Counter, Counts, EngineError, special_tokens_in
from pipelines.counting.verified import Difference, count_checked
from pipelines.io import arrow_text
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


def _off_by_one(counter: Counter, marker: str) -> Counter:
    """Return an engine that counts one token too many where the marker is in the text."""

    def count_strings(strings: list[str]) -> Counts:
        return counter.count_strings(strings) + np.array([marker in text for text in strings], np.int64)

    return Counter("wrong", "0.1", count_strings)


def test_a_run_without_differences(file: TokenizerFile, fast: Counter, exact: Counter) -> None:
    """Counts of the fast engine, all texts of a small stream compared, progress in bytes."""
    done: list[int] = []
    counted = count_checked(_stream(_HARD), file, fast=fast, on_progress=done.append)
    assert counted.tokens.tolist() == exact.count(_array(_HARD)).tolist()
    assert counted.special.tolist() == special_tokens_in(_array(_HARD), file).tolist()
    assert (counted.engine, counted.differences, counted.is_exact) == ("fastokens", [], True)
    assert counted.checked_texts == len(_HARD)
    assert counted.checked_bytes == done[-1] == sum(len(text.encode()) for text in _HARD)
    # 24 texts in batches of 7
    assert (len(_HARD), len(done), done) == (24, 4, sorted(done))


def test_a_difference_makes_everything_be_counted_again(
    file: TokenizerFile, exact: Counter, caplog: pytest.LogCaptureFixture
) -> None:
    """The result is the exact engine's, and the text is told by hash and row."""
    texts = [*(f"message {number}" for number in range(50)), "has a MARK in it", "the end"]
    truth = exact.count(_array(texts))
    with caplog.at_level(logging.WARNING, "kappa"):
        counted = count_checked(_stream(texts), file, fast=_off_by_one(exact, "MARK"))
    sha256 = hashlib.sha256(b"has a MARK in it").hexdigest()
    assert counted.differences == [Difference(sha256, 50, int(truth[50]) + 1, int(truth[50]))]
    assert (counted.engine, counted.is_exact) == ("tokenizers", True)
    assert counted.tokens.tolist() == truth.tolist()
    assert "wrong and tokenizers differ on 1 texts" in caplog.text


def test_a_second_count_that_differs_too_is_not_exact(file: TokenizerFile, exact: Counter) -> None:
    """Then the counts cannot be trusted, and the result says so."""
    wrong = _off_by_one(exact, "MARK")
    counted = count_checked(_stream(["a MARK", "b"]), file, fast=wrong, exact=wrong)
    assert (counted.is_exact, len(counted.differences)) == (False, 1)


@pytest.mark.parametrize(
    ("second", "said"), [([], "gave 0 texts, too few for row 0"), (["a MARK"], "gave 1 texts, the first 2")]
)
def test_a_stream_that_changes_is_refused(file: TokenizerFile, exact: Counter, second: list[str], said: str) -> None:
    """The readings that name a difference and count again must give the same texts."""
    readings = iter([["a MARK", "b"], second, ["a MARK"]])

    def batches() -> Iterator[pa.LargeStringArray]:
        yield _array(next(readings))

    with pytest.raises(ValueError, match=f"the second reading {said}"):
        count_checked(batches, file, fast=_off_by_one(exact, "MARK"))


@pytest.mark.parametrize("marker", ["<think>", "\u0301", "LONGEST"])
def test_rare_content_is_compared_whatever_the_size(file: TokenizerFile, exact: Counter, marker: str) -> None:
    """One text of a stream of which little is compared: special token, combining mark, longest of its batch."""
    if marker == "<think>" and file.spec.name != "qwen3":
        marker = "<|eot_id|>"
    texts = [f"message number {number}, of which most are not compared" for number in range(3000)]
    texts[1234] = (
        f"{marker} is in the only long message, by {'very ' * 5}much" if marker == "LONGEST" else f"a{marker}b"
    )
    counted = count_checked(_stream(texts, 500), file, fast=_off_by_one(exact, marker), check_bytes=8000)
    assert [difference.position for difference in counted.differences] == [1234]
    assert counted.checked_bytes < 8000


def test_two_pieces_of_a_long_text_are_compared(file: TokenizerFile, exact: Counter) -> None:
    """A book costs two pieces and their joint, and a difference in them carries the whole text's hash."""
    book = "It was a line like any other line in this book.\n" * 20_000
    counted = count_checked(_stream([book]), file, fast=_off_by_one(exact, "any other"))
    # 48 characters a line: a piece is the first whole number of lines from 16,384 bytes on, 342 x 48 = 16,416
    assert counted.checked_bytes == 2 * 342 * 48
    assert counted.differences[0].sha256 == hashlib.sha256(book.encode()).hexdigest()
    assert counted.tokens.tolist() == exact.count(_array([book])).tolist()


@pytest.mark.parametrize(
    ("text", "least", "budget"),
    [
        ("a line of a book, and one more like it\n" * 30_000, PIECE_BYTES, 300_000),
        ("words of a line that never ends, " * 1_400, 40_000, 200_000),
        ("words of a line that never ends, " * 30_000, 900_000, 4_000_000),
    ],
    ids=["pieces", "a line of 46 kB", "a line of 990 kB"],
)
def test_an_engine_that_fails_at_a_length_is_caught(
    file: TokenizerFile, exact: Counter, text: str, least: int, budget: int
) -> None:
    """Up to a quarter of the budget such a string is compared, though most of the stream is short."""

    def count_strings(strings: list[str]) -> Counts:
        return exact.count_strings(strings) + np.array([len(some) >= least for some in strings], np.int64)

    texts = [*(f"message number {number}" for number in range(3000)), text]
    counted = count_checked(
        _stream(texts, 500), file, fast=dataclasses.replace(exact, count_strings=count_strings), check_bytes=budget
    )
    assert [difference.position for difference in counted.differences] == [3000]
    assert counted.tokens.tolist() == exact.count(_array(texts)).tolist()


def test_a_cut_that_is_not_safe_is_caught(file: TokenizerFile, fast: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut within words, a long text has other tokens than the whole; both engines are given the pieces, so none is."""
    within = re.compile(rb"[a-z](?=[a-z])")
    monkeypatch.setattr(arrow_text, "SAFE_CUT", within)
    monkeypatch.setattr(spot_checks, "SAFE_CUT", within)
    texts = [f"{number} unbelievable incomprehensibilities of counterrevolutionaries\n" * 3000 for number in range(9)]
    counted = count_checked(_stream(texts), file, fast=fast)
    assert counted.differences
    assert not counted.is_exact


def test_an_engine_that_raises_is_not_used(file: TokenizerFile, exact: Counter) -> None:
    """Whatever it raises, a panic of Rust too, the exact engine counts."""

    def fail(strings: list[str]) -> Counts:
        raise EngineError(f"{len(strings)} strings")

    counted = count_checked(_stream(_HARD), file, fast=dataclasses.replace(exact, engine="x", count_strings=fail))
    assert (counted.engine, counted.tokens.tolist()) == ("tokenizers", exact.count(_array(_HARD)).tolist())


def test_the_sample_does_not_depend_on_batches_or_order() -> None:
    """What is compared at random is chosen by the text: same texts, other batches, reversed."""
    texts = [f"message number {number}" * (number % 5) for number in range(2000)]
    chosen = []
    for order, size in ((texts, 13), (texts, 2000), (texts[::-1], 100)):
        sample = spot_checks.Sample(4000)
        for batch in _stream(order, size)():
            sample.offer(batch, spot_checks.text_hashes(batch), np.arange(len(batch)), 0)
        chosen.append({part.text for part in sample.parts.values()})
    assert chosen[0] == chosen[1] == chosen[2]
    # a text costs its bytes (0 to 80) and 16 more: 4000 bytes hold 42 to 250 texts, less one that did not fit
    assert 41 <= len(chosen[0]) <= 250


@pytest.mark.parametrize("words", [16_000, 24_550, 24_950, 37_000])
def test_the_longest_up_to_a_quarter_of_the_budget_is_compared(file: TokenizerFile, exact: Counter, words: int) -> None:
    """One line of 32 to 74 kB among 6,000 messages, wherever its hash and those of other batches' longest lie."""

    def count_strings(strings: list[str]) -> Counts:
        return exact.count_strings(strings) + np.array([len(some) > 30_000 for some in strings], np.int64)

    texts = [f"message number {number}" for number in range(6000)]
    texts[2345] = "x " * words
    counted = count_checked(
        _stream(texts, 500), file, fast=dataclasses.replace(exact, count_strings=count_strings), check_bytes=300_000
    )
    assert [difference.position for difference in counted.differences] == [2345]


@pytest.mark.parametrize("other", ["a short line of some words\n" * 2_230, "y " * 37_495, "z" * 80_000])
def test_no_other_text_hides_the_longest(file: TokenizerFile, exact: Counter, other: str) -> None:
    """A longer one that is cut into shorter pieces, or is beyond the limit, in the same batch."""

    def count_strings(strings: list[str]) -> Counts:
        return exact.count_strings(strings) + np.array([len(some) == 48_000 for some in strings], np.int64)

    texts = [*(f"message number {number}" for number in range(50)), other, "x " * 24_000]
    wrong = dataclasses.replace(exact, count_strings=count_strings)
    # 75,000 - 16 is the limit: the second is 74,990, the third 80,000; the first is cut into pieces of 16 kB
    counted = count_checked(_stream(texts, 100), file, fast=wrong, check_bytes=300_000)
    assert [difference.position for difference in counted.differences] == [51]


def test_forms_with_equal_ends_and_middle_are_different_texts() -> None:
    """Their quick hash is the same; texts are only taken once where all bytes of what is compared are equal."""
    texts = ["Answer: " + "x" * 20 + f"{n % 500:04d}" + "MIDDLE!!" + "y" * 24 + " end bye" for n in range(1000)]
    sample = spot_checks.Sample(1_000_000)
    batch = _array(texts)
    sample.offer(batch, spot_checks.text_hashes(batch), np.arange(len(batch)), 0)
    assert len(set(spot_checks.text_hashes(batch).tolist())) == 1
    assert sorted(part.text for part in sample.parts.values()) == texts[:500]


def test_what_nfc_changes_is_unusual() -> None:
    """Every code point that NFC replaces or may move, and one that no table knows, alone and in a long text."""
    letters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    changed = [some for some in letters if unicodedata.normalize("NFC", some) != some or unicodedata.combining(some)]
    for texts in ([*changed, "\u0378"], [f"{'a word ' * 600}{some}" for some in changed[::50]]):
        hashes = spot_checks.text_hashes(_array(["e", *texts]))
        rows = spot_checks._unusual_rows(_array(["e", *texts]), np.arange(len(texts) + 1), hashes)
        assert sorted(rows.tolist()) == list(range(1, len(texts) + 1))


def test_hashes_see_all_ends_of_a_text() -> None:
    """Equal for equal texts at any offset; different for another length, first, middle or last letter, and empty."""
    texts = ["", "a", "b", "a" * 40, "b" + "a" * 39, "a" * 20 + "b" + "a" * 19, "a" * 39 + "b", "a" * 41]
    hashes = spot_checks.text_hashes(_array(texts))
    assert len(set(hashes.tolist())) == len(texts)
    assert spot_checks.text_hashes(_array(["x", *texts])[1:]).tolist() == hashes.tolist()
    assert spot_checks.text_hashes(_array([""])).tolist() == hashes.tolist()[:1]


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


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_streams_with_nothing_in_them(file: TokenizerFile, fast: Counter, texts: list[str]) -> None:
    """No batch, empty batches and empty texts."""
    counted = count_checked(lambda: iter([_array([]), _array(texts), _array([])]), file, fast=fast)
    assert counted.tokens.tolist() == [0] * len(texts)
    assert count_checked(lambda: iter([]), file, fast=fast).tokens.shape == (0,)
    assert counted.is_exact


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

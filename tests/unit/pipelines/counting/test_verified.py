"""What is compared with Hugging Face in every run, and what happens when an engine differs: planted, and found."""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pytest

from pipelines.counting import spot_checks
from pipelines.counting.engines import PIECE_BYTES, Counter, Counts, EngineError, special_tokens_in
from pipelines.counting.spot_checks import Samples, text_hashes
from pipelines.counting.verified import Difference, count_checked
from pipelines.io import arrow_text
from pipelines.vocab.files import TokenizerFile

_TEXTS = ["", " ", "Hello, world", "a<|eot_id|>b<|im_end|>", "e\u0301 \u212b", "\U0001f468\u200d\U0001f469", "x" * 3000]
_MANY = [f"message number {number}, an ordinary one" for number in range(4000)]
_BOOK = "It was a line like any other line in this book.\n" * 20_000


def _array(texts: Sequence[str]) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())


def _stream(texts: Sequence[str], size: int = 500) -> Callable[[], Iterator[pa.LargeStringArray]]:
    return lambda: (_array(texts[at : at + size]) for at in range(0, len(texts), size))


def _wrong(counter: Counter, is_wrong: Callable[[str], bool]) -> Counter:
    """Return an engine that counts one token too many in some strings that it is given."""

    def count_strings(strings: list[str]) -> Counts:
        return counter.count_strings(strings) + np.array([is_wrong(text) for text in strings], np.int64)

    return dataclasses.replace(counter, engine="wrong", count_strings=count_strings)


def _chosen(texts: Sequence[str], budget: int, size: int = 500, special: Sequence[str] = ()) -> list[str]:
    samples, row = Samples(budget), 0
    for batch in _stream(texts, size)():
        samples.offer(batch, row, np.isin(batch.to_pylist(), special))
        row += len(batch)
    return sorted(part.text.decode() for part in samples.chosen())


def test_a_run_without_differences(file: TokenizerFile, fast: Counter, exact: Counter) -> None:
    """Counts of the fast engine, all texts of a small stream compared, progress in bytes."""
    done: list[int] = []
    counted = count_checked(_stream(_TEXTS, 2), file, fast=fast, on_progress=done.append)
    assert counted.tokens.tolist() == exact.count(_array(_TEXTS)).tolist()
    assert counted.special.tolist() == special_tokens_in(_array(_TEXTS), file).tolist()
    assert (counted.engine, counted.differences, counted.is_exact) == ("fastokens", [], True)
    assert counted.checked_texts == len(_TEXTS)
    assert counted.checked_bytes == done[-1] == sum(len(text.encode()) for text in _TEXTS)
    # 7 texts in batches of 2
    assert (len(done), done) == (4, sorted(done))


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_streams_with_nothing_in_them(file: TokenizerFile, fast: Counter, texts: list[str]) -> None:
    """No batch, empty batches and empty texts."""
    for batches in ([_array([]), _array(texts), _array([])], [_array(texts)] if texts else []):
        counted = count_checked(lambda given=batches: iter(given), file, fast=fast)  # type: ignore[misc]
        assert (counted.tokens.tolist(), counted.is_exact) == ([0] * len(texts), True)


def _without(change: Callable[[str], str]) -> Callable[[str], bool]:
    return lambda text: change(text) != text


# What an engine miscounts, a text in which it does, and the budget: special tokens, characters that NFC changes or that
# not all tables know, and lengths up to a quarter of the budget, of a text or of the pieces or lines of a long one.
_PLANTED: dict[str, tuple[Callable[[str], bool], str, int]] = {
    "special tokens": (lambda text: "<|" in text, "a<|eot_id|>b<|im_end|>", 40_000),
    "marks": (_without(lambda text: re.sub("[\u0323\u0307]", "", text)), "q\u0323\u0307", 40_000),
    "compatibility": (_without(lambda text: unicodedata.normalize("NFC", text)), "\uf900", 40_000),
    "format characters": (lambda text: "\u200d" in text, "\U0001f468\u200d\U0001f469", 40_000),
    "the longest": (lambda text: len(text) > 200, "very much of it, " * 15, 8_000),
    "pieces": (lambda text: len(text) >= PIECE_BYTES, _BOOK, 300_000),
    "a line of 32 kB": (lambda text: len(text) > 30_000, "x " * 16_000, 300_000),
    "a line of 49 kB": (lambda text: len(text) > 30_000, "x " * 24_550, 300_000),
    "a line of 50 kB": (lambda text: len(text) > 30_000, "x " * 24_950, 300_000),
    "a line of 74 kB": (lambda text: len(text) > 30_000, "x " * 37_000, 300_000),
    "a line of 990 kB": (lambda text: len(text) > 900_000, "x " * 495_000, 4_000_000),
}


@pytest.mark.parametrize("kind", _PLANTED)
def test_an_engine_that_differs_is_found(
    file: TokenizerFile, exact: Counter, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One telling text among thousands, of which a part is compared: it is named, and the exact engine counts all."""
    is_wrong, telling, budget = _PLANTED[kind]
    texts = [*_MANY[:2345], telling, *_MANY[2345:]]
    truth = exact.count(_array(texts))
    with caplog.at_level(logging.WARNING, "kappa"):
        counted = count_checked(_stream(texts), file, fast=_wrong(exact, is_wrong), check_bytes=budget)
    assert [difference.position for difference in counted.differences] == [2345]
    assert (counted.engine, counted.is_exact) == ("tokenizers", True)
    assert counted.tokens.tolist() == truth.tolist()
    # 1/2, 1/6, 1/6 and 1/4 are 13/12 of the budget
    assert counted.checked_bytes <= budget * 13 / 12
    assert "wrong and tokenizers differ on 1 texts" in caplog.text


@pytest.mark.parametrize("other", ["a short line of some words\n" * 2_230, "y " * 37_495, "z" * 80_000])
def test_no_other_text_hides_the_longest(other: str) -> None:
    """A longer one that is cut into shorter pieces, or is beyond the limit, in the same batch."""
    line = "x " * 24_000
    # 75,000 - 16 is the limit: the second is 74,990, the third 80,000; the first is cut into pieces of 16 kB
    assert line in _chosen([*_MANY[:50], other, line], 300_000)


def test_two_pieces_of_a_long_text_are_compared(file: TokenizerFile, exact: Counter) -> None:
    """A book costs two pieces and their joint, and a difference names them by their hash, and its row."""
    counted = count_checked(_stream([_BOOK]), file, fast=_wrong(exact, lambda text: "any other" in text))
    # 48 characters a line: a piece is the first whole number of lines from 16,384 bytes on, 342 x 48 = 16,416
    part = _BOOK[: 2 * 342 * 48]
    tokens = int(exact.count(_array([part]))[0])
    # each of the two pieces has one too many
    assert counted.differences == [Difference(hashlib.sha256(part.encode()).hexdigest(), 0, tokens + 2, tokens)]
    assert counted.tokens.tolist() == exact.count(_array([_BOOK])).tolist()


def test_a_cut_that_is_not_safe_is_caught(file: TokenizerFile, fast: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut within words, a long text has other tokens than the whole; both engines are given the pieces, so none is."""
    within = re.compile(rb"[a-z](?=[a-z])")
    monkeypatch.setattr(arrow_text, "SAFE_CUT", within)
    texts = [f"{number} unbelievable incomprehensibilities of counterrevolutionaries\n" * 3000 for number in range(9)]
    counted = count_checked(_stream(texts), file, fast=fast)
    assert (bool(counted.differences), counted.is_exact) == (True, False)


def test_a_second_count_that_differs_too_is_not_exact(file: TokenizerFile, exact: Counter) -> None:
    """Then the counts cannot be trusted, and the result says so."""
    wrong = _wrong(exact, lambda text: "MARK" in text)
    counted = count_checked(_stream(["a MARK", "b"]), file, fast=wrong, exact=wrong)
    assert (counted.is_exact, len(counted.differences)) == (False, 1)


def test_a_stream_that_changes_is_refused(file: TokenizerFile, exact: Counter) -> None:
    """The reading that counts again must give the same number of texts."""
    readings = iter([["a MARK", "b"], ["a MARK"]])
    with pytest.raises(ValueError, match="the second reading gave 1 texts, the first 2"):
        count_checked(lambda: iter([_array(next(readings))]), file, fast=_wrong(exact, lambda text: "MARK" in text))


def test_an_engine_that_raises_is_not_used(file: TokenizerFile, exact: Counter) -> None:
    """Whatever it raises, a panic of Rust too, the exact engine counts."""

    def fail(strings: list[str]) -> Counts:
        raise EngineError(f"{len(strings)} strings")

    counted = count_checked(_stream(_TEXTS), file, fast=dataclasses.replace(exact, engine="x", count_strings=fail))
    assert (counted.engine, counted.tokens.tolist()) == ("tokenizers", exact.count(_array(_TEXTS)).tolist())


def test_the_sample_does_not_depend_on_batches_or_order() -> None:
    """What is compared is chosen by the text: same texts, other batches, reversed, some of them twice."""
    texts = [f"message number {number}" * (number % 5) for number in range(2000)] + ["the longest " * 20]
    special = texts[7:2000:3]
    chosen = _chosen(texts, 8000, 13, special)
    for order, size in ((texts, 2001), (texts[::-1], 100), ([*texts[500:], *texts], 999)):
        assert _chosen(order, 8000, size, special) == chosen
    # a text costs its bytes (0 to 80) and 16 more: 4000 bytes hold 42 to 250 texts, less one that did not fit; so many
    # or fewer of the sixth of the budget, 1333 bytes, are special and not among them; and the longest
    assert 41 <= len(chosen) <= 250 + 83 + 1


def test_forms_with_equal_ends_and_middle_are_different_texts() -> None:
    """Their quick hash is the same; texts are only taken once where all bytes of what is compared are equal."""
    texts = ["Answer: " + "x" * 20 + f"{n % 500:04d}" + "MIDDLE!!" + "y" * 24 + " end bye" for n in range(1000)]
    assert len(set(text_hashes(_array(texts)).tolist())) == 1
    assert _chosen(texts, 1_000_000) == texts[:500]
    few = _chosen([*texts, "z" * 99], 8000)
    # 72 bytes and 16: 4000 bytes hold 45, the longest perhaps among them
    assert len(few) in (45, 46)
    assert _chosen(["z" * 99, *texts[::-1]], 8000, 77) == few


def test_what_nfc_changes_is_unusual() -> None:
    """Every code point that NFC replaces or may move, and one that no table knows, by itself and in a long text."""
    letters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    changed = [some for some in letters if unicodedata.normalize("NFC", some) != some or unicodedata.combining(some)]
    for texts in ([*changed, "\u0378"], [f"{'a word ' * 600}{some}" for some in changed[::50]]):
        batch = spot_checks._Batch(_array(["before", "e\u4e00\u00e9", *texts])[1:], 0)
        assert batch.unusual(np.arange(len(texts) + 1)).tolist() == list(range(1, len(texts) + 1))


def test_hashes_see_all_ends_of_a_text() -> None:
    """Equal for equal texts at any offset; different for another length, first, middle or last letter, and empty."""
    texts = ["", "a", "b", "a" * 40, "b" + "a" * 39, "a" * 20 + "b" + "a" * 19, "a" * 39 + "b", "a" * 41]
    hashes = text_hashes(_array(texts))
    assert len(set(hashes.tolist())) == len(texts)
    assert text_hashes(_array(["x", *texts])[1:]).tolist() == hashes.tolist()
    assert text_hashes(_array([""])).tolist() == hashes.tolist()[:1]

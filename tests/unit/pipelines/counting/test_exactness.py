"""The fast engine against Hugging Face, id by id: every code point, hard strings, real text.

`test_engines` has the small cases; here are the many.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.counting.engines import Counter, exact_counter
from pipelines.vocab.files import TokenizerFile

_SHARED = Path(__file__).parents[4].parent / "shared"
_SURROGATES = range(0xD800, 0xE000)


@pytest.fixture(scope="module")
def exact(file: TokenizerFile) -> Counter:
    """Return the reference engine, which never cuts a text here."""
    return dataclasses.replace(exact_counter(file), piece_bytes=None)


def _assert_same(fast: Counter, exact: Counter, texts: Sequence[str]) -> None:
    """Compare token ids, and the counts of both ways of counting."""
    assert fast.encode_strings is not None
    assert exact.encode_strings is not None
    truth = exact.encode_strings(list(texts))
    for text, found, ids in zip(texts, fast.encode_strings(list(texts)), truth, strict=True):
        assert np.array_equal(found, ids), ascii(text[:200])
    assert fast.count(pa.array(texts, pa.large_string())).tolist() == list(map(len, truth))


@pytest.mark.sweep
def test_every_code_point(fast: Counter, exact: Counter) -> None:
    """All 1,112,064 of them, sixteen a text with a letter and a blank between; assigned ones in a row too."""
    points = [chr(code) for code in range(sys.maxunicode + 1) if code not in _SURROGATES]
    # 17 planes of 65,536 less 2,048 surrogates
    assert len(points) == 17 * 65_536 - 2_048
    _assert_same(fast, exact, [" a".join(points[at : at + 16]) for at in range(0, len(points), 16)])
    assigned = [point for point in points if unicodedata.category(point) not in ("Cn", "Co")]
    _assert_same(fast, exact, ["".join(assigned[at : at + 16]) for at in range(0, len(assigned), 16)])


def test_every_mark_and_decomposition(fast: Counter, exact: Counter) -> None:
    """What NFC changes: each decomposable character in both forms, each mark behind a letter and a line break."""
    points = [chr(code) for code in range(0x30000) if code not in _SURROGATES]
    decomposed = [point for point in points if unicodedata.decomposition(point)]
    _assert_same(fast, exact, [f"{unicodedata.normalize('NFD', point)}x{point}" for point in decomposed])
    marks = [point for point in points if unicodedata.combining(point)]
    _assert_same(fast, exact, [f"e{mark}\u0301{mark}\n{mark}1{mark} {mark}" for mark in marks])


_SCRIPTS = (
    *("abcXYZ", "\u00e4\u00f6\u00df\u00e9\u0130\u0131", "\u0430\u0431\u0416\u0451", "\u03b1\u03b2\u03a3\u03c2"),
    *("\u05d0\u05b8\u05d1\u05bc", "\u0627\u0644\u0639\u0651\u064e", "\u0915\u094d\u0937\u093f\u0902"),
    *("\u0e01\u0e33\u0e48", "\u0301\u0323\u0307\u0344\u0958\u212b\ufb01"),
    *("\u4f60\u597d\u3002\uff0c", "\u3053\u3093\u304c\u3099", "\ud55c\uae00\u1112\u1161\u11ab", "\U0001d4d0\U00010348"),
    *("0123456789", "\u0661\u0662\u06f3\u0967\u2167\u00bd\u2460", ".,;:!?-_/\\()[]{}<>|\"'`~@#$%^&*+="),
    *("\U0001f468\u200d\U0001f469\ufe0f\u2764\U0001f3fd\U0001f1e9\U0001f1ea", " \t\u2003"),
    *(" \t\u00a0\u2003\u3000", "\n\r", "\u200b\u00ad\ufeff\u0085\u2028\x00\x1c\x7f\ue000"),
)  # fmt: skip
_PIECES = (
    *("'s", "'LL", "I'M", "\r\n", "\n \n", " \r\n\t", "  x", "12345", "<|", "<|eot_id|>", "<|im_end|>", "<think>"),
    *("|>", "</think>", "<tool_call>", "<|reserved_special_token_99|>", "<|EOT_ID|>", "<|eot_id |>", "\ufffd"),
)  # fmt: skip


_LETTERS = st.sampled_from(_SCRIPTS).flatmap(lambda script: st.text(script, min_size=1, max_size=9))
_RUNS = st.builds(lambda letter, times: letter * times, st.sampled_from("".join(_SCRIPTS)), st.integers(2, 200))
_ATOMS = st.one_of(st.sampled_from(_PIECES), _LETTERS, _RUNS, st.characters(exclude_categories=["Cs"]))
_FORMS = st.sampled_from(("as it is", "NFC", "NFD", "NFKC", "NFKD"))


def _in_form(form: Any, text: str) -> str:  # noqa: ANN401 - a literal of unicodedata's
    return text if form == "as it is" else unicodedata.normalize(form, text)


_TEXTS = st.builds(_in_form, _FORMS, st.lists(_ATOMS, max_size=8).map("".join))


@given(texts=st.lists(_TEXTS, min_size=10, max_size=30))
def test_any_texts(fast: Counter, exact: Counter, texts: list[str]) -> None:
    """Scripts, marks, composed and decomposed, digits, blanks with CR and LF, emoji, special look-alikes, runs."""
    _assert_same(fast, exact, texts)


def test_long_runs(fast: Counter, exact: Counter) -> None:
    """A megabyte of spaces, and long runs of one letter, digit, sign, mark, emoji or special token."""
    runs = [letter * 20_000 for letter in ("a", "7", "=", "\n", "\r\n", "\t ", "e\u0301", "\U0001f44d", "\u4f60", " a")]
    specials = ["<|eot_id|>" * 2000, "<think>" * 2000, "<|" * 5000]
    _assert_same(fast, exact, [" " * 1_000_000, *runs, *specials])


def _real_texts() -> Iterator[str]:
    """Yield real messages, and parts of stories and reports, about 2 MB."""
    hub = _SHARED / "hub/repos/datasets"
    chats = json.loads((hub / "RyokoAI/ShareGPT52K/1/sg_90k_part2.json").read_text(encoding="utf-8"))[:60]
    yield from (message["value"] for chat in chats for message in chat["conversations"] if message["value"])
    for name in ("test-00000-of-00001", "train-00000-of-00002", "train-00001-of-00002"):
        path = hub / f"deepmind/narrativeqa/1/data/{name}.parquet"
        stories = pq.ParquetFile(path).read_row_group(0, columns=["document"])["document"]
        yield stories[0].as_py()["text"][:200_000]


@pytest.mark.shared
def test_real_conversations_and_stories(fast: Counter, exact: Counter) -> None:
    """Whole conversations of the unsplit edition, and the beginnings of real stories."""
    if not (_SHARED / "hub/repos/datasets").is_dir():
        pytest.skip("the real data are not beside the checkout")
    texts = list(_real_texts())
    assert sum(map(len, texts)) > 500_000
    _assert_same(fast, exact, texts)

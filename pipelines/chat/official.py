"""Reference counts: whole prompts by the official template and the reference engine, token lists compared.

They count the few conversations that the sum of pieces does not cover, and check a sample of the others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from pipelines.chat.documents import PROBES, document_content
from pipelines.chat.layout import layout_of
from pipelines.chat.pieces import count_pieces, shared_tokens
from pipelines.chat.prompts import PromptTurns, prompt_turns
from pipelines.chat.templates import ROLE_OF
from pipelines.counting.engines import Counter, Ids
from pipelines.sessions.writing import ASSISTANT, SYSTEM, TOOL, USER
from pipelines.vocab.specs import TokenizerSpec
from warehouse.errors import ErrorCode, KappaError

Pair = tuple[int, int]
Chat = Sequence[tuple[int, str]]


@dataclasses.dataclass(frozen=True, slots=True)
class Official:
    """The official template and the reference engine.

    Attributes:
        prompt: Token ids of the prompt of some messages (`role`, `content`).
        exact: The reference engine.
        end_of_turn: Token ids that end a turn.
    """

    prompt: Callable[[list[dict[str, str]]], Ids]
    exact: Counter
    end_of_turn: Ids

    def chat_turn(self, chat: Chat, end: int, before: int | None) -> Pair:
        """Return K and T of the prompt of `chat[:end]`; `before` is the previous prompt's end, None for the first."""
        prompt = self._prompt(chat[:end])
        if before is None:
            return 0, len(prompt)
        reply = self.exact.encode(chat[before][1])
        computed = np.concatenate((self._prompt(chat[:before]), reply, self.end_of_turn))
        cached = min(shared_tokens(prompt, computed), len(prompt) - 1)
        return cached, len(prompt) - cached

    def question(self, document: str, question: str) -> Pair:
        """Return K and T of a question about a document."""
        prompt, *probes = (self._prompt([(USER, document_content(document, text))]) for text in (question, *PROBES))
        cached = min(len(prompt) - 1, shared_tokens(*probes), *(shared_tokens(prompt, probe) for probe in probes))
        return cached, len(prompt) - cached

    def _prompt(self, chat: Chat) -> Ids:
        return self.prompt([{"role": ROLE_OF.get(role, "user"), "content": text} for role, text in chat])


# Cases that templates treat differently: trimming, thinking, tools, system messages, special tokens, empty texts.
_THOUGHT = "<think>\nHm.\n</think>\n\nYes."
_EDGES = ("", " ", "\n", "\n\nx", " x ", "x\n", "\u3000x.", "'s", "1", ".", "\u0301e", "a\nb \n", "[]")
PROBE_CHATS: tuple[Chat, ...] = (
    *(((USER, text), (ASSISTANT, text), (USER, text), (ASSISTANT, text), (USER, "x")) for text in _EDGES),
    *(((SYSTEM, text), (USER, "x"), (ASSISTANT, "y"), (SYSTEM, text)) for text in _EDGES),
    ((ASSISTANT, "Hello."), (USER, "x"), (USER, "y"), (ASSISTANT, "a"), (ASSISTANT, "b"), (USER, "z")),
    ((USER, "x"), (ASSISTANT, _THOUGHT), (USER, "y"), (ASSISTANT, _THOUGHT), (TOOL, "t"), (TOOL, ""), (SYSTEM, "s")),
    ((USER, "x"), (ASSISTANT, _THOUGHT), (TOOL, '"t"\n'), (ASSISTANT, "a"), (TOOL, "t"), (ASSISTANT, "b"), (USER, "y")),
    ((TOOL, "t"), (ASSISTANT, "a"), (USER, "<tool_response>x</tool_response>"), (ASSISTANT, "b"), (USER, "y")),
)


def require_facts(spec: TokenizerSpec, official: Official) -> None:
    """Compare the TOML's facts with the template itself on some small conversations.

    Raises:
        KappaError: A prompt's tokens differ from those of the facts.
    """
    for chat in PROBE_CHATS:
        prompts = _added_up(chat, spec, official.exact)
        before = None
        for at, end in enumerate(prompts.end.tolist()):
            counted = int(prompts.turns.cached[at]), int(prompts.turns.prefill[at])
            real = official.chat_turn(chat, end, before)
            if counted != real:
                why = f"its template has K, T = {real} for {chat[:end]!r}, the facts give {counted}"
                raise KappaError(
                    f"tokenizers/{spec.name}.toml is not usable", why, "correct its [template]", code=ErrorCode.BAD_TOML
                )
            before = end


def _added_up(chat: Chat, spec: TokenizerSpec, counter: Counter) -> PromptTurns:
    role = np.array([role for role, _ in chat], np.int8)
    texts = pa.array([text for _, text in chat], pa.large_string())
    layout = layout_of(np.zeros(len(chat), np.int32), np.arange(len(chat), dtype=np.int32), role)
    tokens = counter.count(texts)
    return prompt_turns(layout.session, role, tokens, count_pieces([texts], layout, spec.template, counter, tokens))

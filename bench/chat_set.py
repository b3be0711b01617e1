"""ShareGPT at the published size: 90,665 conversations in two JSON arrays, turns and lengths as counted there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

from bench.text import Source
from pipelines.generated.chats import QUESTION_TALKATIVENESS, REPLY_TALKATIVENESS, Message, conversation_id
from pipelines.generated.lengths import REPLY_TOKENS, USER_TOKENS, USER_TURNS, draw_lengths, rank_lengths

FILES = ("RyokoAI/ShareGPT52K/sg_90k_part1.json", "RyokoAI/ShareGPT52K/sg_90k_part2.json")
# Source of the figures: paper.md section 5, the independent count of the 90k edition.
CONVERSATIONS = 90_665
LONGEST_TOKENS = 450_000
# 733,551 replies to 719,155 user messages: many conversations open with a reply.
OPENING_SHARE = (733_551 - 719_155) / CONVERSATIONS
# The sample ends at 100 turns; two more points give the published mean of 7.9 user messages with a longer tail.
TURNS = (*USER_TURNS[:-2], (0.96, 29), (0.99, 78), (1, 200))
_UNIT = 500
# Characters per token, and characters and tokens of the markup: measured on this text with the Llama-3.1 vocabulary.
_QUESTION_CHARACTERS, _REPLY_CHARACTERS = 4.2, 3.8
_MARKUP_TOKENS = 17


def write_part(root: Path, part: int, scale: float, seed: str) -> None:
    """Write one of the two files: half of the conversations, with the longest one at the end of the second file."""
    total = max(2, round(CONVERSATIONS * scale))
    first, last = (0, total // 2) if part == 0 else (total // 2, total)
    path = root / FILES[part]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="ascii") as file:
        separator = "["
        for name, messages in _conversations(first, last, total, seed):
            record = {"id": name, "conversations": messages}
            file.write(separator + json.dumps(record))
            separator = ", "
        if part:
            longest = {"id": "longest", "conversations": conversation(Source(f"{seed}/longest"), _longest())}
            file.write(separator + json.dumps(longest))
        file.write("]")


def _longest() -> list[tuple[int, int]]:
    return [(30, 470)] * (LONGEST_TOKENS // 500)


def _conversations(first: int, last: int, total: int, seed: str) -> Iterator[tuple[str, list[Message]]]:
    turns = draw_lengths(Random(f"{seed}/turns"), TURNS, total)  # noqa: S311 - no secret
    for start in range(first, last, _UNIT):
        source = Source(f"{seed}/chat/{start}")
        for exchanges in draw_exchanges(source.random, turns[start : min(start + _UNIT, last)]):
            yield conversation_id(source.random), conversation(source, exchanges)


def draw_exchanges(rng: Random, turns: list[int]) -> list[list[tuple[int, int]]]:
    """Return the (question, reply) lengths in tokens of every turn; `turns` has the turns of each conversation."""
    moods = [mood for mood, n in zip([rng.gauss() for _ in turns], turns, strict=True) for _ in range(n)]
    asked = rank_lengths(USER_TOKENS, [QUESTION_TALKATIVENESS * mood + rng.gauss() for mood in moods])
    replied = rank_lengths(REPLY_TOKENS, [REPLY_TALKATIVENESS * mood + rng.gauss() for mood in moods])
    pairs = iter(zip(asked, replied, strict=True))
    return [[next(pairs) for _ in range(n)] for n in turns]


def conversation(source: Source, exchanges: list[tuple[int, int]]) -> list[Message]:
    """Return the messages of one conversation; some open with a reply, as in the published set."""
    messages: list[Message] = []
    if source.random.random() < OPENING_SHARE:
        messages.append({"from": "gpt", "value": source.reply(800)})
    for asked, replied in exchanges:
        messages.append({"from": "human", "value": source.question(max(1, round(asked * _QUESTION_CHARACTERS)))})
        characters = max(1, round((replied - _MARKUP_TOKENS) * _REPLY_CHARACTERS))
        messages.append({"from": "gpt", "value": source.reply(characters)})
    return messages

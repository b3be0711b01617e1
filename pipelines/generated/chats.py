"""The two ShareGPT editions of the sample: whole conversations with replies in HTML, and those cut into pieces."""

from __future__ import annotations

import string
from itertools import islice
from random import Random

from pipelines.generated.defects import odd_pieces, odd_records
from pipelines.generated.lengths import (
    REPLY_TOKENS,
    USER_TOKENS,
    USER_TURNS,
    V3_REPLY_TOKENS,
    draw_lengths,
    rank_lengths,
)
from pipelines.generated.text import blocks, prose, render_html, render_plain

Message = dict[str, str]
Record = dict[str, object]

# Per edition, besides the defective records: enough for stable percentiles, few enough for a run of a minute.
CONVERSATIONS = 300
# The V3 edition cuts at 2,048 tokens (docs/turns.md); 4.4 characters a token here.
PIECE_CHARACTERS = 9_000
# "Usually overlap by one identical message" (paper.md section 5).
OVERLAP_SHARE = 0.75
# Families whose pieces are out of order or not adjacent: our choice, to exercise stitching.
SCATTERED_SHARE = 0.1

# How much longer all messages of a talkative conversation are, in standard deviations of the rest: without it the
# median of K is 4,600 tokens and that of kappa_ratio 260. Fitted by hand to the published 3.2k and 100 to 160.
QUESTION_TALKATIVENESS = 1.0
REPLY_TALKATIVENESS = 2.0

# Characters per token of the Llama-3.1 vocabulary, and the tokens of the markup around a reply: measured on this
# generator.
_PLAIN_CHARACTERS = 4.45
_HTML_CHARACTERS = 4.0
_HTML_TOKENS = 17


def build_whole(rng: Random) -> tuple[list[object], list[object]]:
    """Return the records of sg_90k_part1.json and sg_90k_part2.json: unsplit, replies in HTML, with defects."""
    records: list[object] = [
        {"id": conversation_id(rng), "conversations": messages} for messages in _conversations(rng, is_html=True)
    ]
    _mix_in(rng, records, odd_records(rng))
    middle = len(records) // 2
    return records[:middle], records[middle:]


def build_pieces(rng: Random) -> list[object]:
    """Return the records of the V3 file: pieces of conversations, plain text, some scattered, with defects."""
    pieces: list[object] = []
    strays: list[object] = []
    for messages in _conversations(rng, is_html=False):
        family: list[object] = [*cut(rng, conversation_id(rng), messages)]
        if len(family) > 1 and rng.random() < SCATTERED_SHARE:
            rng.shuffle(family)
            strays.append(family.pop())
        pieces += family
    _mix_in(rng, pieces, strays)
    _mix_in(rng, pieces, odd_records(rng, "_0"))
    _mix_in(rng, pieces, odd_pieces(rng))
    return pieces


def conversation_id(rng: Random) -> str:
    """Return an id like `QWJhYvA`: seven letters and digits."""
    return "".join(rng.choices(string.ascii_letters + string.digits, k=7))


def cut(rng: Random, family: str, messages: list[Message]) -> list[Record]:
    """Return the conversation as pieces `family_START` of about PIECE_CHARACTERS that end with a reply where possible.

    START is the index of the piece's first message. A piece usually begins with the last message of the previous one.
    Lengths of 1, 9, 9, 1 thousand characters, all overlapping, give messages 0-1, 1-2, 2-3 under the numbers 0, 1, 2.
    """
    pieces: list[Record] = []
    start = 0
    while True:
        end = _piece_end(messages, start)
        pieces.append({"id": f"{family}_{start}", "conversations": messages[start:end]})
        if end >= len(messages):
            return pieces
        start = end - 1 if rng.random() < OVERLAP_SHARE else end


def _piece_end(messages: list[Message], start: int) -> int:
    """Return the end of the piece at `start`: two or more messages on where there are two, so an overlap advances."""
    end = start + 1
    size = len(messages[start]["value"])
    while end < len(messages) and (end < start + 2 or size + len(messages[end]["value"]) <= PIECE_CHARACTERS):
        size += len(messages[end]["value"])
        end += 1
    ends_with_question = end < len(messages) and messages[end - 1]["from"] == "human"
    return end - 1 if ends_with_question and end - 1 > start + 1 else end


def _conversations(rng: Random, *, is_html: bool) -> list[list[Message]]:
    turns = draw_lengths(rng, USER_TURNS, CONVERSATIONS)
    talkative = [mood for mood, count in zip([rng.gauss() for _ in turns], turns, strict=True) for _ in range(count)]
    asked = rank_lengths(USER_TOKENS, [QUESTION_TALKATIVENESS * mood + rng.gauss() for mood in talkative])
    reply_tokens = REPLY_TOKENS if is_html else V3_REPLY_TOKENS
    replied = rank_lengths(reply_tokens, [REPLY_TALKATIVENESS * mood + rng.gauss() for mood in talkative])
    exchanges = zip(asked, replied, strict=True)
    return [_conversation(rng, list(islice(exchanges, count)), is_html=is_html) for count in turns]


def _conversation(rng: Random, exchanges: list[tuple[int, int]], *, is_html: bool) -> list[Message]:
    messages: list[Message] = []
    for asked, replied in exchanges:
        messages.append({"from": "human", "value": _question(rng, asked)})
        messages.append({"from": "gpt", "value": _reply(rng, replied, is_html=is_html)})
    return messages


def _question(rng: Random, tokens: int) -> str:
    characters = int(tokens * _PLAIN_CHARACTERS)
    is_pasted = characters > 800 and rng.random() < 0.5  # noqa: PLR2004 -- long questions include code and lists
    return render_plain(blocks(rng, characters)) if is_pasted else prose(rng, characters)


def _reply(rng: Random, tokens: int, *, is_html: bool) -> str:
    if is_html:
        return render_html(blocks(rng, max(1, int((tokens - _HTML_TOKENS) * _HTML_CHARACTERS))))
    return render_plain(blocks(rng, int(tokens * _PLAIN_CHARACTERS)))


def _mix_in(rng: Random, records: list[object], others: list[object]) -> None:
    """Insert `others` into `records` in order at random positions."""
    places = sorted(rng.randint(0, len(records)) for _ in others)
    for offset, (place, other) in enumerate(zip(places, others, strict=True)):
        records.insert(place + offset, other)

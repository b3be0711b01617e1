"""add, workloads, profile, export and remove through the command line, in one home that needs no tokenizer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kappa_process import Kappa, errors_of

# n, identities of blocks of 16
REQUESTS = [(40, [7, 8]), (40, [7, 8]), (48, [8, 7, 9])]
TRACE = [
    {"timestamp": 1000 * n, "input_length": tokens, "output_length": 5, "hash_ids": ids, "block_size": 16}
    for n, (tokens, ids) in enumerate(REQUESTS)
]


@pytest.fixture(scope="module")
def kappa(tmp_path_factory: pytest.TempPathFactory) -> Kappa:
    """Return an empty home, with no Hub, and a trace beside it."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "trace.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in TRACE), "utf8")
    return Kappa(folder / "home", folder / "cache", "http://127.0.0.1:9")


def test_the_life_of_a_workload(kappa: Kappa, tmp_path: Path) -> None:
    """Declared, listed, counted with its verdict, exported, read back to the same sums, and removed."""
    source = kappa.home.parent / "trace.jsonl"
    dry = kappa("add", "mine", str(source), "--dry-run")
    assert (dry.returncode, kappa.home.exists()) == (0, False)
    added = kappa("add", "mine", str(source))
    assert (added.returncode, added.stderr) == (0, "")
    assert "mine: trace" in added.stdout
    assert "mine" in kappa("workloads").stdout
    wrong = kappa("add", "mine", str(kappa.home.parent / "nowhere.jsonl"))
    assert (wrong.returncode, len(wrong.stderr.splitlines())) == (1, 1)
    early = kappa("export", "mine")
    assert (early.returncode, early.stdout, len(early.stderr.splitlines())) == (1, "", 1)

    profiled = kappa("profile", str(source), "--name", "mine")
    assert (profiled.returncode, errors_of(profiled)) == (0, [])
    assert "mine: 3 turns" in profiled.stdout
    query = "SELECT sum(cached_tokens), sum(prefill_tokens) FROM turns WHERE workload = '{}'"
    # K 0 + 32 + 32: [8 7] were held in any position, 9 is new; T 40 + 8 + 16
    assert kappa.rows(query.format("mine")) == [(64, 64)]

    file = tmp_path / "exported.jsonl"
    exported = kappa("export", "mine", "--output", str(file))
    assert (exported.returncode, exported.stdout) == (0, "")
    assert kappa("export", "mine", "--output", "-").stdout == file.read_text("utf8")
    lines = [json.loads(line) for line in file.read_text("utf8").splitlines()]
    # 7 is 0, 8 is 1, 9 is 2
    assert [line["hash_ids"] for line in lines] == [[0, 1], [0, 1], [1, 0, 2]]
    assert "K 64 and T 64 tokens" in exported.stderr
    inside = kappa("export", "mine", "--output", str(kappa.home / "x.jsonl"))
    assert inside.returncode == 1

    removed = kappa("remove", "mine")
    assert removed.returncode == 0
    assert "mine" not in kappa("workloads").stdout
    again = kappa("remove", "mine")
    assert (again.returncode, len(again.stderr.splitlines())) == (1, 1)
    assert source.exists()

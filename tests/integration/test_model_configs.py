"""A model that no row has: its config.json from a Hub, and every way in which that fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hub_stand_in import HubStandIn
from refusals import refused

import kappa
from kappa import ErrorCode
from pipelines.fetch import hub as hub_module
from pipelines.fetch.small import small_file

REPO = "someone/llama-like"
KEYS = {
    "model_type": "llama", "hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64,
    "vocab_size": 128256, "num_key_value_heads": 8, "intermediate_size": 28672, "max_position_embeddings": 131072,
    "tie_word_embeddings": False, "auto_map": {"AutoConfig": "configuration.Evil"},
}  # fmt: skip
CONFIG = json.dumps(KEYS).encode()
PLACE = {"accelerator": "h100-sxm", "link": "pcie5-x16", "basis": "physical"}


@pytest.fixture(autouse=True)
def _cache(hub: HubStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give this process's client an empty cache, and a repository with code that nobody may run."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.url)
    template = f"{hub.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(hub_module, "FIRST_PAUSE_S", 0.0)
    monkeypatch.setenv("KAPPA_HOME", str(tmp_path / "home"))
    hub.commit(REPO, {"config.json": CONFIG, "configuration.py": b"raise SystemExit('run')"}, "models")


def test_a_repository_without_a_row(hub: HubStandIn, tmp_path: Path) -> None:
    """The same shape as Llama-3.1-70B gives its kappa_crit; only config.json is asked for."""
    rows = kappa.crit(model=[REPO, "meta-llama/Llama-3.1-70B"], **PLACE)
    mine, theirs = rows
    assert (mine.model, theirs.model) == (REPO, "llama-3.1-70b")
    assert (mine.kappa_crit, mine.tokenizer) == (theirs.kappa_crit, "llama-3.1")
    assert mine.model_confidence == "config"
    assert mine.flops_per_token_source.startswith(f"config.json of {REPO}@")
    assert hub.asked("configuration.py") == []
    path = tmp_path / "config.json"
    path.write_bytes(CONFIG)
    for name in (str(path), f"{tmp_path}/"):
        (of_file,) = kappa.crit(model=name, **PLACE)
        assert (of_file.model, of_file.kappa_crit) == (name, mine.kappa_crit)


def test_offline(monkeypatch: pytest.MonkeyPatch, hub: HubStandIn) -> None:
    """The copy in the cache answers without a request; without one the error says so."""
    online = kappa.crit(model=REPO, **PLACE)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    hub.requests.clear()
    assert kappa.crit(model=REPO, **PLACE) == online
    with refused(ErrorCode.NOT_CACHED, "someone/else"):
        kappa.crit(model="someone/else", **PLACE)
    assert hub.requests == []


def test_failures(hub: HubStandIn, tmp_path: Path) -> None:
    """A slip in the name, a gate, no config.json, one that is too large, a busy server, a path that leads nowhere."""
    with refused(ErrorCode.HUB_MISSING, "meta-llama/Llama-3.1-70") as caught:
        kappa.crit(model="meta-llama/Llama-3.1-70", **PLACE)
    assert "meta-llama/Llama-3.1-70B" in caught.value.remedy
    hub.commit("someone/empty", {"README.md": b"nothing"}, "models")
    with refused(ErrorCode.HUB_FILE_MISSING, "someone/empty/config.json"):
        kappa.crit(model="someone/empty", **PLACE)
    hub.commit("someone/large", {"config.json": b" " * 2**20 + b"{}"}, "models")
    with refused(ErrorCode.BAD_FILE, "1,048,578 bytes"):
        kappa.crit(model="someone/large", **PLACE)
    assert hub.asked("GET /someone/large/resolve") == []
    hub.faults.gated = {REPO}
    with refused(ErrorCode.HUB_GATED, REPO):
        kappa.crit(model=REPO, **PLACE)
    hub.faults.gated, hub.faults.busy = set(), 2
    assert small_file(REPO, "config.json", 2**20).data == CONFIG
    with refused(ErrorCode.NOT_READABLE, tmp_path / "none.json"):
        kappa.crit(model=str(tmp_path / "none.json"), **PLACE)
    with refused(ErrorCode.UNKNOWN_NAME, "lama-3.1-70b", "llama-3.1-70b"):
        kappa.crit(model="lama-3.1-70b", **PLACE)

"""`kappa refresh --check` without a Hub: which files are asked for, and which count as changed."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

import kappa
from assets.commands import running
from pipelines.fetch import hub
from warehouse.home.home import Home


def test_every_workload_of_a_repository_is_asked_for_its_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two workloads read a file each of one repository; one of them changed, the other is no change."""
    used = {"repo_id": "owner/set", "revision": "r1", "bytes": 1, "sha256": "old"}
    rows = pa.Table.from_pylist([{**used, "workload": name, "path": f"{name}.json"} for name in ("one", "two")])
    files = {
        f"{name}.json": SimpleNamespace(bytes=1, sha256=sha256) for name, sha256 in (("one", "new"), ("two", "old"))
    }
    upstream = SimpleNamespace(is_offline=False, revision=lambda _: "r2", files=lambda *_: files)
    monkeypatch.setattr(hub, "HuggingFaceHub", lambda: upstream)
    relation = SimpleNamespace(order=lambda _: relation, to_arrow_table=lambda: rows)
    opened = contextlib.nullcontext(SimpleNamespace(table=lambda _: relation))
    monkeypatch.setattr(kappa, "open", lambda _: opened)
    known = {name: SimpleNamespace(hub=None, select=lambda *_, name=name: [f"{name}.json"]) for name in ("one", "two")}
    monkeypatch.setattr(running, "known_workloads", lambda _: known)
    assert running.changed_files(Home(tmp_path)) == ["owner/set/one.json"]

"""What several test modules share: bytes read as a workload, hand-made turns, steps that count characters."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# It reads the environment once: before a test changes that for itself.
import huggingface_hub.constants  # noqa: F401
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

from pipelines.counting.verified import Counted
from pipelines.fetch.hub import SampleHub
from pipelines.sessions.messages import Messages
from pipelines.sessions.rejects import REJECTED
from pipelines.sessions.writing import ROLE_NAMES, SESSIONS, SessionsWriter
from pipelines.steps import counts, fetching
from pipelines.steps.building import build_warehouse
from pipelines.steps.conversations import read_conversations
from pipelines.steps.tables import STAGED, stage_table
from pipelines.steps.text_turns import derive_turns
from pipelines.vocab.files import TokenizerFile
from pipelines.vocab.specs import TokenizerSpec, tokenizer_spec
from pipelines.workloads.declaration import InputFile
from pipelines.workloads.sets import workload
from warehouse.declared.tables import TURNS
from warehouse.home.home import Home
from warehouse.home.staging import Staging

# A suite that runs in the background ignores Ctrl-C, and so would every process that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Collections after every few hundred objects are a tenth of the time, where libraries hold a million for good.
gc.set_threshold(50_000, 20, 20)

settings.register_profile(
    "suite", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
# New examples every time, and more of them where a test does not say how many.
settings.register_profile("thorough", settings.get_profile("suite"), derandomize=False, max_examples=400)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """One worker a core for folders of tests; none for single files, which end before workers have begun."""
    return None if all(Path(argument).is_dir() for argument in config.args) else 0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip sweeps unless they are asked for; begin with the longest tests, so that no worker is left with them."""
    items.sort(key=lambda item: item.path.name != "test_write_errors.py")
    if not os.environ.get("KAPPA_SWEEP"):
        for item in items:
            if item.get_closest_marker("sweep"):
                item.add_marker(pytest.mark.skip(reason="a sweep, for when a pin changes: set KAPPA_SWEEP=1"))


def pytest_collection_finish() -> None:
    """Leave what is imported and collected out of every later collection of garbage."""
    gc.freeze()


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Callable[[str, Callable[[Path], object]], Path]:
    """Return a function that fills a folder once a session: the first worker that asks does, others wait for it."""
    base = tmp_path_factory.getbasetemp()
    root = base if worker_id == "master" else base.parent

    def filled(name: str, fill: Callable[[Path], object]) -> Path:
        folder = root / name
        with FileLock(root / f"{name}.lock"):
            if not (root / f"{name}.filled").exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                fill(folder)
                (root / f"{name}.filled").touch()
        return folder

    return filled


@dataclass
class Outcome:
    """What a reader made of its files: sessions as lists of (role, text), and the rows of `rejects`."""

    records: dict[str, int]
    kept: int
    rejects: list[dict[str, Any]]
    sessions: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    @property
    def reasons(self) -> list[tuple[int, str]]:
        """Return (record, reason) of each reject."""
        return [(row["record"], row["reason"]) for row in self.rejects]


def _outcome(writer: SessionsWriter) -> Outcome:
    ids = pq.read_table(writer.folder / SESSIONS)["session_id"].to_pylist()
    messages = Messages(writer.folder)
    texts = [text for batch in messages.texts() for text in batch.to_pylist()]
    rows = messages.owners.append_column("text", [texts]).to_pylist()
    sessions: dict[str, list[tuple[str, str]]] = {name: [] for name in ids}
    for row in sorted(rows, key=lambda row: (row["session"], row["position"])):
        assert row["position"] == len(sessions[ids[row["session"]]])
        sessions[ids[row["session"]]].append((ROLE_NAMES[row["role"]], row["text"]))
    return Outcome(dict(writer.records), writer.kept, pq.read_table(writer.folder / REJECTED).to_pylist(), sessions)


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Outcome]:
    """Return a function that reads the contents of files (bytes, JSON values or paths) as a workload.

    It checks that records = kept + rejected at level record, whatever the files hold.
    """

    def reading(name: str, *contents: object) -> Outcome:
        folder = tmp_path / f"read-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        files = []
        for n, content in enumerate(contents):
            path = content if isinstance(content, Path) else folder / f"file{n}"
            if not isinstance(content, Path):
                path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
            files.append(InputFile(f"file{n}", path))
        writer = SessionsWriter(folder, name)
        workload(name).read(files, writer, lambda _: None)
        writer.close()
        outcome = _outcome(writer)
        rejected = sum(row["level"] == "record" for row in outcome.rejects)
        assert sum(outcome.records.values()) == outcome.kept + rejected == outcome.kept + writer.rejects.records
        return outcome

    return reading


@pytest.fixture(scope="session")
def chat() -> Callable[..., dict[str, Any]]:
    """Return a function that writes a chat record: `chat("id", "human: hello", "gpt: hi")`."""

    def record(name: object, *messages: str) -> dict[str, Any]:
        parts = [message.split(": ", 1) for message in messages]
        return {"id": name, "conversations": [{"from": role, "value": text} for role, text in parts]}

    return record


@pytest.fixture(scope="session")
def turns_table() -> Callable[..., pa.Table]:
    """Return a function that makes rows of `turns` from (session, turn_index, K, T, output)."""

    def table(rows: Iterable[tuple[str, int, int, int, int | None]], name: str = "w") -> pa.Table:
        series = {"workload": name, "tokenizer": "llama-3.1", "counting": "text", "reuse": "history"}
        return TURNS.rows(
            [
                series | {
                    "session_id": session, "turn_index": index, "cached_tokens": k, "prefill_tokens": t,
                    "output_tokens": output, "kappa_ratio": k / t, "is_first_turn": index == 0,
                }
                for session, index, k, t, output in rows
            ]
        )  # fmt: skip

    return table


def _characters(batches: Callable[[], Iterable[pa.Array]], file: TokenizerFile, **_: object) -> Counted:
    del file
    tokens = np.array([len(text) for batch in batches() for text in batch.to_pylist()], np.int64)
    return Counted(
        tokens=tokens, special=np.zeros(len(tokens), np.bool_), engine="characters", engine_version="1",
        checked_texts=0, checked_bytes=0, differences=[], is_exact=True,
    )  # fmt: skip


@dataclass
class Lab:
    """The steps over a folder of repositories, with one token a character."""

    root: Path
    staging: Staging
    home: Home

    def put(self, name: str, *contents: object) -> None:
        """Write the workload's files into its repository."""
        hub = SampleHub(self.root, "r")
        repo_id = workload(name).repo_id
        for path, content in zip(workload(name).select(hub, repo_id, "r"), contents, strict=True):
            local = self.root / repo_id / path
            local.parent.mkdir(parents=True, exist_ok=True)
            local.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())

    def fetch(self, name: str, revision: str = "r1") -> None:
        """Fetch the workload's files as they are now."""
        fetching.fetch_raw(self.staging, workload(name), SampleHub(self.root, revision))

    def turns(self, name: str, *tokenizers: str, revision: str = "r1") -> None:
        """Run every step up to the turns."""
        self.fetch(name, revision)
        read_conversations(self.staging, workload(name))
        for tokenizer in tokenizers or ("llama-3.1",):
            fetching.fetch_tokenizer_file(self.staging, tokenizer_spec(tokenizer), offline=True)
            counts.count_tokens(self.staging, workload(name), tokenizer)
            derive_turns(self.staging, workload(name), tokenizer)

    def warehouse(self) -> int:
        """Stage every table, build the warehouse and publish it with a page; return the generation."""
        for table in STAGED:
            stage_table(self.staging, table)
        product = build_warehouse(self.staging, self.home, "run", datetime(2026, 1, 2, tzinfo=UTC))
        with self.staging.build("report", f"of-{product.identity}") as draft:
            (draft.folder / "report.html").write_text("page", "utf8")
        return self.home.publish(product, self.staging.require("report"))


def _fetch(spec: TokenizerSpec, folder: Path, *, offline: bool) -> TokenizerFile:
    del offline
    path = folder / f"{spec.name}.json"
    path.write_text(spec.name, "utf8")
    return TokenizerFile(spec, path, "pypi:none", "1", spec.sha256, f"fingerprint of {spec.name}", 1)


@pytest.fixture(scope="session")
def lab_in() -> Callable[[Path, pytest.MonkeyPatch], Lab]:
    """Return a function that makes a lab in a folder."""

    def made(folder: Path, patch: pytest.MonkeyPatch) -> Lab:
        patch.setattr(fetching, "fetch_tokenizer", _fetch)
        patch.setattr(counts, "count_checked", _characters)
        home = Home(folder / "home")
        home.prepare()
        return Lab(folder / "repositories", home.staging(is_sample=False), home)

    return made


@pytest.fixture
def lab(lab_in: Callable[..., Lab], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Return steps over an empty folder of repositories; a token is a character and nothing is fetched."""
    return lab_in(tmp_path, monkeypatch)

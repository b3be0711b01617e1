"""A Hub stand-in with tiny data sets, and homes that were built from it once and are copied for each test."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# The helpers beside this file are no package: tests are imported one by one.
sys.path.insert(0, str(Path(__file__).parent))

from hub_stand_in import Faults, HubStandIn
from kappa_process import ROOT, Kappa
from tiny_sets import FINQA, all_sets

from pipelines.vocab.rebuilding import find_vocabulary, rebuild_tokenizer_json
from pipelines.vocab.specs import tokenizer_specs
from warehouse.errors import KappaError

GATED = "meta-llama/Llama-3.1-8B-Instruct"
# Makes each changed file another one, which no cache holds.
_NUMBERS = itertools.count()
SMALL = ("--workload", "finqa", "--tokenizer", "qwen3")

sys.path.insert(0, str(ROOT))


@pytest.fixture(scope="session")
def _served() -> Iterator[HubStandIn]:
    with HubStandIn() as hub:
        for repo_id, files in all_sets().items():
            hub.commit(repo_id, files)
        for spec in tokenizer_specs().values():
            try:
                find_vocabulary(spec)
            except KappaError as error:
                pytest.skip(str(error))
            file = {spec.path: rebuild_tokenizer_json(spec)}
            for repo_id in spec.repositories:
                hub.commit(repo_id, file, "models")
        hub.faults = Faults(gated={GATED})
        yield hub


@pytest.fixture
def hub(_served: HubStandIn) -> Iterator[HubStandIn]:
    """The Hub, without faults beyond Llama's gate; what a test changes is undone."""
    states = {repo: dict(commits) for repo, commits in _served.repositories.items()}
    _served.requests.clear()
    yield _served
    _served.repositories = states
    _served.faults = Faults(gated={GATED})


@pytest.fixture(scope="session")
def full(_served: HubStandIn, tmp_path_factory: pytest.TempPathFactory) -> Kappa:
    """A home with all four workloads by both tokenizers; copy it before you change it."""
    kappa = Kappa(tmp_path_factory.mktemp("full") / "home", tmp_path_factory.mktemp("full-cache"), _served.url)
    process = kappa("run")
    assert process.returncode == 0, process.stderr
    (kappa.hf_home / "output.txt").write_text(process.stdout + process.stderr, "utf8")
    return kappa


@pytest.fixture(scope="session")
def small(_served: HubStandIn, tmp_path_factory: pytest.TempPathFactory) -> Kappa:
    """A home with one workload by one tokenizer; copy it before you change it."""
    kappa = Kappa(tmp_path_factory.mktemp("small") / "home", tmp_path_factory.mktemp("small-cache"), _served.url)
    process = kappa("run", *SMALL)
    assert process.returncode == 0, process.stderr
    return kappa


@pytest.fixture
def copy(small: Kappa, hub: HubStandIn, tmp_path: Path) -> Kappa:
    """A copy of the small home, to be changed."""
    del hub
    return small.twin(tmp_path / "home")


@pytest.fixture
def empty(hub: HubStandIn, tmp_path: Path) -> Kappa:
    """An empty home and an empty cache."""
    return Kappa(tmp_path / "home", tmp_path / "cache", hub.url)


@pytest.fixture
def changed_finqa(hub: HubStandIn) -> Callable[[], str]:
    """A function that gives the Hub a new revision of FinQA: a question of 3 tokens, not 2, in a file never fetched."""

    def change() -> str:
        files = all_sets()[FINQA]
        train = files["train.json"].replace(b'"Question": "the the"', b'"Question": "the the the"')
        assert train != files["train.json"]
        return hub.commit(FINQA, {**files, "train.json": train + b" " * next(_NUMBERS)})

    return change

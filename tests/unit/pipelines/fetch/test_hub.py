"""Files of repositories: verified, fetched again with back-off, and failures told without a secret."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from huggingface_hub import errors
from refusals import refused

from pipelines.fetch import hub
from pipelines.fetch.hub import (
    ATTEMPTS,
    FetchedFile,
    HuggingFaceHub,
    RemoteFile,
    SampleHub,
    hub_failure,
    sha256_of,
)
from warehouse.errors import ErrorCode, KappaError

REPO = "owner/set"
ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # sha256 of abc, FIPS 180-2
TOKEN = "hf_" + "aB3" * 10 + "xyz9"  # no account has it


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replace sleeping by noting for how long."""
    found: list[float] = []
    monkeypatch.setattr(hub.time, "sleep", found.append)
    return found


def http(kind: type[Exception], code: int = 404) -> Exception:
    """Return an error of the Hub's client."""
    response = SimpleNamespace(status_code=code, headers={}, request=None)
    return kind("the Hub said no", response=response)  # type: ignore[call-arg]


class ConnectError(Exception):
    """Stands for the one of the client's HTTP library, which is no OSError."""


def failing(times: int, error: Exception) -> tuple[Callable[[], str], list[int]]:
    """Return a call that fails so many times and then answers, and the list of its calls."""
    calls: list[int] = []

    def call() -> str:
        calls.append(1)
        if len(calls) <= times:
            raise error
        return "answer"

    return call, calls


class TestPatience:
    """Back-off, and what is not worth waiting for."""

    def test_an_answer_at_once(self, pauses: list[float]) -> None:
        """Nothing is waited for where nothing fails."""
        call, calls = failing(0, OSError())
        # 1 call, no pause
        assert (hub.patiently("x", call), len(calls), pauses) == ("answer", 1, [])

    def test_pauses_double(self, pauses: list[float], caplog: pytest.LogCaptureFixture) -> None:
        """A broken connection and a busy server are tried again, each time after twice as long, and it is told."""
        for error in (ConnectError("refused"), http(errors.HfHubHTTPError, 503), ConnectionResetError(104, "reset"),
                      TimeoutError("slow")):  # fmt: skip
            pauses.clear()
            call, calls = failing(3, error)
            with caplog.at_level(logging.WARNING, "kappa"):
                assert hub.patiently("owner/set", call) == "answer"
            # 3 failures: 0.5, 1, 2 seconds, the 4th call answers
            assert (len(calls), pauses) == (4, [0.5, 1.0, 2.0])
        assert "owner/set: refused; try 2 of 6 in 0.5 s" in caplog.text

    def test_it_ends(self, pauses: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
        """After six tries the error says which endpoint did not answer and what to do."""
        monkeypatch.setenv("HF_ENDPOINT", "http://hub.test:1")
        call, calls = failing(99, ConnectError("Connection refused"))
        with refused(ErrorCode.HUB_UNREACHABLE, REPO, "http://hub.test:1", "Connection refused"):
            hub.patiently(REPO, call)
        # 0.5 + 1 + 2 + 4 + 8 = 15.5 s, and none after the last try
        assert (len(calls), sum(pauses)) == (ATTEMPTS, 15.5)

    def test_ctrl_c_is_not_waited_out(self, pauses: list[float]) -> None:
        """An interrupt ends at once."""

        def interrupt() -> str:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            hub.patiently("x", interrupt)
        assert pauses == []

    @pytest.mark.parametrize(
        ("error", "code", "values"),
        [
            (http(errors.GatedRepoError, 403), ErrorCode.HUB_GATED, [REPO]),
            (http(errors.RepositoryNotFoundError), ErrorCode.HUB_MISSING, [REPO]),
            (http(errors.RevisionNotFoundError), ErrorCode.HUB_MISSING, [REPO]),
            (http(errors.RemoteEntryNotFoundError), ErrorCode.HUB_FILE_MISSING, [REPO]),
            (OSError(28, "No space left on device"), ErrorCode.DISK_FULL, [REPO, "No space left on device"]),
            (OSError(122, "Disk quota exceeded"), ErrorCode.DISK_FULL, [REPO, "Disk quota exceeded"]),
            (PermissionError(13, "Permission denied"), ErrorCode.NOT_WRITABLE, [REPO, "Permission denied"]),
            (OSError(30, "Read-only file system"), ErrorCode.NOT_WRITABLE, [REPO, "Read-only file system"]),
            (KappaError("a", "b", "c", code=ErrorCode.USAGE), ErrorCode.USAGE, ["a, b"]),
        ],
    )
    def test_what_waiting_does_not_mend(
        self, pauses: list[float], error: Exception, code: ErrorCode, values: list[str]
    ) -> None:
        """A gated or missing repository and a full disk are told at the first try."""
        call, calls = failing(1, error)
        with refused(code, *values):
            hub.patiently(REPO, call)
        # 1 call
        assert (len(calls), pauses) == (1, [])

    def test_gated_comes_before_missing(self) -> None:
        """A gated repository is a missing one to the client; the more helpful word wins."""
        error = http(errors.GatedRepoError, 403)
        assert isinstance(error, errors.RepositoryNotFoundError)
        assert "is gated" in str(hub_failure(REPO, error))

    @pytest.mark.parametrize(
        "error", [ValueError("x"), ConnectionError(111, "refused"), OSError("no number"), EOFError()]
    )
    def test_other_failures_may_mend(self, error: Exception) -> None:
        """What is not known to last is tried again."""
        assert hub_failure(REPO, error) is None


class TestSecrets:
    """No token and no password in a message."""

    @pytest.mark.parametrize(
        "text",
        [f"bad token {TOKEN}", "http://user:password@proxy.test:80 refused", "x\nhf_secondLine"],
    )
    def test_of_the_error(self, text: str) -> None:
        """The first line alone is told, short, with tokens and credentials masked."""
        told = hub._brief(ValueError(text + "x" * 500))
        # at most 160 characters
        assert len(told) <= 160
        assert not any(secret in told for secret in (TOKEN, "password", "secondLine"))

    def test_of_the_endpoint(self, pauses: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
        """Credentials in HF_ENDPOINT are left out of the error and of what is told between the tries."""
        monkeypatch.setenv("HF_ENDPOINT", "https://me:secret@mirror.test/hf")
        call, _ = failing(99, ConnectError(f"no route to https://me:secret@mirror.test/hf with {TOKEN}"))
        with refused(ErrorCode.HUB_UNREACHABLE, "https://mirror.test/hf") as caught:
            hub.patiently(REPO, call)
        assert not any(secret in str(caught.value) for secret in ("secret", TOKEN))
        assert len(pauses) == ATTEMPTS - 1

    def test_a_token_of_another_form(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever HF_TOKEN holds is masked: mirrors and organisations have tokens of other forms."""
        monkeypatch.setenv("HF_TOKEN", "api_org_SecretSecret")
        assert "SecretSecret" not in hub._brief(ValueError("Illegal header value b'Bearer api_org_SecretSecret'"))

    @pytest.mark.parametrize("empty", [ValueError(), ValueError("  \n ")])
    def test_without_a_message(self, empty: Exception) -> None:
        """An error without words has its kind."""
        assert hub._brief(empty) == "ValueError"


class TestVerification:
    """Size and sha256 of what was downloaded."""

    @pytest.fixture
    def download(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Path]]:
        """Serve these contents one after another as a link to a blob of our name, as the client's cache does."""

        def serving(*contents: bytes, name: str = "kappa-{}") -> list[Path]:
            given: list[Path] = []
            link = tmp_path / "snapshots" / "c0ffee" / "a.json"
            for folder in (tmp_path / "blobs", link.parent):
                folder.mkdir(parents=True)

            def fetch(repo_id: str, path: str, **options: object) -> Path:
                assert (repo_id, path, options["revision"], options["repo_type"]) == (
                    REPO,
                    "a.json",
                    "c0ffee",
                    "dataset",
                )
                if not link.exists():
                    blob = tmp_path / "blobs" / name.format(len(given))
                    blob.write_bytes(contents[len(given)])
                    link.symlink_to(blob)
                    given.append(blob)
                return link

            monkeypatch.setattr(hub, "download", fetch)
            return given

        return serving

    def test_whole(self, download: Callable[..., list[Path]]) -> None:
        """A file of the stated size and sha256 is used as it is; the sha256 is computed where none is stated."""
        download(b"abc")
        for sha256 in (ABC, None):
            found = HuggingFaceHub().fetch(REPO, "c0ffee", RemoteFile("a.json", 3, sha256))
            # 3 bytes
            assert (found.bytes, found.sha256, found.revision, found.repo_id) == (3, ABC, "c0ffee", REPO)

    @pytest.mark.parametrize("bad", [b"ab", b"abcd", b"abd", b""])
    def test_damaged_once(
        self, download: Callable[..., list[Path]], caplog: pytest.LogCaptureFixture, bad: bytes
    ) -> None:
        """A copy of another size or content is thrown away, blob included, and fetched again, and that is told."""
        blobs = download(bad, b"abc")
        with caplog.at_level(logging.WARNING, "kappa"):
            found = HuggingFaceHub().fetch(REPO, "c0ffee", RemoteFile("a.json", 3, ABC))
        assert (found.sha256, blobs[0].exists(), len(blobs)) == (ABC, False, 2)
        assert "owner/set/a.json arrived damaged (try 1 of 2)" in caplog.text

    def test_damaged_twice(self, download: Callable[..., list[Path]]) -> None:
        """Then the error names the file, and no copy is left to be used later."""
        blobs = download(b"ab", b"ab")
        with refused(ErrorCode.DOWNLOAD_DAMAGED, "owner/set/a.json", "2 bytes"):
            HuggingFaceHub().fetch(REPO, "c0ffee", RemoteFile("a.json", 3, ABC))
        assert [blob.exists() for blob in blobs] == [False, False]

    def test_a_blob_of_another_name_stays(self, download: Callable[..., list[Path]]) -> None:
        """Other files may share a blob that neither we nor the hash named: the link alone is removed."""
        blobs = download(b"ab", b"ab", name="abc{}")
        with refused(ErrorCode.DOWNLOAD_DAMAGED, "owner/set/a.json"):
            HuggingFaceHub().fetch(REPO, "c0ffee", RemoteFile("a.json", 3, ABC))
        assert [blob.read_bytes() for blob in blobs] == [b"ab", b"ab"]

    def test_sha256(self, tmp_path: Path) -> None:
        """The published test vectors."""
        (tmp_path / "f").write_bytes(b"abc")
        assert sha256_of(tmp_path / "f") == ABC


class TestSample:
    """A folder laid out like repositories."""

    def test_files(self, tmp_path: Path) -> None:
        """All files of one repository with their sizes, at one revision, marked as a sample."""
        for name in ("owner/set/data/b.json", "owner/set/a.json", "owner/other/c.json"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(b"abc")
        sample = SampleHub(tmp_path, "seed-1")
        assert (sample.revision(REPO), sample.is_sample, HuggingFaceHub.is_sample) == ("seed-1", True, False)
        files = sample.files(REPO, "seed-1")
        # 2 of 3 files are of this repository
        assert files == {name: RemoteFile(name, 3, None) for name in ("a.json", "data/b.json")}
        found = sample.fetch(REPO, "seed-1", files["data/b.json"])
        assert found == FetchedFile(
            "sample:owner/set", "seed-1", "data/b.json", tmp_path / "owner/set/data/b.json", 3, ABC
        )  # fmt: skip
        assert sample.files("owner/none", "seed-1") == {}

    def test_splits(self) -> None:
        """The split stands before the first hyphen; other files are no part of it; the order is that of the names."""
        paths = [
            "data/train-00001-of-2.parquet",
            "data/train-00000-of-2.parquet",
            "test-0.parquet",
            "train.json",
            "a.md",
        ]
        # 2 + 1 Parquet files
        assert hub._splits_by_name(paths) == {"train": [paths[1], paths[0]], "test": [paths[2]]}


class TestOffline:
    """HF_HUB_OFFLINE: what is in the cache, and nothing else."""

    @pytest.fixture
    def cache(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """Put two commits of one data set, and a model of that name, into the cache."""

        def revision(name: str, modified: float) -> Any:  # noqa: ANN401
            shared = [("b.json", "abc123"), ("c.json", "abc123")]
            files = [
                SimpleNamespace(file_path=tmp_path / name / path, size_on_disk=3, blob_path=tmp_path / blob)
                for path, blob in [("data/a.parquet", ABC), *shared]
            ]
            return SimpleNamespace(
                commit_hash=name, last_modified=modified, snapshot_path=tmp_path / name, files=files
            )  # fmt: skip

        repos = [
            SimpleNamespace(repo_id=REPO, repo_type="model", revisions=[revision("model", 9.0)]),
            SimpleNamespace(repo_id=REPO, repo_type="dataset", revisions=[revision("new", 2.0), revision("old", 1.0)]),
        ]
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        monkeypatch.setattr("huggingface_hub.scan_cache_dir", lambda: SimpleNamespace(repos=repos))

    @pytest.mark.usefixtures("cache")
    def test_the_newest_commit(self) -> None:
        """The newest commit of the data set is taken, its files and splits are those of the cache.

        A name that is a sha256 is what the file should have; files that share a blob of any other name are not used.
        """
        offline = HuggingFaceHub()
        assert offline.revision(REPO) == "new"
        assert offline.files(REPO, "old") == {"data/a.parquet": RemoteFile("data/a.parquet", 3, ABC)}
        assert offline.splits(REPO, "new") == {"a.parquet": ["data/a.parquet"]}

    @pytest.mark.usefixtures("cache")
    def test_not_in_the_cache(self) -> None:
        """Another data set or commit is told with what to do."""
        with refused(ErrorCode.NOT_CACHED, "o/x"):
            HuggingFaceHub().revision("o/x")
        with refused(ErrorCode.NOT_CACHED, REPO):
            HuggingFaceHub().files(REPO, "none")

    def test_no_cache_at_all(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A machine without any cache is told the same."""

        def scan() -> None:
            raise errors.CacheNotFound("no cache", cache_dir="nowhere")

        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        monkeypatch.setattr("huggingface_hub.scan_cache_dir", scan)
        with refused(ErrorCode.NOT_CACHED, REPO):
            HuggingFaceHub().revision(REPO)

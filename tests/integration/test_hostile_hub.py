"""An endpoint that names its files badly: nothing outside the cache is touched, no file has the bytes of another."""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from pathlib import Path

import pytest
from hub_stand_in import HubStandIn, sha256
from kappa_process import Kappa, errors_of, files_below
from refusals import refused
from tiny_sets import FINQA, NARRATIVEQA, SHAREGPT, TOTALS, all_sets

from pipelines.fetch import hub as hub_module
from pipelines.fetch.hub import HuggingFaceHub
from pipelines.io.verified import unchanged
from pipelines.vocab.files import fetch_tokenizer
from pipelines.vocab.specs import tokenizer_spec
from pipelines.vocab.template_files import _from_hub as chat_template_of
from warehouse.errors import ErrorCode, KappaError

SMALL = ("--workload", "finqa", "--tokenizer", "qwen3")
FILES = all_sets()[FINQA]
# From blobs/, .locks/ and snapshots/ of a repository to the folder around the cache, and the steps before and behind.
CLIMBS = ["../" * steps + "victim" for steps in range(1, 7)]
EQUAL = ['"abc123"', 'W/"abc123"', '"' + "a" * 64 + '"', '"' + "b" * 40 + '"', f'"{sha256(FILES["train.json"])}"']


@pytest.fixture
def cache(hub: HubStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of this process's client, and a file wherever a climbing name could lead."""
    place = tmp_path / "around" / "cache" / "hub"
    place.mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "around", place.parent, place):
        (folder / "victim").write_bytes(b"mine")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(place))
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.url)
    template = f"{hub.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr("datasets.config.HF_ENDPOINT", hub.url)
    # Another test may have loaded it while it was offline: it reads the client's setting once.
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "datasets")
    monkeypatch.setattr(hub_module, "FIRST_PAUSE_S", 0.0)
    return place


def outside(tmp_path: Path) -> dict[str, bytes]:
    """Return every file but for those in the cache's folders of repositories and locks."""
    ours = ("around/cache/hub/datasets--", "around/cache/hub/models--", "around/cache/hub/.locks/", "datasets/")
    kept = {path: body for path, body in files_below(tmp_path).items() if not path.startswith(ours)}
    return {path: body for path, body in kept.items() if not path.endswith("CACHEDIR.TAG")}


def blobs_in(cache: Path) -> dict[str, bytes]:
    """Return the bytes of all blobs by name."""
    return {path.name: path.read_bytes() for path in cache.glob("*/blobs/*")}


def fetched(repo_id: str = FINQA) -> dict[str, bytes]:
    """Fetch every file of a data set, and only then read them all."""
    hub = HuggingFaceHub()
    revision = hub.revision(repo_id)
    files = [hub.fetch(repo_id, revision, file) for file in hub.files(repo_id, revision).values()]
    found = {file.path: file.local.read_bytes() for file in files}
    assert {file.path: file.sha256 for file in files} == {path: sha256(body) for path, body in found.items()}
    return found


@pytest.mark.parametrize("etag", EQUAL)
def test_equal_etags(cache: Path, hub: HubStandIn, etag: str) -> None:
    """Each file is downloaded once, into a blob of its own, and leads to its own bytes; the next run asks for none."""
    hub.faults.etag = {"HEAD": etag, "GET": etag}
    assert [fetched() for _ in range(2)] == [FILES, FILES]
    # 3 files
    assert len(hub.asked(f"GET /datasets/{FINQA}/resolve")) == 3
    assert sorted(blobs_in(cache).values()) == sorted(FILES.values())


def test_etags_of_the_hub_stay(cache: Path) -> None:
    """The sha256, which the Hub gives large files as their ETag, is the blob's name, as every other program has it."""
    assert fetched() == FILES
    assert blobs_in(cache) == {sha256(body): body for body in FILES.values()}


@pytest.mark.parametrize("etag", EQUAL)
def test_equal_etags_of_a_tokenizer(cache: Path, hub: HubStandIn, tmp_path: Path, etag: str) -> None:
    """The tokenizer's file and its chat template have the bytes of their own."""
    hub.faults.etag = {"HEAD": etag, "GET": etag}
    raw, template = b'{"model": {}}', b"{{ messages }}"
    spec = dataclasses.replace(tokenizer_spec("qwen3"), sha256=sha256(raw))
    hub.commit(spec.repositories[0], {spec.path: raw, "chat_template.jinja": template}, "models")
    file = fetch_tokenizer(spec, tmp_path)
    assert chat_template_of(file) == template.decode()
    assert (file.repo_id, file.path.read_bytes()) == (spec.repositories[0], raw)
    assert sorted(blobs_in(cache).values()) == sorted([raw, template])


def mixed_up(cache: Path, hub: HubStandIn, name: str) -> None:
    """Let every file lead to one blob that holds the bytes of dev.json, as another program may have left it."""
    (commit,) = hub.repositories["datasets", FINQA]
    repository = cache / f"datasets--{FINQA.replace('/', '--')}"
    blob, snapshot = repository / "blobs" / name, repository / "snapshots" / commit
    for folder in (blob.parent, snapshot):
        folder.mkdir(parents=True)
    blob.write_bytes(FILES["dev.json"])
    for path in FILES:
        (snapshot / path).symlink_to(blob)


def test_a_cache_in_which_files_share_a_blob(cache: Path, hub: HubStandIn) -> None:
    """What another program mixed up is fetched anew, and the shared blob stays with the file whose bytes it holds."""
    mixed_up(cache, hub, "abc123")
    assert fetched() == FILES
    # 2 of 3 files
    assert len(hub.asked(f"GET /datasets/{FINQA}/resolve")) == 2


def test_a_blob_that_has_the_name_of_another_file(cache: Path, hub: HubStandIn) -> None:
    """A blob gets the bytes that its name states; the file that was verified before is not read, and mended next."""
    mixed_up(cache, hub, sha256(FILES["train.json"]))
    client, revision = HuggingFaceHub(), HuggingFaceHub().revision(FINQA)
    found = {path: client.fetch(FINQA, revision, file) for path, file in client.files(FINQA, revision).items()}
    hashes = {file.local: file.sha256 for file in found.values()}
    with refused(ErrorCode.CHANGED), unchanged(hashes):
        pytest.fail("other bytes were read")
    assert fetched() == FILES


@pytest.mark.parametrize("methods", [("HEAD",), ("GET",), ("HEAD", "GET")])
@pytest.mark.parametrize("climb", [*CLIMBS, "ABSOLUTE", "..", "a/b", 'W/"../../victim', "x\\..\\victim", ""])
def test_an_etag_that_climbs(
    cache: Path, hub: HubStandIn, tmp_path: Path, methods: tuple[str, ...], climb: str
) -> None:  # fmt: skip
    """It is refused before anything is written, for every kind of file; the ETag of a GET names nothing."""
    before = outside(tmp_path)
    hub.faults.etag = dict.fromkeys(methods, f'"{tmp_path / "victim" if climb == "ABSOLUTE" else climb}"')
    if methods == ("GET",):
        assert fetched() == FILES
    else:
        with refused(ErrorCode.UNSAFE_NAME):
            fetched()
        with suppress(KappaError):  # `datasets` may go on without a README that it could not have
            HuggingFaceHub().splits(SHAREGPT, HuggingFaceHub().revision(SHAREGPT))
        spec = dataclasses.replace(tokenizer_spec("qwen3"), vocabulary=None)
        with refused(ErrorCode.NO_TOKENIZER, "is refused"):
            fetch_tokenizer(spec, tmp_path)
        assert blobs_in(cache) == {}
    assert outside(tmp_path) == before


@pytest.mark.parametrize("climb", [*CLIMBS, "ABSOLUTE", "x" * 40, "main"])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_commit_that_climbs(cache: Path, hub: HubStandIn, tmp_path: Path, climb: str, *, is_there: bool) -> None:
    """The commit in the answer for a file, and in that for a file that is not there, is one; else it is refused."""
    before = outside(tmp_path)
    hub.faults.commit = str(tmp_path / "victim") if climb == "ABSOLUTE" else climb
    revision = HuggingFaceHub().revision(FINQA)
    files = HuggingFaceHub().files(FINQA, revision)
    file = files["train.json"] if is_there else dataclasses.replace(files["train.json"], path="gone.json")
    with refused(ErrorCode.UNSAFE_NAME, "commit"):
        HuggingFaceHub().fetch(FINQA, revision, file)
    assert blobs_in(cache) == {}
    assert not list(cache.glob("*/.no_exist/*"))
    assert outside(tmp_path) == before


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("sha", ["../../../victim", "main", "/etc/victim", "c0ffee/../../x", ""])
def test_a_newest_commit_that_climbs(hub: HubStandIn, sha: str) -> None:
    """The commit that a repository is said to stand at is one."""
    hub.faults.sha = sha or " "
    with refused(ErrorCode.UNSAFE_NAME, "commit"):
        HuggingFaceHub().revision(FINQA)


@pytest.mark.parametrize("path", [*CLIMBS, "/victim", "a/../../../../../victim", "./x", "a//b", "a\0b", "a\\..\\b"])
def test_a_listing_that_climbs(cache: Path, hub: HubStandIn, tmp_path: Path, path: str) -> None:
    """A path out of the repository is not asked for."""
    before = outside(tmp_path)
    hub.faults.listed = {"train.json": path}
    with refused(ErrorCode.UNSAFE_NAME, "path"):
        fetched()
    assert (hub.asked("train"), blobs_in(cache).keys() & {sha256(FILES["train.json"])}) == ([], set())
    assert outside(tmp_path) == before


def test_a_listing_of_splits_that_climbs(cache: Path, hub: HubStandIn, tmp_path: Path) -> None:
    """What `datasets` makes of a climbing path leads nowhere."""
    before = outside(tmp_path)
    hub.faults.listed = {"data/train-00000-of-00001.parquet": "data/../../../../../train-0.parquet"}
    revision = HuggingFaceHub().revision(NARRATIVEQA)
    for path in HuggingFaceHub().splits(NARRATIVEQA, revision).get("train", []):
        with pytest.raises(KappaError):
            HuggingFaceHub().fetch(NARRATIVEQA, revision, hub_module.RemoteFile(path, 1, None))
    assert outside(tmp_path) == before
    assert blobs_in(cache) == {}


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("place", ["snapshot", "blob"])
def test_a_link_out_of_the_cache(cache: Path, hub: HubStandIn, tmp_path: Path, place: str, *, is_there: bool) -> None:
    """A link that leads out of the cache is replaced; what it leads to is neither removed nor written."""
    if not is_there:
        (tmp_path / "victim").unlink()
    before = outside(tmp_path)
    (commit,) = hub.repositories["datasets", FINQA]
    repository = cache / f"datasets--{FINQA.replace('/', '--')}"
    blob = repository / "blobs" / sha256(FILES["train.json"])
    link = repository / "snapshots" / commit / "train.json" if place == "snapshot" else blob
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "victim")
    assert fetched() == FILES
    assert outside(tmp_path) == before


def test_a_kept_listing_that_climbs(cache: Path, hub: HubStandIn, tmp_path: Path) -> None:
    """The client names a blob by a listing that another program kept, asking nobody: it has to state the sha256."""
    before = outside(tmp_path)
    (commit,) = hub.repositories["datasets", FINQA]
    kept = cache / f"datasets--{FINQA.replace('/', '--')}" / "trees" / f"{commit}.json"
    kept.parent.mkdir(parents=True)
    for stated in ("../../../victim", sha256(FILES["dev.json"])):
        entry = f'{{"size": 1, "blob_id": "x", "lfs_sha256": "{stated}", "lfs_size": 1, "xet_hash": "{"a" * 64}"}}'
        kept.write_text(f'{{"format_version": 1, "files": {{"train.json": {entry}}}}}', "utf8")
        with refused(ErrorCode.CACHE_DAMAGED, kept, stated[:12]):
            fetched()
    assert outside(tmp_path) == before


def test_a_run_with_equal_etags(empty: Kappa, hub: HubStandIn) -> None:
    """The whole run counts each record once: sessions, turns, K and T are those of a good Hub."""
    hub.faults.etag = dict.fromkeys(("HEAD", "GET"), '"abc123"')
    process = empty("run", *SMALL)
    assert process.returncode == 0, process.stderr
    query = (
        "SELECT count(DISTINCT session_id), count(*), sum(cached_tokens)::INT, sum(prefill_tokens)::INT "
        "FROM turns WHERE counting = 'text'"
    )
    assert empty.rows(query) == [TOTALS["finqa", "qwen3"]]
    files = {path: sha256(body) for path, body in FILES.items()}
    assert dict(empty.rows("SELECT path, sha256 FROM sources")) == files


def test_a_run_with_an_etag_that_climbs(empty: Kappa, hub: HubStandIn, tmp_path: Path) -> None:
    """The run ends in one line, and the file outside is as it was."""
    (tmp_path / "victim").write_bytes(b"mine")
    hub.faults.etag = {"HEAD": '"../../../../victim"'}
    process = empty("run", *SMALL)
    assert process.returncode == 1
    assert len(errors_of(process)) == 1, process.stderr
    assert "ETag" in errors_of(process)[0]
    assert (tmp_path / "victim").read_bytes() == b"mine"
    assert not list(empty.hf_home.glob("hub/*/blobs/*"))

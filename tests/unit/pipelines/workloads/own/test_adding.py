"""A source becomes a declaration: what is recognised, what is written, what is refused and why."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.workloads.known import known_workload, own_workloads
from pipelines.workloads.own import adding
from pipelines.workloads.own.declared import Declaration, declared_in, read_declaration
from pipelines.workloads.own.sources import where
from warehouse.errors import ErrorCode, KappaError, UsageError
from warehouse.home.home import Home

CHAT = {"id": "a", "conversations": [{"from": "human", "value": "secret"}, {"from": "gpt", "value": "hi"}]}
OPEN = {"messages": [{"role": "user", "content": "secret"}], "meta": {"id": "m"}}
Understand = Callable[..., adding.Added]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return an empty home."""
    return Home(tmp_path / "home")


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes records as JSON lines, or text."""

    def written(name: str, *records: object) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in records), "utf8")
        return path

    return written


def understand(home: Home, source: object, form: str | None = None, stdin: bytes = b"", **fields: str) -> adding.Added:
    """Return what a source holds."""
    wish = adding.Wish("mine", str(source), form, tuple(fields.items()))
    return adding.understood(home, wish, io.BytesIO(stdin))


def test_what_is_understood_and_written(home: Home, put: Callable[..., Path]) -> None:
    """Format, fields and rows without text; the declaration reads back; a dry run leaves nothing."""
    path = put("log.jsonl", CHAT, CHAT, CHAT, CHAT, {"id": "b"})
    added = understand(home, path)
    assert not home.path.exists()
    found = added.recognised
    assert (found.form.name, found.looked_at, len(found.rejects)) == ("sharegpt", 5, 1)
    assert found.understood.fields == {"messages": "conversations", "session": "id", "role": "from", "text": "value"}
    # 3 rows; "secret" + "hi" = 8 characters
    row = {"file": "log.jsonl", "record": 0, "session": "a", "messages": 2, "roles": "user assistant", "characters": 8}
    assert (found.rows[0], len(found.rows)) == (row, 3)
    assert "secret" not in f"{found.rows}{found.understood}"
    written = adding.write(home, added)
    assert read_declaration(written) == added.declaration == Declaration(format="sharegpt", path=str(path))
    assert known_workload(home.path, "mine").kind == "chat"


def test_fields_are_overruled(home: Home, put: Callable[..., Path]) -> None:
    """A given path is written down, and read back."""
    added = understand(home, put("log.jsonl", OPEN), session="meta.id")
    assert added.recognised.rows[0]["session"] == "m"
    adding.write(home, added)
    assert declared_in(home.path)["mine"].fields == {"session": "meta.id"}


def test_standard_input_is_kept(home: Home) -> None:
    """What came over it is a file of the home, which goes with the declaration."""
    added = understand(home, "-", stdin=json.dumps([OPEN]).encode())
    adding.write(home, added)
    kept = home.path / "workloads" / "mine.input"
    assert json.loads(kept.read_text("utf8")) == [OPEN]
    adding.remove(home, "mine")
    assert (kept.exists(), own_workloads(home.path)) == (False, {})


@pytest.mark.parametrize(
    ("records", "form", "fields", "code", "seen"),
    [
        (["a sentence"], None, {}, ErrorCode.WRONG_KIND, "a sentence"),
        ([], None, {}, ErrorCode.NO_RECORD, ""),
        ([{"foo": 1, "bar": 2}], None, {}, ErrorCode.WRONG_KIND, "the keys foo, bar"),
        (["[1, 2]"], None, {}, ErrorCode.WRONG_KIND, "no objects"),
        ([OPEN], "sharegpt", {}, ErrorCode.WRONG_KIND, "messages, meta"),
        ([OPEN], "chatml", {}, ErrorCode.UNKNOWN_NAME, "sharegpt"),
        ([{"messages": [{"role": "assistant", "content": "x"}]}], None, {}, ErrorCode.NO_RECORD, "1 replies"),
        (["TIMESTAMP,ContextTokens,GeneratedTokens", "2023-11-16,4,5"], None, {}, ErrorCode.LENGTHS_ALONE, "of reuse"),
    ],
)
def test_what_is_refused(  # noqa: PLR0913, PLR0917 - the columns of the table
    home: Home, put: Callable[..., Path], records: list[object], form: str | None, fields: dict[str, str],
    code: ErrorCode, seen: str,
) -> None:  # fmt: skip
    """One error with what was seen and what would be needed; nothing is written."""
    with pytest.raises(KappaError) as error:
        understand(home, put("log.jsonl", *records), form, **fields)
    assert error.value.code == code
    assert seen in error.value.why
    assert not home.path.exists()


def test_two_formats_in_a_folder(home: Home, put: Callable[..., Path]) -> None:
    """Both files and both formats are named."""
    folder = put("logs/a.jsonl", CHAT).parent
    put("logs/b.jsonl", OPEN)
    with pytest.raises(KappaError) as error:
        understand(home, folder)
    assert error.value.code == ErrorCode.WRONG_KIND
    assert all(name in str(error.value) for name in ("a.jsonl", "b.jsonl", "sharegpt", "messages"))


def test_roles_and_names_that_are_refused(home: Home, put: Callable[..., Path]) -> None:
    """A role that no format has, the name of a built-in workload, a name that is a path, a name that is taken."""
    path = put("log.jsonl", OPEN)
    with pytest.raises(KappaError):
        understand(home, path, colour="x")
    with pytest.raises(UsageError):
        adding.understood(home, adding.Wish("mine", str(path), None, (("role", "a"), ("role", "b"))), io.BytesIO())
    for name, code in {
        "sharegpt": ErrorCode.NAME_CLASH,
        "../up": ErrorCode.BAD_PATH,
        "a b": ErrorCode.BAD_PATH,
    }.items():
        with pytest.raises(KappaError) as error:
            adding.understood(home, adding.Wish(name, str(path)), io.BytesIO())
        assert error.value.code == code
    adding.write(home, understand(home, path))
    with pytest.raises(KappaError) as error:
        adding.write(home, understand(home, put("other.jsonl", OPEN)))
    assert error.value.code == ErrorCode.NAME_CLASH
    with pytest.raises(KappaError) as error:
        adding.remove(home, "other")
    assert error.value.code == ErrorCode.UNKNOWN_NAME


@pytest.mark.parametrize(
    "text",
    [
        'format = "messages"',
        'format = "chatml"\npath = "x"',
        'format = "messages"\npath = "x"\nrepo = "a/b"',
        'format = "messages"\nrepo = "../../etc"',
        'format = "messages"\npath = "x"\nfiles = ["y"]',
        'format = "messages"\npath = "x"\nshell = "rm"',
        'format = "messages"\npath = "x"\n[fields]\ncolour = "y"',
        'format = "messages"\npath = ',
    ],
)
def test_declarations_that_are_refused(tmp_path: Path, text: str) -> None:
    """The error names the file."""
    path = tmp_path / "mine.toml"
    path.write_text(text, "utf8")
    with pytest.raises(KappaError) as error:
        read_declaration(path)
    assert error.value.code == ErrorCode.BAD_TOML
    assert str(path) in error.value.what


def test_addresses_of_the_hub() -> None:
    """A repository, a revision, a path; anything else with :// is no source."""
    assert where("hf://datasets/o/n") == {"repo": "o/n", "revision": None, "files": ()}
    assert where("hf://datasets/o/n@v1/data/*.parquet") == {
        "repo": "o/n",
        "revision": "v1",
        "files": ("data/*.parquet",),
    }
    for wrong in ("https://example.org/a.json", "hf://models/o/n", "hf://datasets/o"):
        with pytest.raises(UsageError):
            where(wrong)

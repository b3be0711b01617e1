"""The messages that people meet most, word for word. Every other test asks for the code and the values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from huggingface_hub import errors

from assets import interrupts
from assets.commands.cli import main
from pipelines.fetch.hub import hub_failure, unreachable
from pipelines.hardware.questions.names import known_name
from warehouse.database.engine import in_memory, stream
from warehouse.errors import ErrorCode, KappaError
from warehouse.hardware_rows.cells import failure
from warehouse.home.generation import NOTE, read_note
from warehouse.home.home import Home


def _gated(_: Path) -> None:
    response = httpx2.Response(403, request=httpx2.Request("GET", "https://huggingface.co"))
    error = hub_failure("owner/set", errors.GatedRepoError("no", response=response))
    assert error is not None
    raise error


def _full(_: Path) -> None:
    error = hub_failure("owner/set", OSError(28, "No space left on device"))
    assert error is not None
    raise error


def _unreachable(_: Path) -> None:
    raise unreachable("owner/set", ConnectionError("Connection refused"))


def _damaged(folder: Path) -> None:
    (folder / NOTE).write_text("{}", "utf8")
    read_note(folder)


def _query(_: Path) -> None:
    with in_memory() as connection:
        stream(connection, "SELECT\n  kappa_rato", 10).read_all()


def _bad_row(folder: Path) -> None:
    raise failure(folder / "links.csv", 3, "link", "is missing")


MESSAGES: dict[ErrorCode, tuple[Callable[[Path], object], str]] = {
    ErrorCode.NOT_BUILT: (
        lambda folder: Home(folder).database(),
        "{} has no warehouse yet, nothing was built there, run `kappa run --sample`, or `kappa run`",
    ),
    ErrorCode.UNKNOWN_NAME: (
        lambda _: known_name("model", "qwen3-32", ["qwen3-32b", "qwen3-8b"]),
        (
            "unknown model 'qwen3-32', nearest are qwen3-32b, qwen3-8b, "
            "`kappa sql 'FROM models'` lists those of the tables"
        ),
    ),
    ErrorCode.HUB_GATED: (
        _gated,
        (
            "owner/set is gated, the Hub asks for an account that accepted its licence, "
            "accept the licence on its page and set HF_TOKEN"
        ),
    ),
    ErrorCode.HUB_UNREACHABLE: (
        _unreachable,
        (
            "owner/set could not be fetched, the Hub at http://hub.test:1 did not answer (Connection refused), "
            "check the connection or HF_ENDPOINT, or use `kappa run --sample`"
        ),
    ),
    ErrorCode.DISK_FULL: (
        _full,
        "owner/set could not be stored, No space left on device, free some disk space, or set HF_HOME to another disk",
    ),
    ErrorCode.BAD_ROW: (
        _bad_row,
        "{}/links.csv is not usable, row 3, column link: is missing, correct the file",
    ),
    ErrorCode.QUERY_FAILED: (
        _query,
        (
            'the query failed, Binder Error: Referenced column "kappa_rato" was not found because the FROM clause is '
            "missing; line 2, column 3, at `kappa_rato`, `kappa sql 'SHOW TABLES'` lists the tables, "
            "`DESCRIBE turns` its columns"
        ),
    ),
    ErrorCode.DAMAGED: (
        _damaged,
        (
            "{}/generation.json is damaged, it lacks generation, warehouse, report, content, is_sample, series, "
            "run `kappa run`, which makes it again"
        ),
    ),
}


@pytest.mark.parametrize("code", MESSAGES)
def test_an_error(code: ErrorCode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What, why and what to do."""
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.test:1")
    fail, line = MESSAGES[code]
    with pytest.raises(KappaError) as caught:
        fail(tmp_path)
    assert (caught.value.code, str(caught.value)) == (code, line.format(tmp_path))


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong usage names the option and where its help is."""
    with pytest.raises(SystemExit) as left:
        main(["crit", "--tensor-parallel", "2.5"])
    line = "error: argument --tensor-parallel, invalid int value: '2.5', see `kappa crit --help`\n"
    assert (left.value.code, capsys.readouterr().err) == (2, line)


def test_interrupted() -> None:
    """Ctrl-C says what became of the state."""
    assert interrupts.LINE == "interrupted: the last good state is as it was"

"""Tokens and passwords are taken out of every text, and words that only look like them stay."""

from __future__ import annotations

import base64
import io
import logging
import traceback
import warnings
from pathlib import Path
from urllib.parse import quote

import pytest

from warehouse.errors import ErrorCode, KappaError
from warehouse.masking import MaskedStream, mask_error, mask_log_records, masked, without_secrets

TOKEN = "hf_" + "aB3" * 10 + "xyz9"  # no account has it
PASSWORD = "sword/fi@sh 100%"  # noqa: S105 - no account has it


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> str:
    """Set an endpoint whose password holds signs that an address has to encode."""
    address = f"http://someone:{quote(PASSWORD, safe='')}@mirror.test:8080/hf"
    monkeypatch.setenv("HF_ENDPOINT", address)
    return address


@pytest.mark.parametrize(
    "text", ["hf_xet", "hf_hub_download", "huggingface_hub.hf_api", "hf_transfer", "http://h.test:80/datasets/o/n@main",
             "hf://datasets/owner/name@c0ffee/a.json", "who@mail.test", "// a comment"],
)  # fmt: skip
def test_what_is_no_secret_stays(text: str) -> None:
    """Names of libraries and functions, ports, revisions behind an @."""
    assert masked(text) == text


@pytest.mark.parametrize("token", [TOKEN, "api_org_" + "x" * 34, "hf_oauth_" + "eyJ." * 12])
def test_tokens_by_their_form(token: str) -> None:
    """A token is known by its form, wherever it stands."""
    assert masked(f"Bearer {token}, next") == "Bearer ***, next"


@pytest.mark.parametrize(
    "address", ["http://me:pass@word@h.test", "http://me:pass/word@h.test", "http://password@h.test"]
)
def test_odd_passwords(address: str) -> None:
    """What stands before the last @ is left out as a whole."""
    assert masked(address) == "http://h.test"


@pytest.mark.parametrize("variable", ["HF_ENDPOINT", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "PIP_INDEX_URL"])
def test_the_password_of_an_address(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """User and password of any variable's address are masked as they are, encoded, and as a header."""
    encoded = quote(PASSWORD, safe="")
    monkeypatch.setenv(variable, f"https://someone:{encoded}@proxy.test:3128")
    header = base64.b64encode(f"someone:{PASSWORD}".encode()).decode()
    told = masked(f"407 {PASSWORD} {encoded} someone:{PASSWORD} Basic {header}")
    assert not any(form in told for form in (PASSWORD, encoded, header))


@pytest.mark.parametrize("variable", ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"])
def test_a_token_of_another_form(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """Whatever the variables hold is a secret."""
    monkeypatch.setenv(variable, "any+thing/at all")
    assert masked("any+thing/at all any%2Bthing%2Fat%20all") == "*** ***"


@pytest.mark.parametrize("variable", ["HF_HOME", "XDG_CACHE_HOME", "HF_TOKEN_PATH"])
def test_a_saved_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str) -> None:
    """So is the one that the client's own login saved."""
    for name in ("HF_HOME", "XDG_CACHE_HOME", "HF_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    place = {"HF_HOME": "token", "XDG_CACHE_HOME": "huggingface/token", "HF_TOKEN_PATH": "mine"}[variable]
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text("saved-by-login\n", "utf8")
    monkeypatch.setenv(variable, str(tmp_path / place if variable == "HF_TOKEN_PATH" else tmp_path))
    assert masked("Bearer saved-by-login") == "Bearer ***"


class OddError(Exception):
    """Has words of its own."""

    def __init__(self, address: str) -> None:
        """Keep an address."""
        super().__init__()
        self.parts = (address, 1)

    def __str__(self) -> str:
        """Return words that are no argument."""
        return f"no answer from {self.parts[0]}"


@pytest.mark.parametrize("kind", [ValueError, OddError, OSError, lambda text: FileNotFoundError(2, "gone", text)])
def test_errors_and_what_led_to_them(endpoint: str, kind: type[Exception]) -> None:
    """Cause, context and notes are masked in place, so Dagster's history and --debug show the same error without."""

    @without_secrets
    def step() -> None:
        try:
            try:
                raise kind(endpoint)  # noqa: TRY301
            except Exception as error:
                error.add_note(f"asked {endpoint}")
                raise RuntimeError(f"first {TOKEN}") from error
        except RuntimeError:
            raise KappaError(f"{endpoint} is away", TOKEN, "wait", code=ErrorCode.HUB_UNREACHABLE)  # noqa: B904 - the context is what is looked at

    with pytest.raises(KappaError) as caught:
        step()
    assert caught.value.code is ErrorCode.HUB_UNREACHABLE
    told = "".join(traceback.format_exception(caught.value))
    # 3 errors
    assert told.count("Traceback") == 3
    assert "mirror.test:8080" in told
    assert not any(secret in told for secret in (PASSWORD, quote(PASSWORD, safe=""), TOKEN))


def test_a_chain_that_is_a_ring() -> None:
    """An error that led to itself ends the walk."""
    error = ValueError(TOKEN)
    error.__context__ = KeyError(1)
    error.__context__.__context__ = error
    mask_error(error)
    assert str(error) == "***"


def test_log_records_of_any_library(endpoint: str) -> None:
    """Message, arguments and traceback of a record are masked before any handler has it."""
    before, stream = logging.getLogRecordFactory(), io.StringIO()
    log, handler = logging.getLogger("another.library"), logging.StreamHandler(stream)
    log.addHandler(handler)
    try:
        mask_log_records()
        mask_log_records()
        log.warning("asking %s with %s", endpoint, TOKEN)
        try:
            raise ValueError(endpoint)  # noqa: TRY301
        except ValueError:
            log.exception("failed")
    finally:
        log.removeHandler(handler)
        logging.setLogRecordFactory(before)
    assert "asking http://mirror.test:8080/hf with ***" in stream.getvalue()
    assert "ValueError: http://mirror.test:8080/hf" in stream.getvalue()
    assert TOKEN not in stream.getvalue()


def test_what_is_printed(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Warnings and tracebacks of libraries end in standard error."""
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", MaskedStream(stream))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda *found, **_: print(
            warnings.formatwarning(*found[:4]), file=__import__("sys").stderr
        )
        warnings.warn(f"{endpoint} is slow", stacklevel=1)
    assert "UserWarning: http://mirror.test:8080/hf is slow" in stream.getvalue()
    assert "someone" not in stream.getvalue()

"""Masks tokens and passwords in every text that leaves the process: errors, log lines, tracebacks, warnings."""

from __future__ import annotations

import base64
import functools
import io
import logging
import os
import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from urllib.parse import quote, unquote

MASK = "***"
# A shorter secret, such as the password `hub`, occurs in ordinary text, so it is masked only within `user:password`.
LEAST_CHARACTERS = 6
_TOKENS = re.compile(r"(?:hf|api_org)_[A-Za-z0-9]{30,}|hf_(?:oauth|jwt)_[\w.-]{30,}")
# A password may hold any character except a space; digits and a slash after the colon are a port.
_IN_ADDRESS = re.compile(r"//(?:(?![^\s/@:]*:\d+/)[^\s/@]*:\S*|[^\s/@]+)@")
_P = ParamSpec("_P")
_T = TypeVar("_T")


def masked(text: str) -> str:
    """Return a text with possible secrets masked: tokens by form and by value, credentials in addresses."""
    found = sorted({form for secret in _secrets() for form in _forms(secret)}, key=len, reverse=True)
    text = _IN_ADDRESS.sub("//", text)
    for form in found:
        text = text.replace(form, MASK)
    return _TOKENS.sub(MASK, text)


def _secrets() -> Iterator[str]:
    """Yield tokens from the environment and the disk, and credentials from addresses in any environment variable."""
    yield from (os.environ.get(name, "").strip() for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"))
    yield _saved_token()
    for value in os.environ.values():
        for address in _IN_ADDRESS.findall(value):
            pair = address[2:-1]
            yield from (pair, pair.partition(":")[2])


def _saved_token() -> str:
    """Return the token that `hf auth login` saved; empty if there is none."""
    cache = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    try:
        return Path(os.environ.get("HF_TOKEN_PATH") or Path(cache, "token")).expanduser().read_text("utf8").strip()
    except (OSError, ValueError, RuntimeError):
        return ""


def _forms(secret: str) -> Iterator[str]:
    """Yield the forms of a secret: plain, quoted for an address, and base64 for basic authentication."""
    if len(secret) >= LEAST_CHARACTERS:
        plain = unquote(secret)
        yield from (secret, plain, quote(plain), quote(plain, safe=""), base64.b64encode(plain.encode()).decode())


class MaskedStream(io.TextIOBase):
    """A text stream that masks secrets and writes to another stream."""

    def __init__(self, stream: Any) -> None:  # noqa: ANN401 - any stream-like object
        """Write to `stream`."""
        super().__init__()
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text, masked; return the length of the text as given."""
        self.stream.write(masked(text))
        return len(text)

    def flush(self) -> None:
        """Flush the underlying stream."""
        self.stream.flush()

    def fileno(self) -> int:
        """Return the file descriptor of the underlying stream."""
        return int(self.stream.fileno())

    def isatty(self) -> bool:
        """Return whether the underlying stream is a terminal."""
        return bool(self.stream.isatty())

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the underlying stream."""
        return str(self.stream.encoding)


def mask_log_records() -> None:
    """Mask every log record of this process, including those of libraries, before a handler sees it."""
    make = logging.getLogRecordFactory()
    if getattr(make, "masks", False):
        return

    def masking(*arguments: Any, **options: Any) -> logging.LogRecord:  # noqa: ANN401 - logging's own
        return _masked_record(make(*arguments, **options))

    masking.masks = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(masking)


def _masked_record(record: logging.LogRecord) -> logging.LogRecord:
    try:
        told = record.getMessage()
    except (TypeError, ValueError):  # logging itself reports a message whose arguments do not fit
        return record
    if (clean := masked(told)) != told:
        record.msg, record.args = clean, None
    if record.exc_info and record.exc_info[1] is not None:
        mask_error(record.exc_info[1])
    return record


def mask_error(error: BaseException) -> None:
    """Mask an error, its notes and its chain of causes in place, so that no secret is shown or stored."""
    seen: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        link = waiting.pop()
        if link is None or link in seen:
            continue
        seen.append(link)
        _mask_one(link)
        inner = link.exceptions if isinstance(link, BaseExceptionGroup) else ()
        waiting += [link.__cause__, link.__context__, *inner]


def _mask_one(error: BaseException) -> None:
    told = "".join(traceback.format_exception_only(error))
    if masked(told) == told:
        return
    error.args = tuple(_masked_value(value) for value in error.args)
    error.__dict__.update({name: _masked_value(value) for name, value in vars(error).items()})
    if isinstance(error, OSError) and isinstance(error.filename, str):
        error.filename = masked(error.filename)
    if masked(text := str(error)) != text:  # the class builds its own message
        kind = type(error)
        with suppress(TypeError):
            error.__class__ = type(kind.__name__, (kind,), {"__str__": lambda _: masked(text)})


def _masked_value(value: Any) -> Any:  # noqa: ANN401 - whatever an error carries
    if isinstance(value, str):
        text = masked(value)
        # What has no secret stays the object it is: a code is more than its text.
        return value if text == value else text
    return type(value)(map(_masked_value, value)) if type(value) in (list, tuple) else value


def without_secrets(step: Callable[_P, _T]) -> Callable[_P, _T]:
    """Return a step whose errors are masked before a caller sees them; Dagster's history would keep the secrets."""

    @functools.wraps(step)
    def masking(*arguments: _P.args, **options: _P.kwargs) -> _T:
        try:
            return step(*arguments, **options)
        except BaseException as error:
            mask_error(error)
            raise

    return masking

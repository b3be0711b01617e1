"""KappaError, the errors that a user reads. Errors for a programmer stay ordinary exceptions."""

from __future__ import annotations

import errno
from enum import StrEnum
from typing import Self

from warehouse.masking import masked


class ErrorCode(StrEnum):
    """What kind of failure an error is, for a program that reads it; the words of an error may change, its code not."""

    meaning: str

    def __new__(cls, code: str, meaning: str = "") -> Self:
        """Keep the code as the value, and a sentence on it for docs/errors.md."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    USAGE = "usage", "The command or question cannot be meant."
    NO_QUERY = "no-query", "No query was given."
    SEVERAL_QUERIES = "several-queries", "More than one query was given."
    QUERY_FAILED = "query-failed", "DuckDB refused the query, or failed while it computed."
    UNWRITABLE_VALUE = "unwritable-value", "The format cannot hold a value of the result."
    NEEDS_FILE = "needs-file", "The format goes only to a file."
    NO_OUTPUT = "no-output", "Standard output is closed."
    UNKNOWN_NAME = "unknown-name", "There is no model, workload, tokenizer, table or column of that name."
    NAME_CLASH = "name-clash", "Two things have one name."
    NOTHING_FITS = "nothing-fits", "No row fits all that the question asks for."
    NOT_MEASURED = "not-measured", "The question asks for measurements and none were made here."
    NO_TORCH = "no-torch", "PyTorch is not installed, so nothing can be measured."
    NO_ACCELERATOR = "no-accelerator", "PyTorch sees no accelerator, so nothing can be measured."
    NOT_BUILT = "not-built", "What is asked for was never built here."
    STALE = "stale", "What it was made from changed since."
    OTHER_VERSION = "other-version", "Another version of kappa made it."
    MISSING = "missing", "A file that kappa made, or that came with it, was removed."
    DAMAGED = "damaged", "A file that kappa made is not as it was written."
    CHANGED = "changed", "Another program wrote to a file while kappa relied on it."
    IN_USE = "in-use", "Another process uses it."
    IN_THE_WAY = "in-the-way", "Something that is not kappa's has the place of what kappa writes."
    LEFT_OVER = "left-over", "A process that was killed left files or runs."
    PUBLISHED_MEANWHILE = "published-meanwhile", "Another run published first."
    NOT_WRITABLE = "not-writable", "A file or folder cannot be written."
    NOT_READABLE = "not-readable", "A file or folder cannot be read."
    DISK_FULL = "disk-full", "The disk or the quota is full."
    BAD_PATH = "bad-path", "The path cannot be used for this."
    BAD_ROW = "bad-row", "A cell of a CSV file is not usable; the error names file, row and column."
    BAD_FILE = "bad-file", "An input file cannot be read as what it is."
    MISNAMED_FILE = "misnamed-file", "A file among a user's own rows has a name that kappa does not read."
    WRONG_KIND = "wrong-kind", "A file is of another kind than the one expected."
    BAD_CONFIG = "bad-config", "A model's config.json describes no shape that is known here."
    BAD_TOML = "bad-toml", "A tokenizer's TOML file is not usable."
    NOT_TEXT = "not-text", "A text is not UTF-8."
    NO_RECORD = "no-record", "A data set or a file of it holds no usable record."
    LENGTHS_ALONE = "lengths-alone", "A log has lengths of requests, and nothing that says what they share."
    NO_CACHED_TOKENS = "no-cached-tokens", "The server reported cached tokens for no request."
    HUB_GATED = "hub-gated", "The Hub asks for an account that accepted the licence."
    HUB_MISSING = "hub-missing", "The Hub has no such repository, or does not show it to this user."
    HUB_FILE_MISSING = "hub-file-missing", "The repository has no such file."
    HUB_LAYOUT = "hub-layout", "The data set has not the splits or columns that kappa reads."
    HUB_UNREACHABLE = "hub-unreachable", "The Hub did not answer."
    OFFLINE = "offline", "The Hub is needed and HF_HUB_OFFLINE is set."
    NOT_CACHED = "not-cached", "The Hub's cache lacks it and HF_HUB_OFFLINE is set."
    CACHE_DAMAGED = "cache-damaged", "The Hub's cache holds it damaged."
    DOWNLOAD_DAMAGED = "download-damaged", "What arrived is not what the Hub states, twice."
    UNSAFE_NAME = "unsafe-name", "The Hub sent a name that could lead out of its cache."
    NO_TOKENIZER = "no-tokenizer", "No way led to the tokenizer's official file."
    NO_VOCABULARY = "no-vocabulary", "No installed package holds the tokenizer's vocabulary."
    NOT_OFFICIAL = "not-official", "The tokenizer's file is another one than the official one."
    NO_TEMPLATE = "no-template", "The tokenizer's chat template is nowhere."
    SAMPLE_OVER_REAL = "sample-over-real", "A sample would take the place of results of the real data sets."
    IS_SAMPLE = "is-sample", "The home folder holds the sample, which has nothing upstream."
    MISCOUNT = "miscount", "The fast engine counted other tokens than Hugging Face's."
    CHECK_FAILED = "check-failed", "A check of the results failed, so nothing was published."
    UNEXPECTED = "unexpected", "A defect of kappa."


class KappaError(Exception):
    """A failure in one line: what happened, why, and what to do about it; `code` is its kind, for a program."""

    def __init__(self, what: str, why: str, remedy: str, code: ErrorCode) -> None:
        """Keep the three parts, each a phrase without a final full stop, and the kind."""
        super().__init__(what, why, remedy, code)
        self.what = what
        self.why = why
        self.remedy = remedy
        self.code = code

    def __str__(self) -> str:
        """Return `what, why, what to do` on one line, without secrets or control characters."""
        text = masked(", ".join(" ".join(part.split()) for part in (self.what, self.why, self.remedy)))
        return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


class UsageError(KappaError):
    """A command that cannot be meant: an option that is missing, contradicts another, or holds no such number."""


def write_code(error: OSError) -> ErrorCode:
    """Return the kind of a write that failed: the disk is full, or the place does not take it."""
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return ErrorCode.DISK_FULL if is_full else ErrorCode.NOT_WRITABLE

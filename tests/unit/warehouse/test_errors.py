"""Codes of errors: one of each, in the form that a program may store, and none that no failure has."""

import pickle
import re
from pathlib import Path

from warehouse.errors import ErrorCode, KappaError

ROOT = Path(__file__).parents[3]
PACKAGES = ("assets", "kappa", "pipelines", "warehouse")


def test_codes() -> None:
    """Each code has its own value, in words joined by hyphens, and a sentence."""
    assert len({code.value for code in ErrorCode}) == len(ErrorCode.__members__)
    for name, code in ErrorCode.__members__.items():
        assert code == name.lower().replace("_", "-")
        assert re.fullmatch(r"[A-Z].*\.", code.meaning), code


def test_every_code_is_raised() -> None:
    """A code that no failure has any more is removed."""
    sources = "".join(path.read_text("utf8") for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    assert {name for name in ErrorCode.__members__ if f"ErrorCode.{name}" not in sources} == set()


def test_the_code_is_kept_and_not_shown() -> None:
    """The line is what, why and remedy; an error that went through another process has its code."""
    error = KappaError("what", "why", "do", code=ErrorCode.NOT_BUILT)
    assert str(error) == "what, why, do"
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - written in the same line
    assert (str(again), again.code) == ("what, why, do", ErrorCode.NOT_BUILT)

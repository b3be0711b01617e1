"""What is read is what was verified: other bytes, and any touch while they are read, are an error."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from refusals import refused

from pipelines.io.verified import sha256_of, unchanged
from warehouse.errors import ErrorCode


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of three bytes."""
    path = tmp_path / "a.json"
    path.write_bytes(b"abc")
    os.utime(path, (1, 1))
    return path


def same_bytes(path: Path) -> None:
    """The same bytes once more."""
    path.write_bytes(path.read_bytes())


def another(path: Path) -> None:
    """Other bytes of the same size and the same time of the last write."""
    path.write_bytes(b"abd")
    os.utime(path, (1, 1))


def replaced_and_put_back(path: Path) -> None:
    """Other bytes for a moment, then the very file again."""
    path.rename(path.with_name("kept"))
    path.write_bytes(b"abd")
    path.with_name("kept").replace(path)


TOUCHES = [same_bytes, another, replaced_and_put_back, Path.unlink]


def test_untouched(file: Path) -> None:
    """A file that nobody touches is read."""
    with unchanged({file: sha256_of(file)}):
        assert file.read_bytes() == b"abc"


@pytest.mark.parametrize("touch", TOUCHES)
def test_while_it_is_read(file: Path, touch: Callable[[Path], None]) -> None:
    """Even the same bytes: who read in between may have met others."""
    with refused(ErrorCode.CHANGED, file):  # noqa: SIM117
        with unchanged({file: sha256_of(file)}):
            touch(file)


@pytest.mark.parametrize("touch", [another, Path.unlink])
def test_between_fetching_and_reading(file: Path, touch: Callable[[Path], None]) -> None:
    """The block is not entered."""
    sha256 = sha256_of(file)
    touch(file)
    with refused(ErrorCode.CHANGED, file), unchanged({file: sha256}):
        pytest.fail("it was entered")

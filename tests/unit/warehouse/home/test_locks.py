"""A folder is held by a living process, whatever number that has, and by nobody after its death."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from warehouse.home.locks import hold, is_held, remove_unheld

ROOT = Path(__file__).parents[4]
# Holds the folder that it is given until its standard input ends.
HOLDER = """
import pathlib, sys
from warehouse.home.locks import hold
with hold(pathlib.Path(sys.argv[1])) as is_ours:
    print(is_ours, flush=True)
    sys.stdin.read()
"""


def test_held_until_death(tmp_path: Path) -> None:
    """A folder that another process holds cannot be held or removed here; killed, it lets go."""
    folder = tmp_path / "draft"
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    remove_unheld(folder)
    with hold(folder) as is_ours:
        assert (is_ours, is_held(folder)) == (False, True)
    process.kill()
    process.communicate()
    assert not is_held(folder)
    with hold(folder) as is_ours:
        assert (is_ours, is_held(folder)) == (True, True)
    remove_unheld(folder)
    assert not folder.exists()


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    """What is not there is held by nobody, and cannot be held."""
    with hold(tmp_path / "none") as is_ours:
        assert (is_ours, is_held(tmp_path / "none")) == (False, False)
    remove_unheld(tmp_path / "none")


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody can tell, work goes on and nothing is removed."""

    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(95, f"not supported: {descriptor} {operation}")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with hold(tmp_path) as is_ours:
        assert (is_ours, is_held(tmp_path)) == (True, True)
    remove_unheld(tmp_path)
    assert tmp_path.exists()

"""What a function reaches, in small packages: every change of what it does is seen, and no other one."""

from __future__ import annotations

from pathlib import Path

import pytest

from warehouse.versions.reached_code import SILENT, code_of

ROOT = Path(__file__).resolve().parents[4]
MAKE = """
\"\"\"A module.\"\"\"
from pipelines import tools
from pipelines.parts import helper as aid, unused
from warehouse.errors import KappaError

LIMIT = 3


def make(x):
    \"\"\"Return it.\"\"\"
    from warehouse.lazy import late
    return aid(x, LIMIT) + tools.add(x) + late(x)


def other():
    return unused()


WORKLOAD = Workload(title="a set", read=make)
"""
FILES = {
    "pipelines/__init__.py": "",
    "warehouse/__init__.py": "",
    "pipelines/make.py": MAKE,
    "pipelines/tools.py": "def add(x):\n    return x\n\n\ndef drop(x):\n    return 0\n",
    "pipelines/parts.py": "from pipelines.deep import one as two\n\nhelper = two\n\n\ndef unused():\n    return 1\n",
    "pipelines/deep.py": "class One:\n    size = 1\n\n\ndef one(x, y):\n    return One.size\n",
    "warehouse/lazy.py": "def late(x):\n    return x\n",
    "warehouse/errors.py": "class KappaError(Exception):\n    pass\n",
}


@pytest.fixture
def before(tmp_path: Path) -> dict[str, str]:
    """Write the packages; return the code of `make`."""
    for name, text in FILES.items():
        path = tmp_path / "before" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf8")
    return code_of("pipelines.make:make", root=tmp_path / "before")


def after(tmp_path: Path, name: str, old: str, new: str, function: str = "make") -> dict[str, str]:
    """Return the code with one text replaced in one file."""
    for path, text in FILES.items():
        place = tmp_path / "after" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text.replace(old, new) if path == name else text, "utf8")
    assert old in FILES[name]
    return code_of(f"pipelines.make:{function}", root=tmp_path / "after")


def test_modules_that_are_reached(before: dict[str, str]) -> None:
    """Those behind names that are passed on, modules that are imported whole, and imports inside functions."""
    assert [*before] == ["pipelines.deep", "pipelines.make", "pipelines.parts", "pipelines.tools", "warehouse.lazy"]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("pipelines/make.py", "LIMIT = 3", "LIMIT = 4"),
        ("pipelines/make.py", "LIMIT = 3", "LIMIT = 3\nLIMIT += 1"),
        ("pipelines/make.py", "LIMIT = 3", "LIMIT = 3\nprint()"),
        ("pipelines/make.py", "helper as aid", "unused as aid"),
        ("pipelines/tools.py", "return x", "return -x"),
        ("pipelines/tools.py", "def add", "@cached\ndef add"),
        ("pipelines/deep.py", "size = 1", "size = 2"),
        ("pipelines/__init__.py", "", "import os\nos.nice(1)"),
        ("warehouse/lazy.py", "return x", "return 2"),
    ],
)
def test_what_it_does_is_seen(tmp_path: Path, before: dict[str, str], name: str, old: str, new: str) -> None:
    """Constants, what runs on import, another target of an import, decorators, and code at any depth."""
    assert after(tmp_path, name, old, new) != before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("pipelines/make.py", "Return it.", "Return what it makes."),
        ("pipelines/make.py", '    """Return it."""\n', ""),
        ("pipelines/make.py", "A module.", "The module."),
        ("pipelines/make.py", "LIMIT = 3", "# Why three.\n\nLIMIT = (\n    3\n)"),
        ("pipelines/make.py", "return unused()", "return 7"),
        ("pipelines/make.py", 'title="a set"', 'title="the set"'),
        ("pipelines/tools.py", "return 0", "return 1"),
        ("pipelines/parts.py", "return 1", "return 2"),
        ("pipelines/deep.py", "size = 1", 'size = 1\n    "In bytes."'),
        ("warehouse/errors.py", "pass", "what = 1"),
    ],
)
def test_nothing_else_is(tmp_path: Path, before: dict[str, str], name: str, old: str, new: str) -> None:
    """Comments, docstrings and blanks; what is not used though it is imported; what only tells."""
    assert after(tmp_path, name, old, new) == before


def test_one_argument_of_a_declaration(tmp_path: Path, before: dict[str, str]) -> None:
    """The code behind `read=` without the other arguments."""
    del before
    found = code_of("pipelines.make:WORKLOAD.read", root=tmp_path / "before")
    assert after(tmp_path, "pipelines/make.py", "a set", "the set", "WORKLOAD.read") == found


@pytest.mark.parametrize("place", ["pipelines.make:gone", "pipelines.gone:make", "pipelines.make:WORKLOAD.gone"])
def test_a_name_that_is_gone(tmp_path: Path, before: dict[str, str], place: str) -> None:
    """It is an error, never code that is silently left out."""
    del before
    with pytest.raises(KeyError):
        code_of(place, root=tmp_path / "before")


def test_silent_modules_are_there() -> None:
    """A module that was moved does not stay on the list."""
    assert [name for name in SILENT if not (ROOT / f"{name.replace('.', '/')}.py").is_file()] == []

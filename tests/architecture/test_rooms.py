"""The rooms of each package: every one says what lives there, and no circle of imports leads through two of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("assets", "kappa", "pipelines", "reports", "warehouse")
FOLDERS = [path.parent for package in PACKAGES for path in sorted((ROOT / package).rglob("__init__.py"))]
# A newcomer finds a room by its name and its first sentence; beyond this many modules it is a hall.
MOST_MODULES = 14


def room(module: str) -> str:
    """Return the folder below a package that a module is in, or the module itself where it lies at the top."""
    first = ".".join(module.split(".")[:2])
    return first if ROOT.joinpath(*first.split(".")).is_dir() else module


def imported(path: Path) -> Iterator[str]:
    """Yield the modules of ours that a file imports, those inside functions included."""
    for node in ast.walk(ast.parse(path.read_text("utf8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in PACKAGES:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if module_file(name) else node.module for name in names)


def module_file(name: str) -> bool:
    """Return whether a dotted name is a module or a folder of ours."""
    place = ROOT.joinpath(*name.split("."))
    return place.is_dir() or place.with_suffix(".py").is_file()


def arrows() -> dict[str, set[str]]:
    """Return for each room those that its modules import."""
    found: dict[str, set[str]] = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            targets = {room(name) for name in imported(path)}
            found.setdefault(room(module), set()).update(targets - {room(module)})
    return found


def test_no_circle_of_rooms() -> None:
    """Rooms form floors: TopologicalSorter raises CycleError, which names the rooms, where they do not."""
    order = list(TopologicalSorter(arrows()).static_order())
    assert order.index("warehouse.formulas") < order.index("pipelines.hardware") < order.index("assets.commands")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_every_folder_says_what_lives_there(folder: Path) -> None:
    """The `__init__` begins with a sentence; no room is a hall."""
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf8")))
    assert text
    assert len(text) > len("Short.")
    assert len(list(folder.glob("*.py"))) - 1 <= MOST_MODULES


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "unit").rglob("test_*.py")), ids=lambda path: path.name)
def test_unit_tests_mirror_the_code(path: Path) -> None:
    """A folder of unit tests is a folder of the code."""
    assert (ROOT / path.parent.relative_to(ROOT / "tests" / "unit")).is_dir()

"""Which code makes a product: a hash over the definitions that a function reaches, its own and those it uses in turn.

Comments, docstrings and blank lines are not in it, nor what is not reached though it is in the same module: a new
column of one table, a new step or a new page leaves every other step as it was. Sources are read and never imported,
module by module as they are used, so a wheel hashes its own files and no one else's. What is found by a name that is
computed (`getattr`, `import_module`) is not seen: whoever does that names it to `code_of`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path

from warehouse.versions.installed import ROOT, short_hash

OURS = ("pipelines", "reports", "warehouse")
# They keep a product, name it, tell of it or hash it; a value that they decide is an input by itself.
# `warehouse.home.lake` writes values.
_HOME = (
    "atomic", "contents", "generation", "home", "layout", "locks", "mending", "path_names", "preparing", "products",
    "publishing", "staging",
)  # fmt: skip
SILENT = {
    "pipelines.hardware.configs.naming",
    "pipelines.io.progress", "pipelines.steps.forgetting", "pipelines.steps.inputs",
    "pipelines.steps.product_names", "pipelines.workloads.known", "warehouse.errors", "warehouse.masking",
    "warehouse.versions.installed", "warehouse.versions.reached_code",
    *(f"warehouse.home.{name}" for name in _HOME),
}  # fmt: skip
_ALL = "*"
_WITH_BODY = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_Place = tuple[str, str]


@cache
def code_of(*functions: str, root: Path = ROOT) -> dict[str, str]:
    """Return 12 hex digits over what functions reach in each module of ours, by the module's name.

    Args:
        functions: each as `package.module:name`, or `package.module:NAME.keyword` for one argument of a declaration.
        root: the folder that holds the packages.

    Raises:
        KeyError: there is no such name: it was moved, and who asks for it has to follow.
    """
    todo: list[_Place] = []
    for module, _, name in (function.partition(":") for function in functions):
        if name.partition(".")[0] not in _module(module, root).made:
            raise KeyError(f"{module}:{name}")
        todo.append((module, name))
    seen: set[_Place] = set()
    used: dict[str, set[_Part]] = {}
    while todo:
        module, name = place = todo.pop()
        if place in seen or module in SILENT:
            continue
        seen.add(place)
        parts = _module(module, root).parts(name)
        used.setdefault(module, set()).update(parts)
        todo += _module(module, root).uses(name, parts)
    return {module: _hash(parts) for module, parts in sorted(used.items()) if parts}


class _Part:
    """A statement at the top of a module, or one argument of it."""

    def __init__(self, node: ast.AST) -> None:
        self.node = node
        self.place = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))

    @cached_property
    def names(self) -> dict[str, set[str]]:
        """The names that it holds, each with those behind its dot; an empty one where it is used without a dot."""
        names = {id(one): one.id for one in self._nodes if isinstance(one, ast.Name)}
        behind = {id(one.value): one.attr for one in self._nodes if isinstance(one, ast.Attribute)}
        found: dict[str, set[str]] = {}
        for key, name in names.items():
            found.setdefault(name, set()).add(behind.get(key, ""))
        return found

    @property
    def imports(self) -> Iterator[tuple[str, str, str]]:
        """What it imports, as (name here, module, name there)."""
        nodes = (one for one in self._nodes if isinstance(one, ast.ImportFrom) and one.module)
        return ((alias.asname or alias.name, str(node.module), alias.name) for node in nodes for alias in node.names)

    @cached_property
    def hash(self) -> str:
        """12 hex digits over what it does: without comments and docstrings."""
        for one in self._nodes:
            if isinstance(one, _WITH_BODY):
                one.body = [line for line in one.body if not _is_text(line)]
        return short_hash(ast.dump(self.node, annotate_fields=False).encode())

    @cached_property
    def _nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.node))


class _Module:
    """The top of one module: its statements by the names that they make, what it imports, and what runs on import."""

    def __init__(self, name: str, root: Path) -> None:
        path = _path(name, root)
        if path is None:
            raise KeyError(name)
        self.name, self.root = name, root
        self.made: dict[str, list[_Part]] = {}
        self.imported: dict[str, _Place] = {}
        self.runs: list[_Part] = []
        for statement in ast.parse(path.read_bytes()).body:
            part, names = _Part(statement), list(_made_by(statement))
            for one in names:
                self.made.setdefault(one, []).append(part)
            if not names:
                self.imported |= self._imported_by(part)
            if not names and not isinstance(statement, ast.Import | ast.ImportFrom) and not _is_text(statement):
                self.runs.append(part)

    def _imported_by(self, part: _Part) -> dict[str, _Place]:
        """Return what of ours a part imports, by the name here: a whole module, or a name of one."""
        ours = [found for found in part.imports if found[1].partition(".")[0] in OURS]
        wholes = {name: f"{source}.{there}" for name, source, there in ours}
        return {
            name: (wholes[name], _ALL) if _path(wholes[name], self.root) else (source, there)
            for name, source, there in ours
        }

    def parts(self, name: str) -> list[_Part]:
        """Return what makes a name, or one argument of it, and what runs in any case."""
        if name == _ALL:
            return [*self.runs, *(part for parts in self.made.values() for part in parts)]
        name, _, keyword = name.partition(".")
        parts = self.made.get(name, [])
        return [*self.runs, *((_argument(part.node, keyword) if keyword else part) for part in parts)]

    def uses(self, name: str, parts: list[_Part]) -> Iterator[_Place]:
        """Yield what these parts use, what a name that is only passed on means, and the folders on the way."""
        if name in self.imported and name not in self.made:
            yield self.imported[name]
        package = self.name.rpartition(".")[0]
        if package and _path(package, self.root):
            yield package, ""
        for part in parts:
            # Heavy modules are imported inside functions.
            imported = self.imported | self._imported_by(part)
            for one in part.names.keys() & imported.keys():
                module, there = imported[one]
                yield from (
                    (module, dotted or _ALL) if there == _ALL else (module, there) for dotted in part.names[one]
                )
            yield from ((self.name, one) for one in part.names.keys() & self.made.keys())


@cache
def _module(name: str, root: Path) -> _Module:
    return _Module(name, root)


@cache
def _path(name: str, root: Path) -> Path | None:
    """Return the file of a module, None where there is none of that name; one of a loaded extension is found too."""
    place = root.joinpath(*name.split("."))
    loaded = getattr(sys.modules.get(name), "__file__", None) if root == ROOT else None
    paths = (place.with_suffix(".py"), place / "__init__.py", *([Path(loaded)] if loaded else []))
    return next((path for path in paths if path.is_file()), None)


def _made_by(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement at the top of a module makes."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from (one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))


def _argument(node: ast.AST, keyword: str) -> _Part:
    """Return the value of one argument of a declaration such as `WORKLOAD = Workload(read=read)`."""
    found = [one.value for one in ast.walk(node) if isinstance(one, ast.keyword) and one.arg == keyword]
    if not found:
        raise KeyError(keyword)
    return _Part(found[0])


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _hash(parts: set[_Part]) -> str:
    return short_hash("\n".join(part.hash for part in sorted(parts, key=lambda part: part.place)).encode())

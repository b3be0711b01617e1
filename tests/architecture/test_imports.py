"""Who imports whom: the arrows of the design, read from every import statement, those inside functions included."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OURS = ("assets", "kappa", "pipelines", "reports", "warehouse")
ALLOWED = {
    "assets": {"assets", "kappa", "pipelines", "reports", "warehouse"},
    "kappa": {"kappa", "pipelines", "reports", "warehouse"},
    "pipelines": {"pipelines", "warehouse"},
    "reports": {"reports", "warehouse"},
    "warehouse": {"warehouse"},
}
# Where a library may be imported: a package, or one module.
HOMES = {
    "dagster": "assets",
    "duckdb": "warehouse",
    "seaborn": "reports",
    "matplotlib": "reports",
    "rich": "assets.commands.screen",
    "transformers": "pipelines.counting.engines",
    "tokenizers": "pipelines.counting.engines",
    "fastokens": "pipelines.counting.engines",
}
HEAVY = (
    "dagster",
    "datasets",
    "transformers",
    "seaborn",
    "matplotlib",
    "pandas",
    "huggingface_hub",
    "tokenizers",
    "pydantic",
    "rich",
)


def modules() -> dict[str, Path]:
    """Return every module of ours by its dotted name."""
    paths = (path for package in OURS for path in sorted((ROOT / package).rglob("*.py")))
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def imports() -> Iterator[tuple[str, str, bool]]:
    """Yield (importing module, imported name, whether it is imported only for type checkers)."""
    for name, path in modules().items():
        tree = ast.parse(path.read_text("utf8"))
        for_types = {id(node) for block in ast.walk(tree) if _is_type_block(block) for node in ast.walk(block)}
        for node in ast.walk(tree):
            for target in _targets(node):
                yield name, target, id(node) in for_types


def _is_type_block(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _targets(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "relative imports hide who imports whom"
        return [str(node.module)]
    is_call = isinstance(node, ast.Call) and ast.unparse(node.func) in ("importlib.import_module", "__import__")
    if is_call and isinstance(node, ast.Call) and isinstance(node.args[0], ast.Constant):
        return [str(node.args[0].value)]
    return []


def test_there_are_modules_to_look_at() -> None:
    """Each package has modules, so that the tests below look at something."""
    assert {name.split(".")[0] for name in modules()} == set(OURS)
    assert len(list(imports())) > 100


def test_packages_import_along_the_arrows() -> None:
    """Assets import all; pipelines and reports import warehouse and not each other; warehouse imports none of ours."""
    wrong = [
        (name, target)
        for name, target, _ in imports()
        if target.split(".")[0] in OURS and target.split(".")[0] not in ALLOWED[name.split(".")[0]]
    ]
    assert wrong == []


@pytest.mark.parametrize("library", HOMES)
def test_a_library_is_imported_in_its_home_alone(library: str) -> None:
    """Each library has the home that `HOMES` names: a package, or one module."""
    home = HOMES[library]
    users = {name for name, target, _ in imports() if target.split(".")[0] == library}
    assert {name for name in users if name != home and not name.startswith(f"{home}.")} == set()


def test_pandas_is_not_imported_before_drawing() -> None:
    """Pandas stands inside functions of reports or nowhere."""
    assert {name.split(".")[0] for name, target, _ in imports() if target.split(".")[0] == "pandas"} <= {"reports"}


def test_tokenizers_holds_no_python() -> None:
    """A Python file there would hide Hugging Face's `tokenizers` from transformers."""
    assert [path.name for path in (ROOT / "tokenizers").rglob("*") if path.suffix in (".py", ".pyi", ".so")] == []
    assert list((ROOT / "tokenizers").glob("*.toml"))


def test_the_tokenizers_imported_is_hugging_faces() -> None:
    """With the checkout first on sys.path `tokenizers` is the installed library, wherever its environment lies."""
    code = "import tokenizers, sys; from tokenizers import Tokenizer; print(tokenizers.__file__)"
    process = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT)},
    )
    # The README's environment lies inside the checkout: the distribution says where its own files are.
    installed = importlib.metadata.distribution("tokenizers").locate_file("tokenizers/__init__.py")
    assert Path(process.stdout.strip()).resolve() == Path(str(installed)).resolve()
    assert (ROOT / "tokenizers") not in Path(process.stdout.strip()).parents


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["sql", "--help"], ["sql", "SELECT 1"]])
def test_quick_commands_import_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    """`--help`, `--version` and `sql` start fast: none of the libraries that take seconds is imported."""
    code = f"""
import sys
from assets.commands.cli import main
try:
    main({["--home", str(tmp_path), *arguments]!r})
except SystemExit:
    pass
print("HEAVY", sorted({set(HEAVY)!r} & set(sys.modules)))
"""
    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert process.stdout.splitlines()[-1] == "HEAVY []"


def test_sql_on_a_database_imports_nothing_heavy(tmp_path: Path) -> None:
    """A query that runs to its end imports DuckDB and Arrow, and no other slow library."""
    code = f"""
import sys
import duckdb
from pathlib import Path
from assets.commands.cli import main
home = Path({str(tmp_path)!r})
(home / "generations" / "1").mkdir(parents=True)
(home / "LAYOUT").write_text("1")
(home / "current").symlink_to("generations/1")
duckdb.connect(str(home / "current" / "warehouse.duckdb")).close()
assert main(["--home", str(home), "sql", "SELECT 41 + 1 AS answer", "--format", "csv"]) == 0
print("HEAVY", sorted({set(HEAVY)!r} & set(sys.modules)))
"""
    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    # 41 + 1 = 42
    assert process.stdout.splitlines() == ["answer", "42", "HEAVY []"]

"""What lies in the repository: no address of a machine or registry, documented commands, a complete wheel."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from assets.commands.cli import build_parser
from pipelines.steps.inputs import STEPS, code_version, inputs_of
from warehouse.home.products import identity_of

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"assets", "kappa", "pipelines", "reports", "warehouse"}
FOLDERS = (*PACKAGES, "tokenizers", "tests", "bench", "docs", ".ci")
LARGE_BYTES = 1 << 20


def tracked() -> list[Path]:
    """Return the files that git tracks; without git, those of the known folders and the root."""
    try:
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
        paths = [ROOT / name for name in listed.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        inside = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts]
        paths = [*ROOT.glob("*"), *inside]
    return [path for path in paths if path.is_file()]


def texts() -> Iterator[tuple[str, str]]:
    """Yield name and content of every tracked text file."""
    for path in tracked():
        body = path.read_bytes()
        if b"\0" not in body:
            yield str(path.relative_to(ROOT)), body.decode("utf8")


def test_no_path_of_a_machine() -> None:
    """No file names a home folder, a working folder or a temporary folder of the machine that it was written on."""
    # Put together here, so that this file does not hold what it looks for.
    roots = ("root", "home/[a-z]", "Users", "work", "private")
    pattern = re.compile(rf"""(?:^|[\s"'`(=:])/(?:{"|".join(roots)})/""", re.MULTILINE)
    assert {name: found[0] for name, body in texts() if (found := pattern.findall(body))} == {}


def test_no_registry_host() -> None:
    """No file names where packages are fetched from: an index, a mirror or a proxy."""
    hosts = ("pypi" + r"\.org", "python" + r"hosted\.org", "index" + "-url", "trusted" + "-host", r"files\.python")
    pattern = re.compile("|".join(hosts))
    assert {name: found[0] for name, body in texts() if (found := pattern.findall(body))} == {}


def test_ci_runs_the_readme_s_commands_as_typed() -> None:
    """A reader's environment lies inside the checkout; another one would hide what fails there."""
    lines = (ROOT / ".ci" / "run").read_text("utf8").splitlines()
    typed = re.findall(r"^(make \w+) ", (ROOT / "README.md").read_text("utf8"), re.MULTILINE)
    assert typed == ["make run", "make test"]
    assert [line for line in lines if line in typed] == typed
    assert not [line for line in lines if "VENV" in line]


def test_nothing_is_left_to_do() -> None:
    """No file holds a note of unfinished work."""
    pattern = re.compile(r"\b(?:TO" + "DO|FIX" + "ME|XX" + "X)\\b")
    code = [(name, body) for name, body in texts() if name.endswith((".py", ".sql", ".toml", ".html", "Makefile"))]
    assert {name: found[0] for name, body in code if (found := pattern.findall(body))} == {}


def test_no_large_and_no_generated_file_is_tracked() -> None:
    """No data, no database, no caches; nothing above 1 MiB."""
    paths = tracked()
    assert [path.name for path in paths if path.stat().st_size > LARGE_BYTES] == []
    kinds = (".duckdb", ".parquet", ".pyc", ".arrow", ".log")
    assert [str(path.relative_to(ROOT)) for path in paths if path.suffix in kinds] == []


def commands() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each command by its name, and the global one as ``."""
    parser = build_parser()
    found = {"": parser}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found |= action.choices
    return found


def documents() -> str:
    """Return README.md and everything in docs/ as one text."""
    readme = (ROOT / "README.md").read_text("utf8")
    if not readme.strip():
        pytest.skip("README.md is not written yet")
    return "\n".join([readme, *(path.read_text("utf8") for path in sorted((ROOT / "docs").rglob("*.md")))])


def test_every_command_and_option_is_documented() -> None:
    """README.md or docs/ name every command and every option."""
    text = documents()
    missing = [f"kappa {name}" for name in commands() if name and f"kappa {name}" not in text]
    for name, parser in commands().items():
        options = [option for action in parser._actions for option in action.option_strings if option.startswith("--")]
        missing += [f"kappa {name} {option}" for option in options if option not in text]
    assert missing == []


def test_every_documented_command_exists() -> None:
    """README.md and docs/ name no command that is not there."""
    text = documents()
    fenced = "\n".join(re.findall(r"^```.*?\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    named = set(re.findall(r"`kappa ([a-z-]+)", text)) | set(
        re.findall(r"^(?:\$ )?kappa ([a-z-]+)", fenced, re.MULTILINE)
    )
    assert named - set(commands()) == set()


def test_the_design_s_options_are_there() -> None:
    """No command or option that people use goes away."""
    fixed = {
        "run": {"--sample", "--workload", "--tokenizer"},
        "refresh": {"--check"},
        "sql": {"--file", "--format", "--output"},
        "crit": {"--model", "--accelerator", "--link", "--basis", "--bandwidth", "--kv-dtype", "--tensor-parallel"},
        "cache": {"--model", "--accelerator", "--link", "--tier", "--kv-dtype", "--format", "--output"},
        "serve-sim": {"--workload", "--rate", "--policy", "--arrivals", "--slo", "--seeds", "--fleet", "--price"},
        "calibrate": {"--file"},
        "report": {"--open"},
        "add": {"--dry-run", "--format", "--field", "--no-keep-text"},
        "profile": {"--name", "--tokenizer", "--format", "--field", "--no-keep-text"},
        "add-tokenizer": {"--template", "--max-context", "--model"},
        "workloads": set(),
        "remove": set(),
        "export": {"--format", "--output", "--block-tokens", "--tokenizer", "--counting", "--reuse", "--salt"},
        "doctor": set(),
        "measure": {"--accelerator", "--link"},
        "": {"--home", "--debug", "--version", "--help"},
    }  # fmt: skip
    found = {
        name: {option for action in parser._actions for option in action.option_strings}
        for name, parser in commands().items()
    }
    missing = {f"{name} {option}" for name, options in fixed.items() for option in options - found.get(name, set())}
    assert missing == set()
    assert set(fixed) == set(found)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of the files in a wheel that is built from the checkout, without network."""
    pytest.importorskip("hatchling", reason="hatchling builds the wheel")
    folder = tmp_path_factory.mktemp("wheel")
    code = f"from hatchling.build import build_wheel; print(build_wheel({str(folder)!r}))"
    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    with zipfile.ZipFile(folder / process.stdout.split()[-1]) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_the_wheel_holds_the_packages_and_no_tokenizers(wheel: set[str]) -> None:
    """A top-level `tokenizers/` would hide Hugging Face's; its files lie below pipelines."""
    assert {name.split("/")[0] for name in wheel} == PACKAGES
    data = {f"pipelines/_tokenizers/{path.name}" for path in (ROOT / "tokenizers").iterdir() if path.is_file()}
    assert {name for name in data if name.endswith(".toml")}
    assert {name for name in wheel if name.startswith("pipelines/_tokenizers/")} == data


def test_the_wheel_holds_every_module_and_every_data_file(wheel: set[str]) -> None:
    """Modules, SQL, CSV and page templates are in it; caches and tests are not."""
    kinds = (".py", ".sql", ".csv", ".html", ".typed")
    paths = [path for path in tracked() if path.suffix in kinds]
    inside = {str(path.relative_to(ROOT)) for path in paths}
    expected = {
        name for name in inside if name.split("/")[0] in ("assets", "kappa", "pipelines", "reports", "warehouse")
    }
    assert {name.rsplit(".", 1)[1] for name in expected} == {"py", "sql", "csv", "html", "typed"}
    assert expected - wheel == set()
    assert [name for name in wheel if "__pycache__" in name or name.startswith("tests")] == []


def test_the_wheel_runs_outside_the_checkout(wheel: set[str], tmp_path: Path) -> None:
    """Unpacked elsewhere, the program finds its tokenizers, its tables and its models."""
    del wheel
    code = f"from hatchling.build import build_wheel; print(build_wheel({str(tmp_path)!r}))"
    built = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    place = tmp_path / "place"
    with zipfile.ZipFile(tmp_path / built.stdout.split()[-1]) as archive:
        archive.extractall(place)
    program = """
import pipelines
from pipelines.steps.inputs import STEPS, code_version, inputs_of
from pipelines.vocab.specs import tokenizer_specs
from warehouse.hardware_rows.rows import load_reference
from warehouse.home.products import identity_of
print(pipelines.__file__, *tokenizer_specs(), load_reference("models").num_rows > 0)
print(code_version().partition("+")[2], *(identity_of(**inputs_of(name)) for name in STEPS))
"""
    # What lies there is another's: it changes no version.
    (place / "tokenizers").mkdir()
    (place / "tokenizers" / "tools.py").write_text("a = 1", "utf8")
    environment = {**os.environ, "PYTHONPATH": str(place)}
    process = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    (where, *rest), versions = map(str.split, process.stdout.splitlines())
    assert place in Path(where).parents
    assert rest == ["llama-3.1", "qwen3", "True"]
    ours = [code_version().partition("+")[2], *(identity_of(**inputs_of(name)) for name in STEPS)]
    assert versions == ours

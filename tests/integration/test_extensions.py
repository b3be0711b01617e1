"""A workload is one module, a tokenizer one TOML with its template: both are added to a copy of the tree, and run."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kappa_process import ROOT, Kappa, errors_of

SETS = ("sharegpt", "sharegpt-v3", "narrativeqa", "finqa", "support.1")
TOKENIZERS = ("chatty", "llama-3.1", "qwen3")
# Fewer take less time; each is one of those that came with the program, and the new one.
RUN_SETS, RUN_TOKENIZERS = ("finqa", "support.1"), ("chatty", "llama-3.1")
OPTIONS = [*(f"--workload={name}" for name in RUN_SETS), *(f"--tokenizer={name}" for name in RUN_TOKENIZERS)]
# The one thing that the new template does otherwise.
OLD, NEW = "Cutting Knowledge Date: December 2023\\n", ""


def changed(path: Path, *changes: tuple[str, str]) -> str:
    """Return the text of a file with some words replaced, all of which are there."""
    text = path.read_text("utf8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module")
def kappa(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kappa]:
    """A copy of the tree with one module, one TOML and one template more, and a row of a user's own model."""
    folder = tmp_path_factory.mktemp("extended")
    tree, home = folder / "tree", folder / "home"
    for name in ("assets", "pipelines", "reports", "tokenizers", "warehouse"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tree)
    sets, tokenizers = tree / "pipelines" / "workloads" / "sets", tree / "tokenizers"
    module = changed(
        sets / "sharegpt.py", ('name="sharegpt"', 'name="support.1"'), ("order=1", "order=5"),
        ("RyokoAI/ShareGPT52K", "owner/support"), ("sg_90k_part1.json", "chats.json"),
        ("PATHS, build_whole(rng)", "PATHS, [records[:40] for records in build_whole(rng)]"),
    )  # fmt: skip
    (sets / "support.py").write_text(module, "utf8")
    (tokenizers / "chatty.jinja").write_text(changed(tokenizers / "llama-3.1.jinja", (OLD, NEW)), "utf8")
    described = changed(
        tokenizers / "llama-3.1.toml", (OLD, NEW), ('file = "llama-3.1.jinja"', 'file = "chatty.jinja"')
    )
    (tokenizers / "chatty.toml").write_text(described, "utf8")
    (home / "reference").mkdir(parents=True)
    head, *rows = (tree / "warehouse" / "reference" / "models.csv").read_text("utf8").splitlines()
    (row,) = (row for row in rows if row.startswith("llama-3.1-8b,"))
    own = row.replace("llama-3.1-8b,", "our-8b,").replace(",llama-3.1,", ",Chatty,")
    (home / "reference" / "models.csv").write_text(f"{head}\n{own}\n", "utf8")
    yield Kappa(home, folder / "cache", "http://127.0.0.1:9", tree)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def built(kappa: Kappa) -> Kappa:
    """The same after `run --sample` of both with what they are compared with."""
    process = kappa("run", "--sample", *OPTIONS)
    assert process.returncode == 0, process.stderr
    assert errors_of(process) == []
    return kappa


def test_tables_hold_their_turns(built: Kappa) -> None:
    """Every set by every tokenizer in both countings; the same vocabulary gives the same text."""
    series = "SELECT DISTINCT workload, tokenizer, counting FROM turns"
    assert set(built.rows(series)) == {(s, t, c) for s in RUN_SETS for t in RUN_TOKENIZERS for c in ("text", "chat")}
    sums = "SELECT sum(prefill_tokens) FROM turns WHERE counting = ? AND tokenizer = ?"
    text, chat = (
        [built.rows(sums.replace("?", f"'{counting}'", 1).replace("?", f"'{name}'"))[0][0] for name in RUN_TOKENIZERS]
        for counting in ("text", "chat")
    )
    assert text[0] == text[1]
    assert chat[0] < chat[1]


def test_a_model_of_the_new_tokenizer_is_joined(built: Kappa) -> None:
    """A user's own model with the new vocabulary has its share of memory bound turns, of every set."""
    found = built.rows("SELECT DISTINCT workload, tokenizer FROM boundness WHERE model = 'our-8b'")
    assert sorted(found) == sorted((name, "chatty") for name in RUN_SETS)


def test_report_and_figures_have_them(built: Kappa) -> None:
    """A figure of its own, a curve of its own colour in the first one; the figures' tokenizer is the published one."""
    report = built.home / "report"
    page = (report / "report.html").read_text("utf8")
    assert all(name in page for name in (*RUN_SETS, *RUN_TOKENIZERS))
    assert "Figures show the counts of llama-3.1" in page
    figures = {path.name: path.read_text("utf8") for path in report.rglob("*.svg")}
    assert any("support" in name for name in figures)
    (first,) = (text for name, text in figures.items() if "kappa_crit" in name)
    names = re.findall(r"fill: (#[0-9a-f]{6})[^>]*>(?:<tspan[^>]*>)?([a-z0-9.-]+)<", first)
    colours = {name: colour for colour, name in names if name in RUN_SETS}
    assert (set(colours), len(set(colours.values()))) == (set(RUN_SETS), 2)


def test_doctor_and_dagster_know_them(kappa: Kappa) -> None:
    """A line each; the graph that `dagster dev` shows is valid."""
    lines = kappa("doctor").stdout.splitlines()
    assert [line.split()[2] for line in lines if line[4:].startswith("Hub: ")] == list(SETS)
    assert [line.split()[2] for line in lines if line[4:].startswith("tokenizer: ")] == list(TOKENIZERS)
    command = [sys.executable, "-m", "dagster", "definitions", "validate"]
    process = subprocess.run(
        command, cwd=kappa.root, env=kappa.environment(), capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr


def test_a_bad_file_is_one_line_of_what_needs_it(built: Kappa) -> None:
    """`run` says which file and key, and changes nothing; doctor has a line; all that needs no tokenizer goes on."""
    path = built.root / "tokenizers" / "bad.toml"
    path.write_text(changed(path.with_name("qwen3.toml"), ('revision = "main"\n', "")), "utf8")
    said = f"{path} is not usable, key 'revision' is missing, correct the file"
    before = built.generation
    try:
        process = built("run", "--sample", *OPTIONS)
        assert (process.returncode, errors_of(process)) == (1, [f"error: {said}"])
        told = [line for line in built("doctor").stdout.splitlines() if "tokenizer: " in line]
        assert [line[:3] for line in told] == ["no ", "ok ", "ok ", "ok "]
        assert told[0].endswith(said)
        for others in (["--help"], ["sql", "SELECT 1"], ["crit", "--model", "llama-3.1-8b"], ["report"]):
            assert built(*others).returncode == 0, others
    finally:
        path.unlink()
    assert built.generation == before


def test_an_edit_makes_again_what_depends_on_it(built: Kappa) -> None:
    """A word in the engines, a figure of a link and a line of the report: no text is read, no token counted again."""
    staging = built.home / "staging" / "sample"

    def products(name: str) -> dict[str, int]:
        return {str(meta.parent): meta.stat().st_mtime_ns for meta in (staging / name).rglob("meta.json")}

    counted = {name: products(name) for name in ("conversations", "token_counts", "turns", "tables/percentiles")}
    drawn = {name: products(name) for name in ("tables/links", "warehouse", "report")}
    edits = {
        "pipelines/counting/engines.py": ('"""', '"""Words: '),
        "warehouse/reference/links.csv": ("\n", "\n\n"),
        "reports/report.py": ("def write_report", "LINES = 0\n\n\ndef write_report"),
        "reports/html.py": ("SHORT = 24", "SHORT = 23"),
    }
    for name, edit in edits.items():
        path = built.root / name
        path.write_text(path.read_text("utf8").replace(*edit, 1), "utf8")
    process = built("run", "--sample", *OPTIONS)
    assert process.returncode == 0, process.stderr
    assert {name: products(name) for name in counted} == counted
    assert [name for name in drawn if products(name) == drawn[name]] == []
    again = [line for line in process.stderr.splitlines() if "is made again" in line]
    told = "kappa: tables/links is made again: data (warehouse/reference/links.csv) changed"
    assert told in again
    assert [line for line in again if "token_counts" in line or "turns/" in line] == []
    assert any("report is made again: code (reports.html), warehouse changed" in line for line in again)

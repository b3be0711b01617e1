"""Which change makes which step again: on copies of the tree with one edit."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.steps import inputs
from pipelines.steps.inputs import STEPS, inputs_of, template_facts
from pipelines.steps.makers.serving import SERVING
from pipelines.steps.product_names import counts_name
from pipelines.steps.tables import HARDWARE, STAGED
from pipelines.vocab import specs
from pipelines.workloads.sets import module_of, workloads
from warehouse.versions.installed import data_of
from warehouse.versions.reached_code import code_of

ROOT = Path(__file__).resolve().parents[4]
PACKAGES = ("pipelines", "reports", "warehouse")
LIMITS = {"boundness", "design_questions"}
ROWS = {*HARDWARE, *LIMITS, "cache_tiers", *SERVING}


def state(root: Path) -> dict[str, object]:
    """Return the code and data of every step, and the reader of every set."""
    steps: dict[str, object] = {
        name: (code_of(*step.code, root=root), [data_of(pattern, root) for pattern in step.data])
        for name, step in STEPS.items()
    }
    return steps | {name: code_of(f"{module_of(name)}:WORKLOAD.read", root=root) for name in workloads()}


@pytest.fixture
def changed(tmp_path: Path) -> Callable[..., set[str]]:
    """Return a function that edits a copy of the tree and returns which steps and readers are others then."""

    def edit(*edits: tuple[str, str, str]) -> set[str]:
        for package in PACKAGES:
            shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
        for name, old, new in edits:
            text = (tmp_path / name).read_text("utf8")
            assert old in text, name
            (tmp_path / name).write_text(text.replace(old, new, 1), "utf8")
        now, before = state(tmp_path), state(ROOT)
        return {name for name in before if now[name] != before[name]}

    return edit


def test_every_step_is_declared() -> None:
    """Each table has its inputs."""
    assert {*STAGED} <= STEPS.keys()


def test_words_change_nothing(changed: Callable[..., set[str]]) -> None:
    """A docstring and a comment in modules that all steps reach."""
    files = [
        *("pipelines/counting/engines.py", "pipelines/sessions/messages.py", "warehouse/declared/schema.py"),
        *("pipelines/hardware/costs.py", "reports/report.py", "pipelines/steps/counts.py"),
    ]
    edits = [(name, '"""', '"""Words: ') for name in files] + [(name, "\nfrom ", "\n# Why.\n\nfrom ") for name in files]
    assert changed(*edits) == set()


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        ("reports/format.py", "\ndef ", "\nprint()\n\n\ndef ", {"report"}),
        ("reports/template.html", "<body", "<body ", {"report"}),
        ("warehouse/reference/models.csv", "\n", "\n\n", ROWS),
        ("warehouse/reference/published.csv", "\n", "\n\n", {*ROWS, "published"}),
        ("warehouse/sql/percentiles.sql", "\n", "\n\n", {"percentiles", "warehouse"}),
        ("warehouse/sql/session_totals.sql", "\n", "\n\n", {"warehouse"}),
        ("pipelines/hardware/design_questions.py", "\ndef ", "\nprint()\n\n\ndef ", {"design_questions"}),
        ("pipelines/counting/verified.py", "\ndef ", "\nprint()\n\n\ndef ", {"counts"}),
        ("pipelines/counting/engines.py", "\ndef ", "\nprint()\n\n\ndef ", {"counts", "chat", "prefix", "requested"}),
        ("pipelines/chat/counting.py", "\ndef ", "\nprint()\n\n\ndef ", {"chat"}),
        (
            "pipelines/turns/derivation.py",
            "\ndef ",
            "\nprint()\n\n\ndef ",
            {"text", "chat", "prefix", "requested", "logged"},
        ),
        ("pipelines/workloads/sets/finqa.py", "return hashlib.", "return  hashlib.new or hashlib.", {"finqa"}),
        ("pipelines/io/parquet_text.py", "\ndef ", "\nprint()\n\n\ndef ", {"narrativeqa"}),
        ("pipelines/workloads/sets/finqa.py", "build_filings(rng)", "build_filings(rng) or None", set()),
        ("warehouse/home/staging.py", "\ndef ", "\nprint()\n\n\ndef ", set()),
        ("pipelines/fetch/cache.py", "\ndef ", "\nprint()\n\n\ndef ", {"chat", "prefix", "requested"}),
    ],
)
def test_what_a_change_makes_again(
    changed: Callable[..., set[str]], name: str, old: str, new: str, expected: set[str]
) -> None:
    """The report, a hardware row and a view leave counts and turns; a reader is that of its set alone."""
    assert changed((name, old, new)) == expected


def test_a_new_column_counts_nothing_again(changed: Callable[..., set[str]]) -> None:
    """A field and a column of `summary` are of that table, and of the database that holds it."""
    found = changed(
        ("warehouse/declared/fields.py", "\nWORKLOAD = ", '\nNEW = _text("new", "a column")\nWORKLOAD = '),
        ("warehouse/declared/turn_tables.py", "f.SPECIAL_TOKEN_MESSAGES,", "f.SPECIAL_TOKEN_MESSAGES,\n        f.NEW,"),
    )
    assert found - {"report"} == {"summary", "warehouse"}


def test_a_template_is_of_its_tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another template or fact of one tokenizer leaves the other's turns, and all counts."""
    folder = tmp_path / "tokenizers"
    shutil.copytree(ROOT / "tokenizers", folder)
    monkeypatch.setattr(specs, "tokenizer_folder", lambda: folder)
    names, words = (
        ("llama-3.1", "qwen3"),
        ((".jinja", "", "{# a #}"), (".toml", "is_trimmed = true", "is_trimmed = false")),
    )
    for suffix, old, new in words:
        before = [template_facts(name) for name in names]
        path = folder / f"llama-3.1{suffix}"
        path.write_text(path.read_text("utf8").replace(old, new, 1), "utf8")
        assert [template_facts(name) == one for name, one in zip(names, before, strict=True)] == [False, True]


@pytest.mark.parametrize("name", [*STEPS])
def test_data_files_of_what_is_reached_are_declared(name: str) -> None:
    """Where code of a step holds a path of this package (`__file__`), its data files are inputs."""
    places = {
        "warehouse.database.aggregates": "warehouse/sql/", "warehouse.database.build": "warehouse/sql/",
        "warehouse.hardware_rows.files": "warehouse/reference/", "reports.html": "reports/template.html",
    }  # fmt: skip
    # The tokenizers' files are inputs of the steps by name: template, fingerprint, names.
    known = {*places, "warehouse.hardware_rows.tokenizer_names", "pipelines.vocab.specs"}
    step = inputs_of(name)
    files = {module: ROOT / f"{module.replace('.', '/')}.py" for module in step["code"]}
    with_paths = {name for name, path in files.items() if path.is_file() and "__file__" in path.read_text("utf8")}
    assert with_paths - known == set()
    for module in with_paths & places.keys() - {"warehouse.hardware_rows.files"}:
        assert any(path.startswith(places[module]) for path in step["data"]), module


def test_the_log_names_what_changed(
    lab: Any,  # noqa: ANN401 - conftest's Lab
    chat: Callable[..., dict[str, Any]],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Files, then the version of an engine, then code: each is named once, and the first time nothing is."""
    caplog.set_level(logging.INFO)
    name = counts_name("sharegpt", "llama-3.1")

    def told() -> list[str]:
        lines = [record.getMessage() for record in caplog.records if "is made again" in record.getMessage()]
        caplog.clear()
        return lines

    lab.put("sharegpt", [chat("a", "human: x")], [])
    lab.turns("sharegpt")
    lab.turns("sharegpt")
    assert told() == []
    lab.put("sharegpt", [chat("a", "human: xx")], [])
    lab.turns("sharegpt", revision="r2")
    assert told() == [
        "conversations/sharegpt is made again: files changed",
        f"{name} is made again: conversations changed",
        "turns/sharegpt/llama-3.1/text/history is made again: counts changed",
    ]
    monkeypatch.setattr(inputs, "library_version", lambda library: f"2 of {library}")
    lab.turns("sharegpt", revision="r2")
    assert told()[0] == f"{name} is made again: engines (fastokens, tokenizers) changed"
    real = inputs.code_of
    monkeypatch.setattr(inputs, "code_of", lambda *places: {**real(*places), "pipelines.counting.engines": "new"})
    lab.turns("sharegpt", revision="r2")
    assert "code (pipelines.counting.engines)" in told()[1]

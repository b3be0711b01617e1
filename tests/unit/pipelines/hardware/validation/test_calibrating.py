"""Numbers fitted to a user's measurements: what made them comes back, and what they cannot settle is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from refusals import refused

from pipelines.hardware.machines import read_sources
from pipelines.hardware.served import numbers_of
from pipelines.hardware.validation.calibrating import Calibration, calibrate, read_points
from pipelines.hardware.validation.fitting import Fitted, with_numbers
from pipelines.hardware.validation.predicting import Point, predicted
from warehouse.errors import ErrorCode

SOURCES = read_sources()
HEADER = "model,accelerator,tensor_parallel,cached_tokens,new_tokens,quantity,measured,link\n"
SIZES = (64, 256, 1000, 2000, 4000, 8000, 16000, 32000, 64000)
TRUTH = {"linear_fraction": 0.55, "layer_s": 4e-4}


def measured(folder: Path, lines: list[str]) -> list[Point]:
    """Return points of a file."""
    path = folder / "mine.csv"
    path.write_text(HEADER + "\n".join(lines) + "\n", "utf8")
    return read_points(path, SOURCES)


def prefills(folder: Path, wrong: dict[int, float] | None = None) -> list[Point]:
    """Return prefills of llama-3.1-8b on an H100 by a model with the numbers of `TRUTH`; some are off by a factor."""
    lines = [f"llama-3.1-8b,h100-sxm,1,0,{size},prefill_s,1," for size in SIZES]
    there = with_numbers(SOURCES, numbers_of(SOURCES, "h100-sxm") | TRUTH)
    seconds = [predicted(point, there) for point in measured(folder, lines)]
    assert None not in seconds
    lines = [
        f"llama-3.1-8b,h100-sxm,1,0,{size},prefill_s,{(value or 0) * (wrong or {}).get(size, 1.0)},"
        for size, value in zip(SIZES, seconds, strict=True)
    ]
    return measured(folder, lines)


def fitted(found: list[Calibration]) -> dict[str, Fitted]:
    """Return the numbers of the one accelerator."""
    (of,) = found
    assert of.accelerator == "h100-sxm"
    return {number.number: number for number in of.numbers}


def test_what_made_them_comes_back(tmp_path: Path) -> None:
    """Nine prefills settle the rate of dense layers and the floor of a layer, whose truth lies in their ranges."""
    found = calibrate(prefills(tmp_path), SOURCES)
    numbers = fitted(found)
    for name, truth in TRUTH.items():
        assert numbers[name].is_identifiable, name
        assert numbers[name].value == pytest.approx(truth, rel=0.1), name
        assert numbers[name].least <= truth * 1.05, name
        assert numbers[name].most >= truth * 0.95, name
    assert found[0].worst_after < 1.1 < found[0].worst_before


def test_what_nothing_measures_is_not_settled(tmp_path: Path) -> None:
    """A dense model on one GPU says nothing of experts or of two nodes: they keep their value and are named so."""
    numbers, now = fitted(calibrate(prefills(tmp_path), SOURCES)), numbers_of(SOURCES, "h100-sxm")
    for name in ("expert_fraction", "node_layer_s"):
        assert not numbers[name].is_identifiable, name
        assert numbers[name].value == pytest.approx(now[name], rel=0.05), name


def test_an_outlier_moves_little(tmp_path: Path) -> None:
    """One of nine is off by 5: squares would move the rate far more than the soft loss does."""
    numbers = fitted(calibrate(prefills(tmp_path, {8000: 5.0}), SOURCES))
    assert numbers["linear_fraction"].value == pytest.approx(TRUTH["linear_fraction"], rel=0.25)


def test_loads_give_the_rate_of_the_link(tmp_path: Path) -> None:
    """K of 8,000 and 65,536 at 131,072 bytes each over 40e9 bytes/s."""
    lines = [
        f"llama-3.1-8b,h100-sxm,1,{cached},1,load_s,{cached * 131_072 / 40e9},pcie5-x16" for cached in (8000, 65_536)
    ]
    numbers = fitted(calibrate(measured(tmp_path, lines), SOURCES))
    assert numbers["link_bytes_per_s"].value == pytest.approx(40e9, rel=0.05)
    assert numbers["link_bytes_per_s"].is_identifiable
    assert not numbers["linear_fraction"].is_identifiable


def test_each_accelerator_has_its_own(tmp_path: Path) -> None:
    """Two accelerators in one file are two fits."""
    lines = ["llama-3.1-8b,h100-sxm,1,0,8000,prefill_s,0.22,", "llama-3.1-8b,a100-sxm-80gb,1,0,8000,prefill_s,0.6,"]
    found = calibrate(measured(tmp_path, lines), SOURCES)
    assert [(of.accelerator, of.points) for of in found] == [("h100-sxm", 1), ("a100-sxm-80gb", 1)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no row"),
        (HEADER, "no row"),
        ("model,accelerator\nllama-3.1-8b,h100-sxm\n", "tensor_parallel"),
        (HEADER + "llama-9,h100-sxm,1,0,8,prefill_s,1,\n", "row 2, column model"),
        (HEADER + "llama-3.1-8b,h99,1,0,8,prefill_s,1,\n", "row 2, column accelerator"),
        (HEADER + "llama-3.1-8b,h100-sxm,1,0,8,prefill_s,1,pcie9\n", "row 2, column link"),
        (HEADER + "llama-3.1-8b,h100-sxm,1,0,8,joule,1,\n", "row 2, column quantity"),
        (HEADER + "llama-3.1-8b,h100-sxm,1,0,8,prefill_s,fast,\n", "row 2, column measured"),
        (HEADER + "llama-3.1-8b,h100-sxm,1,0,8,prefill_s,nan,\n", "row 2, column measured"),
        (HEADER + "llama-3.1-8b,h100-sxm,1,0,8,prefill_s,-1,\n", "row 2, column measured"),
        (HEADER + "llama-3.1-8b,h100-sxm,0,0,8,prefill_s,1,\n", "row 2, column tensor_parallel"),
        (HEADER + "llama-3.1-8b,h100-sxm,1,-5,8,prefill_s,1,\n", "row 2, column tensor_parallel"),
        (HEADER + "llama-3.1-8b,h100-sxm,1,0,8.5,prefill_s,1,\n", "row 2, column new_tokens"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, words: str) -> None:
    """Each is one line that names row and column."""
    path = tmp_path / "bad.csv"
    path.write_text(text, "utf8")
    with refused(ErrorCode.BAD_ROW, words):
        read_points(path, SOURCES)


def test_a_file_of_a_spreadsheet(tmp_path: Path) -> None:
    """A byte order mark and spaces change nothing; what is no text is refused."""
    path = tmp_path / "mine.csv"
    path.write_text(HEADER + " llama-3.1-8b ,H100-SXM,1,0, 8000,prefill_s, 0.22,\n", "utf-8-sig")
    (point,) = read_points(path, SOURCES)
    assert (point.model, point.accelerator, point.new_tokens, point.measured) == (
        "llama-3.1-8b",
        "h100-sxm",
        8000,
        0.22,
    )
    path.write_bytes(b"\xff\xfe\x00")
    with refused(ErrorCode.BAD_ROW):
        read_points(path, SOURCES)

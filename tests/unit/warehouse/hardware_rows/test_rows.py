"""The sourced tables load, agree with arithmetic and with each other, and refuse what is not usable."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from refusals import refused

from warehouse.declared.tables import MODELS
from warehouse.errors import ErrorCode, KappaError
from warehouse.hardware_rows.reference_tables import REFERENCE
from warehouse.hardware_rows.rows import FOLDER, load_reference

# Choices of what is drawn: they state no figure and no fact.
NAMES_ALONE = {"headlines", "held_out"}
Rows = list[dict[str, str]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the reference tables that a test may spoil."""
    return Path(shutil.copytree(FOLDER, tmp_path / "reference"))


def spoil(folder: Path, name: str, change: Callable[[Rows], object]) -> Path:
    """Rewrite one table after `change` edited its rows in place."""
    path = folder / f"{name}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    change(rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def put(row: int, column: str, value: str) -> Callable[[Rows], None]:
    """Return a change that sets one cell; rows are numbered like in the messages, the header is row 1."""

    def change(rows: Rows) -> None:
        rows[row - 2][column] = value

    return change


@pytest.mark.parametrize("name", REFERENCE)
def test_table_loads(name: str) -> None:
    """Each has rows and the declared schema; what is measured, and what it costs, waits for a user."""
    table = load_reference(name)
    assert bool(table.num_rows) == (name not in ("measured", "measurements", "calibrated", "prices"))
    assert table.schema.equals((MODELS if name == "models" else REFERENCE[name]).arrow_schema)


def test_folder_holds_nothing_else() -> None:
    """Every CSV is declared and every declared table has its CSV."""
    assert {path.stem for path in FOLDER.glob("*.csv")} == set(REFERENCE)


@pytest.mark.parametrize(
    ("name", "change", "place", "why"),
    [
        ("models", put(3, "layers", "x"), (3, "layers"), "'x' is not a whole number"),
        ("links", put(3, "link", "pcie3-x16"), (3, "link"), "the same as in row 2"),
        ("platforms", put(2, "accelerator", "h1000"), (2, "accelerator"), "'h1000' is not in accelerators.csv"),
        ("headlines", put(2, "model", "llama-9"), (2, "model"), "'llama-9' is not in models.csv"),
        ("headlines", put(2, "model", ""), (2, "model"), "one model or one platform"),
        ("headlines", put(2, "link", "pcie5-x16"), (2, "model"), "one model or one platform"),
        ("headlines", put(10, "link", "nvlink-c2c"), (10, "model, accelerator"), "is no platform"),
        ("headlines", put(10, "accelerator", "h100-sxm"), (10, "model, accelerator"), "second-hand"),
        ("paper_models", put(2, "active_params", ""), (2, "active_params"), "is empty"),
        ("transfer_rules", put(2, "least_bytes_per_s", "5e9"), (2, "least_bytes_per_s"), "5e+09 is above most_bytes"),
        ("transfer_rules", put(2, "least_copy_bytes", "65e3"), (2, "least_copy_bytes"), "65000 is above most_copy"),
        ("published", put(2, "tolerance", "-0.1"), (2, "tolerance"), "is below 0"),
    ],
)
def test_error_names_file_row_and_column(
    folder: Path, name: str, change: Callable[[Rows], object], place: tuple[int, str], why: str
) -> None:
    """In kappa's own files as in a user's."""
    path = spoil(folder, name, change)
    with refused(ErrorCode.BAD_ROW, path, "row {}, column {}: ".format(*place), why):
        load_reference(name, folder)


def test_second_hand_model_is_no_headline(folder: Path) -> None:
    """A row known only second-hand is never a default."""
    spoil(folder, "models", put(2, "confidence", "secondary"))
    with refused(ErrorCode.BAD_ROW, folder / "headlines.csv", "second-hand"):
        load_reference("headlines", folder)


def test_missing_file_is_told(folder: Path) -> None:
    """The message names the file."""
    (folder / "links.csv").unlink()
    with refused(ErrorCode.NOT_READABLE, folder / "links.csv"):
        load_reference("links", folder)


def test_mixtures_of_experts_use_a_part_of_their_parameters() -> None:
    """is_moe is what active and total parameters say, and never a guess."""
    for row in load_reference("models").to_pylist():
        if row["active_params"] is not None:
            assert row["is_moe"] == (row["active_params"] < row["total_params"])


def test_vocabularies() -> None:
    """Llama 3 and Qwen 2.5 to 3 models are counted with their own vocabulary, all others by proxy."""
    for row in load_reference("models").to_pylist():
        own = {"llama-3": "llama-3.1", "qwen2.5": "qwen3", "qwen3-": "qwen3"}
        tokenizer = next((name for start, name in own.items() if row["model"].startswith(start)), None)
        assert (row["tokenizer"], row["is_tokenizer_proxy"]) == (tokenizer or "llama-3.1", tokenizer is None)


@pytest.mark.parametrize(("generation", "giga_transfers"), [(3, 8), (4, 16), (5, 32)])
def test_pcie_peaks_are_arithmetic(generation: int, giga_transfers: int) -> None:
    """One direction of 16 lanes with 128b/130b coding."""
    peaks = {row["link"]: row["peak_bytes_per_s"] for row in load_reference("links").to_pylist()}
    # 32e9 x 16 / 8 x 128 / 130 = 63.015e9
    expected = giga_transfers * 1e9 * 16 / 8 * 128 / 130
    assert peaks[f"pcie{generation}-x16"] == pytest.approx(expected, rel=1e-4)


def test_dense_is_half_of_sparse() -> None:
    """A dense column that holds the vendor's headline would be twice too high."""
    for row in load_reference("accelerators").to_pylist():
        for dtype in ("bf16", "fp8"):
            sparse = row[f"sparse_{dtype}_flop_per_s"]
            if sparse is not None:
                # 1979 / 989.5 = 2; the L40S sheet rounds 733 / 362 = 2.02
                assert sparse / row[f"dense_{dtype}_flop_per_s"] == pytest.approx(2, rel=0.02)
        assert (row["measured_bf16_flop_per_s"] or 0) < row["dense_bf16_flop_per_s"]


def test_published_sets_state_their_full_size() -> None:
    """One row of metric `records` for each workload tells what the full set is."""
    sizes = {
        row["workload"]: row["value"]
        for row in load_reference("published").to_pylist()
        if (row["metric"], row["statistic"]) == ("records", "count")
    }
    # 32,747 + 3,461 + 10,557 = 46,765
    assert sizes == {"sharegpt": 90_665, "sharegpt-v3": 94_145, "narrativeqa": 46_765, "finqa": 7_437}


def test_measurements_and_misprints_are_not_asserted() -> None:
    """An asserted figure has a tolerance; power, tokens per iteration and what was measured have none."""
    for row in load_reference("published").to_pylist():
        assert row["is_asserted"] == (row["tolerance"] is not None)
        if row["metric"] in ("power_w", "tokens_per_iteration", "pcie_overhead", "transfer_share"):
            assert not row["is_asserted"]
        if re.search(r"measured|misprint|cut to", row["quantity"]):
            assert not row["is_asserted"]


@pytest.mark.parametrize("name", REFERENCE)
def test_no_row_without_its_columns(folder: Path, name: str) -> None:
    """A column's name says the unit: a figure under another name is refused; so is a fact without source or day."""
    path = folder / f"{name}.csv"
    header, rest = path.read_text("utf8").split("\n", 1)
    for column in REFERENCE[name].names:
        renamed = re.sub(rf"(^|,){column}(,|$)", rf"\1x_{column}\2", header.strip())
        path.write_text(f"{renamed}\n{rest}", "utf8")
        with pytest.raises(
            KappaError, match=f"row 1, column {column}, x_{column}: missing .*; unknown .*; the columns"
        ):
            load_reference(name, folder)
    dated = {field.name for field in REFERENCE[name].fields if not field.nullable} & {"source", "retrieved"}
    assert len(dated) == (0 if name in NAMES_ALONE else 2)


@pytest.mark.parametrize("name", REFERENCE)
def test_every_figure_has_its_unit(name: str) -> None:
    """A number has a unit, and one that is no plain count has it in the column's name too."""
    ends = {
        "bytes/s": "_bytes_per_s", "FLOP/s": "_flop_per_s", "bytes": "_bytes", "tokens": "_tokens", "W": "_w",
        "s": "_s", "FLOP/byte": "_flop_per_byte", "bytes/token": "_bytes_per_token",
    }  # fmt: skip
    for field in REFERENCE[name].fields:
        if pa.types.is_floating(field.type) or pa.types.is_integer(field.type):
            assert field.unit, field.name
            assert ends.get(field.unit, "").strip("_") in field.name, field.name


def test_rules_of_thumb_make_no_link() -> None:
    """What is no machine's figure stands in a table of its own, second-hand, and no link has its name."""
    rules = load_reference("transfer_rules").to_pylist()
    assert {row["about"] for row in rules} == {"transfer-size", "pageable"}
    assert {row["confidence"] for row in rules} == {"secondary"}
    assert not {row["rule"] for row in rules} & set(load_reference("links")["link"].to_pylist())
    # 0.2 to 0.5 of pinned copies
    share = next(row for row in rules if row["rule"] == "pageable-in-containers")
    assert (share["least_share_of_pinned"], share["most_share_of_pinned"]) == (0.2, 0.5)


def test_every_accelerator_has_a_platform() -> None:
    """TPUs too: their host links are known as round figures, and say so."""
    platforms = load_reference("platforms").to_pylist()
    physical = {row["accelerator"]: row for row in platforms if row["basis"] == "physical"}
    # Their makers publish no way to the host.
    unknown = {"tpu7x", "trainium3", "mi455x"}
    assert physical.keys() | unknown == set(load_reference("accelerators")["accelerator"].to_pylist())
    assert not physical.keys() & unknown
    assert {physical[name]["confidence"] for name in ("tpu-v5e", "tpu-v6e")} == {"low"}


def test_second_hand_parameters_are_marked() -> None:
    """Rounded counts that were read in no config make a row second-hand."""
    rows = {row["model"]: row for row in load_reference("models").to_pylist()}
    for name, total, active in (
        ("deepseek-v4-flash", 284e9, 13e9), ("deepseek-v4-pro", 1.6e12, 49e9), ("kimi-k3", 2.8e12, 104e9),
    ):  # fmt: skip
        assert (rows[name]["total_params"], rows[name]["active_params"]) == (total, active)
        assert rows[name]["confidence"] == "secondary"
        assert "original not opened" in rows[name]["source"]

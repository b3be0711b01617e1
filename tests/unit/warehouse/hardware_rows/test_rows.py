"""The sourced tables load, agree with arithmetic and with each other, and refuse what is not usable."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from warehouse.declared.hardware_fields import CONFIDENCES
from warehouse.errors import KappaError
from warehouse.formulas import kappa
from warehouse.hardware_rows.reference_tables import REFERENCE
from warehouse.hardware_rows.rows import FOLDER, load_reference

# Choices of what is drawn: they state no figure and no fact.
NAMES_ALONE = {"headlines"}
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
    """Each has rows and the declared schema; what is measured waits for a user's machine."""
    table = load_reference(name)
    assert bool(table.num_rows) == (name not in ("measured", "measurements"))
    assert table.schema.equals(REFERENCE[name].arrow_schema)


def test_folder_holds_nothing_else() -> None:
    """Every CSV is declared and every declared table has its CSV."""
    assert {path.stem for path in FOLDER.glob("*.csv")} == set(REFERENCE)


@pytest.mark.parametrize(
    ("name", "change", "place", "why"),
    [
        ("models", put(3, "layers", "x"), (3, "layers"), "'x' is not a whole number"),
        ("models", put(2, "source", " "), (2, "source"), "is empty"),
        ("models", put(2, "retrieved", ""), (2, "retrieved"), "is empty"),
        ("models", put(2, "retrieved", "29.11.2026"), (2, "retrieved"), "is not a day"),
        ("models", put(4, "confidence", "sure"), (4, "confidence"), "is not one of high, medium"),
        ("models", put(4, "is_moe", "yes"), (4, "is_moe"), "'yes' is not true or false"),
        (
            "accelerators",
            put(5, "dense_bf16_flop_per_s", "312 TFLOP"),
            (5, "dense_bf16_flop_per_s"),
            "'312 TFLOP' is not a number in FLOP/s, nor one like 989.5TFLOP/s",
        ),
        ("accelerators", put(5, "dense_bf16_flop_per_s", "inf"), (5, "dense_bf16_flop_per_s"), "is not a number"),
        ("accelerators", put(5, "hbm_bytes", "-1"), (5, "hbm_bytes"), "is below 1e+09 bytes"),
        ("links", put(2, "peak_bytes_per_s", "0"), (2, "peak_bytes_per_s"), "is below 1e+08 bytes/s"),
        ("links", put(3, "link", "pcie3-x16"), (3, "link"), "the same as in row 2"),
        ("platforms", put(2, "accelerator", "h1000"), (2, "accelerator"), "'h1000' is not in accelerators.csv"),
        ("platforms", put(2, "basis", "measured"), (2, "basis"), "is not one of paper, physical"),
        ("platforms", put(2, "basis", "paper"), (2, "accelerator"), "not among the paper's inputs"),
        ("headlines", put(2, "model", "llama-9"), (2, "model"), "'llama-9' is not in models.csv"),
        ("headlines", put(2, "model", ""), (2, "model"), "one model or one platform"),
        ("headlines", put(2, "link", "pcie5-x16"), (2, "model"), "one model or one platform"),
        ("headlines", put(10, "link", "nvlink-c2c"), (10, "model, accelerator"), "is no platform"),
        ("headlines", put(10, "accelerator", "h100-sxm"), (10, "model, accelerator"), "second-hand"),
        ("paper_models", put(2, "active_params", ""), (2, "active_params"), "is empty"),
        ("paper_links", put(2, "bytes_per_s", "fast"), (2, "bytes_per_s"), "'fast' is not a number"),
        ("published", put(2, "tolerance", "-0.1"), (2, "tolerance"), "is below 0"),
    ],
)
def test_error_names_file_row_and_column(
    folder: Path, name: str, change: Callable[[Rows], object], place: tuple[int, str], why: str
) -> None:
    """What is wrong is told so that a person finds it."""
    path = spoil(folder, name, change)
    with pytest.raises(KappaError) as caught:
        load_reference(name, folder)
    assert caught.value.what == f"{path} is not usable"
    assert caught.value.why.startswith("row {}, column {}: ".format(*place))
    assert why in caught.value.why


def test_second_hand_model_is_no_headline(folder: Path) -> None:
    """A row known only second-hand is never a default."""
    spoil(folder, "models", put(2, "confidence", "secondary"))
    with pytest.raises(KappaError, match="known only second-hand"):
        load_reference("headlines", folder)


def test_missing_and_unknown_columns_are_named(folder: Path) -> None:
    """The header has to be the declared one."""
    path = folder / "links.csv"
    path.write_text(path.read_text("utf-8").replace("source", "origin", 1), "utf-8")
    with pytest.raises(KappaError, match=r"row 1, column origin, source: missing 'source'; unknown 'origin'; "):
        load_reference("links", folder)


@pytest.mark.parametrize("text", ["", "link,bytes_per_s,source\npcie4-x16,1\n", 'link,bytes_per_s,source\n\'a","b\n'])
def test_broken_csv_is_told(folder: Path, text: str) -> None:
    """An empty file, a short line and a stray quote are errors, not rows."""
    (folder / "paper_links.csv").write_text(text, "utf-8")
    with pytest.raises(KappaError, match=r"paper_links\.csv"):
        load_reference("paper_links", folder)


def test_missing_file_is_told(folder: Path) -> None:
    """The message names the file."""
    (folder / "links.csv").unlink()
    with pytest.raises(KappaError, match=r"links\.csv cannot be read"):
        load_reference("links", folder)


def test_kv_bytes_follow_from_the_shape() -> None:
    """The bytes that are typed in are those of the formula, for every model where they are constant."""
    seen = 0
    for row in load_reference("models").to_pylist():
        if row["kv_bytes_per_token"] is None:
            assert row["attention"] not in ("gqa", "mla")
            continue
        heads = (row["layers"], row["kv_heads"], row["head_dim"], row["v_head_dim"])
        latent = (row["layers"], row["kv_lora_rank"], row["qk_rope_head_dim"])
        # gqa: layers x kv_heads x (head_dim + v_head_dim) x 2; mla: layers x (rank + rope) x 2
        bytes_ = (
            kappa.gqa_kv_bytes_per_token(*heads, 2)
            if row["attention"] == "gqa"
            else kappa.mla_kv_bytes_per_token(*latent, 2)
        )
        assert row["kv_bytes_per_token"] == row["marginal_kv_bytes_per_token"] == bytes_
        assert row["fixed_state_bytes"] == row["indexer_bytes_per_token"] == 0
        seen += 1
    assert seen > 20


def test_growing_part_of_a_window_follows_from_its_full_layers() -> None:
    """A sliding layer stops growing at its window: what is left is the full layers, and the windows are the state."""
    for row in load_reference("models").to_pylist():
        if row["attention"] not in ("gqa+swa", "gqa+chunked"):
            continue
        one_layer = row["kv_heads"] * (row["head_dim"] + row["v_head_dim"]) * 2
        # gpt-oss-20b: 12 full layers x 8 x 128 x 2 = 24,576; 12 windows of 128 tokens x 2,048 bytes = 3,145,728
        assert row["marginal_kv_bytes_per_token"] == row["full_attention_layers"] * one_layer
        assert row["fixed_state_bytes"] == row["sliding_layers"] * row["sliding_window_tokens"] * one_layer
        assert row["layers"] == row["full_attention_layers"] + row["sliding_layers"]


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


def test_links_never_exceed_their_peak() -> None:
    """A measurement above the peak is a unit error or a sum of two directions."""
    for row in load_reference("links").to_pylist():
        for name in ("sustained_bytes_per_s", "to_host_bytes_per_s"):
            assert (row[name] or 0) <= row["peak_bytes_per_s"]
        assert (row["duplex_bytes_per_s"] or 0) <= 2 * row["peak_bytes_per_s"]


def test_platforms_are_no_surer_than_their_parts() -> None:
    """A physical platform is as sure as its accelerator and its link at most."""
    parts = {
        name: {row[name]: row["confidence"] for row in load_reference(f"{name}s").to_pylist()}
        for name in ("accelerator", "link")
    }
    for row in load_reference("platforms").to_pylist():
        if row["basis"] == "physical":
            of_parts = [CONFIDENCES.index(parts[name][row[name]]) for name in parts]
            assert CONFIDENCES.index(row["confidence"]) >= max(of_parts)


def test_paper_platforms_have_paper_inputs() -> None:
    """Each name in a paper platform has its row in the paper's own tables."""
    known = {name: set(load_reference(f"paper_{name}s")[name].to_pylist()) for name in ("accelerator", "link")}
    paper = [row for row in load_reference("platforms").to_pylist() if row["basis"] == "paper"]
    assert paper
    for row in paper:
        assert row["accelerator"] in known["accelerator"]
        assert row["link"] in known["link"]


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


@pytest.mark.parametrize("name", sorted(set(REFERENCE) - NAMES_ALONE))
@pytest.mark.parametrize("column", ["source", "retrieved"])
def test_no_row_without_a_source_and_a_day(folder: Path, name: str, column: str) -> None:
    """Each table of facts has both columns, and neither the column nor a cell of it can be left out."""
    path = folder / f"{name}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    place = header.index(column)
    without = [[*line[:place], *line[place + 1 :]] for line in (header, *lines)]
    _write(path, without)
    with pytest.raises(KappaError, match=f"row 1, column {column}: missing '{column}'"):
        load_reference(name, folder)
    row = lines[0] if lines else ["1"] * len(header)
    _write(path, [header, [*row[:place], "", *row[place + 1 :]]])
    with pytest.raises(KappaError, match=f"row 2, column {column}: is empty" if lines else "row 2, column"):
        load_reference(name, folder)


@pytest.mark.parametrize("name", REFERENCE)
def test_no_figure_without_its_column(folder: Path, name: str) -> None:
    """A column's name says the unit: a figure under another name is refused, in kappa's files and in a user's."""
    path = folder / f"{name}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    for field in REFERENCE[name].fields:
        if not pa.types.is_floating(field.type):
            continue
        renamed = [f"x_{column}" if column == field.name else column for column in header]
        _write(path, [renamed, *lines])
        with pytest.raises(KappaError, match=f"missing '{field.name}'; unknown 'x_{field.name}'"):
            load_reference(name, folder)


def _write(path: Path, lines: list[list[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(lines)


@pytest.mark.parametrize("name", REFERENCE)
def test_every_figure_has_its_unit(name: str) -> None:
    """A number has a unit, and one that is no plain count has it in the column's name too."""
    ends = {
        "bytes/s": "_bytes_per_s", "FLOP/s": "_flop_per_s", "bytes": "_bytes", "tokens": "_tokens", "W": "_w",
        "FLOP/byte": "_flop_per_byte", "bytes/token": "_bytes_per_token",
    }  # fmt: skip
    for field in REFERENCE[name].fields:
        if pa.types.is_floating(field.type) or pa.types.is_integer(field.type):
            assert field.unit, field.name
            assert ends.get(field.unit, "").strip("_") in field.name, field.name


@pytest.mark.parametrize("name", sorted(set(REFERENCE) - {"published"}))
def test_every_figure_has_bounds_and_their_reason(name: str) -> None:
    """Only the paper's figures, which are of every kind, share one column without bounds."""
    numbers = [f for f in REFERENCE[name].fields if pa.types.is_floating(f.type) or pa.types.is_integer(f.type)]
    assert [f.name for f in numbers if f.minimum is None or f.maximum is None or not f.why_bounds] == []


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
    assert physical.keys() == set(load_reference("accelerators")["accelerator"].to_pylist())
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

"""kappa_crit of both bases: the printed values of the paper with their arithmetic, and the physical basis by hand."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipelines.hardware.machines import physical_machine, read_sources
from pipelines.hardware.ratios import hardware_tables, ratios
from warehouse.declared.tables import TABLES
from warehouse.hardware_rows.rows import FOLDER, load_reference

PAPER_ENGINE = "vllm-0.10.1-lmcache-0.3.5"


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    """Return the hardware tables, built once."""
    return hardware_tables()


def crit(tables: dict[str, pa.Table], **wanted: str) -> dict[str, Any]:
    """Return the one row of kappa_crit with these names."""
    wanted = {"kv_dtype": "bf16"} | wanted
    rows = [row for row in tables["kappa_crit"].to_pylist() if wanted.items() <= row.items()]
    assert len(rows) == 1
    return dict(rows[0])


def test_tables_conform(tables: dict[str, pa.Table]) -> None:
    """Every table has the declared schema and a unique key."""
    for name in tables.keys() & TABLES.keys():
        table = tables[name]
        assert table.schema.equals(TABLES[name].arrow_schema)
        keys = {tuple(row[column] for column in TABLES[name].key) for row in table.to_pylist()}
        assert len(keys) == table.num_rows


def test_every_platform_meets_every_model_of_its_basis(tables: dict[str, pa.Table]) -> None:
    """One row a model, platform and kv_dtype."""
    bases = tables["platforms"]["basis"].to_pylist()
    # physical platforms x all models x 2 dtypes + paper platforms x the 5 models of the paper x 2 dtypes
    expected = bases.count("physical") * tables["models"].num_rows * 2 + bases.count("paper") * 5 * 2
    assert tables["kappa_crit"].num_rows == expected


@pytest.mark.parametrize(
    ("model", "printed", "ours"),
    [
        # 2 x 70e9 / 328e3 = 0.4268e6: the paper cuts it to 0.42
        ("llama-3.1-70b", 0.42e6, 0.4268e6),
        # 2 x 405e9 / 516e3 = 1.5698e6: a misprint, its own inputs give 1.57
        ("llama-3.1-405b", 1.42e6, 1.5698e6),
        # 2 x 3.3e9 / 98e3 = 0.06735e6, printed with two decimals
        ("qwen3-30b-a3b", 0.07e6, 0.06735e6),
        # 2 x 22e9 / 192e3 = 0.2292e6
        ("qwen3-235b-a22b", 0.23e6, 0.2292e6),
        # 2 x 37e9 / 70e3 = 1.0571e6
        ("deepseek-v3", 1.06e6, 1.0571e6),
    ],
)
def test_kappa_m_of_the_paper(tables: dict[str, pa.Table], model: str, printed: float, ours: float) -> None:
    """The inputs give the printed kappa_M to its two decimals, but for the two misprints, which are told apart."""
    row = crit(tables, model=model, accelerator="h100-sxm", link="pcie5-x16", basis="paper")
    assert row["kappa_m_flop_per_byte"] == pytest.approx(ours, rel=2e-4)
    is_misprint = model in ("llama-3.1-70b", "llama-3.1-405b")
    assert (f"{ours / 1e6:.2f}" != f"{printed / 1e6:.2f}") == is_misprint
    published = next(
        row for row in load_reference("published").to_pylist() if row["quantity"].startswith(f"kappa_M of {model}")
    )
    assert (published["value"], published["is_asserted"]) == (printed, not is_misprint)


@pytest.mark.parametrize(
    ("accelerator", "link", "printed"),
    [
        ("b200-sxm", "pcie4-x16", 6.7e-6),  # 33.554e9 / 5000e12 = 6.71e-6
        ("b200-sxm", "pcie5-x16", 13.5e-6),  # 67.109e9 / 5000e12 = 13.42e-6
        ("h100-sxm", "pcie4-x16", 17e-6),  # 33.554e9 / 1979e12 = 16.96e-6
        ("h100-sxm", "pcie5-x16", 34e-6),  # 67.109e9 / 1979e12 = 33.91e-6
        ("a100-sxm-80gb", "pcie4-x16", 53.8e-6),  # 33.554e9 / 624e12 = 53.77e-6
        ("a100-sxm-80gb", "pcie5-x16", 107.5e-6),  # 67.109e9 / 624e12 = 107.55e-6
    ],
)
def test_kappa_hw_of_the_paper(tables: dict[str, pa.Table], accelerator: str, link: str, printed: float) -> None:
    """All six cells agree to 0.6 %; a clean 64 GB/s would leave 4.5 to 5.2 %."""
    row = crit(tables, model="llama-3.1-70b", accelerator=accelerator, link=link, basis="paper")
    assert row["kappa_hw_byte_per_flop"] == pytest.approx(printed, rel=0.006)
    assert row["kappa_hw_byte_per_flop"] / 1.048576 < printed * 0.956


@pytest.mark.parametrize(
    ("model", "platform", "printed", "tolerance"),
    [
        # 0.42e6 x 34e-6 = 14.28
        ("llama-3.1-70b", ("h100-sxm", "pcie5-x16"), 14.3, 0.002),
        # 0.42e6 x 15.729e9 / 1979e12 = 3.338, printed 3.3
        ("llama-3.1-70b", ("h100-sxm", PAPER_ENGINE), 3.3, 0.05 / 3.3),
        # 0.23e6 x 34e-6 = 7.82
        ("qwen3-235b-a22b", ("h100-sxm", "pcie5-x16"), 7.8, 0.003),
        # 0.23e6 x 7.948e-6 = 1.828, printed 1.8
        ("qwen3-235b-a22b", ("h100-sxm", PAPER_ENGINE), 1.8, 0.05 / 1.8),
        # 1.42e6 x 53.8e-6 = 76.4: the upper end of the printed range, with the misprinted kappa_M
        ("llama-3.1-405b", ("a100-sxm-80gb", "pcie4-x16"), 76, 0.01),
        # 0.07e6 x 13.5e-6 = 0.945, printed 1: the lower end
        ("qwen3-30b-a3b", ("b200-sxm", "pcie5-x16"), 1, 0.06),
        # 0.23e6 x 900e9 / 5000e12 = 41.4
        ("qwen3-235b-a22b", ("b200-sxm", "nvlink-c2c"), 41.5, 0.01),
        # 1.06e6 x 1.8e-4 = 190.8
        ("deepseek-v3", ("b200-sxm", "nvlink-c2c"), 191, 0.01),
        # 0.23e6 x 8000e9 / 5000e12 = 368
        ("qwen3-235b-a22b", ("b200-sxm", "unified-hbm"), 370, 0.01),
        # 1.06e6 x 1.6e-3 = 1696
        ("deepseek-v3", ("b200-sxm", "unified-hbm"), 1700, 0.01),
    ],
)
def test_kappa_crit_of_the_paper(
    tables: dict[str, pa.Table], model: str, platform: tuple[str, str], printed: float, tolerance: float
) -> None:
    """Products of the printed entries: within 1 %, or equal after rounding to the printed digits."""
    row = crit(tables, model=model, accelerator=platform[0], link=platform[1], basis="paper")
    assert row["kappa_crit"] == pytest.approx(printed, rel=tolerance)


@pytest.mark.parametrize(
    ("model", "accelerator", "link", "exact"),
    [
        # kappa_M x kappa_HW as printed, in units of 1e6 and 1e-6
        ("llama-3.1-70b", "h100-sxm", "pcie5-x16", 0.42 * 34),
        ("llama-3.1-70b", "h100-sxm", "pcie4-x16", 0.42 * 17),
        ("qwen3-235b-a22b", "h100-sxm", "pcie5-x16", 0.23 * 34),
        ("llama-3.1-405b", "a100-sxm-80gb", "pcie4-x16", 1.42 * 53.8),
        ("deepseek-v3", "a100-sxm-80gb", "pcie5-x16", 1.06 * 107.5),
        ("qwen3-30b-a3b", "b200-sxm", "pcie5-x16", 0.07 * 13.5),
        ("qwen3-30b-a3b", "b200-sxm", "pcie4-x16", 0.07 * 6.7),
        # no kappa_HW is printed: 15 x 1.048576 / 1979 and 900 / 5000 and 8000 / 5000, times 1000
        ("llama-3.1-70b", "h100-sxm", PAPER_ENGINE, 0.42 * 15.72864 / 1979 * 1000),
        ("deepseek-v3", "b200-sxm", "nvlink-c2c", 1.06 * 900 / 5000 * 1000),
        ("deepseek-v3", "b200-sxm", "unified-hbm", 1.06 * 8000 / 5000 * 1000),
    ],
)
def test_the_paper_multiplies_printed_entries(
    tables: dict[str, pa.Table], model: str, accelerator: str, link: str, exact: float
) -> None:
    """kappa_crit is the product of printed entries where both are printed; kappa_HW itself stays unrounded."""
    row = crit(tables, model=model, accelerator=accelerator, link=link, basis="paper")
    assert row["kappa_crit"] == pytest.approx(exact, rel=1e-12)
    half = crit(tables, model=model, accelerator=accelerator, link=link, basis="paper", kv_dtype="fp8")
    assert half["kappa_crit"] == pytest.approx(2 * exact, rel=1e-12)


def test_printed_kappa_m_stands_once(tables: dict[str, pa.Table]) -> None:
    """What the paper's basis multiplies is what `published` says that it printed."""
    del tables
    published = {row["statistic"]: row["value"] for row in load_reference("published").to_pylist()}
    for row in load_reference("paper_models").to_pylist():
        assert row["printed_kappa_m_flop_per_byte"] == published[f"{row['model']}//"]


def test_asserted_hardware_figures_are_met(tables: dict[str, pa.Table]) -> None:
    """Every asserted row of `published` that names hardware is within its own tolerance of the paper basis."""
    seen = 0
    for row in load_reference("published").to_pylist():
        if not row["is_asserted"] or row["metric"] not in TABLES["kappa_crit"].names:
            continue
        names = zip(("model", "accelerator", "link"), row["statistic"].split("/"), strict=True)
        wanted = {"basis": "paper", "kv_dtype": "bf16"} | {name: value for name, value in names if value}
        ours = {r[row["metric"]] for r in tables["kappa_crit"].to_pylist() if wanted.items() <= r.items()}
        assert len(ours) == 1
        assert ours.pop() == pytest.approx(row["value"], rel=row["tolerance"])
        seen += 1
    # 3 kappa_M + 6 kappa_HW + 10 kappa_crit
    assert seen == 19


def test_physical_dense_by_hand(tables: dict[str, pa.Table]) -> None:
    """Sustained compute, measured bandwidth, exact bytes."""
    row = crit(tables, model="llama-3.1-70b", accelerator="h100-sxm", link="pcie5-x16", basis="physical")
    # 2 x 70,553,706,496 / 327,680 = 430,626; 54.4e9 / (0.55 x 989.5e12) = 9.9959e-5; product 43.04
    assert row["kappa_m_flop_per_byte"] == pytest.approx(430_626, abs=1)
    assert row["kappa_crit"] == pytest.approx(43.04, abs=0.01)


def test_physical_moe_by_hand(tables: dict[str, pa.Table]) -> None:
    """A mixture of experts sustains a quarter of the peak."""
    row = crit(tables, model="qwen3-235b-a22b", accelerator="h100-sxm", link="pcie5-x16", basis="physical")
    # 2 x 22,190,763,520 / 192,512 = 230,539; 54.4e9 / (0.25 x 989.5e12) = 2.1991e-4; product 50.70; eight GPUs that
    # hold it share four KV heads: half
    assert (row["tensor_parallel"], row["kappa_crit"]) == (8, pytest.approx(25.35, abs=0.01))
    sources = read_sources()
    # 0.25 x 1000 = 250, 0.55 x 1000 = 550
    names = ("qwen3-235b-a22b", "llama-3.1-70b")
    assert [sources.fraction(sources.models[name]) for name in names] == [0.25, 0.55]


def test_unmeasured_link_uses_its_peak() -> None:
    """A link without a measurement stands with its peak; with one, the peak does not matter."""
    sources = read_sources()
    model = replace(sources.models["llama-3.1-70b"], kv_bytes_per_token=100.0, flops_per_token=1000.0)
    accelerator = replace(sources.accelerators["h100-sxm"], dense_bf16_flop_per_s=1000.0)
    bare = replace(sources.links["pcie5-x16"], peak_bytes_per_s=110.0, sustained_bytes_per_s=None)
    # 1000 / 100 = 10; 110 / (0.55 x 1000) = 0.2; 10 x 0.2 = 2; at 55 bytes/s half of it
    assert ratios(model, physical_machine(accelerator, bare.bytes_per_s, 0.55), "bf16").kappa_crit == pytest.approx(2)
    measured = replace(bare, sustained_bytes_per_s=55.0)
    assert ratios(model, physical_machine(accelerator, measured.bytes_per_s, 0.55), "bf16").kappa_crit == pytest.approx(
        1
    )


@pytest.mark.parametrize("basis", ["paper", "physical"])
def test_fp8_doubles_kappa_crit(tables: dict[str, pa.Table], basis: str) -> None:
    """Half the bytes for the same work."""
    names = {"model": "deepseek-v3", "accelerator": "h100-sxm", "link": "pcie5-x16", "basis": basis}
    bf16, fp8 = crit(tables, **names), crit(tables, **names, kv_dtype="fp8")
    # 2 / 1 = 2
    for column in ("kappa_m_flop_per_byte", "kappa_crit"):
        assert fp8[column] == pytest.approx(2 * bf16[column])


def test_bytes_that_are_not_constant_give_no_kappa_crit(tables: dict[str, pa.Table]) -> None:
    """A sliding window, a linear state, an indexer or unknown parameters leave kappa_crit empty; nothing else does."""
    constant = {
        row["model"]: None not in (row["kv_bytes_per_token"], row["active_params"])
        for row in tables["models"].to_pylist()
    }
    assert {name for name in ("gpt-oss-120b", "qwen3-next-80b-a3b", "deepseek-v3.2") if constant[name]} == set()
    for row in tables["kappa_crit"].to_pylist():
        assert (row["kappa_crit"] is not None) == constant[row["model"]]


def test_paper_basis_does_not_read_the_physical_rows(tmp_path: Path, tables: dict[str, pa.Table]) -> None:
    """Other physical figures change the physical rows of kappa_crit alone."""
    folder = shutil.copytree(FOLDER, tmp_path / "reference")
    changes = (("accelerators", ",989500000000000,", ",990000000000000,"), ("links", "54400000000", "50000000000"))
    for name, old, new in changes:
        path = folder / f"{name}.csv"
        path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
    names = {"model": "llama-3.1-70b", "accelerator": "h100-sxm", "link": "pcie5-x16"}
    changed = hardware_tables(folder)
    assert crit(changed, **names, basis="paper") == crit(tables, **names, basis="paper")
    assert crit(changed, **names, basis="physical") != crit(tables, **names, basis="physical")


def test_required_rows_exist(tables: dict[str, pa.Table]) -> None:
    """The models, accelerators and links that the program promises."""
    models = set(tables["models"]["model"].to_pylist())
    assert models >= {"llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "qwen3-8b", "qwen3-32b"}
    assert models >= {"qwen3-30b-a3b", "qwen3-235b-a22b", "deepseek-v3"}
    accelerators = set(tables["accelerators"]["accelerator"].to_pylist())
    assert accelerators >= {"a100-sxm-80gb", "h100-sxm", "h200-sxm", "gh200-96gb", "b200-sxm", "gb200"}
    links = set(tables["links"]["link"].to_pylist())
    assert links >= {"pcie3-x16", "pcie4-x16", "pcie5-x16", "pcie6-x16", "nvlink-c2c"}

"""Every number that the paper prints about hardware and serving, with what reproduces it and what is left over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assets.docs.sections import paper_values
from reports.markdown import table
from reports.sections.paper import grids_of
from warehouse.hardware_rows.rows import load_reference

ENGINE = "vllm-0.10.1-lmcache-0.3.5"
DOCS = Path(__file__).parents[4] / "docs" / "kappa-crit.md"

# metric, statistic, printed, reproduced, residual in %, verdict; the arithmetic stands above each group.
VALUES = [
    # 2 N / B: 140e9 / 328e3, 810e9 / 516e3, 6.6e9 / 98e3, 44e9 / 192e3, 74e9 / 70e3
    ("kappa_m_flop_per_byte", "llama-3.1-70b//", 420e3, 426_829, 1.626, "differs"),
    ("kappa_m_flop_per_byte", "llama-3.1-405b//", 1420e3, 1_569_767, 10.547, "differs"),
    ("kappa_m_flop_per_byte", "qwen3-30b-a3b//", 70e3, 67_347, -3.790, "equal when rounded"),
    ("kappa_m_flop_per_byte", "qwen3-235b-a22b//", 230e3, 229_167, -0.362, "within 1 %"),
    ("kappa_m_flop_per_byte", "deepseek-v3//", 1060e3, 1_057_143, -0.270, "within 1 %"),
    # exact bytes over KB of 1000: 126 x 2 x 8 x 128 x 2, 80 x ..., 94 x 2 x 4 x 128 x 2, 48 x ..., 61 x 576 x 2
    ("kv_bytes_per_token", "llama-3.1-405b//", 516e3, 516_096, 0.019, "within 1 %"),
    ("kv_bytes_per_token", "llama-3.1-70b//", 328e3, 327_680, -0.098, "within 1 %"),
    ("kv_bytes_per_token", "qwen3-235b-a22b//", 192e3, 192_512, 0.267, "within 1 %"),
    ("kv_bytes_per_token", "qwen3-30b-a3b//", 98e3, 98_304, 0.310, "within 1 %"),
    ("kv_bytes_per_token", "deepseek-v3//", 70e3, 70_272, 0.389, "within 1 %"),
    # alpha x 65,537 / 2 / 2 N: 8,257,536 over 810e9, 2,621,440 over 140e9, 3,080,192 over 44e9, each x 32,768.5
    ("attention_share", "llama-3.1-405b//", 0.1, 0.334063, 234.063, "differs"),
    ("attention_share", "llama-3.1-70b//", 0.1, 0.613576, 513.576, "differs"),
    ("attention_share", "qwen3-235b-a22b//", 0.1, 2.293937, 2193.937, "differs"),
    # 33.554432e9 or 67.108864e9 over 5000, 1979 and 624 TFLOP/s
    ("kappa_hw_byte_per_flop", "/b200-sxm/pcie4-x16", 6.7e-6, 6.7109e-6, 0.163, "within 1 %"),
    ("kappa_hw_byte_per_flop", "/b200-sxm/pcie5-x16", 13.5e-6, 13.4218e-6, -0.579, "within 1 %"),
    ("kappa_hw_byte_per_flop", "/h100-sxm/pcie4-x16", 17e-6, 16.9552e-6, -0.263, "within 1 %"),
    ("kappa_hw_byte_per_flop", "/h100-sxm/pcie5-x16", 34e-6, 33.9105e-6, -0.263, "within 1 %"),
    ("kappa_hw_byte_per_flop", "/a100-sxm-80gb/pcie4-x16", 53.8e-6, 53.7732e-6, -0.050, "within 1 %"),
    ("kappa_hw_byte_per_flop", "/a100-sxm-80gb/pcie5-x16", 107.5e-6, 107.5463e-6, 0.043, "within 1 %"),
    # 0.42e6 x 34e-6, both as printed; no kappa_HW is printed at 15 GB/s: x 15.72864e9 / 1979e12 = 7.94777e-6
    ("kappa_crit", "llama-3.1-70b/h100-sxm/pcie5-x16", 14.3, 14.28, -0.140, "within 1 %"),
    ("kappa_crit", f"llama-3.1-70b/h100-sxm/{ENGINE}", 3.3, 3.33806, 1.153, "equal when rounded"),
    ("kappa_crit", f"llama-3.1-70b/h100-sxm/{ENGINE}", 2, 3.33806, 66.903, "differs"),
    # 0.23e6 x the same
    ("kappa_crit", "qwen3-235b-a22b/h100-sxm/pcie5-x16", 7.8, 7.82, 0.256, "within 1 %"),
    ("kappa_crit", f"qwen3-235b-a22b/h100-sxm/{ENGINE}", 1.8, 1.82799, 1.555, "equal when rounded"),
    ("kappa_crit", f"qwen3-235b-a22b/h100-sxm/{ENGINE}", 1, 1.82799, 82.799, "differs"),
    # 810e9 / 516e3 x 64e9 / 2000e12 and x 15e9 / 2000e12
    ("kappa_crit", "llama-3.1-405b/h100-sxm/pcie5-x16", 50, 50.2326, 0.465, "within 1 %"),
    ("kappa_crit", f"llama-3.1-405b/h100-sxm/{ENGINE}", 12, 11.7733, -1.890, "equal when rounded"),
    # 1.42e6 x 53.8e-6 and 0.07e6 x 13.5e-6, as printed
    ("kappa_crit", "llama-3.1-405b/a100-sxm-80gb/pcie4-x16", 76, 76.396, 0.521, "within 1 %"),
    ("kappa_crit", "qwen3-30b-a3b/b200-sxm/pcie5-x16", 1, 0.945, -5.5, "equal when rounded"),
    # 0.23e6 and 1.06e6 x 900e9 / 5000e12, x 8000e9 / 5000e12
    ("kappa_crit", "qwen3-235b-a22b/b200-sxm/nvlink-c2c", 41.5, 41.4, -0.241, "within 1 %"),
    ("kappa_crit", "deepseek-v3/b200-sxm/nvlink-c2c", 191, 190.8, -0.105, "within 1 %"),
    ("kappa_crit", "qwen3-235b-a22b/b200-sxm/unified-hbm", 370, 368, -0.541, "within 1 %"),
    ("kappa_crit", "deepseek-v3/b200-sxm/unified-hbm", 1700, 1696, -0.235, "within 1 %"),
    # 1024 / 1.82799 = 560.18; 560.18 / 561.18; 64 / 1.82799 = 35.011, / 36.011
    ("pcie_overhead", f"qwen3-235b-a22b/h100-sxm/{ENGINE}", 86, 68.7423, -20.07, "differs"),
    ("transfer_share", f"qwen3-235b-a22b/h100-sxm/{ENGINE}", 0.99, 0.998218, 0.830, "within 1 %"),
    ("transfer_share", f"qwen3-235b-a22b/h100-sxm/{ENGINE}", 0.88, 0.972231, 10.481, "differs"),
    # 479,150 / (1 + 11,115 / 82) = 3509.0; 479,150 / (1 + 57,000 / 12) = 100.85
    ("tokens_per_iteration", "70 requests/s", 4064, 3509.0, -13.656, "differs"),
    ("tokens_per_iteration", "130 requests/s", 3793, 3509.0, -7.487, "differs"),
    ("tokens_per_iteration", "formula", 3509, 3509.0, 0.0, "within 1 %"),
    ("tokens_per_iteration", "70 requests/s", 532, 100.8525, -81.043, "differs"),
    ("tokens_per_iteration", "130 requests/s", 555, 100.8525, -81.828, "differs"),
    # 196 / 700 and 152 / 700
    ("tdp_share", "sharegpt", 0.28, 0.28, 0.0, "within 1 %"),
    ("tdp_share", "narrativeqa", 0.22, 0.217143, -1.299, "equal when rounded"),
    # kappa_ratio 57,000 / 12 = 4750 and 11,115 / 82 = 135.549, over 1.82799: shares 0.999615 and 0.986693 in transfer;
    # idle (152 - 700 x 0.000385) / 0.999615 = 151.789, so NarrativeQA is 152 again;
    # ShareGPT 151.789 x 0.986693 + 700 x 0.013307 = 159.084; at most the busy 700
    ("power_w", "mean at 70 requests/s", 152, 152, 0.0, "within 1 %"),
    ("power_w", "mean at 130 requests/s", 152, 152, 0.0, "within 1 %"),
    ("power_w", "mean at 70 requests/s", 196, 159.084, -18.835, "differs"),
    ("power_w", "mean at 130 requests/s", 192, 159.084, -17.144, "differs"),
    ("power_w", "max at 70 requests/s", 202, 700, 246.535, "differs"),
    ("power_w", "max at 130 requests/s", 194, 700, 260.825, "differs"),
    ("power_w", "max at 70 requests/s", 342, 700, 104.678, "differs"),
    ("power_w", "max at 130 requests/s", 287, 700, 143.902, "differs"),
]


@pytest.fixture(scope="module")
def values() -> list[dict[str, Any]]:
    """Return the view of a database that holds the sourced tables and no workload."""
    return paper_values()


@pytest.mark.parametrize(("metric", "statistic", "printed", "reproduced", "percent", "verdict"), VALUES)
def test_printed_value(  # noqa: PLR0913, PLR0917 - a row of the table above
    values: list[dict[str, Any]],
    metric: str,
    statistic: str,
    printed: float,
    reproduced: float,
    percent: float,
    verdict: str,
) -> None:
    """Printed, reproduced and residual as worked by hand."""
    (row,) = [
        row for row in values if (row["metric"], row["statistic"], row["printed"]) == (metric, statistic, printed)
    ]
    assert row["reproduced"] == pytest.approx(reproduced, rel=2e-5)
    assert 100 * row["residual"] == pytest.approx(percent, abs=0.006)
    assert row["verdict"] == verdict
    assert row["why"]


def test_nothing_is_left_out(values: list[dict[str, Any]]) -> None:
    """Each printed figure of hardware and serving stands above; only those of workloads wait for their data set."""
    known = {(metric, statistic, printed) for metric, statistic, printed, *_ in VALUES}
    for row in values:
        if (row["metric"], row["statistic"], row["printed"]) not in known:
            assert row["verdict"] == "not reproduced"
            assert row["workload"] is not None
    published = [row for row in load_reference("published").to_pylist() if row["source"].startswith("arXiv 2601.19910")]
    assert len(values) == len(published)
    assert len({row["quantity"] for row in values}) == len(values)


def test_asserted_values_are_met_and_misses_are_not_asserted(values: list[dict[str, Any]]) -> None:
    """Within 1 %, or equal after rounding to the printed digits; misprints and measurements stand beside."""
    for row in values:
        if row["is_asserted"]:
            assert row["verdict"] in ("within 1 %", "equal when rounded"), row["quantity"]
        if "measured" in row["quantity"]:
            assert not row["is_asserted"]
    missed = {row["statistic"] for row in values if row["verdict"] == "differs" and "measured" not in row["quantity"]}
    assert missed == {"llama-3.1-70b//", "llama-3.1-405b//", "qwen3-235b-a22b//"}


def test_docs_and_report_have_the_same_tables(values: list[dict[str, Any]]) -> None:
    """The page holds the report's tables as they are, those of the workloads included, and nothing is left out."""
    text = DOCS.read_text("utf8")
    grids = grids_of(values)
    # hardware, and sharegpt, narrativeqa and finqa
    assert len(grids) == 4
    assert sum(len(grid.rows) for grid in grids) == len(values)
    assert all(table(grid) in text for grid in grids)
    # the report gives each printed value as it was printed
    (row,) = [
        row
        for grid in grids
        for row in grid.rows
        if row[0].startswith("kappa_crit of llama-3.1-70b on h100-sxm over pcie5")
    ]
    assert row[1:3] == ("14.3", "14.28")

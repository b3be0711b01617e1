"""Nothing named here of the reference folder was lost: each of its rows is kept with its figures.

What was added to the folder since is none of this checkout's.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest

from warehouse.hardware_rows.rows import load_reference

SHARED = Path(__file__).parents[4].parent / "shared" / "reference"
pytestmark = [
    pytest.mark.skipif(not SHARED.is_dir(), reason="the reference folder is not beside the checkout"),
    pytest.mark.shared,
]

ACCELERATORS = {
    "A100-40GB SXM": "a100-sxm-40gb", "A100-80GB SXM": "a100-sxm-80gb", "A100-40GB PCIe": "a100-pcie-40gb",
    "A100-80GB PCIe": "a100-pcie-80gb", "H100 PCIe": "h100-pcie", "H100 SXM5": "h100-sxm", "H200 SXM": "h200-sxm",
    "GH200 (96GB HBM3)": "gh200-96gb", "GH200 (144GB HBM3e)": "gh200-144gb", "B200 SXM (HGX)": "b200-sxm",
    "GB200 (per GPU)": "gb200", "B300 SXM (HGX)": "b300-sxm", "GB300 (per GPU)": "gb300", "L40S": "l40s", "L4": "l4",
    "A10G": "a10g", "A10": "a10", "RTX 4090": "rtx-4090", "RTX 5090": "rtx-5090",
    "RTX PRO 6000 Blackwell Server": "rtx-pro-6000", "MI300X": "mi300x", "MI300A": "mi300a", "MI325X": "mi325x",
    "MI355X": "mi355x", "Gaudi3": "gaudi3", "TPU v5e": "tpu-v5e", "TPU v6e": "tpu-v6e", "H20": "h20",
}  # fmt: skip
# Name and platform there, name here.
LINKS = {
    ("PCIe 3.0 x16", "-"): "pcie3-x16",
    ("PCIe 4.0 x16", "-"): "pcie4-x16",
    ("PCIe 5.0 x16", "-"): "pcie5-x16",
    ("PCIe 6.0 x16", "-"): "pcie6-x16",
    ("NVLink-C2C (GH200/GB200/GB300)", "Grace-Hopper/Blackwell"): "nvlink-c2c",
    ("MI300A Infinity Fabric / unified HBM3", "MI300A"): "mi300a-unified-hbm3",
    ("PCIe5 x16", "H100 SXM5 (devgpu)"): "pcie5-x16-h100-devgpu",
    ("PCIe5 x16", "H20"): "pcie5-x16-h20",
    ("PCIe5 x16", "MI300X"): "pcie5-x16-mi300x",
    ("PCIe5 x16", "NVIDIA blog system"): "pcie5-x16-nvbandwidth-example",
    ("PCIe5 x16", "Snellius 4xH100 94GB"): "pcie5-x16-snellius",
    ("PCIe4 x16", "RTX 4000 Ada"): "pcie4-x16-rtx-4000-ada",
    ("PCIe4 x16", "4xA100-80 (CachedAttention)"): "pcie4-x16-cachedattention",
    ("PCIe4 x16", "A800 (Bidaw)"): "pcie4-x16-bidaw",
    ("PCIe5 x16 vLLM 0.11/0.12 native offload", "H100 80GB + SPR"): "pcie5-x16-vllm-0.12",
    (
        "vLLM 0.10.1 + LMCache 0.3.5 (the paper; says PCIe5 x16)",
        "8xH100 SXM5, EPYC 7R13, 2 TB DDR4-3200 = AWS P5: CPU-GPU link is PCIe GEN4",
    ): "vllm-0.10.1-lmcache-0.3.5",
    ("PCIe5 x16 LMCache CPU load", "H100 (GMI Cloud)"): "pcie5-x16-lmcache",
    ("PCIe5 x16 SGLang HiCache page=32", "H200"): "pcie5-x16-hicache-page32",
    ("PCIe5 x16 SGLang HiCache JIT kernel", "MI355X"): "pcie5-x16-hicache-jit",
    ("PCIe5 x16 vLLM swap_blocks (hipMemcpyBatchAsync)", "MI300X"): "pcie5-x16-vllm-swap-blocks",
    ("PCIe4 x16 vLLM OffloadingConnector CPU tier", "RTX 3090"): "pcie4-x16-vllm-offloading-connector",
    ("NVLink-C2C", "GH200 96GB"): "nvlink-c2c",
    ("NVLink-C2C", "GH200 Alps quad"): "nvlink-c2c-alps",
    ("NVLink-C2C", "GB300 half module (DGX Station)"): "nvlink-c2c-gb300-station",
    ("NVLink-C2C SGLang HiCache kernel", "GB300"): "nvlink-c2c-hicache-kernel",
    ("NVLink-C2C SGLang HiCache", "GH200"): "nvlink-c2c-hicache",
    ("pageable host memory", "single GPU box (Strata-laguna probe)"): "pageable-host-memory",
    ("NVMe Gen5 x4 (Solidigm D7-PS1010)", "-"): "nvme-gen5-x4",
    ("NVMe Gen4 x4 (PM9A3 / P5510)", "-"): "nvme-gen4-x4",
    ("NVMe via LMCache-GDS", "H100 + 2x PS1010"): "nvme-lmcache-gds",
    ("Distributed NVMe 3FS", "client 1x400G NIC"): "nvme-3fs-400g",
    ("RDMA 2x400G MemKV", "8xH200"): "rdma-memkv-2x400g",
    ("RDMA 800G Mooncake", "A800 node"): "rdma-mooncake-800g",
    ("host DDR4-3200 8ch", "1 socket EPYC 7R13"): "host-ddr4-3200-8ch",
}
# What an instance is wired with is a platform, and a rule of thumb is no link.
WIRED = {
    ("AWS P5 / P5e host link (H100/H200 SXM)", "p5.48xlarge 8xH100, 192 vCPU EPYC 7R13, 2 TiB"): (
        ("h100-sxm", "pcie4-x16"),
        ("h200-sxm", "pcie4-x16"),
    )
}
RULES = {
    ("RCCL/transfer size effect", "LMCache tech report"): (
        "transfer-size-64kb", "transfer-size-1mb", "transfer-size-10-to-100mb",
    ),
    ("pageable host memory", "-"): ("pageable-in-containers", "pageable-staged", "pageable-cupy"),
}  # fmt: skip


def theirs(name: str) -> list[dict[str, str]]:
    """Return the rows of one file of the reference folder."""
    with (SHARED / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def ours(name: str) -> dict[str, dict[str, Any]]:
    """Return the rows of one table by the first column."""
    return {next(iter(row.values())): row for row in load_reference(name).to_pylist()}


def same(value: float | None, cell: str, factor: float = 1.0) -> bool:
    """Return whether a figure is the one of a cell in another unit; both may be empty."""
    return value is None if not cell else value == pytest.approx(float(cell) * factor, rel=1e-12)


def test_models() -> None:
    """Each model under its name, bytes at both formats included; parameters that the file lacks are second-hand."""
    rows = ours("models")
    there = {row["model"].lower(): row for row in theirs("models")}
    assert there.keys() - rows.keys() == set()
    for name, row in there.items():
        kept = rows[name]
        for column, cell in (("active_params", "active_params_incl_embed_and_head"), ("total_params", "total_params")):
            assert same(kept[column], row[cell]) or (not row[cell] and kept["confidence"] == "secondary")
        assert same(kept["max_context_tokens"], row["max_context"])
        assert same(kept["marginal_kv_bytes_per_token"], row["bkv_bf16_bytes_marginal"])
        # Half of bf16 where no figure of its own stands; there as a whole number, and half for sparse MLA too.
        fp8 = kept["marginal_fp8_kv_bytes_per_token"] if kept["attention"] != "mla+indexer" else None
        half = kept["marginal_kv_bytes_per_token"] / 2
        assert same(half if fp8 is None else int(fp8), row["bkv_fp8_bytes_marginal"])
        assert same(kept["fixed_state_bytes"], row["fixed_state_bytes_bf16"])
        assert same(kept["indexer_bytes_per_token"], row["indexer_bytes_per_token_fp8"])


def test_accelerators() -> None:
    """Each accelerator under its name, TFLOP/s as 1e12 FLOP/s, GB as 1e9 bytes, dense and sparse apart."""
    rows = ours("accelerators")
    there = {row["accelerator"]: row for row in theirs("accelerators")}
    assert ACCELERATORS.keys() - there.keys() == set()
    assert set(ACCELERATORS.values()) <= rows.keys()
    for theirs_name, name in ACCELERATORS.items():
        row, kept = there[theirs_name], rows[name]
        for column, cell, factor in (
            ("dense_bf16_flop_per_s", "dense_bf16_tflops", 1e12),
            ("sparse_bf16_flop_per_s", "sparse_bf16_tflops_vendor_headline", 1e12),
            ("dense_fp8_flop_per_s", "dense_fp8_tflops", 1e12),
            ("sparse_fp8_flop_per_s", "sparse_fp8_tflops_vendor_headline", 1e12),
            ("dense_fp4_flop_per_s", "dense_fp4_tflops", 1e12),
            ("measured_bf16_flop_per_s", "measured_max_matmul_bf16_tflops", 1e12),
            ("hbm_bytes_per_s", "hbm_gbps", 1e9),
            ("tdp_w", "tdp_w", 1.0),
        ):
            # There an MI355X has the rates of an MI350X.
            is_corrected = name == "mi355x" and ("dense" in column or "sparse" in column)
            assert same(kept[column], row[cell], factor) or is_corrected, (row["accelerator"], column)
        # GB of the vendor there, bytes of its tools here: as many GiB at most.
        assert float(row["hbm_gb"]) * 0.99e9 < kept["hbm_bytes"] <= float(row["hbm_gb"]) * 2**30


def test_links() -> None:
    """Each row is a link, a platform or a rule of thumb, with its rates in bytes a second."""
    rows = ours("links")
    places = {(row["link_or_path"], row["platform"]): row for row in theirs("links")}
    assert (LINKS.keys() | WIRED.keys() | RULES.keys()) - places.keys() == set()
    for place, name in LINKS.items():
        there = places[place]
        assert same(rows[name]["peak_bytes_per_s"], there["theoretical_gbps_per_direction"], 1e9), name
        for column, cell in (
            ("sustained_bytes_per_s", "measured_h2d_gbps"),
            ("to_host_bytes_per_s", "measured_d2h_gbps"),
            ("duplex_bytes_per_s", "bidir_aggregate_gbps"),
        ):
            # NVLink-C2C stands with both sums: 900 of the sheet in the note, 672 as it was measured
            is_sheet = there["kind"] == "theory" and column == "duplex_bytes_per_s"
            # A rate by size is that of bulk here, and the smallest of seven models there: copies of 32 KiB
            is_sized = name == "pcie5-x16-vllm-swap-blocks"
            assert is_sheet or is_sized or not there[cell] or same(rows[name][column], there[cell], 1e9), name
    added = {
        *("unified-hbm", "pcie-tpu-v5e", "pcie-tpu-v6e", "cxl-pcie5-x8", "cxl-pcie5-x16"),
        *("nvlink-c2c-gb300", "nvlink-c2c-gb300-shared", "nvlink-c2c-vera"),
    }
    assert set(LINKS.values()) == rows.keys() - added


def test_a_link_by_size_of_copy() -> None:
    """57.4e9 and 14 us a copy: 32 KiB give 2.25e9, where 2.27e9 was measured; 1.5 MiB 38.0e9, measured 38.9e9."""
    row = ours("links")["pcie5-x16-vllm-swap-blocks"]
    for size, rate in ((32_768, 2.27e9), (1.5 * 2**20, 38.9e9)):
        ours_there = size / (row["copy_latency_s"] + size / row["sustained_bytes_per_s"])
        assert ours_there == pytest.approx(rate, rel=0.03)


def test_links_that_are_none() -> None:
    """What AWS wires is two platforms over PCIe 4; the two rules are rows of transfer_rules with their figures."""
    platforms = {
        (row["accelerator"], row["link"])
        for row in load_reference("platforms").to_pylist()
        if "AWS" in str(row["note"])
    }
    assert platforms == {pair for pairs in WIRED.values() for pair in pairs}
    rules = ours("transfer_rules")
    assert rules.keys() == {name for names in RULES.values() for name in names}
    # 64 KB 4 GB/s; 1 MB 30; 10-100 MB 46-49
    rates = [(rules[name]["least_bytes_per_s"], rules[name]["most_bytes_per_s"]) for name in rules]
    assert rates[:3] == [(4e9, 4e9), (30e9, 30e9), (46e9, 49e9)]
    # typically 1-7 GB/s in containers (1-3 staged; cupy >= 7)
    assert rates[3:] == [(1e9, 7e9), (1e9, 3e9), (7e9, None)]


def test_traces() -> None:
    """Each trace under its name, numbers as numbers and words in its note."""
    rows = ours("traces")
    by_name = {re.sub(r"[^a-z0-9.]+", "-", row["trace"].lower()).strip("-"): row for row in theirs("workloads")}
    assert rows.keys() - by_name.keys() == set()
    for name, kept in rows.items():
        there = by_name[name]
        for column, cell in (
            ("input_tokens_mean", "input_mean"), ("input_tokens_p50", "input_p50"), ("input_tokens_p90", "input_p90"),
            ("input_tokens_p99", "input_p99"), ("reply_tokens_mean", "output_mean"), ("reply_tokens_p50", "output_p50"),
        ):  # fmt: skip
            assert same(kept[column], there[cell]), (name, column)
        assert (kept["reuse"] or "") == there["reuse_ratio"]
        for column, cell in (
            ("requests", "n_requests"), ("new_tokens_p50", "T_new_p50"), ("reused_tokens_p50", "K_cached_p50"),
            ("trace_block_tokens", "block"),
        ):  # fmt: skip
            is_word = there[cell] in ("", "-") or there[cell] in str(kept["note"])
            assert same(kept[column], there[cell]) if kept[column] is not None else is_word, (name, column)
        assert there["kappa_hint"] in str(kept["note"])

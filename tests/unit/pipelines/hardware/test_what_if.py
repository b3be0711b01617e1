"""`kappa crit` about a turn and about a workload: figures by hand, load or recompute, and how it is said."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assets.commands.cli import main
from pipelines.hardware import costs
from pipelines.hardware.costs import Machine
from pipelines.hardware.entities import known
from pipelines.hardware.machines import read_sources
from pipelines.hardware.prefill.parts import Rates
from pipelines.hardware.what_if import Pays, Setting, loading_pays, paying_ranges, turn_answer
from pipelines.hardware.workload_answers import workload_answer
from warehouse.database.build import build_database
from warehouse.declared.tables import TABLES
from warehouse.formulas import attention, serving
from warehouse.home.home import Home

Crit = Callable[..., list[dict[str, Any]]]
SOURCES = read_sources()
H100 = ("--accelerator", "h100-sxm", "--link", "pcie5-x16", "--basis", "physical")
TURN = ("--cached-tokens", "65536", "--new-tokens", "64")


def setting(model: str = "llama-3.1-70b", cost_model: str = "attention", rate: float = 54.4e9) -> Setting:
    """Return a model on an H100 that sustains 544.225 TFLOP/s in every part, without an engine's floor."""
    return Setting(SOURCES.models[model], machine(0.55 * 989.5e12, rate, 3350e9), "bf16", cost_model)


def machine(flop_per_s: float, rate: float, hbm: float, gpus: int = 1) -> Machine:
    """Return a machine with one rate for every part of prefill."""
    rates = Rates(*[flop_per_s] * 4, hbm, hbm, 2.0, 2.0, 300e9, 1, 0.0, 0.0, 0.0, attention_gpus=gpus)
    return Machine(flop_per_s, rate, hbm, gpus, rates=rates)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home whose warehouse holds four turns of one workload."""
    series = {"workload": "finqa", "tokenizer": "llama-3.1", "counting": "text", "reuse": "history"}
    turns = [(0, 100), (1000, 100), (50_000, 20), (100_000, 10)]
    tables = {
        "turns": TABLES["turns"].rows(
            [
                series | {"session_id": "s", "turn_index": n, "cached_tokens": k, "prefill_tokens": t,
                          "output_tokens": None, "kappa_ratio": k / t, "is_first_turn": n == 0}
                for n, (k, t) in enumerate(turns)
            ]
        ),
        "summary": TABLES["summary"].rows(
            [
                series | {"sessions": 1, "turns": 4, "first_turns": 1, "cached_tokens_sum": 151_000,
                          "prefill_tokens_sum": 230, "output_tokens_sum": None, "cached_tokens_mean": 37_750.0,
                          "prefill_tokens_mean": 57.5, "kappa_ratio_mean": 3127.5, "pooled_kappa_ratio": 656.5,
                          "special_token_messages": 0, "uncounted_parts": 0, "is_sample": True}
            ]
        ),
    }  # fmt: skip
    files: dict[str, list[Path]] = {name: [] for name, table in TABLES.items() if not table.is_view}
    for name, table in tables.items():
        files[name] = [tmp_path / f"{name}.parquet"]
        pq.write_table(table, files[name][0])
    place = Home(tmp_path / "home")
    place.prepare()
    (place.generations / "1").mkdir(parents=True)
    build_database(place.generations / "1" / "warehouse.duckdb", files)
    place.current.symlink_to(Path("generations") / "1")
    return place.path


def test_a_turn_by_hand(crit: Crit) -> None:
    """Llama-3.1-70B, H100, PCIe 5: K = 65,536 and T = 64."""
    rows = {row["cost_model"]: row for row in crit("--model", "llama-3.1-70b", *H100, *TURN)}
    assert list(rows) == ["2n", "attention", "full"]
    for row in rows.values():
        assert (row["tensor_parallel"], row["weight_dtype"], row["compute_dtype"]) == (4, "bf16", "bf16")
        # 65,536 x 327,680 / 4 / 54.4e9 = 0.0986895 s
        assert row["transfer_s"] == pytest.approx(0.0986895, abs=1e-7)
        assert row["kappa_crit"] == pytest.approx(43.0448, abs=1e-4)
        assert row["faster"] == "load"
        assert row["ttft_s"] == pytest.approx(row["transfer_s"] + row["prefill_s"])
    # 2n: 64 x 2 x 70,553,706,496 / (4 x 544.225e12) = 0.0041485 s; 1024 / 43.0448 = 23.789
    assert rows["2n"]["compute_s"] == pytest.approx(0.0041485, abs=1e-7)
    assert rows["2n"]["pcie_overhead"] == pytest.approx(23.789, abs=1e-3)
    assert rows["2n"]["kappa_crit_here"] == pytest.approx(43.0448, abs=1e-4)
    # dense 8.76190e12 / (0.72 x 3178e12) + head 2.10135e9 / the same + attention 1.10006e13 / (0.75 x 3178e12)
    # + adding 2 x 80 x 4 x 64 x 8192 x 3/4 / 300e9 = 3.8292 + 0.0009 + 4.6153 + 0.8389 ms
    assert rows["attention"]["compute_s"] == pytest.approx(9.2843e-3, rel=1e-3)
    # full: reading 2 x 68,452,352,000 and 2 x 1,050,673,152 bytes at 0.82 x 13.4e12 = 12.4595 + 0.1912 ms instead
    assert rows["full"]["compute_s"] == pytest.approx(18.105e-3, rel=1e-3)
    # 80 layers x 0.85 ms + 65,600 tokens x 2 us
    assert rows["full"]["prefill_s"] == pytest.approx(0.068 + 0.1312, rel=1e-6)
    # layer by layer: 0.1992 + 0.0986895 / 80
    assert rows["full"]["layerwise_ttft_s"] == pytest.approx(0.1992 + 0.0986895 / 80, abs=1e-6)
    assert rows["full"]["requests_per_s"] == pytest.approx(4 * 2.5332, abs=1e-3)
    # 0.0987 / 0.0041 at most, 0.0987 / 0.0181 at least
    assert rows["full"]["whatever"] == "link bound whatever the assumptions"


def test_chunks_and_number_formats(crit: Crit) -> None:
    """What fills no chunk is computed again; fewer bits load faster."""
    names = ("--model", "llama-3.1-70b", *H100, "--cost-model", "2n")
    (row,) = crit(*names, "--cached-tokens", "1000", "--new-tokens", "12", "--chunk", "256")
    # 3 x 256 = 768 and 1000 + 12 - 768 = 244
    assert (row["cached_tokens"], row["prefill_tokens"]) == (768, 244)
    times = [crit(*names, *TURN, "--kv-dtype", dtype)[0]["transfer_s"] for dtype in ("bf16", "fp8", "int8", "int4")]
    # 1, 1/2, 1.125/2, 0.625/2
    assert [time / times[0] for time in times] == pytest.approx([1, 0.5, 0.5625, 0.3125])


def test_tensor_parallel_and_bandwidth(crit: Crit) -> None:
    """Sixteen GPUs share eight heads: loading gains eight times, computing sixteen."""
    names = (
        "--model",
        "llama-3.1-70b",
        "--accelerator",
        "h100-sxm",
        "--basis",
        "physical",
        "--cost-model",
        "2n",
        *TURN,
    )
    (one,) = crit(*names, "--bandwidth", "54.4GB/s", "--tensor-parallel", "1")
    (many,) = crit(*names, "--bandwidth", "54.4GB/s", "--tensor-parallel", "16")
    assert one["link"] == "given"
    assert one["transfer_s"] / many["transfer_s"] == pytest.approx(8)
    assert one["compute_s"] / many["compute_s"] == pytest.approx(16)
    # kappa_crit x (1 / 16) / (1 / 8) = half
    assert many["kappa_crit"] == pytest.approx(one["kappa_crit"] / 2)
    assert many["pcie_overhead"] == pytest.approx(1024 / many["kappa_crit"])


def test_the_way_back_shares_the_link(crit: Crit) -> None:
    """57e9 in and 97.9e9 both ways leave 40.9e9, less than half of the sum: the way back has 48.95e9, not 53.5e9."""
    names = ("--model", "llama-3.1-8b", "--accelerator", "h100-sxm", "--link", "pcie5-x16-h100-devgpu")
    row = crit(*names, "--basis", "physical", *TURN, "--output-tokens", "136", "--cost-model", "2n")[0]
    # (64 + 136) x 131,072 bytes
    assert row["write_back_s"] == pytest.approx(200 * 131_072 / 48.95e9, rel=1e-6)


def test_more_about_a_turn(crit: Crit) -> None:
    """A tier, write-back, the scheduler's bound and energy."""
    (row,) = crit(
        "--model", "llama-3.1-70b", *H100, *TURN, "--cost-model", "2n", "--tensor-parallel", "1",
        "--tier", "nvme-gen5-x4", "--tier-share", "0.5",
        "--output-tokens", "136", "--pool-tokens", "479150", "--idle-w", "100", "--busy-w", "700",
    )  # fmt: skip
    # 1 / (0.5 / 54.4e9 + 0.5 / 14.5e9) = 22.8970e9
    assert row["bytes_per_s"] == pytest.approx(22.8970e9, rel=1e-5)
    # (64 + 136) x 327,680 / 54.4e9: to host memory, as fast as from it where nothing else was measured
    assert row["write_back_s"] == pytest.approx(200 * 327_680 / 54.4e9, rel=1e-5)
    # 479,150 / 1025
    assert row["scheduled_tokens"] == pytest.approx(467.463, abs=1e-3)
    assert row["energy_j"] == pytest.approx(100 * row["transfer_s"] + 700 * row["compute_s"])
    assert row["average_power_w"] == pytest.approx(row["energy_j"] / row["ttft_s"])


def test_the_paper_has_its_own_figures(crit: Crit) -> None:
    """Basis paper has the printed kappa_M, kappa_HW and bytes, so pcie overhead is kappa_ratio / kappa_crit too."""
    names = ("--model", "llama-3.1-70b", "--accelerator", "h100-sxm", "--link", "pcie5-x16", "--basis", "paper", *TURN)
    (row,) = crit(*names)
    # 65,536 x 328,000 / 67.108864e9 = 0.320313 s; 64 x 140e9 / 1979e12 = 0.00452754 s
    assert row["transfer_s"] == pytest.approx(0.320313, abs=1e-6)
    assert row["compute_s"] == pytest.approx(0.00452754, abs=1e-8)
    assert row["kappa_crit"] == pytest.approx(14.28)
    # 1024 / 14.28
    assert row["pcie_overhead"] == pytest.approx(row["kappa_ratio"] / row["kappa_crit"])


@pytest.mark.parametrize("rate", [1e9, 2e9, 5e9])
def test_crossover_is_the_closed_form(rate: float) -> None:
    """Full attention has a formula for the K from which on loading pays, whatever T; the search finds it."""
    chosen = setting(rate=rate)
    row = chosen.model
    exact = serving.crossover_cached_tokens(
        known(row.kv_bytes_per_token), rate, chosen.machine.flop_per_s, known(row.layer_params),
        known(row.attention_flops_per_token_pair),
    )  # fmt: skip
    # at 1 GB/s: 2 x (327,680 x 5.44225e5 - 136,904,704,000) / 2,621,440 - 1 = 31,605.2
    first = max(math.floor(exact) + 1, 1)
    assert paying_ranges(chosen, 10) == paying_ranges(chosen, 1000) == [(first, 131_072)]
    cached = 20_000.0
    layer_params = known(row.layer_params)
    per_token = serving.recompute_flops_per_token(cached, layer_params, known(row.attention_flops_per_token_pair))
    pairs = attention.attended_pairs(0.0, cached + 7) - attention.attended_pairs(cached, 7.0)
    # what K costs to compute again is the same counted by pairs
    assert cached * per_token == pytest.approx(2 * layer_params * cached + 2_621_440 * pairs)
    even = serving.break_even_bytes_per_s(known(row.kv_bytes_per_token), per_token, chosen.machine.flop_per_s)
    assert (even < rate) == (cached > exact)


def test_loading_may_never_pay() -> None:
    """Over a link that is too slow, computing again is faster for every context."""
    assert paying_ranges(setting(cost_model="2n", rate=1e6), 10) == []
    # the context of the model is 131,072 tokens
    assert paying_ranges(setting(cost_model="2n", rate=54.4e9), 10) == [(1, 131_072)]
    slow = turn_answer(setting(rate=1e6), 1000, 10)
    assert (slow.faster, slow.is_memory_bound) == ("recompute", True)


def test_loading_pays_at_both_ends() -> None:
    """Few tokens make a mixture of experts read more of its weights with each one; many make it compute."""
    chosen = setting("qwen3-235b-a22b", "full")
    chosen = Setting(chosen.model, machine(8 * 0.25 * 989.5e12, 4e9, 8 * 3350e9, 8), "bf16", "full")
    ranges = paying_ranges(chosen, 64)
    assert len(ranges) == 2
    (start, low), (high, end) = ranges
    assert (start, end) == (1, 40_960)
    for cached in (1, low, low + 1, high - 1, high, 40_960):
        is_faster = turn_answer(chosen, cached, 64).faster == "load"
        assert is_faster == (cached <= low or cached >= high)
    # 64 tokens leave (1 - 8 / 128)^64 = 1.6 % of the experts undrawn, 0.27 ms of reading that recomputing adds: a GPU
    # loads 48,128 bytes a token in 12 us. From 1,532 on computing the experts of K + T passes reading all of them.
    assert loading_pays(chosen, 64) == Pays("in ranges", high, f"1-{low}, {high}-")
    assert (low, high) == (33, 1532)


def test_nothing_cached() -> None:
    """K = 0 is a turn like any other: nothing to load, no share, no rate that would be infinite."""
    row = turn_answer(setting(), 0, 10)
    # 0 bytes
    assert (row.transfer_s, row.pcie_overhead, row.needed_bytes_per_s) == (0, 0, 0)
    assert (row.kappa_crit_here, row.requests_per_s, row.is_memory_bound) == (None, None, False)


def test_a_workload_turn_by_turn() -> None:
    """Shares and percentiles of a workload are those of its turns asked one by one."""
    turns = [(0, 100), (1000, 100), (50_000, 20), (100_000, 10), (200_000, 3000)]
    chosen = setting(cost_model="full")
    single = [turn_answer(chosen, k, t) for k, t in turns]
    row = workload_answer(chosen, *np.array(turns).T)
    assert row.memory_bound_turn_share == sum(known(one.is_memory_bound) for one in single) / 5
    for label, q in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        rates = [known(one.needed_bytes_per_s) for one in single]
        assert row.percentiles()[label].needed_bytes_per_s == pytest.approx(np.quantile(rates, q))
    # 200,000 + 3,000 > 131,072: one of five
    assert row.over_context_turn_share == 0.2
    assert row.load_is_faster_share == sum(one.faster == "load" for one in single if one.cached_tokens) / 4
    # a mean of 351,000 / 5 = 70,200 tokens: 54.4e9 / (70,200 x 327,680) = 2.3649 a second
    assert row.requests_per_s == pytest.approx(2.3649, abs=1e-4)


def test_a_workload_of_the_home(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The turns come from the warehouse; the text names them, and what K means."""
    names = ["crit", "--home", str(home), "--workload", "finqa", "--model", "llama-3.1-70b", *H100]
    assert main(names) == 0
    told = capsys.readouterr().out
    assert "finqa: 4 turns, text counted by llama-3.1" in told
    assert "upper bound of reuse" in told
    assert "sample: generated text" in told
    assert main([*names, "--format", "csv", "--cost-model", "2n"]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    # kappa_ratio 0, 10, 2500, 10,000 against 43.04: two of four
    assert float(row["memory_bound_turn_share"]) == 0.5
    # median of overheads 0, 0.2323, 58.08, 232.3: (0.2323 + 58.08) / 2 = 29.156; times four links of 54.4e9
    assert float(row["needed_bytes_per_s_p50"]) == pytest.approx(29.156 * 4 * 54.4e9, rel=1e-3)


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["--cached-tokens", "5"], "--cached-tokens and --new-tokens go together", 2),
        (["--cached-tokens", "5", "--new-tokens", "0"], "--new-tokens 0 is not possible", 2),
        (["--cached-tokens", "-5", "--new-tokens", "1"], "--cached-tokens -5 is not possible", 2),
        ([*TURN, "--workload", "finqa"], "two questions", 2),
        ([*TURN, "--chunk", "0"], "--chunk 0 is not possible", 2),
        ([*TURN, "--tier-share", "2"], "--tier-share 2.0 is not possible", 2),
        ([*TURN, "--idle-w", "2"], "--idle-w and --busy-w go together", 2),
        ([*TURN, "--tier", "nvme"], "unknown tier 'nvme', nearest are nvme", 1),
        ([*TURN, "--basis", "paper", "--cost-model", "attention"], "cost model attention cannot be told here", 1),
        (["--workload", "fin"], "unknown workload 'fin', nearest are finqa", 1),
        (["--workload", "finqa", "--counting", "chat"], "finqa has no turns counted as chat by llama-3.1", 1),
        (["--basis", "measured"], "nothing was measured here", 1),
    ],
)
def test_errors(home: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str, code: int) -> None:
    """One line that says what to do; wrong usage is exit code 2."""
    assert main(["crit", "--home", str(home), *arguments]) == code
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert words in told.err


def test_a_workload_without_a_warehouse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty home says how to fill it."""
    assert main(["crit", "--home", str(tmp_path), "--workload", "finqa"]) == 1
    assert "has no warehouse yet" in capsys.readouterr().err


def test_many_answers_are_a_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Without a model the headline models on headline platforms answer, one line each and cost model."""
    assert main(["crit", "--home", str(tmp_path), *TURN, "--cost-model", "2n"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "K = 65,536 cached, T = 64 new tokens: kappa_ratio 1,024"
    # 8 models x 6 physical platforms + 5 of the paper on one; all by 2n, which stands above them
    assert lines[1] == "all: KV bf16, t_GPU 2n"
    assert sum(line.split()[:1] == ["model"] for line in lines) == 1
    assert sum("  yes  " in line or "  no  " in line for line in lines) == 8 * 6 + 5
    assert max(map(len, lines)) <= 100


def test_second_hand_is_never_a_default(crit: Crit) -> None:
    """A platform that is known second-hand alone is shown where its link, or such an accelerator, is named."""
    # 2 H100 platforms over PCIe 4: the paper's, and one that is known second-hand
    rows = crit("--model", "llama-3.1-70b", "--accelerator", "h100-sxm")
    assert ("pcie4-x16", "physical") not in {(row["link"], row["basis"]) for row in rows}
    named = crit("--model", "llama-3.1-70b", "--accelerator", "h100-sxm", "--link", "pcie4-x16")
    assert ("pcie4-x16", "physical") in {(row["link"], row["basis"]) for row in named}
    assert crit("--model", "llama-3.1-70b", "--accelerator", "mi300a")
    assert not {"mi300a", "h20"} & {row["accelerator"] for row in crit("--model", "llama-3.1-70b")}


def test_any_second_hand_row_makes_a_platform_second_hand(crit: Crit, tmp_path: Path) -> None:
    """A user's own platform of high confidence over a link that is second-hand is no default either."""
    (tmp_path / "reference").mkdir()
    platform = "h100-sxm,pcie5-x16-h100-devgpu,physical,2026-01-02,high,our rack"
    header = "accelerator,link,basis,retrieved,confidence,source"
    (tmp_path / "reference" / "platforms.csv").write_text(f"{header}\n{platform}\n", "utf8")
    names = ("--model", "llama-3.1-70b", "--accelerator", "h100-sxm")
    assert "pcie5-x16-h100-devgpu" not in {row["link"] for row in crit(*names)}
    (row,) = crit(*names, "--link", "pcie5-x16-h100-devgpu")
    assert (row["platform_confidence"], row["link_confidence"]) == ("secondary", "secondary")
    # a bandwidth of one's own takes the link's place: the other rows are known
    assert {row["basis"] for row in crit(*names, "--bandwidth", "57GB/s")} == {"paper", "physical"}


def test_a_window_is_said_by_its_own_bytes(crit: Crit) -> None:
    """A model without kappa_crit still has an answer for a turn."""
    row = next(row for row in crit("--model", "gpt-oss-120b", *H100, *TURN) if row["cost_model"] == "2n")
    assert row["kappa_crit"] is None
    # (65,536 x 36,864 + 4,718,592) / 54.4e9 = 0.0444972 s
    assert row["transfer_s"] == pytest.approx(0.0444972, abs=1e-6)


def test_parquet_and_output(tmp_path: Path, crit: Crit) -> None:
    """Answers go to a file like any rows."""
    assert crit("--model", "llama-3.1-8b", *H100, *TURN)
    path = tmp_path / "a.parquet"
    options = ["crit", "--model", "llama-3.1-8b", *H100, *TURN, "--format", "parquet", "--output", str(path)]
    assert main(options) == 0
    table: pa.Table = pq.read_table(path)
    assert table["cost_model"].to_pylist() == ["2n", "attention", "full"]


def test_weights_that_do_not_fit_are_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """405B at bf16 is 812 GB: sixteen GPUs of 85.5 GB hold it and a pool, eight do not."""
    names = ["crit", "--home", str(tmp_path), "--model", "llama-3.1-405b", *H100, *TURN]
    # 0.9 x 85.52e9 - 3.5e9 = 73.5e9 a GPU; 811.7e9 / 8 = 101.5e9, / 16 = 50.7e9
    for gpus, is_told in (("1", True), ("8", True), ("16", False)):
        assert main([*names, "--tensor-parallel", gpus]) == 0
        assert ("need at least 16 GPUs" in capsys.readouterr().out) == is_told


def test_costs_of_a_setting_are_those_of_costs() -> None:
    """A setting adds nothing of its own."""
    chosen = setting()
    assert chosen.transfer_s(10.0) == costs.transfer_s(chosen.model, chosen.machine, 10.0, "bf16")

"""`kappa crit` as a person asks it: what each answer rests on, tiers, models with gaps, splits and crossovers."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from assets.commands.cli import main
from assets.commands.crit.lines import pays
from pipelines.hardware.costs import Machine
from pipelines.hardware.entities import known
from pipelines.hardware.machines import read_sources
from pipelines.hardware.prefill.parts import Rates
from pipelines.hardware.questions.names import known_name
from pipelines.hardware.what_if import Setting, turn_answer
from pipelines.hardware.workload_answers import nearest_rank, workload_answer
from warehouse.errors import ErrorCode
from warehouse.hardware_rows.reference_tables import REFERENCE
from warehouse.hardware_rows.rows import load_reference, user_folder

Crit = Callable[..., list[dict[str, Any]]]
SOURCES = read_sources()
H100 = ("--accelerator", "h100-sxm", "--link", "pcie5-x16", "--basis", "physical")
TURN = ("--cached-tokens", "65536", "--new-tokens", "64")
TURNS = [(0, 100), (1000, 100), (50_000, 20), (100_000, 10), (200_000, 3000)]


def setting(model: str, cost_model: str | None, rate: float = 54.4e9) -> Setting:
    """Return a model on an H100 that sustains 544.225 TFLOP/s."""
    rates = Rates(*[0.55 * 989.5e12] * 4, 3350e9, 3350e9, 2.0, 2.0, 300e9, 1, 0.0, 0.0, 0.0)
    return Setting(SOURCES.models[model], Machine(0.55 * 989.5e12, rate, 3350e9, rates=rates), "bf16", cost_model)


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., str]:
    """Return a function that runs `kappa crit` in an empty home and returns its text, with lines of any length."""

    def run(*arguments: str) -> str:
        assert main(["crit", "--home", str(tmp_path), *arguments]) == 0
        narrow = capsys.readouterr().out
        assert max(map(len, narrow.splitlines())) <= 100
        assert main(["crit", "--home", str(tmp_path), *arguments, "--wide"]) == 0
        return capsys.readouterr().out

    return run


class TestNames:
    """Any case of letters; nothing else is guessed."""

    def test_case_does_not_matter(self, crit: Crit) -> None:
        """Models, accelerators, links, formats and bases as people write them."""
        loud = ("--model", "Llama-3.1-70B", "--accelerator", "H100-SXM", "--link", "PCIe5-x16", "--basis", "Physical")
        assert crit(*loud, "--kv-dtype", "BF16") == crit("--model", "llama-3.1-70b", *H100)

    def test_two_that_differ_in_case_alone(self) -> None:
        """The very name wins; where none is it and two are alike, nothing is guessed."""
        assert known_name("model", "a", ["a", "A"]) == "a"
        assert known_name("model", "AB ", ["ab", "abc"]) == "ab"
        with refused(ErrorCode.UNKNOWN_NAME, "model 'aB'"):
            known_name("model", "aB", ["ab", "AB"])


class TestOrigins:
    """Each answer names how sure its rows are, and where each figure comes from."""

    def test_physical(self, crit: Crit) -> None:
        """The rows of the tables, and the assumption beside the peak."""
        for row in (*crit("--model", "llama-3.1-70b", *H100), *crit("--model", "llama-3.1-70b", *H100, *TURN)):
            names = ("model", "accelerator", "link", "platform")
            assert [row[f"{name}_confidence"] for name in names] == ["high"] * 4
            assert row["flops_per_token_source"].startswith("meta-llama/llama-models")
            assert row["flop_per_s_source"].endswith("dense bf16 peak x 0.55, an assumption")
            assert "sustained: " in row["bytes_per_s_source"]

    def test_paper_given_and_second_hand(self, crit: Crit) -> None:
        """What the paper printed, what a person gave, a pair that is none, a row that is known second-hand."""
        (paper,) = crit(
            "--model", "llama-3.1-70b", "--accelerator", "h100-sxm", "--link", "pcie5-x16", "--basis", "paper"
        )
        assert (paper["model_confidence"], paper["link_confidence"]) == ("printed", "printed")
        assert paper["bytes_per_s_source"].startswith("arXiv 2601.19910: 64 x 1.048576")
        given = crit("--model", "llama-3.1-70b", "--accelerator", "h100-sxm", "--bandwidth", "15GB/s")[0]
        assert (given["link_confidence"], given["bytes_per_s_source"]) == ("given", "--bandwidth")
        assert given["platform_confidence"] is None
        (pair,) = crit("--model", "llama-3.1-70b", "--accelerator", "h100-sxm", "--link", "nvlink-c2c")
        assert pair["platform_confidence"] == "none"
        second = crit("--model", "llama-3.1-70b", "--accelerator", "h100-sxm", "--link", "pcie4-x16")
        assert {row["platform_confidence"] for row in second} == {"high", "secondary"}

    def test_a_tier_is_a_row_too(self, crit: Crit) -> None:
        """Its confidence and source stand beside the others."""
        row = crit("--model", "deepseek-v3.2", *H100, *TURN, "--tier", "nvme-gen5-x4")[0]
        assert row["tier_confidence"] == "secondary"
        assert row["tier_bytes_per_s_source"].startswith("secondary")

    def test_in_words(self, said: Callable[..., str]) -> None:
        """The text of a turn and the table of kappa_crit show them."""
        text = said("--model", "llama-3.1-70b", *H100, *TURN, "--tier", "nvme-gen5-x4")
        assert "confidence: model high, accelerator high, link high, platform high, tier secondary\n" in text
        assert "high/high/high" in said("--model", "llama-3.1-70b", *H100)

    def test_measured(self, crit: Crit, tmp_path: Path) -> None:
        """What `kappa measure` found on a machine is told as measured, with the row's own source."""
        example = (Path(__file__).parents[4] / "data" / "measured-example.csv").read_text("utf8")
        (tmp_path / "reference").mkdir()
        (tmp_path / "reference" / "measured.csv").write_text(example.replace(",true,", ",false,"), "utf8")
        row = crit("--model", "llama-3.1-70b", "--basis", "measured")[0]
        assert [row[f"{name}_confidence"] for name in ("model", "accelerator", "link")] == ["high", *["measured"] * 2]
        assert row["flop_per_s_source"] == row["bytes_per_s_source"]


class TestTier:
    """A slower link behind the link."""

    NAMES = ("--model", "llama-3.1-70b", *H100, *TURN, "--cost-model", "2n", "--tier", "nvme-gen5-x4")

    def test_each_way_has_its_kappa_crit(self, crit: Crit, said: Callable[..., str]) -> None:
        """430,626 FLOP/byte over 544.225 TFLOP/s: 54.4, 14.5, and half of each, 22.897 GB/s."""
        (row,) = crit(*self.NAMES, "--tier-share", "0.5")
        # 430,626.1 / 544.225e12 = 7.9126e-10: x 54.4e9 = 43.045, x 14.5e9 = 11.473, x 22.897e9 = 18.118
        assert row["link_kappa_crit"] == pytest.approx(43.045, abs=1e-3)
        assert row["tier_kappa_crit"] == pytest.approx(11.473, abs=1e-3)
        assert row["kappa_crit"] == pytest.approx(18.118, abs=1e-3)
        assert row["pcie_overhead"] == pytest.approx(1024 / row["kappa_crit"])
        text = said(*self.NAMES, "--tier-share", "0.5")
        assert "kappa_crit 18.12 with 50.0 % of the cache behind tier nvme-gen5-x4 (14.5 GB/s" in text
        assert "11.47 with all of it there, 43.04 over pcie5-x16 alone" in text

    def test_all_of_it_by_default(self, crit: Crit) -> None:
        """Without a share everything lies in the tier; a tier that is faster than the link changes nothing."""
        (row,) = crit(*self.NAMES)
        assert row["kappa_crit"] == pytest.approx(row["tier_kappa_crit"])
        (fast,) = crit(*self.NAMES[:-1], "nvlink-c2c")
        # min(375, 54.4) GB/s
        assert (fast["tier_bytes_per_s"], fast["kappa_crit"]) == (54.4e9, pytest.approx(fast["link_kappa_crit"]))


class TestGaps:
    """Models of which something is not known."""

    @pytest.fixture
    def bare(self, tmp_path: Path) -> str:
        """Return the name of a user's model that is Kimi-K3 without its parameters."""
        shape = load_reference("models").to_pylist()
        (row,) = [row for row in shape if row["model"] == "kimi-k3"]
        row |= {"model": "bare", "total_params": None, "active_params": None}
        cells = {name: row[name] for name in REFERENCE["models"].names}
        cells |= {name: str(value).lower() for name, value in cells.items() if isinstance(value, bool)}
        folder = user_folder(tmp_path)
        folder.mkdir()
        with (folder / "models.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(cells))
            writer.writeheader()
            writer.writerow(cells)
        return "bare"

    def test_without_parameters_the_load_is_told(self, crit: Crit, said: Callable[..., str], bare: str) -> None:
        """Bytes, time to load and the floor of the TTFT; the rest is empty, and one line says why."""
        (row,) = crit("--model", bare, *H100, *TURN)
        # 65,536 x 27,648 + the state of 69 layers, over 54.4 GB/s
        loaded = 65_536 * 27_648 + 449_372_160
        assert row["kv_bytes"] == pytest.approx(loaded)
        assert row["ttft_floor_s"] == row["transfer_s"] == pytest.approx(loaded / 54.4e9)
        empty = ("cost_model", "compute_s", "ttft_s", "pcie_overhead", "faster", "load_pays", "needed_bytes_per_s")
        assert [row[name] for name in empty] == [None] * len(empty)
        assert f"without active_params of {bare} there is no t_GPU" in said("--model", bare, *H100, *TURN)
        assert f"{bare} has no kappa_crit: its parameters are in no source" in said("--model", bare, *H100)

    def test_of_a_workload(self) -> None:
        """The turns at the percentiles of the load, and no share of what is not known."""
        row = workload_answer(setting("kimi-k3", None), *np.array(TURNS).T)
        # loads rise with K: 3rd, 5th and 5th of five
        assert [of.ttft_cached_tokens for of in row.percentiles().values()] == [50_000, 200_000, 200_000]
        assert row.p50.ttft_transfer_s == pytest.approx((50_000 * 27_648 + 449_372_160) / 54.4e9)
        assert (row.p50.ttft_s, row.memory_bound_turn_share, row.p50.load_pays) == (None, None, None)

    def test_an_indexer_has_every_cost_model(self, crit: Crit) -> None:
        """DeepSeek-V3.2 on an H100, 0.25 of the peak: 247.375 TFLOP/s."""
        rows = {row["cost_model"]: row for row in crit("--model", "deepseek-v3.2", *H100, *TURN)}
        assert list(rows) == ["2n", "attention", "full"]
        # sixteen GPUs in fp8; e = (671,877,944,064 - 38,403,822,336) / 248, dense layers 36,550,457,088 - 8 e
        # pairs 64 x 65,536 + 2,080 = 4,196,384, picked 64 x 2,048 = 131,072, absorbed:
        # 16,990,208 x 131,072 + 1,007,232 x 4,196,384 = 6.45372e12
        e = (671_877_944_064 - 38_403_822_336) / 248
        bf16, fp8 = 16 * 794.5e12, 32 * 794.5e12
        parts = (
            2 * (36_550_457_088 - 8 * e) * 64 / (0.72 * fp8),
            2 * 8 * e * 64 / (0.28 * fp8),
            2 * 926_679_040 / (0.72 * bf16),
            (16_990_208 * 131_072 + 1_007_232 * 4_196_384) / (0.75 * bf16),
            2 * 61 * 4 * 64 * 7168 * 15 / 16 / 300e9,
        )
        assert rows["attention"]["compute_s"] == pytest.approx(sum(parts), rel=1e-9)


class TestWorkload:
    """TTFT at a percentile is that of one turn; load or recompute at the percentiles of T."""

    @pytest.mark.parametrize("cost_model", ["2n", "attention", "full"])
    def test_the_split_is_that_of_one_turn(self, cost_model: str) -> None:
        """Load and compute add up to the TTFT, and asking that turn alone gives the same."""
        chosen = setting("llama-3.1-70b", cost_model)
        row = workload_answer(chosen, *np.array(TURNS).T)
        ttft = sorted(known(turn_answer(chosen, k, t).ttft_s) for k, t in TURNS)
        # of five turns the 3rd, ceil(4.5) = 5th and ceil(4.95) = 5th
        for label, place in (("p50", 2), ("p90", 4), ("p99", 4)):
            at = row.percentiles()[label]
            load, compute = at.ttft_transfer_s, known(at.ttft_compute_s)
            assert at.ttft_s == load + compute == pytest.approx(ttft[place])
            one = turn_answer(chosen, at.ttft_cached_tokens, at.ttft_prefill_tokens)
            assert (one.transfer_s, one.compute_s) == pytest.approx((load, compute))

    def test_from_which_k_on(self) -> None:
        """At 1 GB/s attention has a crossover, 2n none; on a fast link loading always wins."""
        slow = workload_answer(setting("llama-3.1-70b", "attention", 1e9), *np.array(TURNS).T)
        # T sorted 10, 20, 100, 100, 3000: the median is 100
        # 2 x (327,680 x 544,225 - 136,904,704,000) / 2,621,440 - 1 = 31,605.2, whatever T
        found = (slow.p50.load_pays, slow.p50.load_from_cached_tokens, slow.p99.load_pays, slow.p50.prefill_tokens)
        assert found == ("from", 31_606, "from", 100)
        never = workload_answer(setting("llama-3.1-70b", "2n", 1e9), *np.array(TURNS).T)
        assert (never.p50.load_pays, never.p50.load_from_cached_tokens) == ("never", None)
        always = workload_answer(setting("llama-3.1-70b", "2n", 54.4e9), *np.array(TURNS).T)
        assert (always.p50.load_pays, always.p50.load_from_cached_tokens) == ("always", 1)

    def test_the_crossover_depends_on_t_where_weights_are_read(self) -> None:
        """Under `full` few new tokens leave the GPU idle, so that recomputing a short K costs nothing."""
        row = workload_answer(setting("llama-3.1-70b", "full"), *np.array(TURNS).T)
        # 3,000 tokens are far above the floor of about 303: loading pays from the first token on
        assert known(row.p50.load_from_cached_tokens) > 1
        assert (row.p99.load_from_cached_tokens, row.p99.load_pays) == (1, "always")


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.sampled_from([0.5, 0.9, 0.99]))
def test_nearest_rank_is_a_value_that_the_share_does_not_exceed(values: list[float], share: float) -> None:
    """The same as NumPy's inverse of the empirical distribution, and always one of the values."""
    found = values[nearest_rank(np.array(values), share)]
    assert found == np.quantile(values, share, method="inverted_cdf")


class TestWhatEachLinkNeeds:
    """`needed_bytes_per_s` is of all GPUs together, `link_needed_bytes_per_s` of each."""

    def test_by_hand(self, crit: Crit) -> None:
        """Eight heads on eight GPUs: an eighth each; a latent is loaded whole by each."""
        (gqa,) = crit("--model", "llama-3.1-70b", *H100, *TURN, "--cost-model", "2n", "--tensor-parallel", "8")
        assert gqa["link_needed_bytes_per_s"] == pytest.approx(gqa["needed_bytes_per_s"] / 8)
        # overhead x the rate of one link
        assert gqa["link_needed_bytes_per_s"] == pytest.approx(gqa["pcie_overhead"] * 54.4e9)
        (mla,) = crit("--model", "deepseek-v3", *H100, *TURN, "--cost-model", "2n", "--tensor-parallel", "8")
        assert mla["link_needed_bytes_per_s"] == mla["needed_bytes_per_s"]


def test_nothing_cached_is_no_question_of_loading(crit: Crit, said: Callable[..., str]) -> None:
    """K = 100 fills no chunk of 256: everything is computed, and neither loading nor recomputing is faster."""
    names = ("--model", "llama-3.1-70b", *H100, "--cached-tokens", "100", "--new-tokens", "1", "--chunk", "256")
    row = crit(*names)[0]
    # 0 chunks: T = 100 + 1
    assert (row["cached_tokens"], row["prefill_tokens"], row["faster"]) == (0, 101, None)
    assert (row["asked_cached_tokens"], row["asked_new_tokens"]) == (100, 1)
    text = said(*names)
    assert "reuse in chunks of 256 tokens (of K = 100, T = 1)" in text
    assert "load or recompute" not in text


def test_loading_begins_with_a_whole_chunk(crit: Crit) -> None:
    """K = 50 fills no chunk of 256: loading is faster from the first whole chunk on, and not `always`."""
    turn = ("--cached-tokens", "50", "--new-tokens", "10", "--cost-model", "2n")
    (row,) = crit("--model", "llama-3.1-70b", *H100, *turn, "--chunk", "256")
    # 131,072 tokens of context are 512 chunks
    assert (row["cached_tokens"], row["load_pays"], row["load_pays_ranges"]) == (0, "from", "256-")
    (fine,) = crit("--model", "llama-3.1-70b", *H100, *turn)
    assert (fine["load_pays"], fine["load_pays_ranges"]) == ("always", "1-")
    # a chunk beyond the context is never full
    (huge,) = crit("--model", "llama-3.1-70b", *H100, *turn, "--chunk", "131073")
    assert (huge["load_pays"], huge["load_pays_ranges"]) == ("never", None)


def test_many_answers_name_each_tokenizer(crit: Crit, said: Callable[..., str]) -> None:
    """A table of many models has a line each, with seconds, rates and confidences in words."""
    text = said("--cached-tokens", "5000", "--new-tokens", "70", "--cost-model", "full")
    line = next(line for line in text.splitlines() if line.startswith("llama-3.1-70b") and " h100-sxm " in line)
    (row,) = crit(
        "--model", "llama-3.1-70b", *H100, "--cached-tokens", "5000", "--new-tokens", "70", "--cost-model", "full"
    )
    # 5,000 x 327,680 / 4 / 54.4e9 = 7.529 ms; weights 2 x 69,503,025,152 / (0.82 x 4 x 3350e9) = 12.65 ms, and
    # 0.387 ms of attention, 0.918 ms of adding over GPUs
    assert (row["transfer_s"], row["compute_s"]) == pytest.approx((0.0075294, 0.0139559), abs=1e-6)
    assert all(words in line for words in ("7.529 ms", "13.96 ms", "high/high/high"))


def test_a_user_s_own_indexer(crit: Crit, tmp_path: Path) -> None:
    """A model of a user with an indexer has every cost model once its row names the indexer's heads."""
    folder = tmp_path / "reference"
    folder.mkdir()
    shape = {name: getattr(SOURCES.models["glm-5"], name) for name in REFERENCE["models"].names}
    for heads, expected in ((None, ["2n"]), (32, ["2n", "attention", "full"])):
        row = shape | {"model": "mine", "note": None, "index_heads": heads}
        with (folder / "models.csv").open("w", encoding="utf8", newline="") as file:
            cells = {column: "" if value is None else str(value) for column, value in row.items()}
            flags = {column: cell.lower() if cell in ("True", "False") else cell for column, cell in cells.items()}
            csv.writer(file).writerows([flags.keys(), flags.values()])
        assert [row["cost_model"] for row in crit("--model", "mine", *H100, *TURN)] == expected
    # the same shape as glm-5, so the same times
    ours, theirs = (crit("--model", name, *H100, *TURN, "--cost-model", "attention")[0] for name in ("mine", "glm-5"))
    assert ours["compute_s"] == theirs["compute_s"]


def test_warnings_stand_in_text_and_rows(crit: Crit, said: Callable[..., str]) -> None:
    """A context that is too long and heads that are repeated are told in both."""
    names = ("--model", "llama-3.1-70b", *H100, "--cached-tokens", "200000", "--new-tokens", "64")
    row = crit(*names, "--tensor-parallel", "16")[0]
    assert row["warnings"].count(" | ") == 2
    text = said(*names, "--tensor-parallel", "16")
    assert "note: K + T = 200,064 is beyond the context of llama-3.1-70b, 131,072 tokens" in text
    assert "note: 16 GPUs share 8 KV heads of llama-3.1-70b: each is on 2 GPUs" in text
    assert crit("--model", "llama-3.1-70b", *H100, *TURN)[0]["warnings"] is None
    assert "note: 12 GPUs do not divide" in said("--model", "llama-3.1-70b", *H100, "--tensor-parallel", "12")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--tier-share 0.5 --cached-tokens 5 --new-tokens 5", "--tier-share needs --tier"),
        ("--counting chat --cached-tokens 5 --new-tokens 5", "--counting needs --workload"),
        ("--reuse prefix --cached-tokens 5 --new-tokens 5", "--reuse needs --workload"),
        ("--workload finqa --output-tokens 5 --pool-tokens 5", "--output-tokens and --pool-tokens need a turn"),
        ("--cached-tokens 5 --new-tokens 5 --idle-w 500 --busy-w 100", "it is above --busy-w"),
        ("--cached-tokens 5 --new-tokens 5 --tier-share nan --tier nvme-gen5-x4", "--tier-share nan is not possible"),
        ("--bandwidth 0GB/s", "bandwidth '0GB/s' is not understood"),
        ("--bandwidth nanGB/s", "bandwidth 'nanGB/s' is not understood"),
    ],
)
def test_contradictions(options: str, words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """One line that says what is wrong, and nothing on standard output."""
    names = ["crit", "--home", str(tmp_path), "--model", "llama-3.1-70b", "--accelerator", "h100-sxm"]
    assert main([*names, *options.split()]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert words in told.err


def test_a_link_that_the_paper_does_not_have(capsys: pytest.CaptureFixture[str]) -> None:
    """What the paper has is listed."""
    assert main(["crit", "--accelerator", "h100-sxm", "--link", "pcie3-x16", "--basis", "paper"]) == 1
    told = capsys.readouterr().err
    assert "nothing fits pcie3-x16, the paper has a100-sxm-80gb, b200-sxm, h100-sxm" in told


class TestSeveralGpus:
    """What is of one GPU and what of all."""

    SHARED = ("--model", "llama-3.1-70b", *H100, "--cached-tokens", "8192", "--new-tokens", "100",
              "--idle-w", "150", "--busy-w", "700", "--cost-model", "2n", "--tensor-parallel")  # fmt: skip

    def test_energy_is_that_of_all(self, crit: Crit, said: Callable[..., str]) -> None:
        """Eight GPUs draw eight times the power of one."""
        (row,) = crit(*self.SHARED, "8")
        # load 8,192 x 327,680 / 8 / 54.4e9 = 6.1681 ms, compute 100 x 1.411074e11 / (8 x 544.225e12) = 3.2410 ms:
        # 8 x (150 W x 6.1681 ms + 700 W x 3.2410 ms) = 8 x 3.1939 J
        assert row["energy_j"] == pytest.approx(25.551, abs=1e-3)
        # over 9.4092 ms
        assert row["average_power_w"] == pytest.approx(25.551 / 9.4092e-3, rel=1e-4)
        text = said(*self.SHARED, "8")
        assert "energy, all GPUs" in text
        assert "average power, all GPUs" in text

    def test_a_state_is_shared_by_all(self, crit: Crit) -> None:
        """Two KV heads lie on four GPUs each, an eighth of the state on each."""
        names = ("--model", "qwen3-next-80b-a3b", *H100, "--cached-tokens", "10000", "--new-tokens", "64")
        row = crit(*names, "--tensor-parallel", "8", "--cost-model", "full")[0]
        # (10,000 x 24,576 / 2 + 77,266,944 / 8) / 54.4e9 = 132,538,368 / 54.4e9
        assert row["transfer_s"] == pytest.approx(2.4364e-3, rel=1e-4)
        # bytes of one GPU over its t_GPU; all bytes once over it
        assert row["link_needed_bytes_per_s"] == pytest.approx(132_538_368 / row["compute_s"])
        assert row["needed_bytes_per_s"] == pytest.approx(323_026_944 / row["compute_s"])
        assert row["requests_per_s"] == pytest.approx(54.4e9 / 132_538_368)
        load, again = row["transfer_s"] + row["compute_s"], row["recompute_s"]
        assert load < again

    def test_rates_are_called_what_they_are(self, crit: Crit, said: Callable[..., str]) -> None:
        """Four heads on eight GPUs: each link 54.4, together they carry 435.2, and half of that is a repetition."""
        names = ("--model", "qwen3-235b-a22b", *H100, *TURN, "--cost-model", "2n", "--tensor-parallel", "8")
        (row,) = crit(*names)
        assert (row["link_bytes_per_s"], row["bytes_per_s"]) == (54.4e9, 54.4e9 * 4)
        text = said(*names)
        assert "54.4 GB/s one direction on each one's link, effectively 217.6 GB/s of 435.2 GB/s: KV heads or" in text
        # eight heads on eight GPUs: nothing is repeated
        assert "effectively 435.2 GB/s\n" in said(*self.SHARED, "8")

    def test_loading_at_both_ends(self) -> None:
        """Both ranges are told, not the last alone."""
        usual = workload_answer(setting("llama-3.1-70b", "2n"), *np.array(TURNS).T).p50
        assert pays(replace(usual, load_pays="in ranges", load_pays_ranges="1-307, 757-")) == "to K = 307, from K = 757"


class TestSecondsOfThePaper:
    """Seconds follow from the rates that are shown, whatever was printed."""

    @pytest.mark.parametrize("link", ["pcie4-x16", "pcie5-x16"])
    def test_compute_does_not_depend_on_the_link(self, crit: Crit, said: Callable[..., str], link: str) -> None:
        """405B at T = 64: 64 x 810e9 / 1979e12 = 26.195 ms over either link."""
        names = ("--model", "llama-3.1-405b", "--accelerator", "h100-sxm", "--link", link, "--basis", "paper")
        turn = ("--cached-tokens", "10000", "--new-tokens", "64")
        (row,) = crit(*names, *turn)
        assert row["compute_s"] == pytest.approx(26.195e-3, rel=1e-4)
        assert row["transfer_s"] == pytest.approx(10_000 * 516e3 / row["link_bytes_per_s"])
        assert row["ttft_s"] == row["transfer_s"] + row["compute_s"]
        # 10,000 / 64 = 156.25 over 1.42e6 x 17e-6 = 24.14 or x 34e-6 = 48.28, as printed
        crit_as_printed = {"pcie4-x16": 24.14, "pcie5-x16": 48.28}[link]
        assert row["pcie_overhead"] == pytest.approx(156.25 / crit_as_printed)
        line = "paper: seconds follow from its inputs at the rates shown; kappa_crit, overhead"
        assert said(*names, *turn).count(line) == 1
        # a table of many answers says it too, and no other basis does
        assert said(*turn).count(line) == 1
        assert line not in said("--model", "llama-3.1-405b", *H100, *turn)

    def test_a_workload_has_the_shares_of_the_table(self) -> None:
        """Shares compare kappa_ratio with kappa_crit as printed, like `boundness`; seconds do not."""
        model = SOURCES.models["llama-3.1-70b"]
        paper = replace(model, flops_per_token=140e9, marginal_kv_bytes_per_token=328_000)
        rates = Machine(1979e12, 67.108864e9)
        # 140e9 / 328e3 x 67.108864e9 / 1979e12 = 14.474 by the inputs, 14.28 as printed
        setting = Setting(paper, rates, "bf16", "2n", as_printed=14.474 / 14.28)
        # kappa_ratio 14.4 lies between both: memory bound by the printed one alone
        row = workload_answer(setting, np.array([1440]), np.array([100]))
        assert row.memory_bound_turn_share == 1
        assert row.p50.ttft_transfer_s < known(row.p50.ttft_compute_s)
        assert row.p50.pcie_overhead == pytest.approx(14.4 / 14.28, rel=1e-4)

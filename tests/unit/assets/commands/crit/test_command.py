"""`kappa crit`: the rows it chooses, pairs and bandwidths that no table has, tensor parallelism, and what it says."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.commands.cli import main
from pipelines.hardware.machines import GIVEN_LINK, read_sources
from pipelines.hardware.ratios import fitting_platforms, hardware_tables, kappa_crit_rows
from pipelines.hardware.served import Serving
from warehouse.formulas.kappa import tensor_parallel_factor
from warehouse.hardware_rows.rows import load_reference

Crit = Callable[..., list[dict[str, Any]]]
SOURCES = read_sources()


@pytest.fixture
def crit(capsys: pytest.CaptureFixture[str]) -> Crit:
    """Return a function that runs `kappa crit` and returns its rows."""

    def run(*arguments: str) -> list[dict[str, Any]]:
        assert main(["crit", *arguments, "--format", "json"]) == 0
        return list(json.loads(capsys.readouterr().out))

    return run


def crit_rows(
    accelerator: str | None = None,
    link: str | None = None,
    *,
    bytes_per_s: float | None = None,
    tensor_parallel: int | None = None,
) -> list[dict[str, Any]]:
    """Return rows of kappa_crit for every platform that fits."""
    fits = fitting_platforms(SOURCES, accelerator, link, is_bandwidth_given=bytes_per_s is not None)
    return [
        asdict(row)
        for platform in fits
        for row in kappa_crit_rows(SOURCES, platform, bytes_per_s=bytes_per_s, serving=Serving(gpus=tensor_parallel))
    ]


def one(rows: list[dict[str, Any]], **wanted: object) -> dict[str, Any]:
    """Return the one row with these values."""
    found = [row for row in rows if wanted.items() <= row.items()]
    assert len(found) == 1
    return found[0]


class TestTensorParallelism:
    """kappa_crit x (1 / tp) / max(1 / tp, 1 / kv_heads)."""

    @pytest.mark.parametrize(
        ("gpus", "kv_heads", "factor"),
        [
            (1, 8, 1), (8, 8, 1), (4, 8, 1),
            (16, 8, 1 / 2),  # (1/16) / (1/8)
            (8, 4, 1 / 2),  # (1/8) / (1/4)
            (8, 1, 1 / 8),  # a latent cache is on every GPU: (1/8) / 1
            (1, 1, 1),
        ],
    )  # fmt: skip
    def test_by_hand(self, gpus: int, kv_heads: int, factor: float) -> None:
        """Heads are shared while there are enough of them, and repeated beyond."""
        assert tensor_parallel_factor(gpus, kv_heads) == pytest.approx(factor)

    @given(st.integers(1, 64), st.integers(1, 64))
    def test_it_never_helps(self, gpus: int, kv_heads: int) -> None:
        """It is min(1, kv_heads / tp): never above 1, and 1 exactly while the heads last."""
        factor = tensor_parallel_factor(gpus, kv_heads)
        assert factor == pytest.approx(min(1, kv_heads / gpus))

    def test_of_models(self) -> None:
        """GQA by its heads, MLA as one head; kappa_HW stays, and a model without kappa_crit has none."""
        single = crit_rows(accelerator="h100-sxm", link="pcie5-x16", tensor_parallel=1)
        shared = crit_rows(accelerator="h100-sxm", link="pcie5-x16", tensor_parallel=16)
        # 70B has 8 kv heads: 8/16; DeepSeek-V3 is MLA: 1/16; Qwen3-235B has 4: 4/16
        for model, factor in (("llama-3.1-70b", 1 / 2), ("deepseek-v3", 1 / 16), ("qwen3-235b-a22b", 1 / 4)):
            for basis in ("physical", "paper"):
                names = {"model": model, "basis": basis, "kv_dtype": "bf16"}
                before, after = one(single, **names), one(shared, **names)
                assert after["kappa_crit"] == pytest.approx(factor * before["kappa_crit"])
                assert after["kappa_hw_byte_per_flop"] == before["kappa_hw_byte_per_flop"]
        none = one(shared, model="gpt-oss-120b", basis="physical", kv_dtype="bf16")
        assert (none["kappa_crit"], none["kappa_m_flop_per_byte"]) == (None, None)


class TestRows:
    """kappa_crit of the platforms that fit."""

    def test_without_a_choice_it_is_the_table(self) -> None:
        """Every row of `kappa_crit`, number by number."""
        assert crit_rows() == hardware_tables()["kappa_crit"].to_pylist()

    def test_a_pair_that_is_no_platform(self) -> None:
        """It is computed on the physical basis from the rows of both."""
        rows = crit_rows(accelerator="h100-sxm", link="nvlink-c2c")
        assert {row["basis"] for row in rows} == {"physical"}
        row = one(rows, model="llama-3.1-70b", kv_dtype="bf16")
        # 375 GB/s measured / (0.55 x 989.5e12) = 6.8905e-4; x 430,626 = 296.7
        assert row["kappa_hw_byte_per_flop"] == pytest.approx(375e9 / (0.55 * 989.5e12))
        assert row["kappa_crit"] == pytest.approx(296.7, abs=0.05)

    def test_a_bandwidth(self) -> None:
        """It takes the place of the link's on both bases, once an accelerator, under a name of its own."""
        rows = crit_rows(accelerator="h100-sxm", bytes_per_s=15e9)
        assert {(row["link"], row["basis"]) for row in rows} == {(GIVEN_LINK, "physical"), (GIVEN_LINK, "paper")}
        # paper: 0.42e6 x 15e9 / 1979e12 = 3.183; physical: 430,626 x 15e9 / (0.55 x 989.5e12) = 11.87
        for basis, expected in (("paper", 3.183), ("physical", 11.87)):
            row = one(rows, model="llama-3.1-70b", kv_dtype="bf16", basis=basis)
            assert row["kappa_crit"] == pytest.approx(expected, abs=0.005)

    def test_a_bandwidth_on_a_link(self) -> None:
        """With a link named, its platforms stay and only the bandwidth is another one."""
        slow, fast = (crit_rows(link="pcie5-x16", bytes_per_s=b) for b in (1e9, 2e9))
        assert {row["link"] for row in slow} == {"pcie5-x16"}
        # twice the bandwidth, twice kappa_crit
        for a, b in zip(slow, fast, strict=True):
            assert (a["kappa_crit"] is None) == (b["kappa_crit"] is None)
            if a["kappa_crit"] is not None:
                assert b["kappa_crit"] == pytest.approx(2 * a["kappa_crit"])

    def test_every_pair_can_be_asked(self) -> None:
        """Each accelerator with each link has an answer, whether or not they are built together."""
        links = {*SOURCES.links, *(row.link for row in SOURCES.platforms)}
        for accelerator, link in itertools.product(SOURCES.accelerators, sorted(links)):
            rows = crit_rows(accelerator=accelerator, link=link)
            # a positive number, or none where bytes per token are not constant
            assert rows
            assert all(row["kappa_crit"] is None or row["kappa_crit"] > 0 for row in rows)

    @pytest.mark.parametrize(
        ("accelerator", "link", "kappa_crit"),
        [
            # 430,625.65 FLOP/byte x rate / (0.55 x dense): 26e9 / 1237.5e12, 375e9 / 1237.5e12, 54.4e9 / 171.6e12
            ("b200-sxm", "pcie4-x16", 9.0475),
            ("b200-sxm", "nvlink-c2c", 130.493),
            ("a100-sxm-80gb", "pcie5-x16", 136.516),
        ],
    )
    def test_a_pair_of_the_paper_is_answered_on_the_physical_basis_too(
        self, crit: Crit, accelerator: str, link: str, kappa_crit: float
    ) -> None:
        """Whether or not the paper pairs them, with and without --basis, at the link's rate and at another one."""
        names = ("--model", "llama-3.1-70b", "--accelerator", accelerator, "--link", link)
        (row,) = crit(*names, "--basis", "physical")
        assert row["kappa_crit"] == pytest.approx(kappa_crit, rel=1e-4)
        assert row["warnings"].startswith(f"no physical row of platforms says that {accelerator} with {link} is built")
        assert one(crit(*names), basis="physical") == row
        assert {row["basis"] for row in crit(*names)} == {"paper", "physical"}
        (half,) = crit(*names, "--basis", "physical", "--bandwidth", "13GB/s")
        (full,) = crit(*names, "--basis", "physical", "--bandwidth", "26GB/s")
        assert 2 * half["kappa_crit"] == pytest.approx(full["kappa_crit"])

    def test_a_sustained_fraction(self, crit: Crit) -> None:
        """The whole dense peak and a clean 64 GB/s: 2 x 70.5537e9 / 327,680 x 64e9 / 989.5e12 = 27.85."""
        names = ("--model", "llama-3.1-70b", "--accelerator", "h100-sxm")
        (row,) = crit(*names, "--bandwidth", "64GB/s", "--sustained-fraction", "1.0")
        assert row["kappa_crit"] == pytest.approx(27.85, abs=0.005)
        assert row["flop_per_s_source"].endswith("dense bf16 peak x 1.0, --sustained-fraction")
        link = ("--link", "pcie5-x16")
        # 0.55 by default, so half of it is 0.275; the paper's rows do not know it and are left out
        (half,) = crit(*names, *link, "--sustained-fraction", "0.275")
        assert half["kappa_crit"] == pytest.approx(2 * 43.0448, abs=1e-3)
        turn = crit(*names, *link, "--sustained-fraction", "0.275", "--cached-tokens", "9", "--new-tokens", "9")
        assert {row["flop_per_s"] for row in turn} == {4 * 0.275 * 989.5e12}
        # of a mixture of experts too, whose own is 0.25
        (moe,) = crit("--model", "qwen3-235b-a22b", *names[2:], *link, "--sustained-fraction", "0.5")
        assert moe["kappa_crit"] == pytest.approx(25.35 / 2, abs=0.01)

    def test_unknown_names_fit_nothing(self) -> None:
        """An accelerator without any platform and without a link has no row."""
        lonely = {row["accelerator"] for row in load_reference("accelerators").to_pylist()} - {
            row["accelerator"] for row in load_reference("platforms").to_pylist()
        }
        for accelerator in lonely:
            # 0 platforms
            assert crit_rows(accelerator=accelerator) == []


class TestCommand:
    """The command over the rows."""

    def test_the_headlines(self, crit: Crit) -> None:
        """Without any choice: headline models on headline platforms at bf16, nothing else."""
        headlines = load_reference("headlines").to_pylist()
        models = {row["model"] for row in headlines if row["model"]}
        platforms = {(row["accelerator"], row["link"], row["basis"]) for row in headlines if row["accelerator"]}
        rows = crit()
        assert {row["model"] for row in rows} == models
        assert {(row["accelerator"], row["link"], row["basis"]) for row in rows} == platforms
        assert {row["kv_dtype"] for row in rows} == {"bf16"}

    def test_the_headlines_are_well_known(self, crit: Crit) -> None:
        """What is shown without being named is high or medium in every row that it rests on, as the docs say."""
        for row in crit():
            names = ("model", "accelerator", "link", "platform")
            assert {row[f"{name}_confidence"] for name in names} <= {"high", "medium", "printed"}

    def test_one_row(self, crit: Crit) -> None:
        """Every option narrows; the printed 14.3 of the paper."""
        names = ("--model", "llama-3.1-70b", "--accelerator", "h100-sxm", "--link", "pcie5-x16", "--basis", "paper")
        (row,) = crit(*names)
        # 0.42e6 x 34e-6 = 14.28, both as printed
        assert row["kappa_crit"] == pytest.approx(14.28)
        (half,) = crit(*names, "--kv-dtype", "fp8")
        assert half["kappa_crit"] == pytest.approx(2 * row["kappa_crit"])

    def test_proxies_are_marked(self, crit: Crit, capsys: pytest.CaptureFixture[str]) -> None:
        """A model with another vocabulary says so in its row and below the table, any other does not."""
        (row,) = crit("--model", "deepseek-v3", "--accelerator", "h100-sxm", "--link", "pcie5-x16", "--basis", "paper")
        assert row["is_tokenizer_proxy"] is True
        for model, is_told in (("deepseek-v3", True), ("qwen3-8b", False)):
            assert main(["crit", "--model", model, "--accelerator", "h100-sxm"]) == 0
            assert ("is_tokenizer_proxy: the model has" in capsys.readouterr().out) == is_told

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--model", "llama-70b"], "model 'llama-70b'"),
            (["--accelerator", "H100"], "accelerator 'H100', nearest are h100-nvl, h100-sxm"),
            (["--accelerator", "a100"], "a100-sxm-40gb, a100-sxm-80gb, a100-pcie-40gb, a100-pcie-80gb,"),
            (["--model", "LLAMA-3.1-71B"], "model 'LLAMA-3.1-71B', nearest are llama-3.1-70b"),
            (["--link", "pcie5"], "link 'pcie5'"),
            (["--kv-dtype", "fp4"], "kv dtype 'fp4', nearest are nvfp4, fp8"),
            (["--accelerator", "tpu-v5e", "--basis", "measured"], "nothing was measured here"),
        ],
    )
    def test_errors(self, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
        """One line, exit code 1, and nothing on standard output."""
        assert main(["crit", *arguments]) == 1
        told = capsys.readouterr()
        # 1 line
        assert (told.out, told.err.count("\n")) == ("", 1)
        assert told.err.startswith("error: ")
        assert words in told.err

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--bandwidth", "15"], "bandwidth '15' "),
            (["--bandwidth", "-5GB/s"], "bandwidth '-5GB/s' "),
            (["--tensor-parallel", "0"], "--tensor-parallel 0 "),
            (["--tensor-parallel", "1000003"], "--tensor-parallel 1000003 "),
            (["--sustained-fraction", "0"], "--sustained-fraction 0.0 "),
            (["--sustained-fraction", "1.1"], "--sustained-fraction 1.1 "),
            (["--sustained-fraction", "nan"], "--sustained-fraction nan "),
            (["--sustained-fraction", "1", "--basis", "paper"], "only the physical basis takes a share"),
        ],
    )
    def test_numbers_that_cannot_be(self, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
        """One line like any error, exit code 2."""
        assert main(["crit", *arguments]) == 2
        told = capsys.readouterr()
        # 1 line
        assert (told.out, told.err.count("\n")) == ("", 1)
        assert words in told.err

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--tensor-parallel", "2.5"], "error: argument --tensor-parallel, invalid int value: '2.5', see `kappa"),
            (["--tier-share", "50%"], "error: argument --tier-share, invalid float value: '50%', see `kappa"),
        ],
    )
    def test_no_number(self, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
        """What is no number is told in one line too."""
        with pytest.raises(SystemExit) as caught:
            main(["crit", *arguments])
        told = capsys.readouterr()
        # 1 line
        assert (caught.value.code, told.err.count("\n")) == (2, 1)
        assert told.err.startswith(words)

    @pytest.mark.parametrize(
        "arguments", [["--basis", "other"], ["--tensor-parallel", "two"], ["--format", "xml"], ["--kv"], ["more"]]
    )
    def test_usage(self, arguments: list[str]) -> None:
        """Wrong usage is exit code 2."""
        with pytest.raises(SystemExit) as caught:
            main(["crit", *arguments])
        assert caught.value.code == 2

    def test_a_model_that_the_paper_does_not_have(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The reason is the model: the paper lists five."""
        assert main(["crit", "--model", "qwen3-8b", "--accelerator", "h100-sxm", "--basis", "paper"]) == 1
        assert "no platform has that accelerator with that link" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--chunk 256", "--chunk needs a turn or a workload"),
        ("--tier nvme-gen5-x4 --output-tokens 5", "--tier and --output-tokens need a turn or a workload"),
        ("--cached-tokens 5 --new-tokens 5 --output-tokens -3", "--output-tokens -3 is not possible"),
        ("--cached-tokens 5 --new-tokens 5 --pool-tokens 0", "--pool-tokens 0 is not possible"),
        ("--cached-tokens 5 --new-tokens 5 --idle-w nan --busy-w 5", "--idle-w or --busy-w is not possible"),
        ("--cached-tokens 9999999999999 --new-tokens 5", "a number of tokens or GPUs is not possible"),
    ],
)
def test_options_that_mean_nothing(options: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An option that has no effect, or a number that cannot be, is refused in one line and never passed over."""
    assert main(["crit", "--model", "llama-3.1-70b", "--accelerator", "h100-sxm", *options.split()]) == 2
    assert said in capsys.readouterr().err

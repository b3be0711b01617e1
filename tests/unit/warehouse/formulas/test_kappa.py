"""The formulae against numbers worked by hand; peaks and printed inputs, no table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.formulas import kappa

H100_DENSE = 989.5e12


@pytest.mark.parametrize(
    ("active_params", "kv_bytes", "expected"),
    [
        (70_553_706_496, 327_680, 27.85),
        (22_190_763_520, 192_512, 14.91),
        (405_853_388_800, 516_096, 101.7),
        (37_552_297_472, 70_272, 69.1),
    ],
)
def test_kappa_crit_from_peaks(active_params: int, kv_bytes: int, expected: float) -> None:
    """On an H100 with 64 GB/s the dense peak gives the values that the paper's sparse peak halves."""
    m = kappa.kappa_m(kappa.flops_per_token(active_params), kv_bytes)
    # 2 x 70.5537e9 / 327,680 x 64e9 / 989.5e12 = 430,626 x 6.46791e-5 = 27.85; the others alike
    assert kappa.kappa_crit(m, kappa.kappa_hw(64e9, H100_DENSE)) == pytest.approx(expected, rel=5e-4)


def test_one_direction_of_c2c_halves_the_paper() -> None:
    """450 GB/s over 5000 TFLOP/s, with the printed kappa_M."""
    hw = kappa.kappa_hw(450e9, 5000e12)
    # 0.23e6 x 9e-5 = 20.7 and 1.06e6 x 9e-5 = 95.4
    assert kappa.kappa_crit(0.23e6, hw) == pytest.approx(20.7)
    assert kappa.kappa_crit(1.06e6, hw) == pytest.approx(95.4)


def test_text_values_of_405b() -> None:
    """The text of the paper divides other inputs than its tables."""
    m = kappa.kappa_m(810e9, 516e3)
    # 810e9 / 516e3 = 1.5698e6; x 64e9 / 2000e12 = 50.2, x 15e9 / 2000e12 = 11.8
    assert kappa.kappa_crit(m, kappa.kappa_hw(64e9, 2000e12)) == pytest.approx(50.2, abs=0.05)
    assert kappa.kappa_crit(m, kappa.kappa_hw(15e9, 2000e12)) == pytest.approx(11.8, abs=0.05)


def test_measured_overhead_follows_from_no_input() -> None:
    """The printed overhead of 86 at K = 65K, T = 64 is a measurement: the model gives 131 or 560."""
    ratio = kappa.kappa_ratio(64 * 1024, 64)
    # 65,536 / 64 = 1024; 1024 / 7.82 = 131, 1024 / 1.83 = 560
    assert kappa.pcie_overhead(ratio, 7.82) == pytest.approx(131, abs=0.5)
    assert kappa.pcie_overhead(ratio, 1.83) == pytest.approx(560, abs=0.5)


def test_transfer_share() -> None:
    """An overhead of 3 leaves a quarter of the time to the computation; 86 is the printed 99 %."""
    # 3 / (1 + 3) = 0.75, 86 / 87 = 0.9885
    assert kappa.transfer_share(3.0) == 0.75
    assert kappa.transfer_share(86.0) == pytest.approx(0.99, abs=0.005)


@given(
    turn=st.tuples(st.integers(0, 10**6), st.integers(1, 10**5)),
    model=st.tuples(st.floats(1e9, 1e12), st.floats(1e4, 1e6)),
    machine=st.tuples(st.floats(1e9, 1e12), st.floats(1e13, 1e16)),
)
def test_overhead_is_the_ratio_of_the_times(
    turn: tuple[int, int], model: tuple[float, float], machine: tuple[float, float]
) -> None:
    """kappa_ratio / kappa_crit is t_PCIe / t_GPU, and the share of TTFT follows from it."""
    (cached, prefill), (flops, kv_bytes), (bandwidth, compute) = turn, model, machine
    transfer = kappa.transfer_s(cached, kv_bytes, bandwidth)
    gpu = kappa.compute_s(prefill, flops, compute)
    crit = kappa.kappa_crit(kappa.kappa_m(flops, kv_bytes), kappa.kappa_hw(bandwidth, compute))
    overhead = kappa.pcie_overhead(kappa.kappa_ratio(cached, prefill), crit)
    assert overhead == pytest.approx(transfer / gpu)
    assert kappa.transfer_share(overhead) == pytest.approx(transfer / kappa.ttft_s(transfer, gpu))


def test_ttft_in_seconds() -> None:
    """Units: 1000 cached tokens of 64 kB over 64 GB/s, 10 new tokens of 1 GFLOP at 1 TFLOP/s."""
    # 1000 x 64e3 / 64e9 = 0.001 s; 10 x 1e9 / 1e12 = 0.01 s; together 0.011 s
    assert kappa.ttft_s(kappa.transfer_s(1000, 64e3, 64e9), kappa.compute_s(10, 1e9, 1e12)) == pytest.approx(0.011)


@pytest.mark.parametrize("prefill", [0, -1])
def test_no_new_token_is_an_error(prefill: int) -> None:
    """T = 0 never becomes an infinity."""
    with pytest.raises(ValueError, match="at least one token"):
        kappa.kappa_ratio(10, prefill)


def test_first_turn_has_ratio_zero() -> None:
    """K = 0 is an ordinary turn."""
    # 0 / 3 = 0
    assert kappa.kappa_ratio(0, 3) == 0


def test_kv_bytes_of_both_attentions() -> None:
    """Exact bytes per token at bf16, and half of them at fp8."""
    # 80 layers x 8 heads x (128 + 128) x 2 bytes = 327,680
    assert kappa.gqa_kv_bytes_per_token(80, 8, 128, 128, kappa.ELEMENT_BYTES["bf16"]) == 327_680
    # 61 layers x (512 + 64) x 2 bytes = 70,272; x 1 byte = 35,136
    assert kappa.mla_kv_bytes_per_token(61, 512, 64, kappa.ELEMENT_BYTES["bf16"]) == 70_272
    assert kappa.mla_kv_bytes_per_token(61, 512, 64, kappa.ELEMENT_BYTES["fp8"]) == 35_136


@pytest.mark.parametrize(
    ("cached", "prefill", "block", "expected"),
    [
        (100, 30, 1, (100, 30)),
        (100, 30, 16, (96, 34)),
        (100, 30, 256, (0, 130)),
        (63, 1, 16, (48, 16)),
        (0, 5, 16, (0, 5)),
        (256, 1, 256, (256, 1)),
    ],
)
def test_block_tokens(cached: int, prefill: int, block: int, expected: tuple[int, int]) -> None:
    """What does not fill a block is computed again."""
    # 16 x floor(100 / 16) = 16 x 6 = 96 and 100 + 30 - 96 = 34; the others alike
    assert kappa.block_tokens(cached, prefill, block) == expected
    arrays = kappa.block_tokens(np.array([cached]), np.array([prefill]), block)
    assert (arrays[0][0], arrays[1][0]) == expected


def test_scheduled_tokens() -> None:
    """The printed 3509 tokens per iteration, from the pool that is fitted to it."""
    # 479,150 / (1 + 11,115 / 82) = 479,150 / 136.55 = 3509; by bytes: 82 x 479,150 / (11,115 + 82) = 3509
    assert kappa.scheduled_tokens(479_150, kappa.kappa_ratio(11_115, 82)) == pytest.approx(3509, abs=0.5)
    by_bytes = 82 * 479_150 / (11_115 + 82)
    assert by_bytes == pytest.approx(3509, abs=0.5)

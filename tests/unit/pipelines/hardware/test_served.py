"""The worked examples of the model of load, compute and TTFT; rates and sizes are those of the examples."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipelines.hardware import costs
from pipelines.hardware.entities import Pair
from pipelines.hardware.machines import Sources, read_sources
from pipelines.hardware.served import Served, Serving, serve
from pipelines.hardware.what_if import Setting, kappa_crit_of

SOURCES = read_sources()
# The examples take 85.5e9 bytes of memory for an H100; nvidia-smi shows 81,559 MiB, 85.52e9.
ROUNDED = replace(
    SOURCES,
    accelerators=SOURCES.accelerators | {"h100-sxm": replace(SOURCES.accelerators["h100-sxm"], hbm_bytes=85.5e9)},
)
H100, A100 = Pair("h100-sxm", "pcie5-x16", "physical"), Pair("a100-sxm-80gb", "pcie4-x16", "physical")
NODE = Serving(gpus=8, node_bytes_per_s=15e9)


def served(name: str, platform: Pair, serving: Serving, sources: Sources = SOURCES, rate: float = 54.4e9) -> Served:
    """Serve a model of the tables over a link of 54.4 GB/s."""
    return serve(sources, platform, sources.models[name], serving, bytes_per_s=rate)


def close(value: float) -> object:
    """Within 0.1 %."""
    return pytest.approx(value, rel=1e-3)


def test_gpus_of_a_dense_model() -> None:
    """Example 1: W = 2 x 70,553,706,496; 0.9 x 85.5e9 - 3.5e9 - W / 2 = 2.896e9 is below 0.09 x 85.5e9, W / 4 fits."""
    two = served("llama-3.1-70b", H100, Serving(gpus=2), ROUNDED)
    assert two.fit is not None
    assert not two.fit.fits
    # 76.95 - 3.5 - 70.5537 GB
    assert two.fit.pool_bytes == pytest.approx(2.8963e9, rel=1e-4)
    found = served("llama-3.1-70b", H100, Serving(), ROUNDED)
    assert found.gpus == 4
    # 76.95 - 3.5 - 35.2769 GB, at 327,680 / 4 bytes a token
    assert int(found.fit.pool_bytes // (327_680 / 4)) == 465_980  # type: ignore[union-attr]


def test_gpus_of_mixtures() -> None:
    """Example 2: fp8 keeps 2 bytes of embedding and head: 671,026,419,200 + 2 x 926,679,040; mxfp4 only experts."""
    v3 = served("deepseek-v3", H100, Serving(), ROUNDED)
    assert (v3.gpus, v3.weight_dtype, v3.compute_dtype) == (16, "fp8", "fp8")
    assert v3.fit is not None
    assert v3.fit.weight_bytes == 672_879_777_280
    oss = served("gpt-oss-120b", H100, Serving(), ROUNDED)
    assert (oss.gpus, oss.weight_dtype, oss.compute_dtype) == (1, "mxfp4", "bf16")
    assert oss.fit is not None
    assert oss.fit.weight_bytes == 65_190_340_224
    assert oss.fit.pool_bytes == close(8.260e9)


@pytest.mark.parametrize(
    ("name", "serving", "cached", "copied", "rate", "seconds"),
    [
        ("llama-3.1-70b", Serving(gpus=4, block_layout="packed"), 8192, 1_310_720, 34.41e9, 19.50e-3),
        ("llama-3.1-8b", Serving(gpus=1, block_layout="layer"), 8000, 32_768, 2.244e9, 467.3e-3),
    ],
)
def test_size_of_copies(  # noqa: PLR0913, PLR0917 - one example
    name: str, serving: Serving, cached: int, copied: int, rate: float, seconds: float
) -> None:
    """Example 3: 16 x 327,680 / 4 packed; 16 x 131,072 / (2 x 32) a layer at a time."""
    found = served(name, H100, replace(serving, copy_latency_s=14e-6))
    assert found.copied_bytes == copied
    assert found.machine.bytes_per_s == close(rate)
    assert costs.transfer_s(SOURCES.models[name], found.machine, float(cached), "bf16") == close(seconds)


@pytest.mark.parametrize(
    ("name", "platform", "serving", "tokens", "parts", "floor", "prefill"),
    [
        ("llama-3.1-8b", H100, Serving(), 8000, (195.2, 0, 0.3825, 28.16, 0, 223.7), 27.2, 239.7),
        ("qwen3-30b-a3b", A100, Serving(), 128, (1.2049, 34.67, 0.3722, 0.0319, 0, 36.28), 40.8, 41.06),
        ("deepseek-r1", H100, Serving(), 8192, (13.66, 47.03, 0.0422, 17.59, 89.55, 167.9), 192.2, 208.5),
    ],
)
def test_parts_of_prefill(  # noqa: PLR0913, PLR0917 - one example
    name: str, platform: Pair, serving: Serving, tokens: int, parts: tuple[float, ...], floor: float, prefill: float
) -> None:
    """Examples 4 to 6, in ms: dense layers, experts, head, attention, adding over GPUs, their sum."""
    model, found = SOURCES.models[name], served(name, platform, serving)
    of = costs.prefill_parts(model, found.machine, 0.0, float(tokens), "full")
    ms = [1e3 * s for s in (of.linear_s, of.expert_s, of.head_s, of.attention_s, of.reduce_s, of.compute_s)]
    assert ms == [pytest.approx(value, rel=2e-3) for value in parts]
    assert of.floor_s * 1e3 == close(floor)
    assert costs.prefill_s(model, found.machine, 0.0, float(tokens), "full") * 1e3 == close(prefill)


def test_eight_gpus_share_a_node() -> None:
    """Example 7: 15e9 / 8 = 1.875e9 each; 65,000 x 192,512 / 4 bytes; POH 68.7, where the paper measured 86."""
    found = served("qwen3-235b-a22b", H100, NODE)
    setting = Setting(SOURCES.models["qwen3-235b-a22b"], found.machine, "bf16", "full")
    load, compute = setting.transfer_s(65_000.0), setting.compute_s(65_000.0, 64.0)
    assert (load, compute * 1e3, load / compute) == (close(1.6684), close(24.27), close(68.74))


@pytest.mark.parametrize(("batch", "ms", "overhead"), [(1, 23.15, 0.306), (8, 38.28, 1.479), (64, 271.2, 1.670)])
def test_batch(batch: int, ms: float, overhead: float) -> None:
    """Example 8: weights are read once an iteration, whatever number of requests it computes."""
    found = served("qwen3-235b-a22b", H100, Serving(gpus=8, batch=batch))
    setting = Setting(SOURCES.models["qwen3-235b-a22b"], found.machine, "bf16", "full")
    load, compute = setting.transfer_s(8000.0), setting.compute_s(8000.0, 128.0)
    assert (compute * 1e3, batch * load / compute) == (close(ms), close(overhead))


def test_pools_of_a_published_case() -> None:
    """LMCache issue 1241, two RTX 4090, fp8: a pool of 18,144 tokens for Qwen2.5-32B, 87,584 for Qwen3-30B-A3B."""
    pair = Pair("rtx-4090", "pcie4-x16", "physical")
    for name, tokens, kv_bytes in (("qwen2.5-32b", 19_232, 262_144), ("qwen3-30b-a3b", 83_497, 98_304)):
        found = served(name, pair, Serving(weight_dtype="fp8"))
        assert found.gpus == 2
        assert found.fit is not None
        assert found.fit.pool_bytes / (kv_bytes / 2) == close(tokens)


def test_a_latent_is_on_every_gpu() -> None:
    """V3 on 16 GPUs in bf16: 2 x 37.55e9 / 70,272 x 54.4e9 / (16 x 989.5e12 x 0.25) = 14.7; one GPU had 235."""
    found = served("deepseek-v3", H100, Serving(compute_dtype="bf16"))
    assert found.gpus == 16
    setting = Setting(SOURCES.models["deepseek-v3"], found.machine, "bf16", "2n")
    assert kappa_crit_of(setting, 100) == pytest.approx(14.7, abs=0.05)

"""What is said beside a figure: heads that GPUs cannot share, a context that is too long, what the tables lack."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipelines.hardware import caveats
from pipelines.hardware.machines import read_sources

MODELS = read_sources().models


@pytest.mark.parametrize(
    ("name", "gpus", "said"),
    [
        # 64 query heads, 8 KV heads
        ("llama-3.1-70b", 1, []),
        ("llama-3.1-70b", 8, []),
        ("llama-3.1-70b", 16, ["16 GPUs share 8 KV heads of llama-3.1-70b: each is on 2 GPUs"]),
        # 64 mod 12 = 4, and neither 8 mod 12 nor 12 mod 8 is 0
        ("llama-3.1-70b", 12, ["do not divide the 64 query heads", "the 8 KV heads of llama-3.1-70b do not divide"]),
        # 128 query heads, one latent
        ("deepseek-v3", 8, ["8 GPUs share 1 KV head of deepseek-v3: its latent is on each GPU"]),
        # 64 mod 3 = 1; one latent is on each of any number
        ("kimi-k2", 3, ["do not divide the 64 query heads", "its latent is on each GPU"]),
    ],
)
def test_heads_on_gpus(name: str, gpus: int, said: list[str]) -> None:
    """Even splits are silent; repeated heads are told, splits that no engine makes too."""
    found = caveats.tensor_parallel_caveats(MODELS[name], gpus)
    assert len(found) == len(said)
    assert all(words in sentence for words, sentence in zip(said, found, strict=True))


def test_beyond_the_context() -> None:
    """131,072 tokens of K and T fit into llama-3.1, one more does not."""
    row = MODELS["llama-3.1-70b"]
    assert caveats.context_caveats(row, 131_072) == []
    (said,) = caveats.context_caveats(row, 131_073)
    assert "131,073 is beyond the context of llama-3.1-70b, 131,072 tokens" in said


def test_a_format_of_its_own() -> None:
    """The compressed cache of DeepSeek-V4 is not half as large at fp8, nor a quarter at int4; others are as told."""
    assert caveats.format_caveats(MODELS["deepseek-v4-pro"], "bf16") == []
    assert "its windows are half of bf16's" in caveats.format_caveats(MODELS["deepseek-v4-pro"], "fp8")[0]
    assert "bf16 scaled" in caveats.format_caveats(MODELS["deepseek-v4-pro"], "int4")[0]
    assert caveats.format_caveats(MODELS["deepseek-v3"], "fp8") == []


def test_what_the_tables_lack_is_named() -> None:
    """Parameters, or the columns of an indexer; the paper's basis wants 2N alone."""
    unsized = replace(MODELS["kimi-k3"], active_params=None)
    assert "without active_params of kimi-k3" in str(caveats.missing(unsized, "physical"))
    bare = replace(MODELS["glm-5"], index_heads=None)
    assert "need index_heads, which no row gives" in str(caveats.missing(bare, "physical"))
    assert caveats.missing(bare, "paper") is None
    assert caveats.missing(MODELS["glm-5"], "physical") is None


@pytest.mark.parametrize(
    ("name", "dtype", "words"),
    [
        # 36,864 x 0.625 / 2 = 11,520 and 4,718,592 x 0.3125 = 1,474,560
        ("gpt-oss-120b", "int4", "11,520 bytes a cached token at int4 and 1,474,560 where its windows are full"),
        # 61 x (656 + 132) = 48,068
        ("deepseek-v3.2", "fp8", "48,068 bytes a cached token at fp8, 8,052 of them its indexer's keys"),
        # a state keeps its format
        ("kimi-k3", "fp8", "13,824 bytes a cached token at fp8 and a state of 449,372,160"),
    ],
)
def test_why_there_is_no_kappa_crit(name: str, dtype: str, words: str) -> None:
    """The bytes stand in the place of a kappa_crit."""
    assert words in str(caveats.why_no_kappa_crit(MODELS[name], dtype))


def test_a_kappa_crit_needs_no_reason() -> None:
    """Models with one have none."""
    assert caveats.why_no_kappa_crit(MODELS["llama-3.1-70b"], "bf16") is None
